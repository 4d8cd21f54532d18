"""Traces: what is written is read back; what is damaged, newer or hostile is refused or said."""

import json
import re
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.core.codec import KINDS, bounds, decode, encode
from playground.core.decoding import Decoding
from playground.core.events import Event, Finished, PromptRead, Read, Resumed, Started, Stepped
from playground.core.race import WITH, WITHOUT, Item, Race, Ticked, result
from playground.core.record import items
from playground.core.run import Run, fold
from playground.core.tokens import Expected, Token
from playground.core.trace import BadTrace, dump_trace, dumps_trace, event_line, load_trace, loads_trace

# A high surrogate right before a low one is one character in JSON; alone they survive.
_TEXT = st.text(st.characters(), max_size=8).filter(
    lambda s: not re.search("[\ud800-\udbff][\udc00-\udfff]", s)
)
_SCALARS = {bool: st.booleans(), str: _TEXT}


def values(kind: Any, name: str = "") -> st.SearchStrategy[Any]:
    """Any value that a field `name` declared as `kind` can hold."""
    arguments = get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{f.name: values(hints[f.name], f.name) for f in fields(kind)})
    if kind in (int, float):
        low, high = bounds(kind, name)
        return st.integers(int(low), int(high)) if kind is int else st.floats(low, high)
    if get_origin(kind) in (Union, UnionType):
        return st.one_of(*[st.none() if k is NoneType else values(k, name) for k in arguments])
    if get_origin(kind) is Literal:
        return st.sampled_from(arguments)
    if get_origin(kind) is tuple and arguments[-1] is Ellipsis:
        most = 2 if arguments[0] is Decoding else 1  # more is too much to be drawn
        return st.lists(values(arguments[0]), max_size=most).map(tuple)
    if get_origin(kind) is tuple:
        return st.tuples(*map(values, arguments))
    return _SCALARS[kind]


_STARTED = values(Started)
_OTHERS = st.one_of(*[values(k) for k in get_args(Event) if k is not Started])


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run of any events, of which each lane's steps are in order."""
    started = draw(_STARTED.filter(lambda started: started.request.lanes))
    lanes = len(started.request.lanes)
    events: list[Event] = [started]
    for event in draw(st.lists(_OTHERS, max_size=4)):
        lane = event.lane if event.lane is None else event.lane % lanes
        event = replace(event, run=started.run, lane=lane)
        steps = sum(isinstance(e, Stepped) and e.lane == lane for e in events)
        if isinstance(event, Stepped | Resumed):
            event = replace(event, step=steps)
        elif isinstance(event, Finished):
            event = replace(event, withheld_steps=event.withheld_steps % (steps + 1))
        events.append(event)
    return fold(events)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.lists(runs(), min_size=1, max_size=2, unique_by=lambda run: run.id))
def test_what_is_written_is_read_back(several: list[Run]) -> None:
    trace = loads_trace(dumps_trace(several))
    assert trace.runs == several
    assert trace.notes == []


def made_race(run_of: Any, ids: list[int], others: list[int], ticks: int | None = None) -> Race:
    """Two runs of four prompt tokens, ticks for the steps that both have, and the result."""
    sides = [
        fold([_of_side(event, ending) for event in run_of(chosen).events])
        for chosen, ending in ((ids, WITH), (others, WITHOUT))
    ]
    both = min(len(ids), len(others)) if ticks is None else ticks
    race = Race(*sides, ticks=[Ticked(n, ids[n] == others[n], 1e-5) for n in range(both)])
    race.raced = result(race)
    return race


def _of_side(event: Event, ending: str) -> Event:
    event = replace(event, run="r" + ending)
    return (
        replace(event, request=replace(event.request, run="r" + ending))
        if isinstance(event, Started)
        else event
    )


def kinds(items: list[Item]) -> list[str]:
    return [f"{type(i).__name__}{getattr(i, 'run', '')[1:3]}{getattr(i, 'step', '')}" for i in items]


