"""One server over HTTP: answers as JSON, streams as JSON objects, failures as sentences.

The key lives here and in nothing that is shown. Knows no dialect and no model.
"""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from playground.backends.remote.address import Address
from playground.backends.remote.faults import CUT, NOT_JSON, ServerFault, of_error, of_status, of_words

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
SILENCE_SECONDS = 120.0
"""A stream that says nothing for so long has hung; a long prompt on a slow server takes a while."""
ANSWER_BYTES_LIMIT = 32 * 2**20
LINE_BYTES_LIMIT = 4 * 2**20
CONNECTIONS_LIMIT = 64

Close = Callable[[], None]


class Connection:
    """A server at `address`; `key` is sent as a bearer token and never shown.

    `reached` is the same address as it is connected to, where its name has been looked up already.
    """

    def __init__(
        self, address: Address, key: str = "", silence_seconds: float = SILENCE_SECONDS, reached: str = "",
    ) -> None:  # fmt: skip
        self.address, self._key, self._silence_seconds = address, key, silence_seconds
        name = httpx.URL(address.root)
        self._named: dict[str, Any] = (
            {"sni_hostname": name.host} if reached else {}
        )  # whose certificate it must be
        self._client = httpx.Client(
            base_url=reached or address.root,
            headers=({"Authorization": f"Bearer {key}"} if key else {})
            | ({"Host": name.netloc.decode("ascii")} if reached else {}),
            timeout=httpx.Timeout(min(ANSWER_SECONDS, silence_seconds), connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=CONNECTIONS_LIMIT),
            trust_env=False,  # no proxy and no .netrc of this machine
            follow_redirects=False,  # the key goes to this address only
        )

    def __repr__(self) -> str:
        return f"Connection({self.address.shown})"

    def text(self, path: str) -> str:
        """What the server answers at `path`; raises `ServerFault`."""
        return self._body("GET", path, None)

    def ask(self, path: str, data: dict[str, Any] | None = None) -> Any:
        """The JSON answer to a GET, or to a POST of `data`; raises `ServerFault`."""
        try:
            return json.loads(self._body("GET" if data is None else "POST", path, data))
        except (ValueError, RecursionError):
            raise ServerFault(NOT_JSON) from None

    @contextmanager
    def stream(self, path: str, data: dict[str, Any]) -> Iterator[tuple[Iterator[Any], Close]]:
        """The objects of a server-sent stream as they come, and what ends it from another thread.

        Both raise `ServerFault`: where the stream is refused, and where it breaks off.
        """
        timeout = httpx.Timeout(self._silence_seconds, connect=CONNECT_SECONDS)
        try:
            with self._client.stream(
                "POST", path, json=data, timeout=timeout, extensions=self._named
            ) as response:
                self._require_good(response, path)
                yield self._objects(response), lambda: _shut(response)
        except httpx.HTTPError as error:
            raise of_error(error, self._silence_seconds) from None

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def _body(self, method: str, path: str, data: dict[str, Any] | None) -> str:
        try:
            with self._client.stream(method, path, json=data, extensions=self._named) as response:
                self._require_good(response, path)
                return _bounded(response).decode("utf-8", "replace")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise of_error(error, ANSWER_SECONDS) from None

    def _require_good(self, response: httpx.Response, path: str) -> None:
        if response.status_code != 200:
            body = _bounded(response, 2**16).decode("utf-8", "replace")
            raise of_status(response.status_code, body, path, self._key)

    def _objects(self, response: httpx.Response) -> Iterator[Any]:
        """Each `data:` line as JSON until `[DONE]` or the end; half a line at the end is a cut stream."""
        for line in _lines(response):
            if not line.startswith(b"data:"):
                if line.startswith(b"error:"):
                    raise of_words(_json(line[6:]), self._key)
                continue
            payload = line[5:].strip()
            if payload == b"[DONE]":
                return
            found = _json(payload)
            if isinstance(found, dict) and "error" in found:
                raise of_words(found, self._key)
            yield found


def _json(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        raise ServerFault(CUT) from None


def _lines(response: httpx.Response) -> Iterator[bytes]:
    """Lines of bytes, so that half a character is no error of its own."""
    rest = b""
    for chunk in response.iter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.rstrip(b"\r") for line in lines)
        if len(rest) > LINE_BYTES_LIMIT:
            raise ServerFault(NOT_JSON)
    if rest.strip():
        yield rest


def _bounded(response: httpx.Response, limit: int = ANSWER_BYTES_LIMIT) -> bytes:
    found = b""
    for chunk in response.iter_bytes():
        found += chunk
        if len(found) > limit:
            raise ServerFault(NOT_JSON)
    return found


def _shut(response: httpx.Response) -> None:
    """End the stream under a reader that waits for it: the server notices at once."""
    network = response.extensions.get("network_stream")
    found = network.get_extra_info("socket") if network is not None else None
    with suppress(OSError):
        if isinstance(found, socket.socket):
            found.shutdown(socket.SHUT_RDWR)
