"""What a server can do wrong: one sentence each, what had come is kept, and nothing waits for ever."""

import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from playground.backends.hosted import HostedRun, Runs
from playground.backends.protocol import BackendError
from playground.backends.remote.backend import RemoteBackend, connect
from playground.backends.remote.faults import ServerFault
from playground.core.control import Control
from playground.core.decoding import GREEDY, Decoding
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.core.trace import dump_trace
from tests.backends.fault_server import STOP, FaultServer, sse, step, token

KEY = "sk-not-to-be-seen-1234567890"


@pytest.fixture
def server() -> Iterator[FaultServer]:
    made = FaultServer()
    yield made
    made.close()


def run(server: FaultServer, decoding: Decoding = GREEDY, silence_seconds: float = 5.0) -> Run:
    backend = connect(server.url, KEY, silence_seconds=silence_seconds)
    return fold(backend.stream(Request("a b", (decoding,), chat=False), Control()))


def sentence(found: Run) -> str:
    failed = found.lanes[0].failed
    assert failed is not None and failed.message.count(". ") <= 1 and failed.message[-1] in ".”"
    return failed.message


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "refused the key"),
        (404, "has no /completion"),
        (429, "too much to do"),
        (500, "failed (500)"),
        (400, "refused the request"),
    ],
)
def test_an_error_before_the_stream_is_a_sentence_without_the_key(
    server: FaultServer, status: int, says: str
) -> None:
    server.answers["/completion"] = (status, {"error": {"message": f"bad key {KEY}\nsecond line"}})
    said = sentence(run(server))
    assert says in said and KEY not in said and "\n" not in said


def test_an_error_in_the_middle_keeps_what_had_come(server: FaultServer) -> None:
    server.stream(sse(step(5, "one"), step(6, " two"), {"error": {"code": 500, "message": f"boom {KEY}"}}))
    found = run(server)
    said = sentence(found)
    assert "boom" in said and KEY not in said
    assert found.lanes[0].text == "one two" and found.lanes[0].token_ids == [5, 6]


def test_a_server_that_hangs_is_given_up(server: FaultServer) -> None:
    server.stream(sse(step(5, "one")))
    server.hang.set()
    found = run(server, silence_seconds=0.3)
    assert "silent for 0.3 seconds" in sentence(found) and found.lanes[0].text == "one"


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        sse(step(6, " two"))[:40],
        sse(step(6, " d\u00e9"))[: sse(step(6, " d\u00e9")).index("\u00e9".encode()) + 1],
    ],
    ids=["between tokens", "in a token", "in a character"],
)
def test_a_stream_that_is_cut_off_keeps_what_had_come(server: FaultServer, rest: bytes) -> None:
    server.stream(sse(step(5, "one")), rest)
    found = run(server)
    assert "broke off" in sentence(found) and found.lanes[0].text == "one"


def test_half_a_character_waits_for_its_rest_and_is_never_lost(server: FaultServer) -> None:
    euro = "\u20ac".encode()
    halves = [step(5, "\ufffd", euro[:1]), step(6, "\ufffd", euro[1:]), step(7, "\ufffd", euro[:2])]
    server.stream(sse(*halves, STOP))
    lane = run(server).lanes[0]
    assert lane.text == "\u20ac\ufffd" and [s.text for s in lane.steps] == ["", "\u20ac", ""]


@pytest.mark.parametrize(
    "bad",
    [
        step(6, "x") | {"completion_probabilities": None},
        {k: v for k, v in step(6, "x").items() if k != "completion_probabilities"},
        step(6, "x", top_logprobs=None),
        step(6, "x", logprob=None),
        step(6, "x", logprob="low"),
        step(6, "x", id=None),
    ],
    ids=["null", "missing", "no top", "null logprob", "text", "no id"],
)
def test_missing_logprobs_end_the_run_with_the_reason(server: FaultServer, bad: dict[str, object]) -> None:
    server.stream(sse(step(5, "one"), bad, STOP))
    found = run(server)
    assert "no log-probabilities" in sentence(found) and found.lanes[0].text == "one"


