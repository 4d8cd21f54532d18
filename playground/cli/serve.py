"""`first-token serve`: the page, on the first free port; the model is loaded meanwhile."""

import socket
from pathlib import Path
from typing import Annotated

import typer

from playground import settings
from playground.cli import options
from playground.cli.terminal import console
from playground.core.decoding import InvalidSetting

Host = Annotated[str | None, typer.Option("--host", help="Where to listen. Default: this machine alone.")]
Port = Annotated[int | None, typer.Option("--port", help="The first port to try. Default: 7860.")]
Traces = Annotated[
    Path | None,
    typer.Option("--traces", metavar="FOLDER", help="Write every run into this folder as a trace."),
]
Public = Annotated[
    bool,
    typer.Option(
        "--public", help="Others reach this page, by a proxy say: listed models, no servers of theirs."
    ),
]
Share = Annotated[bool, typer.Option("--share", help="Also open Gradio's public tunnel to this page.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(serve)


def serve(
    model: options.Model = None,
    server: options.Server = None,
    host: Host = None,
    port: Port = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    share: Share = False,
    public: Public = False,
    offline: options.Offline = False,
    traces: Traces = None,
) -> None:
    """Open the page; it is there before the model is.

    Options that are left out are read from the environment: MODEL, HOST, PORT.
    """
    if port is not None and not 1 <= port <= 65535:
        raise InvalidSetting(f"--port must be from 1 to 65535, not {port}.")
    if traces is not None and traces.exists() and not traces.is_dir():
        raise InvalidSetting(f"--traces must name a folder, and {str(traces)!r} is a file.")
    if host is not None:
        _require_own(host)
    ours = settings.from_environment()
    with console.status("[dim]Building the page …[/dim]"):
        from playground.ui import app
    app.serve(
        model or (None if server else ours.model), host or ours.host, port or ours.port,
        device if device != "auto" else ours.device, dtype if dtype != "auto" else ours.dtype,
        share, offline or ours.offline, traces, server, public,
    )  # fmt: skip


def _require_own(host: str) -> None:
    """Refuse a name or an address at which this machine cannot listen."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except (OSError, UnicodeError):
        raise InvalidSetting(
            f"--host {host[:80]!r} is no address of this machine; 127.0.0.1 is seen from here alone, 0.0.0.0 "
            "from the network."
        ) from None