@pytest.mark.parametrize(("ids", "others"), [([5, 6, 7], [5, 6, 7]), ([5, 6], [5, 8]), ([5], [5, 6, 7])])
def test_a_race_is_read_back_with_its_ticks_and_its_result(run_of, ids, others):
    race = made_race(run_of, ids, others)
    trace = loads_trace(dumps_trace([race]))
    assert trace.records == [race]
    assert trace.runs == [race.cached, race.uncached]
    assert trace.notes == []


def test_the_sides_of_a_race_take_turns_in_the_file(run_of):
    made = items(made_race(run_of, [5, 6], [5, 6]))
    assert kinds(made) == [
        "Started.c", "Prefilled.c", "Stepped.c0", "Started.u", "Prefilled.u", "Stepped.u0", "Ticked0",
        "Stepped.u1", "Stepped.c1", "Ticked1", "Finished.c", "Finished.u", "Raced",
    ]  # fmt: skip


def test_a_race_without_ticks_as_older_files_have_it_is_a_race(run_of):
    race = made_race(run_of, [5, 6], [5, 6])
    trace = loads_trace(dumps_trace([race.cached, race.uncached]))
    (record,) = trace.records
    assert isinstance(record, Race)
    assert (record.ticks, record.raced.compared_steps, record.raced.first_divergence) == ([], 0, None)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace('"position":4,', '"position":0,'),
        lambda line: line.replace('"event":"ticked","step":0', '"event":"ticked","step":9'),
        lambda line: line.replace("[[1,", "[[8,", 1) if '"event":"started","run":"r.c' in line else line,
    ],
)
def test_what_does_not_hold_together_as_a_race_is_two_runs(run_of, change):
    lines = dumps_trace([made_race(run_of, [5, 6], [5, 6])]).split("\n")
    trace = loads_trace("\n".join([lines[0], *map(change, lines[1:])]))
    assert [record.id for record in trace.records] == ["r.cached", "r.uncached"]


def test_every_kind_of_event_has_a_code() -> None:
    assert set(KINDS) == {kind.__name__.lower() for kind in get_args(Item)}


def test_tokens_and_candidates_are_short_arrays(run_of):
    step = run_of([5]).lanes[0].steps[0]
    data = encode(step)
    assert data["event"] == "stepped"
    assert data["token"] == [5, " 5", "20", False]
    assert data["candidates"][1] == [[9, "<b>", "3c", True], -3.0, 0.0, "top_p"]


def test_a_file_of_several_runs_round_trips(tmp_path, run_of):
    first, second = run_of([5, 6], [7]), run_of([8])
    second = fold([replace(event, run="s") for event in second.events])
    dump_trace([first, second], tmp_path / "two.jsonl")
    assert load_trace(tmp_path / "two.jsonl").runs == [first, second]
    header = json.loads((tmp_path / "two.jsonl").read_text(encoding="utf-8").split("\n")[0])
    assert (header["format"], header["version"]) == ("first-token-trace", 1)
    assert [r["model"] for r in header["requests"]] == ["tests/none"] * 2
    assert {"model", "revision", "device", "dtype"} <= header["requests"][0].keys()


def test_interleaved_runs_are_told_apart(run_of):
    a = run_of([5, 6])
    b = fold([replace(event, run="b") for event in a.events])
    header = dumps_trace([a, b]).split("\n")[0]
    lines = [event_line(event) for pair in zip(a.events, b.events, strict=True) for event in pair]
    assert loads_trace("\n".join([header, *lines])).runs == [a, b]


def test_the_same_run_twice_is_two_runs(run_of):
    run = run_of([5])
    assert loads_trace(dumps_trace([run, run])).runs == [run, run]


def test_lone_surrogates_survive_and_the_file_is_utf_8(tmp_path, run_of):
    run = run_of([5])
    odd = replace(run.started, request=replace(run.started.request, prompt="half \ud83d, \\ud83d and 聪"))
    dump_trace(fold([odd, *run.events[1:]]), tmp_path / "odd.jsonl")
    (tmp_path / "odd.jsonl").read_bytes().decode("utf-8")
    assert load_trace(tmp_path / "odd.jsonl").runs[0].started == odd