def test_fewer_candidates_than_asked_are_taken_and_the_chosen_one_is_among_them(server: FaultServer) -> None:
    server.stream(sse(step(5, "one", top_logprobs=[token(90, "x", -0.1)]), STOP))
    (made,) = run(server).lanes[0].steps
    assert [one.token.id for one in made.candidates] == [90, 5]
    assert made.raw_rank == 2 and "raw_rank" in made.inexact and made.logsumexp is None


@pytest.mark.parametrize("models", [{"data": []}, {"data": None}, [], {"data": [{}]}, "x"])
def test_an_empty_list_of_models_is_refused_when_connecting(server: FaultServer, models: object) -> None:
    del server.answers["/props"]
    server.answers["/v1/models"] = models
    with pytest.raises(ServerFault, match="list of models is empty|not understood"):
        connect(server.url)


def test_what_is_no_address_or_not_allowed_is_never_asked(server: FaultServer) -> None:
    for bad in (
        "",
        "ftp://x",
        "http://",
        "http://name:word@host",
        "http://host/?key=1",
        "http://a b",
        "http://h:x",
        None,
        "x" * 600,
    ):
        with pytest.raises(BackendError):
            connect(bad)
    with pytest.raises(BackendError, match="does not connect to that address"):
        connect(server.url, KEY, reach=lambda address: None)
    with pytest.raises(BackendError, match="no key"):
        connect(server.url, "line\nbreak")
    with pytest.raises(ServerFault, match="cannot be reached"):
        connect("127.0.0.1:1")
    assert not server.asked


def test_stop_closes_the_request_while_the_server_is_silent(server: FaultServer) -> None:
    server.stream(sse(step(5, "one")))
    server.hang.set()
    control = Control()
    events = connect(server.url).stream(Request("a b", (GREEDY, GREEDY), chat=False), control)
    seen = [next(events), next(events), next(events)]
    control.stop()
    found = fold([*seen, *events])
    assert [lane.finish_reason for lane in found.lanes] == ["cancelled", "cancelled"]
    assert server.closed_by_client.wait(5)


def test_closing_the_events_closes_the_request(server: FaultServer) -> None:
    server.stream(sse(step(5, "one")))
    server.hang.set()
    events = connect(server.url).stream(Request("a b", (GREEDY,), chat=False), Control())
    for _ in range(3):
        next(events)
    events.close()  # type: ignore[attr-defined]
    assert server.closed_by_client.wait(5)


