"""Requests that go on from a step of a recorded run, and the sentence for a step that is none."""

from collections.abc import Callable
from typing import Any

import pytest

from playground.core.branch import NoSuchStep, continued
from playground.core.decoding import InvalidSetting
from playground.core.refusal import Refused
from playground.core.run import Run


def test_a_run_is_continued_from_a_step_with_another_token(run_of: Callable[..., Run]) -> None:
    run = run_of([5, 6, 7], [8, 9])
    request = continued(run, 1, lane=1, forced=40)
    assert request.prompt_ids == (1, 2, 3, 4, 8, 40)
    assert request.parent is not None
    assert (request.parent.run, request.parent.step, request.parent.lane) == ("r", 2, 1)
    assert continued(run).prompt_ids == (1, 2, 3, 4, 5, 6, 7)


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"step": 4}, NoSuchStep), ({"step": -1}, NoSuchStep), ({"step": 1.5}, NoSuchStep),
        ({"step": True}, NoSuchStep), ({"step": "1"}, NoSuchStep), ({"lane": 2}, NoSuchStep),
        ({"lane": 0.0}, NoSuchStep), ({"lane": None}, NoSuchStep), ({"forced": -1}, InvalidSetting),
        ({"forced": 49_152}, InvalidSetting), ({"forced": 1.5}, InvalidSetting), ({"forced": "a"}, InvalidSetting),
    ],
)  # fmt: skip
def test_a_step_that_is_none_is_one_sentence(
    run_of: Callable[..., Run], wrong: dict[str, Any], kind: type[Refused]
) -> None:
    with pytest.raises(kind) as refused:
        continued(run_of([5, 6, 7]), **wrong)
    assert str(refused.value).endswith(".")
