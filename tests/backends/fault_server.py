"""A model server on loopback that does what a test tells it, wrong as often as right: bytes, not promises.

Speaks as much of llama.cpp's API, and of OpenAI's, as the client asks for.
"""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
PROPS = {"default_generation_settings": {"n_ctx": 64}, "chat_template": "x", "endpoint_slots": False}
MODELS = {"data": [{"id": "tests/small", "object": "model", "meta": {"n_vocab": 100}}]}


def token(id: int, text: str, logprob: float | None = -0.5) -> Body:
    return {"id": id, "token": text, "bytes": list(text.encode()), "logprob": logprob}


def step(number: int, text: str, raw: bytes | None = None, **changes: Any) -> Body:
    """One chunk of `/completion`."""
    one = token(number, text) | ({"bytes": list(raw)} if raw is not None else {})
    one = one | {"top_logprobs": [dict(one), token(90, "x", -1.5), token(91, "y", -3.0)]} | changes
    return {"content": text, "tokens": [number], "stop": False, "completion_probabilities": [one]}


STOP: Body = {"content": "", "stop": True, "stop_type": "eos", "tokens": []}


def sse(*chunks: Body) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n" for chunk in chunks)


class FaultServer:
    """`answers` by path: JSON, bytes of a stream, or (status, JSON). `hang` holds every stream open at its end."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "/props": PROPS, "/v1/models": MODELS,
            "/apply-template": {"prompt": "<|u|>the-words-of-the-user"},
            "/tokenize": {"tokens": [{"id": 1, "piece": "a"}, {"id": 2, "piece": " b"}]},
            "/detokenize": {"content": "<|end|>"},
        }  # fmt: skip
        self.asked: list[tuple[str, Body, dict[str, str]]] = []
        self.hang = threading.Event()
        self.go_on = threading.Event()
        self.closed_by_client = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stream(self, *parts: bytes, path: str = "/completion") -> None:
        self.answers[path] = b"".join(parts)

    def bodies(self, path: str) -> list[Body]:
        return [body for asked, body, _ in self.asked if asked == path]

    def close(self) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()


def _handler(server: FaultServer) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}"))

        def _answer(self, body: Body) -> None:
            server.asked.append((self.path, body, dict(self.headers)))
            answer = server.answers.get(self.path, (404, {"error": {"message": "no such path"}}))
            answer = answer(body) if callable(answer) else answer
            status, answer = answer if isinstance(answer, tuple) else (200, answer)
            self.send_response(status)
            self.end_headers()
            streamed = isinstance(answer, bytes)
            self.wfile.write(answer if streamed else json.dumps(answer).encode())
            self.wfile.flush()
            if streamed and server.hang.is_set():
                self._hold()

        def _hold(self) -> None:
            self.connection.settimeout(0.02)
            while not server.go_on.is_set():
                try:
                    if not self.connection.recv(1):
                        server.closed_by_client.set()
                        return
                except TimeoutError:
                    continue
                except OSError:
                    server.closed_by_client.set()
                    return

        def log_message(self, *args: Any) -> None:
            pass

    return Handler
