"""What a server can do wrong, as one sentence each: what is wrong, what was kept, what to do.

A server's own words are bounded, and a key in them is blotted out. Knows no request.
"""

import json

import httpx

from playground.backends.protocol import BackendError

WORDS_LIMIT = 200


class ServerFault(BackendError):
    """The server could not be reached, or did not do what was asked."""

    wrong_use = False

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def of_status(status: int, body: str, path: str, key: str) -> ServerFault:
    """The sentence of an answer that is an error."""
    return ServerFault(_sentence(status, path) + _said(body, key), status)


def _sentence(status: int, path: str) -> str:
    if status in (401, 403):
        return f"The server refused the key ({status}); enter the right one under Connect."
    if status == 404:
        return f"The server has no {path} (404); check its address and what it serves."
    if status == 429:
        return "The server has too much to do (429); try again in a moment."
    if status >= 500:
        return f"The server failed ({status}); what it had sent is kept, so try again."
    return f"The server refused the request ({status})."


def of_error(error: Exception, seconds: float) -> ServerFault:
    """The sentence of a transport that failed."""
    if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError):
        return ServerFault("The server cannot be reached; check its address and that it runs.")
    if isinstance(error, httpx.TimeoutException):
        return ServerFault(
            f"The server has been silent for {seconds:g} seconds; what it had sent is kept, so try again."
        )
    return ServerFault("The connection to the server broke off; what it had sent is kept, so try again.")


def of_words(data: object, key: str) -> ServerFault:
    """The sentence of an error that came in the middle of a stream."""
    return ServerFault(REPORTED + _said(json.dumps(data), key))


REPORTED = "The server reported an error; what it had sent is kept, so try again."
NOT_JSON = "The server's answer is not understood; check that its address is that of a model server."
NO_LOGPROBS_SENT = "The server sends no log-probabilities; what it had sent is kept, so choose one that does."
CUT = "The stream broke off before the answer ended; what had come is kept, so try again."


def _said(body: str, key: str) -> str:
    """What the server said, in brackets; empty where there is nothing to read."""
    try:
        data = json.loads(body)
    except ValueError:
        return ""
    data = data.get("error", data) if isinstance(data, dict) else data
    words = data.get("message", data.get("detail", "")) if isinstance(data, dict) else data
    if not isinstance(words, str) or not words.strip():
        return ""
    if key:
        words = words.replace(key, "…")
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return f" It says: “{line[:WORDS_LIMIT]}”"
