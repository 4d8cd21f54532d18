"""llama.cpp inside this process: its own server on a loopback port, asked as any llama.cpp server is.

For a CPU that should answer fast, on a GGUF file as it is. The port answers nobody without a key that only this
process has. Knows a file of weights, no page.
"""

import secrets
import socket
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from playground import settings
from playground.backends.protocol import BackendError
from playground.backends.remote.backend import RemoteBackend
from playground.backends.remote.connection import Connection
from playground.backends.remote.dialect import Dialect
from playground.core.request import ModelFacts

CONTEXT_TOKENS = 8192
"""The cache that all lanes share; a model trained on shorter texts has less."""

SLOTS = 8
"""Requests that are answered at a time; what comes beyond waits for one."""

QUIET = -1


class NativeBackend(RemoteBackend):
    """A llama.cpp server of this process, which ends with this object."""

    def __init__(self, server: Any, connection: Connection, dialect: Dialect, key: str) -> None:
        super().__init__(connection, dialect, key)
        self._server, self._key = server, key

    def facts(self) -> ModelFacts:
        """The model as llama.cpp names it, on this machine's CPU."""
        return replace(super().facts(), device_name="llama.cpp · CPU")

    @property
    def address(self) -> str:
        """There is none to be shown."""
        return "llama.cpp"

    @property
    def server(self) -> str:
        """The word that stands for it."""
        return settings.NATIVE

    @property
    def door(self) -> tuple[str, dict[str, str]]:
        """Address and headers for code of this process that asks llama.cpp itself."""
        return self._connection.address.root, {"Authorization": f"Bearer {self._key}"}

    def close(self) -> None:
        """Let the weights go."""
        self._connection.close()
        self._server = None


def open_native(gguf: Path, threads: int | None = None) -> NativeBackend:
    """Load `gguf` and answer from it on `threads` threads, one per core without; raises `BackendError`."""
    from playground.backends.remote.address import read_address
    from playground.backends.remote.probing import probed

    key, port = secrets.token_urlsafe(24), _free_port()
    server = _started(gguf, threads or psutil.cpu_count(logical=False) or 1, port, key)
    connection = Connection(read_address(f"http://127.0.0.1:{port}"), key)
    return NativeBackend(server, connection, probed(connection, None), key)


def _started(gguf: Path, threads: int, port: int, key: str) -> Any:
    if find_spec("xllamacpp") is None:
        raise BackendError(
            "llama.cpp is not installed here, so nothing was loaded: pip install 'first-token[llamacpp]'."
        )
    from xllamacpp import CommonParams, Server

    wanted = CommonParams()
    wanted.model.path, wanted.port, wanted.api_keys = str(gguf), port, [key]
    wanted.n_ctx, wanted.n_parallel, wanted.kv_unified = CONTEXT_TOKENS, SLOTS, True
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = threads
    wanted.endpoint_slots = wanted.endpoint_metrics = True
    wanted.ui, wanted.verbosity = False, QUIET
    try:
        return Server(wanted)
    except RuntimeError:
        raise BackendError(
            f"llama.cpp cannot read {gguf.name}, so nothing was loaded; try another GGUF file of the model."
        ) from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