def test_the_key_is_sent_and_is_in_no_record_log_or_name(
    server: FaultServer, tmp_path: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.stream(sse(step(5, "one"), STOP))
    backend = connect(server.url, KEY)
    found = fold(backend.stream(Request("a b", (GREEDY,), chat=False), Control()))
    trace = tmp_path / "t.jsonl"  # type: ignore[operator]
    dump_trace(found, trace)
    assert all(headers.get("Authorization") == f"Bearer {KEY}" for _, _, headers in server.asked)
    seen = trace.read_text() + caplog.text + repr(backend) + repr(vars(backend)) + repr(backend.facts())
    assert KEY not in seen and "one" in trace.read_text()


def test_a_hosted_run_survives_a_broken_server(server: FaultServer) -> None:
    server.stream(sse(step(5, "one")), b"data: {")
    runs = Runs()
    hosted = runs.start("tab.run", connect(server.url), Request("a b", (GREEDY,), chat=False))
    for _ in hosted.follow():
        pass
    assert isinstance(hosted, HostedRun) and "broke off" in sentence(hosted.run)
    server.stream(sse(step(5, "one"), STOP))
    again = runs.start("tab.run", connect(server.url), Request("a b", (GREEDY,), chat=False))
    for _ in again.follow():
        pass
    assert again.run.lanes[0].finish_reason == "stop_token"


def test_lanes_are_requests_at_the_same_time(server: FaultServer) -> None:
    both = threading.Barrier(2, timeout=5)

    def answer(body: object) -> bytes:
        both.wait()
        return sse(step(5, "one"), STOP)

    server.answers["/completion"] = answer
    lanes = (replace(GREEDY), Decoding(temperature=0.9, top_k=40, seed=7))
    found = fold(connect(server.url).stream(Request("a b", lanes, chat=False), Control()))
    assert [lane.text for lane in found.lanes] == ["one", "one"]
    greedy, drawn = sorted(server.bodies("/completion"), key=lambda body: len(body["samplers"]))
    assert greedy["samplers"] == ["top_k"] and greedy["top_k"] == 1
    assert drawn["samplers"] == ["temperature", "top_k", "top_p"] and drawn["seed"] == 7
    assert greedy["prompt"] == [1, 2] and not greedy["post_sampling_probs"]


CHAT = {"object": "chat.completion.chunk"}


def chat_step(text: str, raw: bytes | None = None) -> dict[str, object]:
    one = {k: v for k, v in step(1, text, raw)["completion_probabilities"][0].items() if k != "id"}
    one["top_logprobs"] = [{k: v for k, v in top.items() if k != "id"} for top in one["top_logprobs"]]
    return {"choices": [{"delta": {"content": text}, "logprobs": {"content": [one]}, "finish_reason": None}]}


def test_a_server_with_chat_alone_works_and_says_what_is_missing(server: FaultServer) -> None:
    server.answers = {"/v1/models": MODELS_OPEN}
    end = {"choices": [{"delta": {}, "logprobs": None, "finish_reason": "stop"}]}
    server.stream(sse(chat_step("one"), chat_step(" two"), end), path="/v1/chat/completions")
    backend = connect(server.url)
    lacking = [name for name, one in backend.capabilities.items() if not one.there]
    assert {"prompt_ids", "tokenizer", "candidate_ids", "usage"} <= set(lacking)
    found = fold(backend.stream(Request("hello", (replace(GREEDY),)), Control()))
    assert found.lanes[0].text == "one two" and found.lanes[0].finish_reason == "stop_token"
    assert [note.key for note in found.notes] == ["no_ids"]
    with pytest.raises(BackendError, match="temperature and top-p alone"):
        backend.stream(Request("hello", (Decoding(top_k=5),)), Control())
    with pytest.raises(BackendError, match="no token ids"):
        backend.stream(Request(prompt_ids=(1, 2), lanes=(GREEDY,)), Control())


MODELS_OPEN = {"data": [{"id": "tests/small", "owned_by": "vllm", "max_model_len": 64}]}


def completion(*ids: int, **changes: object) -> dict[str, object]:
    names = [f"token_id:{id}" for id in ids]
    tops = [{name: -0.5, "token_id:9": -2.0} for name in names]
    logprobs = {"tokens": names, "token_logprobs": [-0.5] * len(ids), "top_logprobs": tops}
    return {"choices": [{"text": "x", "logprobs": logprobs, "finish_reason": None} | changes]}


@pytest.fixture
def vllm(server: FaultServer) -> FaultServer:
    """A server that speaks as vLLM does."""

    def completions(body: dict[str, object]) -> object:
        if body.get("stream"):
            end = {"choices": [{"text": "", "logprobs": None, "finish_reason": "length"}]}
            return sse(completion(5), completion(6, 7), end)
        if "prompt_logprobs" in body:
            read = [None] + [
                {str(id): {"logprob": -1.0, "rank": 2}, "9": {"logprob": -0.2, "rank": 1}}
                for id in body["prompt"][1:]  # type: ignore[index]
            ]
            return {"choices": [{"text": "x", "prompt_logprobs": read}]}
        return completion(1)

    server.answers = {
        "/v1/models": MODELS_OPEN, "/v1/completions": completions,
        "/tokenize": {"tokens": [3, 4]}, "/detokenize": lambda body: {"prompt": f" t{body['tokens'][0]}"},
        "/metrics": b'# HELP x\nvllm:kv_cache_usage_perc{engine="0"} 0.25\n',
    }  # fmt: skip
    return server


def test_completions_with_ids_carry_the_vocabulary_and_the_server_s_order(vllm: FaultServer) -> None:
    backend = connect(vllm.url)
    assert backend.facts().device == "vLLM" and backend.capabilities.prompt_logprobs.there
    decoding = Decoding(top_p=0.95, min_p=0.05, top_k=10, seed=3)
    found = fold(backend.stream(Request("hello", (decoding,), chat=False), Control()))
    lane = found.lanes[0]
    assert lane.token_ids == [5, 6, 7] and lane.text == " t5 t6 t7"
    assert lane.decoding.active_stages() == ("temperature", "min_p", "top_k", "top_p")
    assert {note.key for note in found.notes} == {"server_draws", "server_order"}
    body = vllm.bodies("/v1/completions")[-1]
    assert body["prompt"] == [3, 4] and body["top_k"] == 10 and body["return_tokens_as_token_ids"]
    assert {"temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "seed"} <= body.keys()
    branch = fold(backend.stream(Request(prompt_ids=(3, 4, 5), lanes=(GREEDY,)), Control()))
    assert branch.prompt_ids == [3, 4, 5] and vllm.bodies("/v1/completions")[-1]["prompt"] == [3, 4, 5]


def test_a_given_text_is_scored_by_the_prompt_s_logprobs(vllm: FaultServer) -> None:
    scored = connect(vllm.url).score(Request("hello", chat=False), " text", top=2, control=Control())
    assert [(one.position, one.rank, one.logprob) for one in scored.tokens] == [(2, 2, -1.0), (3, 2, -1.0)]
    assert scored.tokens[0].expected[0].token.id == 9 and scored.prompt_tokens == 2


def test_usage_is_asked_once_a_second_for_all_sessions(vllm: FaultServer) -> None:
    first, second = connect(vllm.url), connect(vllm.url)
    assert first._usage is second._usage and first._usage is not connect(vllm.url, "other")._usage
    asked = len(vllm.bodies("/metrics"))
    first._usage.share()
    while first._usage.share() is None:
        pass
    assert second._usage.share() == 0.25 and len(vllm.bodies("/metrics")) == asked + 1


@pytest.mark.parametrize(
    "bad",
    [
        completion(6, logprobs={"tokens": ["token_id:6"], "token_logprobs": [None], "top_logprobs": [{}]}),
        completion(6, logprobs={"tokens": ["token_id:6"], "token_logprobs": [], "top_logprobs": [{}]}),
        completion(6, logprobs={"tokens": ["word"], "token_logprobs": [-1], "top_logprobs": [{}]}),
        completion(6, logprobs=None),
        {"choices": ["x"]},
        {"choices": None},
        [1],
    ],
)
def test_a_completion_that_is_not_understood_keeps_what_had_come(vllm: FaultServer, bad: object) -> None:
    good = vllm.answers["/v1/completions"]
    chunks = sse(completion(5)) + b"data: " + json.dumps(bad).encode() + b"\n\n"
    vllm.answers["/v1/completions"] = lambda body: chunks if body.get("stream") else good(body)
    found = fold(connect(vllm.url).stream(Request("hello", (GREEDY,), chat=False), Control()))
    assert found.lanes[0].token_ids == [5] and sentence(found)


def test_a_backend_is_what_the_page_expects(server: FaultServer) -> None:
    backend = connect(server.url)
    assert isinstance(backend, RemoteBackend) and backend.address in server.url
    with pytest.raises(BackendError, match="gives no probabilities"):
        backend.score(Request("a"), None, top=1, control=Control())
    with pytest.raises(BackendError, match="prompt is empty"):
        backend.stream(Request("", (GREEDY,), chat=False), Control())
