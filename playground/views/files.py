"""Records as the text of a file: a page that stands alone, the steps as a table, or the trace itself.

Knows no place where files go.
"""

from collections.abc import Callable, Sequence

from playground.core.record import Record, runs_of
from playground.core.steps_table import steps_table
from playground.core.trace import dumps_trace
from playground.views.figures.frame import csv_text
from playground.views.offline import offline_page

Writer = Callable[[Sequence[Record], str, str], str]
"""From records, a language and the stem of a shipped trace (or an empty one) to text."""


def _csv(records: Sequence[Record], language: str, name: str) -> str:
    return csv_text(steps_table(run for record in records for run in runs_of(record)))


def _jsonl(records: Sequence[Record], language: str, name: str) -> str:
    return dumps_trace(records)


WRITERS: dict[str, Writer] = {"html": offline_page, "csv": _csv, "jsonl": _jsonl}
