"""Many draws on the page, the fields of Compare as a run was asked, and what a bad lane leaves alone."""

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from playground.core.decoding import GREEDY, Decoding
from playground.core.request import Request
from playground.core.run import Run
from playground.core.trace import dumps_trace, loads_trace
from playground.core.tree import tree
from playground.ui.compare_fields import fields_of_run
from playground.ui.draws import _drawing
from playground.ui.lane_tools import _writing
from playground.ui.lanes import read_lanes
from playground.ui.session import Tab
from playground.ui.streaming import Service
from playground.ui.tab_compare import PLACE, _generate, suggestion

SHOWN = [True, True, False, False]
NAMES = ["greedy", "own", "own", "own"]
SPECS = ["greedy", "temperature=0.9,top_p=0.8,seed=40", "greedy", "greedy"]


def who(tab: Tab) -> str:
    return json.dumps({"session": tab.token, "language": "en"})


def asked(tab: Tab, specs: list[str] = SPECS, count: Any = 3, shown: list[bool] = SHOWN) -> list[Any]:
    return ["tests/none", "abcdef", "raw", "", count, shown, *NAMES, *specs, who(tab)]


def test_one_lane_is_drawn_from_one_prefill_with_seeds_in_a_row_and_opens_again(
    serviced: Callable[..., Service], echo: Any, tab: Tab, packets: Callable[..., list[dict[str, Any]]]
) -> None:
    backend = echo()
    service = serviced(backend)
    sent = packets(_drawing(service, PLACE)("B", 64, *asked(tab)))
    events = [event for packet in sent for event in packet.get("events", ())]
    kinds = [event["event"] for event in events]
    assert (
        kinds.count("prefilled") == 1 and kinds.count("stepped") == 64 * 3 and kinds.count("finished") == 64
    )
    lanes = events[0]["request"]["lanes"]
    assert [lane["seed"] for lane in lanes] == list(range(40, 104))
    steps = [event for event in events if event["event"] == "stepped"]
    assert max(len(json.dumps(step)) for step in steps) < 600  # 64 of them come at a time
    assert {"token", "text", "processed_probability", "kept_mass", "end_seconds"} <= set(steps[0])
    found = service.runs.latest(tab.key(PLACE))
    assert found is not None and isinstance(found.record, Run)
    (again,) = loads_trace(dumps_trace([found.record])).runs
    assert tree(again.lanes) == tree(found.record.lanes) and len(again.lanes) == 64


@pytest.mark.parametrize(
    ("lane", "times", "specs", "said"),
    [
        ("A", 16, SPECS, "no draw"),
        ("B", 17, SPECS, "8, 16, 32 or 64"),
        ("B", 10**9, SPECS, "8, 16, 32 or 64"),
        ("AB", 16, SPECS, "8, 16, 32 or 64"),
        ("", 16, SPECS, "8, 16, 32 or 64"),
        (["B"], 16, SPECS, "8, 16, 32 or 64"),
        ("B", "16", SPECS, "8, 16, 32 or 64"),
        ("B", 16, ["greedy", "temperature=-1", "greedy", "greedy"], "Run B: temperature must be"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence_and_starts_nothing(
    serviced: Callable[..., Service], echo: Any, tab: Tab, packets: Any,
    lane: Any, times: Any, specs: list[str], said: str,
) -> None:  # fmt: skip
    service = serviced(echo())
    (packet,) = packets(_drawing(service, PLACE)(lane, times, *asked(tab, specs)))
    assert said in packet["error"] and packet["error"].endswith(".") and not packet.get("events")
    assert service.runs.latest(tab.key(PLACE)) is None


def test_a_bad_lane_is_named_and_leaves_the_run_on_the_page_whole(
    serviced: Callable[..., Service], echo: Any, tab: Tab, packets: Any
) -> None:
    service = serviced(echo())
    list(_generate(service)(*asked(tab)))
    before = service.runs.latest(tab.key(PLACE))
    assert before is not None and before.done
    for bad in ("top_p=7", "x=1", "warm", "temperature=nan", "stop=" + "a" * 2000):
        (packet,) = packets(_generate(service)(*asked(tab, ["greedy", bad, "greedy", "greedy"])))
        assert packet["error"].startswith("Run B: ") and "run" not in packet
    (packet,) = packets(_generate(service)(*asked(tab, count=10**9)))
    assert "max_new_tokens" in packet["error"]
    assert service.runs.latest(tab.key(PLACE)) is before and not before.control.stopped


LANES = (
    replace(GREEDY, max_new_tokens=33),
    Decoding(temperature=0.5, top_k=3, seed=9, max_new_tokens=33, stop=("a, b", 'c"\n')),
    Decoding(temperature=1.2, min_p=0.1, seed=2**53 - 1, max_new_tokens=7, order=("top_p", "min_p", "temperature")),
)  # fmt: skip


def test_the_fields_say_what_the_run_was_asked() -> None:
    values = fields_of_run(Request("hello", LANES, chat=False, system="Be brief."))
    assert values is not None and len(values) == 17
    prompt, mode, system, count, shown, *rest = values
    assert (prompt, mode, system, count, shown) == ("hello", "raw", "Be brief.", 33, [True] * 3 + [False])
    read = read_lanes(shown, rest[4:8], rest[8:12], count, "en")
    assert [replace(lane, name="") for lane in read] == list(LANES)
    assert rest[4] == "greedy"


def test_draws_fill_one_row_and_what_the_page_cannot_say_leaves_it_alone() -> None:
    draws = tuple(Decoding(seed=5 + i, max_new_tokens=20) for i in range(16))
    values = fields_of_run(Request("a\ud800b", draws))
    assert values is not None and values[0] == "a\ufffdb" and values[4] == [True, True, False, False]
    assert values[13:15] == ["greedy", "temperature=0.7,top_p=0.9,seed=5"]
    several = tuple(Decoding(top_k=1 + i) for i in range(9))
    values = fields_of_run(Request("x", several))
    assert values is not None and values[4] == [True] * 4
    assert fields_of_run(Request("x", LANES[:1])) is None
    assert fields_of_run(Request("x", (GREEDY, Decoding(temperature=-3)))) is None


def test_the_models_own_settings_are_there_by_name_and_act_only_when_picked(
    serviced: Callable[..., Service], echo: Any
) -> None:
    backend = echo()
    service = serviced(backend)
    assert suggestion(service, "tests/none") is None  # nothing is loaded yet
    list(service.models.ready("tests/none"))
    assert suggestion(service, "tests/none") is None  # the model brings none
    own = Decoding(temperature=0.6, top_k=50, top_p=0.95, repetition_penalty=1.1)
    backend.model = SimpleNamespace(suggested=own)
    spec = suggestion(service, "tests/none")
    assert spec == "temperature=0.6,top_k=50,top_p=0.95,seed=5,repetition_penalty=1.1"
    (lane, _) = read_lanes(SHOWN, NAMES, ["greedy", "temperature=0.6", "", ""], 8, "en")[::-1]
    assert (lane.top_k, lane.repetition_penalty) == (0, 1.0)  # case 15: only visible settings act


@pytest.mark.parametrize("kind", ["python", "command", "curl"])
def test_half_a_surrogate_pair_reaches_no_copied_text(
    serviced: Callable[..., Service], echo: Any, tab: Tab, kind: str
) -> None:
    model, prompt, mode, system, count, *rest = asked(tab)
    update, _ = _writing(serviced(echo()), kind)(
        model, prompt + "\ud83d", mode, system, count, *rest[:-1], "http://127.0.0.1:1/", rest[-1]
    )
    update["value"].encode("utf-8")
    assert "abcdef" in update["value"]
