"""What a tab is sent: its own run and nobody else's, each event once, refusals as sentences."""

import json
import threading
from dataclasses import replace
from typing import Any

import gradio as gr
import pytest

from playground.core.control import Control
from playground.core.decoding import GREEDY, Decoding
from playground.core.request import Request
from playground.core.run import fold
from playground.engine.progress import CannotLoad, Progress
from playground.ui.session import Tab
from playground.ui.tab_playground import first_sight, missing, resumed

ASKED = Request("abcdefgh", (GREEDY,))


def events_of(packets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: dict[int, dict[str, Any]] = {}
    for packet in packets:
        for index, event in enumerate(packet.get("events", ()), start=packet.get("first", 0)):
            assert seen.setdefault(index, event) == event
    assert sorted(seen) == list(range(len(seen))), "an event is missing"
    return [seen[i] for i in sorted(seen)]


def test_a_run_arrives_whole(serviced: Any, echo: Any, packets: Any, tab: Tab) -> None:
    sent = packets(serviced(echo()).generate(tab, "run", None, ASKED))
    kinds = [event["event"] for event in events_of(sent)]
    assert kinds == ["started", "prefilled", *["stepped"] * 8, "finished"]
    assert [packet["seq"] for packet in sent] == sorted({packet["seq"] for packet in sent})


def test_a_page_without_a_token_gets_a_sentence(serviced: Any, echo: Any, packets: Any) -> None:
    backend = echo()
    sent = packets(serviced(backend).generate(Tab(), "run", None, ASKED))
    assert "reload" in sent[-1]["error"]
    assert backend.forwards == 0


@pytest.mark.parametrize(
    "asked",
    [Request("", (GREEDY,)), Request("a", (Decoding(temperature=-1),)), Request("a", (Decoding(top_p=2),)),
     Request("a", (Decoding(temperature=float("nan")),)), Request("a", (Decoding(max_new_tokens=0),))],
)  # fmt: skip
def test_a_refusal_is_one_sentence_and_no_run(
    serviced: Any, echo: Any, packets: Any, tab: Tab, asked: Request
) -> None:
    sent = packets(serviced(echo()).generate(tab, "run", None, asked))
    assert sent[-1]["error"].endswith(".")
    assert not any("run" in packet for packet in sent), "the page would drop the run that it shows"


def test_stop_ends_the_run_and_keeps_its_steps(serviced: Any, echo: Any, packets: Any, tab: Tab) -> None:
    service = serviced(echo(pause_seconds=0.05))
    stream = service.generate(tab, "run", None, ASKED)
    early = [next(stream) for _ in range(6)]
    service.stop(tab, "run")
    events = events_of(packets([*early, *stream]))
    assert events[-1]["reason"] == "cancelled"
    assert len(events) < 11


def test_a_new_run_silences_the_old_stream(serviced: Any, echo: Any, packets: Any, tab: Tab) -> None:
    service = serviced(echo(pause_seconds=0.05))
    list(service.introduce(tab))  # the model is there
    old = service.generate(tab, "run", None, ASKED)
    first = json.loads(next(old))
    new = packets(service.generate(tab, "run", None, ASKED))
    assert events_of(new)[-1]["reason"] == "max_new_tokens"
    assert list(old) == []
    assert first.get("run") != new[-1]["run"]


def test_stop_while_the_model_loads_means_no_run(
    serviced: Any, echo: Any, packets: Any, tab: Tab, gate: threading.Event
) -> None:
    backend = echo()

    def load(name: str, report: Any) -> Any:
        report(Progress("download", 5, 10))
        gate.wait(10)
        return backend

    service = serviced(loader=load)
    stream = service.generate(tab, "run", None, ASKED)
    progress = json.loads(next(stream)), json.loads(next(stream))
    assert progress[-1]["progress"] == {
        "sentence": "Downloading the model", "done_bytes": 5, "total_bytes": 10,
    }  # fmt: skip
    service.stop(tab, "run")
    gate.set()
    assert not any("run" in packet for packet in packets(stream))
    assert backend.forwards == 0


def test_generate_while_the_model_loads_runs_once_it_is_there(
    serviced: Any, echo: Any, packets: Any, tab: Tab, gate: threading.Event
) -> None:
    service = serviced(loader=lambda name, report: gate.wait(10) and echo())
    stream = service.generate(tab, "run", None, ASKED)
    next(stream)
    gate.set()
    assert events_of(packets(stream))[-1]["event"] == "finished"


def test_a_model_that_cannot_be_loaded_is_a_sentence(serviced: Any, packets: Any, tab: Tab) -> None:
    def load(name: str, report: Any) -> Any:
        raise CannotLoad("There is no such model.")

    sent = packets(serviced(loader=load).generate(tab, "run", None, ASKED))
    assert sent[-1]["error"] == "There is no such model."


def test_a_reload_gets_the_run_from_its_first_event(serviced: Any, echo: Any, packets: Any, tab: Tab) -> None:
    service = serviced(echo())
    run = packets(service.generate(tab, "run", None, ASKED))[-1]["run"]
    again = packets(resumed(service, "run", {"session": tab.token, "run": run}))
    assert len(events_of(again)) == 11


def test_nobody_else_gets_the_run(serviced: Any, echo: Any, packets: Any, tab: Tab) -> None:
    service = serviced(echo())
    run = packets(service.generate(tab, "run", None, ASKED))[-1]["run"]
    stranger = Tab("f" * 32)
    asked = {"session": stranger.token, "run": run, "from": 0}
    assert list(resumed(service, "run", asked)) == []
    assert json.loads(missing(service, "run", asked))["events"] == []


def test_a_recorded_run_is_there_at_once_but_not_in_the_way_of_an_own_one(
    serviced: Any, echo: Any, packets: Any, tab: Tab
) -> None:
    service = serviced(loader=lambda name, report: threading.Event().wait(60))
    recorded = fold(echo().stream(replace(ASKED, run="recorded"), Control()))
    shown = json.loads(first_sight(service, "run", {"session": tab.token, "run": None}, recorded))
    assert (shown["label"], len(shown["events"])) == ("recorded", 11)
    own = service.runs.start(tab.key("run"), echo(), ASKED)
    shown = first_sight(service, "run", {"session": tab.token, "run": own.id}, recorded)
    assert shown == gr.skip()


def test_a_stop_between_the_last_look_and_the_start_is_not_lost(
    serviced: Any, echo: Any, packets: Any, tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = echo(pause_seconds=0.05)
    service = serviced(backend)
    start, stopping = service.runs.start, []

    def late(*asked: Any, **how: Any) -> Any:
        stopping.append(threading.Thread(target=service.stop, args=(tab, "run")))
        stopping[0].start()
        stopping[0].join(0.1)
        return start(*asked, **how)

    monkeypatch.setattr(service.runs, "start", late)
    events = events_of(packets(service.generate(tab, "run", None, ASKED)))
    assert events[-1]["event"] == "failed" or events[-1]["reason"] == "cancelled"
    assert backend.forwards < 8


def test_a_stop_that_arrives_after_a_later_generate_stops_nothing(
    serviced: Any, echo: Any, packets: Any, tab: Tab
) -> None:
    """Case 20: Stop and Generate at 0 ms are two requests, and the second one may arrive first."""
    service = serviced(echo(pause_seconds=0.01))
    stream = service.generate(replace(tab, wish=7), "run", None, ASKED)
    early = [next(stream) for _ in range(3)]
    service.stop(replace(tab, wish=6), "run")
    assert events_of(packets([*early, *stream]))[-1]["reason"] == "max_new_tokens"
    late = packets(service.generate(replace(tab, wish=5), "run", None, ASKED))
    assert not any("run" in packet for packet in late)


def test_the_last_of_two_wishes_is_what_runs(
    serviced: Any, echo: Any, packets: Any, tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serviced(echo(pause_seconds=0.02))
    start, second = service.runs.start, []

    def late(session: str, backend: Any, request: Request, **how: Any) -> Any:
        if request.prompt == "first":
            other = service.generate(tab, "run", None, Request("second", (GREEDY,)))
            second.append(threading.Thread(target=lambda: list(other)))
            second[0].start()
            second[0].join(0.1)
        return start(session, backend, request, **how)

    monkeypatch.setattr(service.runs, "start", late)
    list(service.generate(tab, "run", None, Request("first", (GREEDY,))))
    second[0].join(5)
    assert service.runs.latest(tab.key("run")).run.started.request.prompt == "second"


@pytest.mark.parametrize(
    ("first", "count"), [(0, 11), (7, 4), (11, 0), (99, 0), (-1, 0), ("0", 0), (None, 0)]
)
def test_a_gap_is_filled_from_where_it_begins(
    serviced: Any, echo: Any, packets: Any, tab: Tab, first: Any, count: int
) -> None:
    service = serviced(echo())
    run = packets(service.generate(tab, "run", None, ASKED))[-1]["run"]
    asked = {"session": tab.token, "run": run, "from": first}
    assert len(json.loads(missing(service, "run", asked))["events"]) == count