def test_numbers_that_are_not_finite_are_never_written(run_of):
    step = replace(run_of([5]).lanes[0].steps[0], logsumexp=float("nan"))
    with pytest.raises(ValueError, match="JSON"):
        event_line(step)


# --- damaged or foreign files


def lines_of(run: Run) -> list[str]:
    return dumps_trace([run]).rstrip("\n").split("\n")


def test_a_newer_version_is_refused(run_of):
    lines = lines_of(run_of([5]))
    lines[0] = json.dumps({"format": "first-token-trace", "version": 2})
    with pytest.raises(BadTrace, match="newer than the 1"):
        loads_trace("\n".join(lines))


@pytest.mark.parametrize(
    "header",
    ["", "hello", "[]", '{"format": "har"}', "[" * 5000, "1" * 5000, '{"format": "first-token-trace"}',
     '{"format": "first-token-trace", "version": "1"}', '{"format": "first-token-trace", "version": true}'],
)  # fmt: skip
def test_another_kind_of_file_is_refused(header):
    with pytest.raises(BadTrace):
        loads_trace(header + "\n")


def test_unknown_kinds_and_keys_are_skipped_and_the_kinds_are_said(run_of):
    run = run_of([5])
    lines = lines_of(run)
    lines[2:2] = ['{"event": "teleported", "run": "r"}'] * 3
    lines[-1] = lines[-1][:-1] + ',"mood": NaN}'
    trace = loads_trace("\n".join(lines))
    assert trace.runs == [run]
    assert trace.notes == ["3 events of unknown kind “teleported” were skipped."]


def test_a_million_unknown_kinds_are_a_few_sentences(run_of):
    lines = lines_of(run_of([5]))
    lines[2:2] = [json.dumps({"event": f"kind{n}"}) for n in range(300)]
    notes = loads_trace("\n".join(lines)).notes
    assert len(notes) == 9
    assert notes[-1] == "292 events of other kinds, also unknown, were skipped."


@pytest.mark.parametrize(
    ("row", "change", "said"),
    [
        (-1, {"withheld_steps": 3}, "more steps are withheld"),
        (-1, {"withheld_steps": 2**53}, "more steps are withheld"),
        (3, {"text": "a" * 10_001}, "text has at most"),
    ],
)
def test_what_a_page_could_not_draw_is_refused(run_of, row, change, said):
    lines = lines_of(run_of([5, 6]))
    lines[row] = json.dumps(json.loads(lines[row]) | change)
    with pytest.raises(BadTrace, match=said):
        loads_trace("\n".join(lines))


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_truncated_last_line_is_left_out_and_said(run_of, cut):
    run = run_of([5, 6])
    trace = loads_trace("\n".join(lines_of(run))[:-cut])
    assert trace.runs == [fold(run.events[:-1])]
    assert "cut off" in trace.notes[0]
    assert not trace.runs[0].done


def test_a_file_cut_within_a_character_is_read_up_to_there(tmp_path, run_of):
    run = run_of([5])
    run = fold([*run.events[:-1], replace(run.events[-1], text="聪")])
    data = dumps_trace([run]).encode("utf-8")
    (tmp_path / "cut.jsonl").write_bytes(data[: data.index("聪".encode()) + 1])
    trace = load_trace(tmp_path / "cut.jsonl")
    assert trace.runs == [fold(run.events[:-1])]
    assert "cut off" in trace.notes[0]


def test_a_file_with_a_byte_order_mark_and_windows_lines_is_read(tmp_path, run_of):
    run = run_of([5])
    (tmp_path / "windows.jsonl").write_bytes(("\ufeff" + dumps_trace([run]).replace("\n", "\r\n")).encode())
    assert load_trace(tmp_path / "windows.jsonl").runs == [run]


