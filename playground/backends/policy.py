"""What whoever opens the page may ask of this machine: which models, which servers, and by which names.

On a page that nobody else reaches, everything the operator could ask. On every other page models come from the
list and servers from the operator. Knows no page, no model and no connection.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from playground.backends.remote.address import Address, read_address
from playground.backends.remote.reach import Reach, anywhere, global_only

LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANY = "*"
"""In the operator's list of servers: every address of the public internet."""


@dataclass(frozen=True, slots=True)
class Policy:
    """`open`: nobody but the operator reaches the page. `servers` are those that the operator has named."""

    open: bool
    servers: frozenset[str] = frozenset()
    any_server: bool = False

    @property
    def open_names(self) -> bool:
        """Whether a model may be named freely: a name may be a path of this machine."""
        return self.open

    def reach(self, address: Address) -> Reach | None:
        """How far a visitor's connection to `address` may go; None where it may not be made at all."""
        if self.open or address.root in self.servers:
            return anywhere
        return global_only if self.any_server else None


def policy(host: str, *, shared: bool = False, public: bool = False, servers: Iterable[str] = ()) -> Policy:
    """The policy of a page that listens on `host`; raises `BackendError` for a server that is no address.

    `shared`: it also has a tunnel. `public`: the operator says that others reach it, by a proxy in front of it, say.
    """
    named = [name.strip() for name in servers if name.strip()]
    roots = frozenset(read_address(name).root for name in named if name != ANY)
    return Policy(host in LOOPBACK and not shared and not public, roots, ANY in named)
