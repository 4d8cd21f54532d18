"""Runs on the platform's own package `spaces`, in a Space's environment; prints what came of them as JSON.

Its scheduler is a server of ours on the loopback interface. A worker's way to a real GPU is all that is left
out: it computes on the CPU. Started by `test_platform`.
"""

import base64
import json
import multiprocessing
import os
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

ANSWERS: dict[str, tuple[int, dict[str, Any]]] = {
    "quota": (429, {"left": 3, "wait": "PT5H43M21S"}),
    "long": (429, {"left": 3, "wait": "-PT1S"}),
    "busy": (503, {}),
    "yes": (200, {"idle": True, "nvidiaIndex": 0, "nvidiaUUID": "GPU-none", "allowToken": "token"}),
}
asked: list[tuple[str, dict[str, list[str]]]] = []
mode = ["yes"]


class Scheduler(BaseHTTPRequestHandler):
    """Answers `/schedule` as `mode` says, and everything else with 200."""

    def do_POST(self) -> None:
        parts = urlsplit(self.path)
        asked.append((parts.path, parse_qs(parts.query)))
        code, answer = ANSWERS[mode[0]] if parts.path == "/schedule" else (200, {})
        body = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing to say."""


class Headers(dict[str, str]):
    """With attributes, which the platform asks for."""


class Visitor:
    """A request as Gradio has it: the platform reads from its headers whose quota it is."""

    headers = Headers({"x-ip-token": f"a.{base64.b64encode(b'{}').decode()}.c"})


server = ThreadingHTTPServer(("127.0.0.1", 0), Scheduler)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["SPACES_ZERO_DEVICE_API_URL"] = f"http://127.0.0.1:{server.server_address[1]}"

import torch  # noqa: E402

if torch.version.cuda is None:  # a build without CUDA, which ZeroGPU never is: what the package looks for
    torch.version.cuda = "12.8"
    torch._C._cuda_init, torch.cuda._is_in_bad_fork = os.getpid, bool  # type: ignore[attr-defined]

sys.path.insert(0, os.getcwd())
from gradio.context import LocalContext  # noqa: E402

from playground.backends.protocol import BackendError  # noqa: E402
from playground.core.control import Control  # noqa: E402
from playground.core.decoding import Decoding  # noqa: E402
from playground.core.request import Request  # noqa: E402
from playground.core.run import fold  # noqa: E402
from playground.ui.app import local_models  # noqa: E402


def backend() -> Any:
    """The default model as the page would load it here."""
    waiting = local_models(offline=True).ready(None)
    while True:
        try:
            next(waiting)
        except StopIteration as ready:
            return ready.value


def main() -> dict[str, Any]:
    """What the page's backend makes of the platform's answers."""
    from playground.backends.local import LocalBackend

    model = backend()
    import spaces.zero.torch as gpu

    LocalContext.request.set(Visitor())  # type: ignore[arg-type]
    request = Request("What is gravity?", (Decoding(seed=5, max_new_tokens=8),))
    found: dict[str, Any] = {"backend": type(model).__name__, "package": sys.modules["spaces"].__file__}
    found["here"] = fold(LocalBackend(model.model).stream(request, Control())).lanes[0].token_ids
    for mode[0] in ("quota", "long", "busy"):
        try:
            list(model.stream(request, Control()))
        except BackendError as error:
            found[mode[0]] = str(error)
    mode[0] = "yes"
    gpu.init, gpu.move, gpu.size = (lambda _: None), (lambda callback=None: None), (lambda: 0)
    found["workers"] = [fold(model.stream(request, Control())).lanes[0].token_ids for _ in range(2)]
    control = Control()
    events = model.stream(Request("What is gravity?", (Decoding(seed=5, max_new_tokens=400),)), control)
    for event in events:
        if type(event).__name__ == "Stepped":
            control.stop()
    found["stopped"] = [type(event).__name__, event.reason]
    found["seconds"] = [int(query["durationSeconds"][0]) for path, query in asked if path == "/schedule"]
    found["paths"] = sorted({path for path, _ in asked})
    return found


if __name__ == "__main__":
    try:
        print(json.dumps(main()))
    except BaseException:
        traceback.print_exc()
    finally:
        for child in multiprocessing.active_children():
            child.kill()
        sys.stdout.flush()
        os._exit(0)  # the platform's threads wait for workers that are gone
