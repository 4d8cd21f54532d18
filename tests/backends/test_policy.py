"""What visitors may ask: by where the page listens, what the operator says, and where a server's name leads."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from playground.backends.policy import policy
from playground.backends.protocol import BackendError
from playground.backends.remote.address import read_address
from playground.backends.remote.backend import connect
from playground.backends.remote.connection import Connection
from playground.backends.remote.reach import anywhere, global_only

OWN = "http://10.0.0.7:8000"


def lookup(*addresses: str) -> Callable[[str, int], list[str]]:
    return lambda host, port: list(addresses)


@pytest.mark.parametrize(
    ("host", "more", "open_names"),
    [
        ("127.0.0.1", {}, True), ("localhost", {}, True), ("::1", {}, True),
        ("127.0.0.1", {"shared": True}, False), ("127.0.0.1", {"public": True}, False),
        ("0.0.0.0", {}, False), ("192.168.0.7", {}, False), ("127.0.0.1.example.com", {}, False),
    ],
)  # fmt: skip
def test_only_a_page_that_nobody_else_reaches_is_open(
    host: str, more: dict[str, bool], open_names: bool
) -> None:
    found = policy(host, **more)
    assert found.open_names is open_names
    assert (found.reach(read_address(OWN)) is anywhere) is open_names


def test_the_operators_servers_may_be_reached_from_a_public_page_and_no_others() -> None:
    found = policy("0.0.0.0", servers=(f"{OWN}/v1", " "))
    assert found.reach(read_address("10.0.0.7:8000")) is anywhere
    for other in (
        "http://10.0.0.7:8001",
        "https://10.0.0.7:8000",
        "http://10.0.0.7:8000/x",
        "http://10.0.0.8:8000",
    ):
        assert found.reach(read_address(other)) is None
        with pytest.raises(BackendError, match="does not connect to that address"):
            connect(other, reach=found.reach)
    with pytest.raises(BackendError, match="no address"):
        policy("0.0.0.0", servers=("ftp://x",))


def test_any_server_means_one_of_the_public_internet() -> None:
    found = policy("0.0.0.0", servers=("*", OWN))
    assert found.reach(read_address("https://api.example.com")) is global_only
    assert found.reach(read_address(OWN)) is anywhere
    with pytest.raises(BackendError, match="public internet only"):
        connect("http://127.0.0.1:9", reach=found.reach)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1",
        "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "2001:db8::1",
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::",
    ],
)  # fmt: skip
def test_no_name_leads_into_a_network_of_the_machine(address: str) -> None:
    with pytest.raises(BackendError, match="public internet only"):
        global_only("https://name.example/x", lookup(address))
    with pytest.raises(BackendError, match="public internet only"):
        global_only("https://name.example/x", lookup("93.184.216.34", address))


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "[::1]"])
def test_odd_ways_to_write_loopback_are_looked_up_before_they_are_judged(host: str) -> None:
    with pytest.raises(BackendError, match=r"public internet only|was not found"):
        global_only(read_address(f"http://{host}:80").root)


def test_what_was_looked_at_is_what_is_connected_to() -> None:
    assert global_only("https://a.example/x", lookup("93.184.216.34")) == "https://93.184.216.34:443/x"
    assert global_only("http://a.example:81", lookup("2606:4700::1111")) == "http://[2606:4700::1111]:81"

    def nowhere(host: str, port: int) -> list[str]:
        raise OSError

    for failing in (nowhere, lookup(), lookup("no address")):
        with pytest.raises(BackendError, match=r"was not found|public internet only"):
            global_only("http://a.example", failing)


def test_the_name_is_asked_for_at_the_address_and_redirects_are_not_followed() -> None:
    asked: list[tuple[str | None, str]] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.headers["Host"], self.path))
            self.send_response(302 if self.path.endswith("/away") else 200)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        address = read_address(f"http://a.example:{port}/base")
        held = Connection(address, reached=f"http://127.0.0.1:{port}/base")
        assert held.ask("/here") == {}
        with pytest.raises(BackendError):
            held.ask("/away")
        held.close()
        server.shutdown()
    assert [host for host, _ in asked] == [f"a.example:{port}"] * len(asked)
    assert asked[0][1] == "/base/here" and "a.example" in repr(held)
