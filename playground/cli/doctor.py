"""`first-token doctor`: what is on this machine, what is missing, and how to get it."""

import shutil
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import typer
from rich.table import Table

from playground import __version__, settings
from playground.cli import options
from playground.cli.terminal import complain, console, say, write_json, write_table
from playground.core.units import bytes_text

PACKAGES = ("torch", "transformers", "gradio", "plotly", "gguf", "accelerate")


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(doctor)


def doctor(as_json: options.AsJson = False) -> int:
    """Show what is on this machine and what is missing."""
    versions = {name: _version(name) for name in PACKAGES}
    missing = [name for name, found in versions.items() if found is None]
    report: dict[str, Any] = {"first_token": __version__, "packages": versions, "machine": None, "models": []}
    if not missing:
        report |= _machine_and_models()
    report["advice"] = _advice(report, missing)
    if as_json:
        write_json(report)
    else:
        _print(report)
    for name in missing:
        complain(f"The package {name} is not installed: run make run, or pip install first-token.")
    return 1 if missing else 0


def _machine_and_models() -> dict[str, Any]:
    with console.status("[dim]Starting PyTorch …[/dim]"):
        from playground.engine.machine import machine
        from playground.engine.stored import stored
    models = [
        {"name": model.name, "path": str(model.path), "bytes": model.bytes, "default": model.default}
        for model in stored()
        if model.path is not None
    ]
    cache = settings.from_environment().cache_dir
    return {"machine": asdict(machine()), "models": models, "cache_dir": str(cache)}


def _advice(report: dict[str, Any], missing: list[str]) -> list[str]:
    if missing:
        return []
    advice = []
    if not any(model["default"] for model in report["models"]):
        advice.append(
            "The default model is not here yet; the page fetches it, as does first-token models fetch."
        )
    if report["machine"]["cuda_build"] is None and shutil.which("nvidia-smi"):
        advice.append(
            "There is an NVIDIA driver, but this torch was built without CUDA; install the CUDA build, "
            "for example with: uv pip install --torch-backend=auto --reinstall torch."
        )
    return advice


def _print(report: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(report):
        table.add_row(name, value)
    write_table(table)
    for sentence in report["advice"]:
        say(sentence)
    if report["machine"] and not report["advice"]:
        say("Nothing is missing.")


def _rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("first-token", report["first_token"])]
    rows += [(name, found or "not installed") for name, found in report["packages"].items()]
    machine = report["machine"]
    if machine:
        rows.append(("python", f"{machine['python']} on {machine['system']}, {machine['architecture']}"))
        rows += [(device["name"], _device(device)) for device in machine["devices"]]
        rows.append(("models in", report["cache_dir"]))
    rows += [("model", f"{model['name']}, {bytes_text(model['bytes'])}") for model in report["models"]]
    return rows


def _device(device: dict[str, Any]) -> str:
    return (
        f"{device['title']}, {bytes_text(device['free_bytes'])} of {bytes_text(device['total_bytes'])} free"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
