"""Lanes side by side in a terminal: what they share is pale, where one leaves the first is marked.

Pure: a run and a width in, a table out.
"""

from rich.table import Table
from rich.text import Text

from playground.core.compare import first_divergence
from playground.core.printable import one_line, visible
from playground.core.run import Lane, Run

NARROWEST_COLUMN = 26


def lanes_table(run: Run, width: int) -> Table:
    """All lanes of `run` in rows of as many columns as fit into `width` characters."""
    per_row = max(1, min(len(run.lanes), width // NARROWEST_COLUMN))
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, expand=True, show_header=False)
    for _ in range(per_row):
        table.add_column(ratio=1, vertical="top", overflow="fold")
    reference = run.lanes[0]
    for start in range(0, len(run.lanes), per_row):
        lanes = run.lanes[start : start + per_row]
        if start:
            table.add_row()
        table.add_row(*(_heading(lane) for lane in lanes))
        table.add_row(*(lane_text(lane, reference) for lane in lanes))
    return table


def lane_name(lane: Lane) -> str:
    """A, B, C; beyond Z a number."""
    return chr(ord("A") + lane.index) if lane.index < 26 else str(lane.index + 1)


def lane_text(lane: Lane, reference: Lane) -> Text:
    """The answer, the shared beginning pale and the token at which it parts in reverse."""
    texts = lane.step_texts()
    parts_at = _parts_at(lane, reference)
    if parts_at is None:
        return Text(visible(lane.text), style="" if lane is reference else "dim")
    shared = len("".join(texts[:parts_at]))
    token = len("".join(texts[: parts_at + 1]))
    whole = lane.text
    text = Text(visible(whole[:shared]), style="dim")
    text.append(visible(whole[shared:token]), style="reverse")
    text.append(visible(whole[token:]), style="not dim")
    return text


def _parts_at(lane: Lane, reference: Lane) -> int | None:
    """The step at which the lane leaves the reference; while both run, none beyond the shorter."""
    if lane is reference:
        return None
    step = first_divergence(reference.token_ids, lane.token_ids)
    return None if step is None or step >= min(len(lane.steps), len(reference.steps)) else step


def _heading(lane: Lane) -> Text:
    text = Text(f"{lane_name(lane)}  ", style="bold")
    return text.append(one_line(lane.decoding.name), style="not bold dim")
