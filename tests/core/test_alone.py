"""One lane of a comparison as a run: its own steps and end, and nothing of the others."""

from dataclasses import replace

import pytest

from playground.core.alone import alone
from playground.core.branch import NoSuchStep, continued
from playground.core.events import Failed, Finished
from playground.core.run import fold
from playground.core.trace import dumps_trace, loads_trace
from tests.browser.conftest import made_run


def test_a_lane_alone_has_its_own_steps_settings_and_end() -> None:
    several = made_run(12, lanes=3)
    for lane in range(3):
        found = alone(several, lane)
        (only,) = found.lanes
        assert (
            only.token_ids == several.lanes[lane].token_ids and only.decoding == several.lanes[lane].decoding
        )
        assert only.text == several.lanes[lane].text and found.done and only.finish_reason == "max_new_tokens"
        assert found.prompt_ids == several.prompt_ids and found.prefilled == several.prefilled
        assert loads_trace(dumps_trace([found])).runs[0].events == found.events
        assert continued(found, 5).lanes[0].seed == several.lanes[lane].decoding.seed
    assert len({alone(several, lane).lanes[0].decoding.seed for lane in range(3)}) == 3


def test_another_lanes_failure_is_not_its_own_and_the_runs_is() -> None:
    events = [event for event in made_run(6, lanes=2).events if not isinstance(event, Finished)]
    ends = [event for event in made_run(6, lanes=2).events if isinstance(event, Finished)]
    run = fold([*events, Failed("recorded", 0, "It broke.", 0.5), ends[1]])
    assert alone(run, 0).lanes[0].failed is not None and alone(run, 1).lanes[0].failed is None
    whole = fold([*events, Failed("recorded", None, "All broke.", 0.5)])
    assert all(alone(whole, lane).failed is not None for lane in (0, 1))


@pytest.mark.parametrize("lane", [-1, 2, True, None, "0"])
def test_a_lane_that_is_none_is_refused(lane: object) -> None:
    with pytest.raises(NoSuchStep, match="has no lane"):
        alone(replace(made_run(3, lanes=2)), lane)  # type: ignore[arg-type]
