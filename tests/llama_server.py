"""A real llama.cpp server on the CPU with the default model's GGUF, one thread, in a process of its own.

    python -m tests.llama_server MODEL.gguf PORT

Its key, where one is set, is the third argument. Ends when its standard input is closed.
"""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONTEXT, SLOTS, THREADS = 2048, 4, 1
READY_SECONDS = 60


def serve(model: str, port: int, key: str = "", threads: int = THREADS) -> None:
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path, params.n_ctx, params.n_parallel, params.port = model, CONTEXT, SLOTS, port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.endpoint_slots = params.endpoint_metrics = True
    if key:
        params.api_keys = [key]
    server = Server(params)
    sys.stdin.read()
    del server


@contextmanager
def running(model: Path, port: int, key: str = "", threads: int = THREADS) -> Iterator[str]:
    """The address of a server that answers."""
    command = [sys.executable, "-m", "tests.llama_server", str(model), str(port), key, str(threads)]
    silent = subprocess.DEVNULL
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=silent, stderr=silent, cwd=Path(__file__).parents[1]
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(child, url)
        yield url
    finally:
        child.kill()
        child.wait()


def _wait(child: "subprocess.Popen[bytes]", url: str) -> None:
    ends = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends and child.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError("the llama.cpp server did not start")


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), *sys.argv[3:4], *map(int, sys.argv[4:5]))
