"""A page over a model that answers slowly, with one run that has ended and one that is under way.

    python -m tests.slow_server PORT FOLDER

Every run is written into FOLDER. What happens to it when the server is ended is for the tests to see.
"""

import sys
from pathlib import Path

from playground.core.request import Request
from playground.ui.app import build, serve_until_ended
from playground.ui.models import Models
from tests.ui.conftest import TAB, Echo


def main(port: int, folder: Path) -> None:
    models = Models(lambda name, report: Echo(), "tests/none")
    demo = build(models, saved=folder)
    runs = demo.first_token_runs  # type: ignore[attr-defined]
    ended = runs.start(TAB.key("run"), Echo(), Request("ended"))
    assert ended.over.wait(20)
    running = runs.start(TAB.key("compare"), Echo(pause_seconds=0.05), Request("x" * 900))
    reader = running.follow()
    while len(running.events) < 5:
        next(reader)
    serve_until_ended(demo, "127.0.0.1", port)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
