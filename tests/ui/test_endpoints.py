"""The named endpoints the way a program reaches them, and nothing else by name."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest

from playground.backends.hosted import Runs
from playground.backends.protocol import BackendError
from playground.core.decoding import GREEDY
from playground.core.request import Request
from playground.core.run import Run
from playground.ui.app import build, free_port, launch
from playground.ui.calls import Calls
from playground.ui.endpoints import refusing
from playground.ui.models import Models
from tests.ui.conftest import Echo


@pytest.fixture(scope="module")
def client(first_port: int) -> Iterator[Any]:
    gradio_client = pytest.importorskip("gradio_client")
    demo = build(Models(lambda name, report: Echo(), "tests/none", open_names=False))
    launch(demo, "127.0.0.1", free_port("127.0.0.1", first_port), quiet=True, prevent_thread_lock=True)
    yield gradio_client.Client(demo.local_url, verbose=False, analytics_enabled=False)
    demo.close()


def test_only_the_commands_have_names(client: Any) -> None:
    named = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(named) == {"/generate", "/compare", "/race", "/score", "/kv", "/tokens"}


def test_generate(client: Any) -> None:
    answer = client.predict(prompt="abc", strategy="sample", seed=7, max_new_tokens=2, api_name="/generate")
    assert answer["token_ids"] == [97, 98]
    assert answer["seed"] == 7
    assert answer["kv_cache"]["tokens"] == 3 + 2 - 1
    assert {"text", "prompt_token_ids", "finish_reason", "settings", "timing", "steps"} <= set(answer)


def test_compare(client: Any) -> None:
    answer = client.predict(prompt="abc", lanes=["greedy", "temperature=0.8,seed=1"], api_name="/compare")
    assert [lane["spec"] for lane in answer["lanes"]] == ["greedy", "T 0.8, top-p 0.9"]
    assert answer["first_divergence"] is None


def test_tokens(client: Any) -> None:
    answer = client.predict(text="aé", api_name="/tokens")
    assert [(token["id"], token["bytes"]) for token in answer["tokens"]] == [(97, "61"), (233, "c3a9")]


def test_kv_of_a_name_and_of_a_config(client: Any) -> None:
    named = client.predict(config="llama-3.1-8b", tokens=4096, api_name="/kv")
    assert (named["bytes_per_token"], named["used_bytes"]) == (131_072, 512 * 2**20)
    config = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128}
    given = client.predict(config=json.dumps(config), tokens=1, api_name="/kv")
    assert given["bytes_per_token"] == 524_288


@pytest.mark.parametrize(
    ("endpoint", "arguments", "sentence"),
    [
        ("/generate", {"prompt": ""}, "prompt is empty"),
        ("/generate", {"prompt": "a", "strategy": "sample", "temperature": -1}, "temperature must be"),
        ("/generate", {"prompt": "a", "strategy": "sample", "top_p": 2}, "top_p must be"),
        ("/generate", {"prompt": "a", "max_new_tokens": 0}, "max_new_tokens must be"),
        ("/generate", {"prompt": "a", "max_new_tokens": 10**9}, "over HTTP"),
        ("/generate", {"prompt": "a", "model": "/etc"}, "only the models in its list"),
        ("/generate", {"prompt": "a", "model": 5}, "model must be text"),
        ("/generate", {"prompt": 5}, "the prompt must be text"),
        ("/generate", {"prompt": "a", "system": ["x"]}, "system must be text"),
        ("/generate", {"prompt": "a", "chat": "no"}, "chat must be true or false"),
        ("/generate", {"prompt": "a", "stop": "END"}, "stop must be a list"),
        ("/generate", {"prompt": "a", "stop": 5}, "stop must be a list"),
        ("/generate", {"prompt": "a", "stop": {}}, "stop must be a list"),
        ("/generate", {"prompt": "a", "stop": ""}, "stop must be a list"),
        ("/generate", {"prompt": "a", "stop": [5]}, "stop string must be text"),
        ("/generate", {"prompt": "a", "top_n": 10**6}, "top_n must be"),
        ("/generate", {"prompt": "a", "top_n": "all"}, "top_n must be"),
        ("/generate", {"prompt": "a", "seed": []}, "seed must be"),
        ("/generate", {"prompt": "a", "strategy": []}, "strategy must be"),
        ("/generate", {"prompt": "a", "max_new_tokens": "9"}, "max_new_tokens must be"),
        ("/compare", {"prompt": "a", "lanes": ["greedy", 5]}, "a lane must be text"),
        ("/compare", {"prompt": "a", "lanes": ["greedy", "max_new_tokens=9000"]}, "over HTTP"),
        ("/compare", {"prompt": [], "lanes": ["greedy", "greedy"]}, "the prompt must be text"),
        ("/tokens", {"text": None}, "the prompt must be text"),
        ("/kv", {"config": "llama-3.1-8b", "dtype": []}, "dtype must be text"),
        ("/kv", {"config": '{"model_type": []}'}, "num_attention_heads"),
        ("/compare", {"prompt": "a", "lanes": ["greedy"]}, "2 to 4"),
        ("/compare", {"prompt": "a", "lanes": ["greedy", "warmth=1"]}, "is not a setting"),
        ("/tokens", {"text": ""}, "prompt is empty"),
        ("/kv", {"config": "/etc/hostname"}, "config must be the text"),
        ("/kv", {"config": "{"}, "begins like JSON"),
        ("/kv", {"config": "llama-3.1-8b", "tokens": 0}, "tokens must be"),
        ("/kv", {"config": "llama-3.1-8b", "dtype": "int3"}, "int3"),
        ("/kv", {"config": "llama-3.1-8b", "dtype": ""}, "dtype '' is not known"),
        ("/kv", {"config": "llama-3.1-8b", "weights_dtype": ""}, "weights_dtype must be one of"),
    ],
)
def test_bad_input_is_one_sentence(
    client: Any, endpoint: str, arguments: dict[str, Any], sentence: str
) -> None:
    from gradio_client.exceptions import AppError

    with pytest.raises(AppError, match=sentence):
        client.predict(api_name=endpoint, **arguments)


def test_an_odd_config_has_a_report(client: Any) -> None:
    config = {"model_type": [], "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    report = client.predict(config=json.dumps(config), tokens=1, api_name="/kv")
    assert (report["bytes_per_token"], report["weights_bytes"]) == (512, None)
    marked = "\ufeff" + json.dumps(config)
    assert client.predict(config=marked, tokens=1, api_name="/kv") == report


def test_the_unexpected_is_one_sentence_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> dict[str, Any]:
        raise ZeroDivisionError("secret detail")

    with pytest.raises(gr.Error) as raised:
        refusing(broken)()
    assert "secret" not in raised.value.message
    assert raised.value.message.endswith(".")
    assert "ZeroDivisionError" in caplog.text


def test_a_run_over_http_is_bounded_like_the_pages_and_leaves_nothing(serviced: Any, echo: Any) -> None:
    service = serviced(echo())
    run = Calls(service.models, service.runs).run("client", None, Request("abc", (GREEDY,)))
    assert run.lanes[0].token_ids == [97, 98, 99]
    assert len(service.runs) == 0
    full = Calls(service.models, Runs(runs_limit=0))
    with pytest.raises(BackendError, match="Too many runs"):
        full.run("client", None, Request("abc", (GREEDY,)))


def test_a_client_that_leaves_ends_its_runs_and_no_other(serviced: Any, echo: Any) -> None:
    backend = echo(pause_seconds=0.02)
    service = serviced(backend)
    calls = Calls(service.models, service.runs)
    made: dict[str, Run] = {}

    def ask(client: str) -> None:
        made[client] = calls.run(client, None, Request("x" * 30, (GREEDY,)))

    threads = [threading.Thread(target=ask, args=(client,)) for client in ("leaves", "stays")]
    for thread in threads:
        thread.start()
    while backend.forwards < 4:
        time.sleep(0.005)
    calls.stop("leaves")
    for thread in threads:
        thread.join(10)
    assert made["leaves"].lanes[0].finish_reason == "cancelled"
    assert len(made["leaves"].lanes[0].steps) < 30
    assert made["stays"].lanes[0].finish_reason == "max_new_tokens"


def test_closing_a_client_is_noticed_by_the_server(first_port: int) -> None:
    gradio_client = pytest.importorskip("gradio_client")
    backend = Echo(pause_seconds=0.05)
    demo = build(Models(lambda name, report: backend, "tests/none", open_names=False))
    launch(demo, "127.0.0.1", free_port("127.0.0.1", first_port), quiet=True, prevent_thread_lock=True)
    try:
        client = gradio_client.Client(demo.local_url, verbose=False, analytics_enabled=False)
        client.submit(prompt="x" * 1000, max_new_tokens=1000, api_name="/generate")
        while backend.forwards < 4:
            time.sleep(0.01)
        client.close()
        until = time.monotonic() + 10
        before = -1
        while before != backend.forwards and time.monotonic() < until:
            before = backend.forwards
            time.sleep(0.5)
        assert backend.forwards < 500
    finally:
        demo.close()


def test_the_order_of_stages_over_http(client: Any) -> None:
    answer = client.predict(
        prompt="ab", temperature=0.8, order="llama.cpp", typical_p=0.9, api_name="/generate"
    )
    assert answer["settings"]["order"][-1] == "temperature" and answer["settings"]["typical_p"] == 0.9
    answer = client.predict(prompt="ab", lanes=["greedy", "order=top_p:temperature"], api_name="/compare")
    assert answer["lanes"][1]["settings"]["order"] == ["top_p", "temperature"]
    with pytest.raises(Exception, match="temperature is missing"):
        client.predict(prompt="ab", temperature=0.8, order="top_p", api_name="/generate")
    with pytest.raises(Exception, match="order must be text"):
        client.predict(prompt="ab", order=["top_p"], api_name="/generate")
