"""What a list says of a record: a title, a lesson where it is a shipped one, and its facts in a line.

Everything comes from a file or a model: bounded here, and text for whoever shows it. Knows no list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from playground.core.decoding import Decoding, describe
from playground.core.printable import one_line
from playground.core.record import Record, runs_of
from playground.core.units import seconds_text
from playground.views.packets import layout_of
from playground.views.words import say, sections

SHIPPED = ("playground", "rare", "emoji", "compare", "stop", "loop", "race")
"""The traces that come with the program, in the order in which they are read."""

BETWEEN = "\u00a0· "
"""Between facts: no line begins with the point."""

TITLE_CHARACTERS = 160
MODEL_CHARACTERS = 60


def shipped(folder: Path) -> list[Path]:
    """The trace files of that folder, those of `SHIPPED` first and in their order."""
    known = {name: place for place, name in enumerate(SHIPPED)}
    return sorted(folder.glob("*.jsonl"), key=lambda path: (known.get(path.stem, len(known)), path.name))


@dataclass(frozen=True, slots=True)
class Entry:
    """One record in one language; `lesson` is empty where nothing is known of what it teaches."""

    title: str
    lesson: str
    facts: str


def entry(record: Record, language: str, name: str = "") -> Entry:
    """`name` is the stem of a shipped trace, whose title and lesson stand in the texts."""
    texts, prompt, told = sections(language)["traces"], _prompt(record), facts(record, language)
    if f"demo_{name}" in texts:
        return Entry(texts[f"demo_{name}"], texts[f"lesson_{name}"], f"“{prompt}”{BETWEEN}{told}")
    return Entry(prompt or texts["untitled"], "", told)


def facts(record: Record, language: str) -> str:
    """Model, settings, tokens and time of a record that has begun; a race takes the time of both its sides."""
    runs = runs_of(record)
    started = runs[0].started
    assert started is not None
    tokens = max(sum(len(lane.steps) for lane in run.lanes) for run in runs)
    is_race = layout_of(record) == "race"
    settings = say(language, "traces.race") if is_race else _settings(started.request.lanes, language)
    parts = [
        one_line(f"{started.model.name.rpartition('/')[2][:MODEL_CHARACTERS]}, {started.model.dtype[:12]}"),
        settings,
        say(language, "traces.tokens_one" if tokens == 1 else "traces.tokens", n=f"{tokens:,}"),
    ]
    seconds = sum(
        max((lane.steps[-1].end_seconds for lane in run.lanes if lane.steps), default=0) for run in runs
    )
    took = seconds_text(seconds).replace(" ", "\u00a0")
    return BETWEEN.join([*parts, *([took] if seconds else [])])


def prompt_of(record: Record) -> str:
    """The prompt as it was typed, empty where only its ids are known."""
    started = runs_of(record)[0].started
    return started.request.prompt if started is not None else ""


def _prompt(record: Record) -> str:
    words = one_line(" ".join(prompt_of(record)[: 4 * TITLE_CHARACTERS].split()))
    return words if len(words) <= TITLE_CHARACTERS else words[: TITLE_CHARACTERS - 1] + "…"


def _settings(lanes: Sequence[Decoding], language: str) -> str:
    if len(lanes) > 1:
        return say(language, "traces.lanes", n=len(lanes))
    (decoding,) = lanes
    if decoding.greedy:
        return say(language, "traces.greedy")
    seed = "" if decoding.seed is None else f", {say(language, 'traces.seed')} {decoding.seed}"
    return one_line(describe(decoding)[:120]) + seed
