"""The GPU script: on a GPU as it is, and everywhere on a tiny shape on the CPU, so that it stays ready."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from playground.bench.sections import CEILING, OWN
from tests.engine.test_drawn import config
from tests.gpu.check import checked, main

ROOT = Path(__file__).parents[2]


def test_it_runs_on_a_tiny_shape_and_finds_the_same_ids(tmp_path: Path) -> None:
    shape = config(tmp_path)
    found = checked("cpu", [shape], tokens=4, rounds=1)
    assert found["parity"] == {"generate": True, "lanes_alone": True, "lean_step": True}
    rows = {(row["name"], row["against"]) for row in found["speed"][0]["rows"]}
    assert (f"{OWN}, greedy", CEILING) in rows and ("8 lanes, greedy", "1 lanes") in rows


def test_it_needs_neither_gradio_nor_plotly_nor_the_network(tmp_path: Path) -> None:
    blocked = ["gradio", "plotly", "platformdirs", "xllamacpp", "gguf"]
    code = (
        f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\n"
        "import tests.gpu.check as check\nprint(check.SHAPES)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


@pytest.mark.skipif(torch.cuda.is_available(), reason="There is a GPU.")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "no CUDA device" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no GPU here.")
def test_on_the_gpu_ids_are_the_same(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    assert main(["--json", str(file)]) == 0
    assert json.loads(file.read_text())["speed"]
