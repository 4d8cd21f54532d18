"""The steps of runs as a plain table: one row a token, the columns those of `generate --json`.

Candidates and stages are left to the trace itself. Knows records only.
"""

from collections.abc import Iterable

from playground.core.report import generation
from playground.core.run import Run
from playground.core.tables import Table

COLUMNS = (
    "lane", "step", "position", "id", "text", "piece", "bytes", "special", "raw_rank", "raw_probability",
    "raw_logprob", "processed_probability", "draw", "origin", "raw_entropy_bits", "processed_entropy_bits",
    "kept_count", "kept_mass", "withheld", "seconds", "kv_tokens", "kv_used_bytes", "kv_allocated_bytes",
    "kv_predicted_bytes", "kv_state_bytes", "positions_computed", "positions_reused", "logsumexp",
)  # fmt: skip


def steps_table(runs: Iterable[Run]) -> Table:
    """All steps of all lanes of `runs`, in order, each with the id of its run."""
    rows = [
        (run.id, *(step[column] for column in COLUMNS))
        for run in runs
        for lane in range(len(run.lanes))
        for step in generation(run, lane)["steps"]
    ]
    return Table(("run", *COLUMNS), tuple(rows))
