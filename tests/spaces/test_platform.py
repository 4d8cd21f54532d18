"""ZeroGPU's own package, up to the GPU: its workers, its scheduler's refusals, its stop."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from playground.settings import from_environment
from tests.spaces.conftest import ROOT, own_environment

pytestmark = [pytest.mark.model, pytest.mark.slow]


def test_the_real_package_makes_runs_and_its_refusals_are_plain_sentences(
    assembled: Path, python: Path, tmp_path: Path
) -> None:
    environment = own_environment() | {
        "SPACES_ZERO_GPU": "true", "SPACE_ID": "someone/first-token", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
        "FIRST_TOKEN_CACHE": str(from_environment().cache_dir), "HOME": str(tmp_path),
    }  # fmt: skip
    script = ROOT / "tests" / "spaces" / "platform_run.py"
    process = subprocess.Popen(
        [str(python), str(script)], cwd=assembled, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=(tmp_path / "log").open("w"),
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=150)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    lines = said.strip().splitlines()
    assert lines and lines[-1].startswith("{"), (tmp_path / "log").read_text()
    found = json.loads(lines[-1])
    assert found["backend"] == "ZeroBackend" and "site-packages" in found["package"]
    assert found["workers"] == [found["here"]] * 2 and len(found["here"]) == 8
    assert "comes back in 5:43:21" in found["quota"]
    assert "more GPU time than one call gets" in found["long"]
    assert "No GPU was free" in found["busy"]
    assert found["stopped"] == ["Finished", "cancelled"]
    *short, long = found["seconds"]
    assert set(short) == {10} and long > 15, "the duration follows the requested tokens"
    assert {"/schedule", "/allow", "/release"} <= set(found["paths"])
