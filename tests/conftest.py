"""What every ring shares: nothing asks the network, and a ring that runs the real model says what it needs."""

import os
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A machine under load is no fault: examples are bounded in number, not in time.
settings.register_profile("first-token", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("first-token")

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def pytest_report_header() -> str:
    """Which versions ran: CI does so on two of transformers."""
    return ", ".join(f"{name} {version(name)}" for name in ("transformers", "huggingface_hub", "torch"))


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