def test_a_broken_line_in_the_middle_is_refused(run_of):
    lines = lines_of(run_of([5, 6]))
    lines[3] = lines[3][:-5]
    with pytest.raises(BadTrace, match=r"Line 4 of the trace is not JSON; nothing was loaded\."):
        loads_trace("\n".join(lines))


def changed(run: Run, line: int, **changes: Any) -> str:
    lines = lines_of(run)
    lines[line] = json.dumps(json.loads(lines[line]) | changes)
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"logsumexp": float("nan")}, "stepped.logsumexp must be a number from"),
        ({"logsumexp": float("inf")}, "stepped.logsumexp must be a number from"),
        ({"logsumexp": 10**400}, "stepped.logsumexp must be a number from"),
        ({"logsumexp": "1"}, "stepped.logsumexp must be a number"),
        ({"logsumexp": True}, "stepped.logsumexp must be a number"),
        ({"step": 1.0}, "stepped.step must be a whole number"),
        ({"step": True}, "stepped.step must be a whole number"),
        ({"origin": "luck"}, "stepped.origin must be one of"),
        ({"origin": ["drawn"]}, "stepped.origin must be one of"),
        ({"token": [1]}, "stepped.token has no text"),
        ({"token": {"id": 1, "text": ""}}, "stepped.token must be an array"),
        ({"token": [1, "a", "", False, 0]}, "stepped.token must be an array of at most 4"),
        ({"candidates": 3}, "stepped.candidates must be an array"),
        ({"candidates": [[[1, "a"], None, 0.5]]}, "stepped.candidates.raw_logprob must be a number"),
        ({"text": None}, "stepped.text must be text"),
        ({"raw_logprob": 1000}, "stepped.raw_logprob must be a number from"),
        ({"processed_probability": 1.5}, "stepped.processed_probability must be a number from 0 to 1"),
        ({"end_seconds": 1e308}, "stepped.end_seconds must be a number from 0"),
        ({"kv_used_bytes": -1}, "stepped.kv_used_bytes must be a number from 0"),
        ({"stages": [[]]}, "stepped.stages must be an object"),
        ({"token": [-1, "a"]}, "stepped.token.id must be a number from 0"),
        ({"token": [1, "a" * 10_001]}, "a token has at most 10,000 characters"),
        ({"candidates": [[[1, "a", "00" * 10_000], -1.0, 0.5]]}, "a token has at most 10,000 characters"),
        ({"candidates": [[[1, "a"], -1.0, 0.5]] * 1001}, "a step has at most 1,000 candidates"),
        ({"step": 1}, "step 1 stands where step 0 belongs"),
    ],
)
def test_malformed_values_are_refused_in_one_sentence(run_of, changes, sentence):
    with pytest.raises(BadTrace) as refusal:
        loads_trace(changed(run_of([5, 6]), 3, **changes))
    message = str(refusal.value)
    assert sentence in message
    assert message.startswith("Line 4 of the trace is not valid: ")
    assert message.endswith("; nothing was loaded.")
    assert len(message) < 200


def test_a_missing_value_is_refused(run_of):
    lines = lines_of(run_of([5, 6]))
    step = json.loads(lines[3])
    del step["raw_rank"]
    lines[3] = json.dumps(step)
    with pytest.raises(BadTrace, match="stepped has no raw_rank"):
        loads_trace("\n".join(lines))


def test_what_has_a_default_may_be_missing(run_of):
    run = run_of([5])
    lines = lines_of(run)
    for n, line in enumerate(lines[1:], start=1):
        data = json.loads(line)
        kind = KINDS[data["event"]]
        for field in fields(kind):
            if field.default is not MISSING and data[field.name] == field.default:
                del data[field.name]
        lines[n] = json.dumps(data)
    assert loads_trace("\n".join(lines)).runs == [run]


@pytest.mark.parametrize("line", ["[" * 100_000 + "]" * 100_000, "9" * 5000, '"text"', "null", "[]", "{}"])
def test_lines_that_are_no_events_are_refused(run_of, line):
    lines = lines_of(run_of([5]))
    lines[2] = line
    with pytest.raises(BadTrace, match="Line 3"):
        loads_trace("\n".join(lines))


