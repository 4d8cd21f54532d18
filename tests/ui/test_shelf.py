"""The shelf of traces: whose they are, opened as runs of the tab, brought, saved, refused in a sentence."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from playground.backends.hosted import Hosted, Runs
from playground.core.decoding import Decoding
from playground.core.race import Race
from playground.core.request import Request
from playground.core.trace import BadTrace, dumps_trace, load_trace, loads_trace
from playground.settings import assets_dir
from playground.ui.archive import Archive
from playground.ui.session import Tab
from playground.ui.shelf import BROUGHT_BYTES, BROUGHT_RECORDS, Shelf
from playground.ui.shelf_list import ALL, file_of, listing
from playground.ui.streaming import Service, told
from playground.ui.tab_traces import _Opener

TRACES = assets_dir() / "traces"
OTHER = Tab("f" * 32)


@pytest.fixture
def service(serviced: Callable[..., Service], echo: Any) -> Service:
    return serviced(echo())


@pytest.fixture
def shelf(service: Service) -> Shelf:
    return Shelf(service, TRACES)


def made(service: Service, tab: Tab, prompt: str = "abc", lanes: int = 1) -> Hosted[Any]:
    place = "run" if lanes == 1 else "compare"
    list(service.generate(tab, place, None, Request(prompt, (Decoding(seed=3),) * lanes)))
    found = service.runs.latest(tab.key(place))
    assert found is not None
    return found


def cards(shelf: Shelf, tab: Tab, group: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = listing(shelf, tab)["groups"][group]["rows"]
    return found


def test_a_tab_sees_its_own_runs_youngest_first_and_nobody_elses(
    shelf: Shelf, service: Service, tab: Tab
) -> None:
    made(service, tab, "first")
    made(service, tab, "second", lanes=3)
    made(service, OTHER, "secret")
    assert [(card["title"], card["pill"]) for card in cards(shelf, tab)] == [
        ("second", "yours"), ("first", "yours")
    ]  # fmt: skip
    assert "3 runs side by side" in cards(shelf, tab)[0]["facts"]
    assert "T 0.7, top-p 0.9, seed 3\u00a0· 5 tokens" in cards(shelf, tab)[1]["facts"]
    secret = cards(shelf, OTHER)[0]["tools"][0]["key"]
    for wrong in (secret, "own:", "", None, 7, "shipped:playground:9", "saved:../x", "saved:race.jsonl"):
        with pytest.raises(BadTrace, match="no longer here"):
            shelf.open(tab, wrong)
    assert shelf.own(Tab()) == []


def test_the_shipped_ones_are_listed_with_their_lessons_in_both_languages(shelf: Shelf, tab: Tab) -> None:
    english, chinese = cards(shelf, tab, 1), cards(shelf, replace(tab, language="zh"), 1)
    assert len(english) == len(chinese) >= 7
    assert all(card["lesson"] and card["pill"] == "recorded" for card in english)
    assert not {card["lesson"] for card in english} & {card["lesson"] for card in chinese}


@pytest.mark.parametrize(("key", "place"), [("playground", "run"), ("compare", "compare"), ("race", "race")])
def test_what_is_opened_is_a_run_of_the_tab_with_the_same_events(
    shelf: Shelf, service: Service, tab: Tab, key: str, place: str
) -> None:
    hosted = shelf.open(tab, f"shipped:{key}:0")
    (record,) = load_trace(TRACES / f"{key}.jsonl").records
    assert service.runs.latest(tab.key(place)) is hosted
    assert told(hosted, 0, hosted.events)["label"] == "opened"
    if isinstance(record, Race):
        assert hosted.record.raced == record.raced
    else:
        assert [replace(e, run="") for e in hosted.events[1:]] == [
            replace(e, run="") for e in record.events[1:]
        ]
    assert cards(shelf, tab) == []  # an example is not listed again


def test_an_older_run_is_opened_again_without_a_copy(shelf: Shelf, service: Service, tab: Tab) -> None:
    first, second = made(service, tab, "first"), made(service, tab, "second")
    assert shelf.open(tab, f"own:{first.id}") is first
    assert service.runs.latest(tab.key("run")) is first
    assert service.runs.of(tab.key("run")) == [second, first]


def test_exported_and_brought_to_another_server_it_is_the_same(
    shelf: Shelf, service: Service, tab: Tab, serviced: Callable[..., Service], echo: Any
) -> None:
    runs = [made(service, tab, "one"), made(service, tab, "two", lanes=2)]
    text = file_of(shelf, tab, ALL, "jsonl")["text"]
    assert loads_trace(text).records == [run.record for run in runs]
    elsewhere = Shelf(serviced(echo()), TRACES)
    hosted, notes = elsewhere.bring(tab, "all.jsonl", text)
    assert notes == []
    assert [[lane.token_ids for lane in one.record.lanes] for one in hosted] == [
        [lane.token_ids for lane in run.record.lanes] for run in runs
    ]
    assert [(card["title"], card["pill"]) for card in cards(elsewhere, tab)] == [
        ("one", "imported"), ("two", "imported")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "does not begin like a First Token trace"),
        ("<script>", "does not begin like"),
        ('{"format": "first-token-trace", "version": 99}', "newer than the 1"),
        ('{"format": "first-token-trace", "version": 1, "requests": []}\n', "x.jsonl holds no run"),
        ('{"format": "first-token-trace", "version": 1}\n{"event": "started"}\n', "Line 2"),
        ("x" * (BROUGHT_BYTES + 1), "x.jsonl is larger than 16 MiB"),
        ("聪" * (BROUGHT_BYTES // 3 + 1), "x.jsonl is larger than 16 MiB"),
    ],
)
def test_a_file_that_is_no_trace_is_a_sentence_and_changes_nothing(
    shelf: Shelf, service: Service, tab: Tab, text: str, sentence: str
) -> None:
    run = made(service, tab)
    with pytest.raises(BadTrace, match=sentence):
        shelf.bring(tab, "x.jsonl", text)
    assert service.runs.of(tab.key("run")) == [run]


def test_a_file_of_many_runs_is_taken_in_part_and_says_so(shelf: Shelf, service: Service, tab: Tab) -> None:
    run = made(service, tab).record
    hosted, notes = shelf.bring(tab, "x.jsonl", "\ufeff" + dumps_trace([run] * (BROUGHT_RECORDS + 1)))
    assert (len(hosted), notes) == (BROUGHT_RECORDS, ["Only the first 24 runs of the file were taken."])
    assert service.runs.latest(tab.key("run")) is hosted[0]
    assert all(one.done and not one.record.lanes[0].failed for one in hosted)


def test_a_record_that_breaks_off_says_so(shelf: Shelf, service: Service, tab: Tab) -> None:
    text = dumps_trace([made(service, tab).record])
    (hosted,), notes = shelf.bring(tab, "x.jsonl", text[:-20])
    assert "cut off" in notes[0]
    assert "breaks off" in hosted.record.failed.message


def test_files_have_plain_names(shelf: Shelf, service: Service, tab: Tab) -> None:
    run = made(service, tab, '../<b>"What?" 聪\n')
    assert file_of(shelf, tab, f"own:{run.id}", "csv")["name"] == "b-what-聪.csv"
    assert file_of(shelf, tab, "shipped:race:0", "html")["name"] == "race.html"


def test_every_run_is_written_into_the_folder_and_listed_only_where_nobody_else_comes(
    serviced: Callable[..., Service], echo: Any, tab: Tab, tmp_path: Path
) -> None:
    service = serviced(echo())
    archive = Archive(tmp_path / "kept")
    service.runs = Runs(at_end=archive)
    run = made(service, tab)
    _until(lambda: len(archive.listed()) == 1)
    (saved,) = archive.listed()
    assert (saved.prompt, load_trace(tmp_path / "kept" / saved.name).records) == ("abc", [run.record])
    (tmp_path / "secret.jsonl").write_text("{}")
    assert archive.path("../secret.jsonl") is None
    shelf = Shelf(service, TRACES, archive)
    assert cards(shelf, tab, 2)[0]["title"] == "abc"
    assert shelf.open(tab, f"saved:{saved.name}").record.lanes[0].text == "abc"
    assert len(archive.listed()) == 1  # what is opened is not written again
    service.models.open_names = False
    assert len(listing(Shelf(service, TRACES, archive), tab)["groups"]) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_what_is_no_file_in_the_folder_is_neither_listed_nor_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    archive = Archive(tmp_path)
    assert archive.listed() == []
    assert archive.path("pipe.jsonl") is None


def test_a_folder_that_cannot_be_written_harms_no_run(echo: Any, tab: Tab, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    runs = Runs(at_end=Archive(tmp_path / "file"))
    run = runs.start(tab.key("run"), echo(), Request("abc"))
    for _ in run.follow():
        pass
    assert run.run.lanes[0].text == "abc"


class _Event:
    def __init__(self, data: object) -> None:
        self._data = data


def answers(values: Any) -> list[Any]:
    return [[json.loads(v) if isinstance(v, str) and v.startswith("{") else v for v in row] for row in values]


def test_opening_switches_to_the_stage_and_fills_the_controls(shelf: Shelf, tab: Tab) -> None:
    opener = _Opener(shelf, 3 + 12)
    asked = {"session": tab.token, "language": "en", "key": "shipped:playground:0"}
    told_first, *shown = answers(opener.choose(_Event(asked)))  # type: ignore[arg-type]
    assert told_first[0]["opened"]["place"] == "run"
    assert shown[0][1]["selected"] == "playground"
    assert shown[0][3]["run"] == told_first[0]["opened"]["run"]
    assert shown[0][6] == "What is gravity? Answer in two sentences."
    sent = sum(len(row[3].get("events", [])) for row in shown if isinstance(row[3], dict) and "run" in row[3])
    assert sent == len(load_trace(TRACES / "playground.jsonl").runs[0].events)


@pytest.mark.parametrize("data", [None, [], {}, {"key": "own:x"}, {"session": "no", "key": "shipped:race:0"}])
def test_whatever_is_sent_the_answer_is_a_sentence(shelf: Shelf, data: object) -> None:
    opener = _Opener(shelf, 3)
    for handler in (opener.choose, opener.bring):
        ((first, *_),) = answers(handler(_Event(data)))  # type: ignore[arg-type]
        assert first["error"]


def test_settings_that_the_page_does_not_have_leave_its_controls_alone(
    shelf: Shelf, service: Service, tab: Tab
) -> None:
    started, *events = made(service, tab).record.events
    wild = replace(started.request, lanes=(replace(started.request.lanes[0], temperature=1e9),))
    run = type(service.runs.latest(tab.key("run")).record)()  # type: ignore[union-attr]
    from playground.core.run import advance

    for event in [replace(started, request=wild), *events]:
        advance(run, event)
    asked = {"session": tab.token, "language": "en", "name": "x.jsonl", "text": dumps_trace([run])}
    rows = list(_Opener(shelf, 15).bring(_Event(asked)))  # type: ignore[arg-type]
    assert all(isinstance(value, dict) for row in rows for value in row[6:])  # gr.skip()


def test_half_a_surrogate_pair_in_a_trace_reaches_no_control(
    shelf: Shelf, service: Service, tab: Tab
) -> None:
    lines = dumps_trace([made(service, tab).record]).splitlines()
    data = json.loads(lines[1])
    data["request"] |= {"prompt": "half \ud800", "system": "\udc00"}
    data["request"]["lanes"][0]["stop"] = ["\ud83d"]
    lines[1] = json.dumps(data)
    asked = {"session": tab.token, "language": "en", "name": "x.jsonl", "text": "\n".join(lines)}
    rows = list(_Opener(shelf, 15).bring(_Event(asked)))  # type: ignore[arg-type]
    texts = [value for row in rows for value in row if isinstance(value, str)]
    assert "half \ufffd" in texts
    for text in texts:
        text.encode("utf-8")  # what gradio does; an error there ends the connection


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 3
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
