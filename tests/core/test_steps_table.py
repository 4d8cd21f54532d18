"""Steps as a table: the numbers of the record, one row a token, nothing that a spreadsheet would run."""

import csv
import io
from dataclasses import replace

from playground.core.run import fold
from playground.core.steps_table import steps_table
from playground.views.figures.frame import csv_text


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_a_token_of_every_lane_with_the_numbers_of_the_step(run_of):
    """Case 9: both probabilities are columns of their own."""
    run = run_of([5, 6], [7])
    rows = read(csv_text(steps_table([run])))
    assert [(row["run"], row["lane"], row["step"], row["id"]) for row in rows] == [
        ("r", "0", "0", "5"), ("r", "0", "1", "6"), ("r", "1", "0", "7"),
    ]  # fmt: skip
    step = run.lanes[0].steps[1]
    assert float(rows[1]["processed_probability"]) == step.processed_probability
    assert float(rows[1]["raw_logprob"]) == step.raw_logprob
    assert int(rows[1]["kv_used_bytes"]) == step.kv_used_bytes
    assert rows[1]["draw"] == "0.5"


def test_texts_keep_their_lines_and_formulas_are_inert(run_of):
    """Case 7: whatever a model writes is text in a file too."""
    run = run_of([5, 6])
    started, prefilled, first, second, _ = run.events
    events = [replace(first, text='=cmd("x")'), replace(second, text='a\n"b",\r')]
    rows = read(csv_text(steps_table([fold([started, prefilled, *events])])))
    assert [row["text"] for row in rows] == ['\'=cmd("x")', 'a\n"b",\r']
