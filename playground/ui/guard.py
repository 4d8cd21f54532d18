"""What stands before the page's server: whom it answers, and what each answer tells the browser to refuse.

A page that is the operator's alone answers to its own names only, so that a website elsewhere cannot reach it by a
name of its own that leads here (DNS rebinding). Knows no handler.
"""

import re
from typing import Any

from starlette.datastructures import Headers as RequestHeaders
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from playground.backends.policy import LOOPBACK

SPACES = "https://huggingface.co https://*.hf.space"

CONTENT = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval' blob:",  # Gradio's page and its templates are made of these
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' data: blob:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
"""Everything from this server: text of a model that became markup could fetch and send nothing elsewhere."""


def middleware(own: bool, on_space: bool) -> list[Middleware]:
    """For a page that is the operator's own, or of a Space, which stands in a frame of the Hub."""
    ancestors = f"'self' {SPACES}" if on_space else "'self'"
    found: list[Any] = [Middleware(Headers, ancestors=ancestors), Middleware(Bodies)]
    if own:
        found.append(Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"]))
    return found


class Headers:
    """Adds the headers to every answer."""

    def __init__(self, app: ASGIApp, ancestors: str) -> None:
        self._app = app
        policy = CONTENT | {"frame-ancestors": ancestors}
        self._headers = {
            "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "permissions-policy": "camera=(), microphone=(), geolocation=()",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, told)


BODY_BYTES_LIMIT = 48 * 2**20
"""Of one call: a trace that is brought may be 16 MiB of text, and takes up to three times that as JSON."""

HEARD_BYTES_LIMIT = 4 * BODY_BYTES_LIMIT
"""What is heard and thrown away, so that who sends too much reads the answer."""

_HALF_PAIR = re.compile(
    rb"(?<!\\)((?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
"""Half of a character as JSON writes it; a backslash that is itself a character begins nothing."""


class Bodies:
    """Refuses a call that is too long, and puts U+FFFD for half characters, which no answer could carry back."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; uploads have a limit of their own."""
        if scope["type"] != "http" or not _is_json(scope):
            await self._app(scope, receive, send)
            return
        body = await _read(receive)
        if body is None:
            answer = PlainTextResponse("The request is longer than 48 MiB; nothing was done.", 413)
            await answer(scope, receive, send)
            return
        whole = _HALF_PAIR.sub(rb"\1\\ufffd", body)
        told = False

        async def again() -> Message:
            nonlocal told
            if told:
                return await receive()
            told = True
            return {"type": "http.request", "body": whole, "more_body": False}

        await self._app(_of_length(scope, len(whole)), again, send)


def _is_json(scope: Scope) -> bool:
    kind = RequestHeaders(scope=scope).get("content-type", "")
    return scope["method"] == "POST" and not kind.startswith("multipart/")


async def _read(receive: Receive) -> bytes | None:
    """The body; None for one that is too long."""
    body, length = bytearray(), 0
    while True:
        message = await receive()
        length += len(message.get("body", b""))
        if length <= BODY_BYTES_LIMIT:
            body += message.get("body", b"")
        over = length > BODY_BYTES_LIMIT
        if length > HEARD_BYTES_LIMIT or not message.get("more_body", False):
            return None if over else bytes(body)


def _of_length(scope: Scope, length: int) -> Scope:
    kept = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
    return {**scope, "headers": [*kept, (b"content-length", str(length).encode())]}
