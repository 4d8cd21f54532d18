"""Someone else's metric in the loop: what it sees, and what happens when it fails."""

import logging
from typing import Any

import pytest
import torch

from playground.core.decoding import Decoding
from playground.core.events import Prefilled, Stepped
from playground.core.request import Request
from playground.core.run import fold
from playground.engine.decode import stream
from playground.engine.model import LoadedModel

REQUEST = Request("hello", (Decoding(seed=1, max_new_tokens=4, top_p=0.9, temperature=1.0),) * 2, chat=False)


def test_a_callback_sees_the_logits_behind_each_record(model: LoadedModel) -> None:
    seen: list[tuple[str, float]] = []
    kept: list[Any] = []

    class Metric:
        def on_prefill(self, event: Prefilled, live: Any) -> None:
            seen.append(("prefill", live.cache.get_seq_length()))

        def on_step(self, event: Stepped, live: Any) -> None:
            row = live.lanes.index(event.lane)
            logprob = live.raw_logits[row].log_softmax(-1)[event.token.id]
            assert float(logprob) == pytest.approx(event.raw_logprob, abs=1e-5)
            share = live.processed_logits[row].softmax(-1)[event.token.id]
            assert float(share) == pytest.approx(event.processed_probability, abs=1e-5)
            assert live.raw_logits.shape == live.processed_logits.shape == (2, len(model.tokenizer))
            seen.append(("step", event.step))
            kept.append(live)

        def on_finish(self, event: Any) -> None:
            seen.append(("finish", event.lane))

    run = fold(stream(model, REQUEST, callbacks=[Metric()]))
    assert seen[0] == ("prefill", len(run.prompt_ids))
    assert [s for s in seen if s[0] == "step"] == [("step", k) for k in range(4) for _ in range(2)]
    assert [s for s in seen if s[0] == "finish"] == [("finish", 0), ("finish", 1)]
    assert kept[0].raw_logits is None and kept[0].cache is None


def test_a_callback_that_raises_is_detached_and_the_run_goes_on(
    model: LoadedModel, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    class Broken:
        def on_step(self, event: Stepped, live: Any) -> None:
            calls.append(event.step)
            raise KeyError("mine")

    with caplog.at_level(logging.ERROR):
        run = fold(stream(model, REQUEST, callbacks=[Broken()]))
    assert calls == [0] and "detached" in caplog.text
    assert [len(lane.steps) for lane in run.lanes] == [4, 4]


def test_events_hold_no_tensor(model: LoadedModel) -> None:
    def walk(value: Any) -> None:
        assert not isinstance(value, torch.Tensor)
        for item in value if isinstance(value, tuple | list) else ():
            walk(item)
        for name in getattr(value, "__slots__", ()):
            walk(getattr(value, name))

    for event in stream(model, REQUEST):
        walk(event)


def test_a_callback_may_run_the_model_itself(model: LoadedModel) -> None:
    """It is called within a turn; another run inside must not wait for that turn to end."""
    inner: list[int] = []

    class Nested:
        def on_prefill(self, event: Prefilled, live: Any) -> None:
            request = Request("own", (Decoding(strategy="greedy", max_new_tokens=2),), chat=False)
            inner.extend(fold(stream(model, request)).lanes[0].token_ids)

    run = fold(stream(model, REQUEST, callbacks=[Nested()]))
    assert len(inner) == 2 and len(run.lanes[0].steps) == 4
