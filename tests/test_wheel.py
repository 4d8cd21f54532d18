"""The wheel as a stranger gets it: built, installed into a fresh environment, run in an empty folder."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.fresh import fresh_environment

ROOT = Path(__file__).resolve().parents[1]
GIB = 2**30
LLAMA_3_1_8B = {
    "model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "hidden_size": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`first-token` of a fresh environment into which only the wheel was installed."""
    folder = tmp_path_factory.mktemp("fresh")
    python = fresh_environment(folder)
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--force-reinstall",
        str(wheel),
    ]
    subprocess.run(install, check=True, timeout=120)
    return folder / "bin" / "first-token"


def run(command: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [str(command), *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )  # fmt: skip
    return done.stdout


def test_assets_are_inside_and_pictures_are_not(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for asset in ("models.toml", "stage.js", "stage.css", "i18n/en.json", "i18n/zh.json"):
        assert f"playground/assets/{asset}" in names
    assert any(name.startswith("playground/assets/traces/") for name in names)
    assert not [
        name for name in names if "screenshots" in name or name.startswith(("assets/", "tests/", "spaces/"))
    ]


def test_the_license_and_the_types_are_inside(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    (license_file,) = [name for name in names if name.endswith("licenses/LICENSE")]
    assert "Apache License" in archive.read(license_file).decode()
    assert "playground/py.typed" in names


def test_help(command: Path, tmp_path: Path) -> None:
    assert "Usage: first-token" in run(command, tmp_path, "--help")


def test_it_is_the_wheel_that_runs(command: Path, tmp_path: Path) -> None:
    where = "import playground, playground.settings as s; print(playground.__file__, s.assets_dir())"
    out = run(command.parent / "python", tmp_path, "-c", where)
    assert str(ROOT) not in out
    assert "playground/assets" in out


@pytest.mark.parametrize(
    ("arguments", "used_bytes"),
    [
        (["--tokens", "1"], 131_072),
        (["--tokens", "4096"], 512 * 2**20),
        (["--tokens", "128000"], 16_777_216_000),
        (["--tokens", "4096", "--sequences", "32"], 16 * GIB),
    ],
)
def test_kv_of_llama_3_1_8b(command: Path, tmp_path: Path, arguments: list[str], used_bytes: int) -> None:
    for kv_heads, times in ((8, 1), (32, 4)):
        (tmp_path / "config.json").write_text(json.dumps(LLAMA_3_1_8B | {"num_key_value_heads": kv_heads}))
        report = json.loads(
            run(command, tmp_path, "kv", "config.json", "--json", *arguments).splitlines()[-1]
        )
        assert report["used_bytes"] == report["allocated_bytes"] == times * used_bytes
        assert report["bytes_per_token"] == times * 131_072


def test_the_catalog_is_read_from_the_wheel(command: Path, tmp_path: Path) -> None:
    assert "15.6 GiB" in run(command, tmp_path, "kv", "llama-3.1-8b", "--tokens", "128000")
