"""Many people on one server: browser-like clients over HTTP, each with runs of its own, and what became of them.

    python -m tests.load [--clients 20] [--seconds 180] [--tokens 32]

Serves the default model on loopback in a process of its own. Every client draws its own prompts and seeds, reads its
run as a page does, and compares text, ids, seed and settings with the same run made alone before. The last line is
JSON; it exits with 1 where anything was crossed, lost or starved.
"""

import argparse
import json
import random
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil

from playground.core.decoding import Decoding
from playground.ui.controls import fields_of

PROMPTS = (
    "Once upon a time", "The sea is", "A recipe for bread:", "My favourite animal is", "In the year 2050",
    "The capital of France is", "Why is the sky blue?", "She opened the door and",
)  # fmt: skip
LONG_TOKENS = 600
READY_SECONDS = 120
SETTLE_SECONDS = 140
"""What has been left goes two minutes later, in which a reload would come back."""


@dataclass
class Told:
    """One run as its client saw it."""

    ids: list[int] = field(default_factory=list)
    text: str = ""
    reason: str = ""
    sentence: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    first_seconds: float = 0.0
    seconds: float = 0.0


class Server:
    """The page's server, and the one handler that a click on Generate calls."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, "-m", "playground", "serve", "--port", str(port), "--dtype", "float32"]
        silent = subprocess.DEVNULL
        self.child = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=silent, stderr=silent)
        self.root = f"http://127.0.0.1:{port}"
        self._wait()
        config = httpx.get(f"{self.root}/config", timeout=30).json()
        self.model = self.health()["model"]
        inputs = {part["id"]: part for part in config["components"]}
        self.handler = next(
            one for one in config["dependencies"]
            if one["api_name"] == "generate_1" and len(one["inputs"]) == 5 + len(fields_of(Decoding()))
        )  # fmt: skip
        self.opened = next(one for one in config["dependencies"] if one["api_name"] == "opened")
        self.names = inputs[self.handler["inputs"][0]]["props"]["value"]

    def health(self) -> dict[str, Any]:
        return dict(httpx.get(f"{self.root}/health", timeout=30).json())

    def memory_bytes(self) -> int:
        return int(psutil.Process(self.child.pid).memory_info().rss)

    def close(self) -> None:
        self.child.terminate()
        self.child.wait(30)

    def run(self, tab: str, prompt: str, decoding: Decoding, client: httpx.Client) -> Told:
        """Generate as the page does it, and read the packets to the end."""
        who = json.dumps({"session": tab, "language": "en", "wish": 0})
        data = [self.names, prompt, "Raw", "", *fields_of(decoding), who]
        data[2] = "raw"
        session, began, last = secrets.token_hex(8), time.monotonic(), ""
        body = {"data": data, "fn_index": self.handler["id"], "session_hash": session}
        told, value = Told(), ""
        client.post("/gradio_api/queue/join", json=body).raise_for_status()
        with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": session}) as stream:
            for line in stream.iter_lines():
                message = json.loads(line[5:]) if line.startswith("data:") else {"msg": ""}
                if message["msg"] == "process_generating":
                    value = _grown(value, message["output"]["data"][0])
                    if value != last:  # the same packet again is a heartbeat
                        _read(told, value, time.monotonic() - began)
                    last = value
                if message["msg"] == "process_completed":
                    break
        told.seconds = time.monotonic() - began
        return told

    @contextmanager
    def page(self, tab: str, client: httpx.Client) -> Iterator[None]:
        """An open page of the tab: gradio notices that it is closed when its heartbeat ends."""
        session, closed = secrets.token_hex(8), threading.Event()

        def beat() -> None:
            with httpx.stream("GET", f"{self.root}/gradio_api/heartbeat/{session}", timeout=None) as stream:
                for _ in stream.iter_raw():
                    if closed.is_set():
                        return

        threading.Thread(target=beat, daemon=True).start()
        who = {"session": tab, "language": "en", "wish": 0}
        body = {"data": [], "fn_index": self.opened["id"], "session_hash": session, "event_data": who}
        client.post("/gradio_api/run/predict", json=body).raise_for_status()
        try:
            yield
        finally:
            closed.set()

    def _wait(self) -> None:
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            try:
                if self.health()["model_state"] == "ready":
                    return
            except (httpx.HTTPError, ValueError):
                pass
            time.sleep(0.2)
        raise RuntimeError("the server did not become ready")


def _grown(value: str, sent: Any) -> str:
    """gradio sends the first value whole, then what changed of it."""
    if isinstance(sent, str):
        return sent
    for action, path, change in sent:
        assert not path
        value = value + change if action == "append" else change
    return value


def _read(told: Told, value: str, seconds: float) -> None:
    packet = json.loads(value)
    told.sentence = packet.get("error") or told.sentence
    for event in packet.get("events", ()):
        match event.get("event") or event.get("kind"):
            case "started":
                told.settings = event["request"]["lanes"][0]
            case "step" | "stepped":
                told.first_seconds = told.first_seconds or seconds
                told.ids.append(event["token"][0])
            case "finished":
                told.text, told.reason = event["text"], event["reason"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--tokens", type=int, default=32)
    given = parser.parse_args()
    server = Server()
    try:
        found = loaded(server, given.clients, given.seconds, given.tokens)
    finally:
        server.close()
    print(json.dumps(found))
    return 0 if found["crossed"] == 0 and found["unfinished"] == 0 else 1


def loaded(server: Server, clients: int, seconds: float, tokens: int) -> dict[str, Any]:
    """Everything measured, in order: alone, together, a long run beside a short one, and after all have left."""
    plain = Decoding(max_new_tokens=tokens, temperature=0.8, top_p=0.95, top_k=0)
    cases = [(prompt, replace(plain, seed=seed)) for seed, prompt in enumerate(PROMPTS)]
    with httpx.Client(base_url=server.root, timeout=300) as client:
        server.run(secrets.token_hex(16), *cases[0], client)  # warm
        alone = {case: server.run(secrets.token_hex(16), *case, client) for case in cases}
    single = sum(len(one.ids) for one in alone.values()) / sum(one.seconds for one in alone.values())
    before = server.memory_bytes()
    runs: list[tuple[Any, Told]] = []
    flights: list[int] = []
    until, began = time.monotonic() + seconds, time.monotonic()

    def live(number: int) -> None:
        drawn, tab = random.Random(number), secrets.token_hex(16)
        with httpx.Client(base_url=server.root, timeout=300) as client, server.page(tab, client):
            while time.monotonic() < until:
                case = drawn.choice(cases)
                runs.append((case, server.run(tab, *case, client)))

    threads = [threading.Thread(target=live, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        flights.append(server.health()["runs_in_flight"])
        time.sleep(0.5)
    took = time.monotonic() - began
    second = _second_user(server, plain)
    time.sleep(SETTLE_SECONDS)
    after = server.memory_bytes()
    crossed = [
        (case, told) for case, told in runs
        if (told.reason and (told.ids, told.text) != (alone[case].ids, alone[case].text))
        or (told.settings and told.settings != alone[case].settings)
    ]  # fmt: skip
    together = sum(len(told.ids) for _, told in runs) / took
    first = sorted(told.first_seconds for _, told in runs if told.first_seconds)
    return {
        "clients": clients, "seconds": round(took, 1), "runs": len(runs), "crossed": len(crossed),
        "unfinished": sum(not told.reason and not told.sentence for _, told in runs),
        "refused": sum(bool(told.sentence) for _, told in runs), "most_in_flight": max(flights, default=0),
        "single_tokens_per_second": round(single, 2), "together_tokens_per_second": round(together, 2),
        "ratio": round(together / single, 3),
        "first_token_seconds": {"median": round(median(first), 2), "worst": round(first[-1], 2)},
        "run_seconds_worst": round(max(told.seconds for _, told in runs), 1),
        "second_user_first_token_seconds": round(second, 3),
        "memory_before_bytes": before, "memory_after_bytes": after, "memory_ratio": round(after / before, 3),
    }  # fmt: skip


def _second_user(server: Server, plain: Decoding) -> float:
    """Seconds to the first token of a short run while a long one is under way."""
    long = replace(plain, max_new_tokens=LONG_TOKENS, seed=99)

    def first() -> None:
        with httpx.Client(base_url=server.root, timeout=300) as client:
            server.run(secrets.token_hex(16), PROMPTS[0], long, client)

    thread = threading.Thread(target=first)
    thread.start()
    time.sleep(2)
    with httpx.Client(base_url=server.root, timeout=300) as client:
        told = server.run(secrets.token_hex(16), PROMPTS[1], replace(plain, seed=3), client)
    thread.join()
    return told.first_seconds


if __name__ == "__main__":
    sys.exit(main())
