"""The whole way to a real llama.cpp server with the default model's GGUF: command, runs, branches, keys."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from playground.backends.protocol import BackendError
from playground.backends.remote.backend import RemoteBackend, connect
from playground.backends.remote.faults import ServerFault
from playground.core.control import Control
from playground.core.decoding import GREEDY, Decoding
from playground.core.events import Stepped
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.core.trace import dump_trace, load_trace
from playground.engine.wheel import original
from tests.llama_server import running

pytestmark = pytest.mark.model
KEY = "sk-only-for-this-test"
SHORT = replace(GREEDY, max_new_tokens=6)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pytest.importorskip("xllamacpp")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with running(original(lambda progress: None), port, KEY) as url:
        yield url


@pytest.fixture(scope="module")
def backend(address: str) -> RemoteBackend:
    return connect(address, KEY)


def made(backend: RemoteBackend, request: Request) -> Run:
    return fold(backend.stream(request, Control()))


def test_what_the_server_is_and_what_it_can(backend: RemoteBackend) -> None:
    facts = backend.facts()
    assert facts.name == "SmolLM2-135M-Instruct.Q4_1" and facts.vocabulary == 49_152
    assert facts.kv_bytes_per_token == 23_040 and "/" not in facts.name
    there = {name for name, one in backend.capabilities.items() if one.there}
    assert {"prompt_ids", "tokenizer", "candidate_ids", "raw", "stages", "usage", "reuse"} == there


def test_the_prompt_is_cut_as_on_this_machine(backend: RemoteBackend) -> None:
    found, own = backend.tokenize("Hi \U0001f600 \u00e9", chat=True, system=None)
    assert [t.text for t in found][:2] == ["<|im_start|>", "system"] and found[0].special
    words = b"".join(bytes.fromhex(t.bytes) for t, mine in zip(found, own, strict=True) if mine)
    assert words.decode() == "Hi \U0001f600 \u00e9"


def test_greedy_takes_the_most_probable_and_a_branch_goes_on_exactly(backend: RemoteBackend) -> None:
    whole = made(backend, Request("Say OK.", (SHORT,)))
    lane = whole.lanes[0]
    assert lane.finish_reason == "max_new_tokens" and {s.raw_rank for s in lane.steps} == {1}
    assert all(s.distribution == "raw" and s.logsumexp is None for s in lane.steps)
    assert all(len(s.candidates) == 20 for s in lane.steps)
    branch = made(backend, Request(prompt_ids=(*whole.prompt_ids, *lane.token_ids[:3]), lanes=(SHORT,)))
    assert branch.lanes[0].token_ids[:3] == lane.token_ids[3:]
    forced = made(backend, Request(prompt_ids=(*whole.prompt_ids, 16), lanes=(SHORT,)))
    assert forced.prompt_ids[-1] == 16 and forced.prefilled is not None
    assert forced.prefilled.tokens_reused >= len(whole.prompt_ids) - 2


def test_a_token_that_is_put_is_followed_by_what_the_model_makes_of_it(backend: RemoteBackend) -> None:
    put = replace(SHORT, forced=(1928, 49_000), max_new_tokens=5)
    lane = made(backend, Request("Say OK.", (put,))).lanes[0]
    assert lane.token_ids[:2] == [1928, 49_000] and len(lane.steps) == 5
    assert [step.origin for step in lane.steps] == ["forced"] * 2 + ["argmax"] * 3
    rare = lane.steps[1]
    assert {"raw_rank", "raw_logprob"} <= set(rare.inexact) and rare.processed_probability == 0
    with pytest.raises(BackendError, match="favoured or banned"):
        backend.stream(Request("a", (replace(SHORT, banned=(5,)),)), Control())


def test_lanes_draw_within_their_own_candidates_and_a_seed_repeats(backend: RemoteBackend) -> None:
    lane = Decoding(temperature=0.8, top_p=0.7, top_k=15, seed=3, max_new_tokens=5)
    run = made(backend, Request("Count:", (lane, lane, SHORT), chat=False))
    first, second, greedy = run.lanes
    assert first.token_ids == second.token_ids and greedy.steps
    for step in first.steps:
        assert step.processed_probability > 0 and step.draw is None and step.origin == "drawn"
        kept = [c for c in step.candidates if c.processed_probability > 0]
        if "processed_probability" not in step.inexact:
            assert sum(c.processed_probability for c in kept) == pytest.approx(1, abs=2e-3)
            assert len(kept) == step.kept_count


def test_the_run_survives_a_trace_and_holds_no_key(backend: RemoteBackend, tmp_path: object) -> None:
    run = made(backend, Request("Say OK.", (SHORT,)))
    path = tmp_path / "run.jsonl"  # type: ignore[operator]
    dump_trace(run, path)
    assert load_trace(path).runs[0] == run and KEY not in path.read_text()


def test_stop_ends_the_run_and_frees_the_server(backend: RemoteBackend) -> None:
    control = Control()
    events = backend.stream(Request("Tell a long story.", (replace(GREEDY, max_new_tokens=900),)), control)
    run = Run()
    for event in events:
        run = fold([*run.events, event])
        if isinstance(event, Stepped) and event.step == 3:
            control.stop()
    assert run.lanes[0].finish_reason == "cancelled" and 4 <= len(run.lanes[0].steps) < 50
    slots, waited = backend._connection, threading.Event()
    for _ in range(100):
        if not any(slot["is_processing"] for slot in slots.ask("/slots")):
            return
        waited.wait(0.05)
    raise AssertionError("the server went on after the stop")


def test_a_stop_string_ends_the_answer_before_it(backend: RemoteBackend) -> None:
    run = made(
        backend,
        Request("Count: 1, 2, 3, 4,", (replace(GREEDY, max_new_tokens=12, stop=(" 6",)),), chat=False),
    )
    lane = run.lanes[0]
    assert lane.finish_reason == "stop_string" and lane.text == " 5," and lane.finished is not None


def test_a_wrong_key_is_one_sentence(address: str) -> None:
    with pytest.raises(ServerFault, match="refused the key"):
        connect(address, "wrong")


def test_the_command_runs_through_the_server(address: str) -> None:
    command = [
        sys.executable,
        "-m",
        "playground",
        "generate",
        "Say OK.",
        "--server",
        address,
        "--json",
        "--max-new-tokens",
        "4",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "FIRST_TOKEN_SERVER_KEY": KEY}
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0 and len(found["token_ids"]) == 4 and found["kv_cache"]["predicted_bytes"]
    assert KEY not in done.stdout + done.stderr