@pytest.mark.parametrize("lane", [-1, 1, 10**30])
def test_a_lane_that_the_run_does_not_have_is_refused(run_of, lane):
    with pytest.raises(BadTrace, match="names a lane|stepped.lane must be|belongs"):
        loads_trace(changed(run_of([5, 6]), 3, lane=lane))


def test_a_run_without_its_start_is_refused(run_of):
    lines = lines_of(run_of([5]))
    del lines[1]
    with pytest.raises(BadTrace, match="does not begin"):
        loads_trace("\n".join(lines))


def test_files_that_cannot_be_read_are_refused_in_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe\x00\x00")
    with pytest.raises(BadTrace, match=r"picture\.png is not UTF-8"):
        load_trace(tmp_path / "picture.png")
    with pytest.raises(BadTrace, match=r"none\.jsonl cannot be read"):
        load_trace(tmp_path / "none.jsonl")
    with pytest.raises(BadTrace, match="cannot be read"):
        load_trace(tmp_path)
    monkeypatch.setattr("playground.core.trace.BYTES_LIMIT", 5)
    with pytest.raises(BadTrace, match="larger than"):
        load_trace(tmp_path / "picture.png")


def test_nothing_a_trace_names_is_looked_up(run_of):
    lines = lines_of(run_of([5]))
    for kind in ("__class__", "os.system", "../x", "Stepped"):
        lines.insert(2, json.dumps({"event": kind, "run": "r"}))
    assert len(loads_trace("\n".join(lines)).notes) == 4


def test_decode_is_the_inverse_of_encode(run_of):
    for event in run_of([5], [6]).events:
        assert decode(json.loads(json.dumps(encode(event)))) == event


def test_a_run_without_lanes_is_refused(run_of):
    lines = lines_of(run_of([5]))
    started = json.loads(lines[1])
    started["request"]["lanes"] = []
    with pytest.raises(BadTrace, match="its lanes"):
        loads_trace("\n".join([lines[0], json.dumps(started)]))


def test_shuffled_steps_are_refused(run_of):
    lines = lines_of(run_of([5, 6, 7]))
    lines[3], lines[5] = lines[5], lines[3]
    with pytest.raises(BadTrace, match="step 2 stands where step 0 belongs"):
        loads_trace("\n".join(lines))


def test_more_lanes_than_a_run_can_have_are_refused(run_of):
    lines = lines_of(run_of([5]))
    started = json.loads(lines[1])
    started["request"]["lanes"] *= 65
    with pytest.raises(BadTrace, match="at most 64 lanes"):
        loads_trace("\n".join([lines[0], json.dumps(started)]))


def test_a_hundred_megabytes_are_not_read(tmp_path):
    """A file of that size is refused by its size alone: it is not even opened."""
    with (tmp_path / "large.jsonl").open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(BadTrace, match=r"large\.jsonl is larger than 64 MiB; nothing was loaded\."):
        load_trace(tmp_path / "large.jsonl")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no such file")
def test_a_file_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr("playground.core.trace.BYTES_LIMIT", 5)
    with pytest.raises(BadTrace, match="zero is larger than"):
        load_trace("/dev/zero")


def test_what_was_expected_of_a_prompt_is_read_back_and_bounded(run_of):
    def read(count: int, text: str = " x") -> Run:
        expected = tuple(Expected(Token(i, text), -1.5) for i in range(count))
        return fold([*run_of([1]).events, PromptRead("r", (Read(), Read(2, None, 3.5, expected)), 0.2)])

    run = read(3)
    (again,) = loads_trace(dumps_trace([run])).runs
    assert again == run and again.prompt_read == run.events[-1] and again.done
    assert '"expected":[[[0," x","",false],-1.5]' in dumps_trace([run])
    for hostile in (read(2000), read(1, "x" * 20_000)):
        with pytest.raises(BadTrace, match="at most"):
            loads_trace(dumps_trace([hostile]))
