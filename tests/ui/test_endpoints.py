"""The named endpoints the way a program reaches them, and nothing else by name."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from playground.ui.app import build, free_port, launch
from playground.ui.models import Models
from tests.ui.conftest import Echo


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    gradio_client = pytest.importorskip("gradio_client")
    demo = build(Models(lambda name, report: Echo(), "tests/none", open_names=False))
    launch(demo, "127.0.0.1", free_port("127.0.0.1", 7990), quiet=True, prevent_thread_lock=True)
    yield gradio_client.Client(demo.local_url, verbose=False, analytics_enabled=False)
    demo.close()


def test_only_the_commands_have_names(client: Any) -> None:
    named = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(named) == {"/generate", "/compare", "/kv", "/tokens"}


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
        ("/compare", {"prompt": "a", "lanes": ["greedy"]}, "2 to 4"),
        ("/compare", {"prompt": "a", "lanes": ["greedy", "warmth=1"]}, "is not a setting"),
        ("/tokens", {"text": ""}, "prompt is empty"),
        ("/kv", {"config": "/etc/hostname"}, "config must be the text"),
        ("/kv", {"config": "{"}, "begins like JSON"),
        ("/kv", {"config": "llama-3.1-8b", "tokens": 0}, "tokens must be"),
        ("/kv", {"config": "llama-3.1-8b", "dtype": "int3"}, "int3"),
    ],
)
def test_bad_input_is_one_sentence(
    client: Any, endpoint: str, arguments: dict[str, Any], sentence: str
) -> None:
    from gradio_client.exceptions import AppError

    with pytest.raises(AppError, match=sentence):
        client.predict(api_name=endpoint, **arguments)
