"""Where a server is: the address as it was typed, read into what is asked and what may be shown.

Knows no connection and no policy.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from playground.backends.protocol import BackendError

ADDRESS_CHARACTERS_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Address:
    """`root` has no path of the API and no slash at its end; `shown` is host and port alone."""

    root: str
    shown: str


def read_address(text: object) -> Address:
    """Read `http://host:port`, with or without `/v1`; without a scheme it is http.

    Raises `BackendError` for what is no address, and for one that carries a name or a key.
    """
    typed = text.strip() if isinstance(text, str) else ""
    if not typed or len(typed) > ADDRESS_CHARACTERS_LIMIT:
        raise BackendError(
            "The server's address is missing or too long; give one like http://127.0.0.1:8000."
        )
    try:
        parts = urlsplit(typed if "://" in typed else f"http://{typed}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https") or not typed.isprintable() or " " in typed:
        raise BackendError("This is no address of a server; give one like http://127.0.0.1:8000.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BackendError(
            "The address must hold no name, key or question mark; put the key into its own field."
        )
    shown = f"[{host}]" if ":" in host else host
    shown += f":{port}" if port else ""
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return Address(f"{parts.scheme}://{shown}{path}", shown)
