"""Which addresses of the network a server's name may lead to, and holding on to the one that was looked at.

A name that is looked up twice may answer twice: what was checked is what is connected to. Knows no API of a
server and no policy.
"""

import ipaddress
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

from playground.backends.protocol import BackendError

Reach = Callable[[str], str]
"""From `http://host:port/path` to the same with an address in place of the name, or itself; raises `BackendError`."""

Lookup = Callable[[str, int], list[str]]
"""The addresses of a host name."""

_SIX_TO_FOUR = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("2002::/16"))
"""Where an IPv6 address carries an IPv4 one, which may be any."""


def anywhere(root: str) -> str:
    """No limit: the name is looked up by whoever connects."""
    return root


def look_up(host: str, port: int) -> list[str]:
    """All addresses that the system's resolver gives; raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def global_only(root: str, lookup: Lookup = look_up) -> str:
    """The root with the first address of its host, all of whose addresses are of the public internet.

    Refused are loopback, link-local, private, shared, multicast and reserved addresses, in IPv6 clothes too.
    """
    parts = urlsplit(root)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        addresses = [ipaddress.ip_address(found.partition("%")[0]) for found in lookup(host, port)]
    except (OSError, UnicodeError, ValueError):
        raise BackendError("The server's name was not found; check the address.") from None
    if not addresses or not all(_is_global(address) for address in addresses):
        raise BackendError(
            "This page connects to servers of the public internet only, and that address is none; run First Token "
            "yourself to reach a server of your own."
        )
    first = str(addresses[0])
    shown = f"[{first}]" if ":" in first else first
    return f"{parts.scheme}://{shown}:{port}{parts.path}"


def _is_global(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return _is_global(address.ipv4_mapped)
        if address.teredo is not None or any(address in network for network in _SIX_TO_FOUR):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved
