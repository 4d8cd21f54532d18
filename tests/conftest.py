"""What every ring shares: nothing asks the network, and a ring that runs the real model says what it needs.

With `-n 2` (pytest-xdist, as `make test` does) two processes take the tests between them, each with one
thread of torch. A test marked `alone`, which reads a clock, waits until it is the only one.
"""

import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.watching import browser, open_page, watched  # noqa: F401  (fixtures of every ring)

# A machine under load is no fault: examples are bounded in number, not in time.
settings.register_profile("first-token", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("first-token")

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
if WORKER:  # before torch is imported
    os.environ["OMP_NUM_THREADS"] = "1"


def pytest_report_header() -> str:
    """Which versions ran: CI does so on two of transformers."""
    return ", ".join(f"{name} {version(name)}" for name in ("transformers", "huggingface_hub", "torch"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """One test, among others or alone."""
    if not WORKER:
        return (yield)
    with _in_the_room(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextmanager
def _in_the_room(alone: bool) -> Iterator[None]:
    """Share the room, or have it. Who waits for it stands in the gate, so that nobody else slips in."""
    import fcntl

    with Path(__file__).with_name("__init__.py").open() as gate, Path(__file__).open() as room:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


@pytest.fixture(scope="session")
def first_port() -> int:
    """Where a served page looks for a free port: two processes that look in one place take the same."""
    return 7960 + 300 * int(WORKER.removeprefix("gw") or 0)


@pytest.fixture(scope="session")
def default_model() -> Iterator[Any]:
    """The default model in float32 on the CPU, loaded once; `make test` has fetched it."""
    from playground.engine.load import load_model

    yield load_model(device="cpu", dtype="float32", offline=True)


@pytest.fixture(scope="session")
def chromium() -> str | None:
    """The browser on the path; None makes Playwright use the one that it fetched itself."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)
