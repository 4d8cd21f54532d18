"""`/score` the way a program reaches it: the JSON of the command, refusals, and a client that leaves."""

from collections.abc import Iterator
from typing import Any

import pytest

from playground.backends.local import LocalBackend
from playground.backends.protocol import Scorer
from playground.core.scoring import scoring_report
from playground.engine.score import CannotScore, score
from playground.ui.app import build, free_port, launch
from playground.ui.calls import Calls
from playground.ui.models import Models
from tests.engine.conftest import byte_level_tokenizer, loaded, tiny_module


@pytest.fixture(scope="module")
def backend() -> LocalBackend:
    tokenizer = byte_level_tokenizer()
    return LocalBackend(loaded(tiny_module(len(tokenizer)), tokenizer))


@pytest.fixture(scope="module")
def client(first_port: int, backend: LocalBackend) -> Iterator[Any]:
    gradio_client = pytest.importorskip("gradio_client")
    demo = build(Models(lambda name, report: backend, "tests/none", open_names=False))
    launch(demo, "127.0.0.1", free_port("127.0.0.1", first_port), quiet=True, prevent_thread_lock=True)
    yield gradio_client.Client(demo.local_url, verbose=False, analytics_enabled=False)
    demo.close()


def test_the_answer_is_the_commands(client: Any, backend: LocalBackend) -> None:
    """Case 18, over HTTP."""
    answer = client.predict(prompt="hello", text=" own fox", top=2, api_name="/score")
    expected = scoring_report(score(backend.model, "hello", " own fox", top=2))
    assert answer["tokens"] == expected["tokens"]
    assert answer["logprob"] == expected["logprob"]
    assert [len(token["expected"]) for token in answer["tokens"]] == [2] * len(answer["tokens"])


def test_at_a_step_of_a_run_and_the_prompt_alone(client: Any) -> None:
    run = client.predict(prompt="hello", max_new_tokens=4, api_name="/generate")
    step = run["steps"][3]
    ids = [*run["prompt_token_ids"], *run["token_ids"]]
    alone = client.predict(prompt="", prompt_ids=ids, api_name="/score")["tokens"]
    assert alone[-1]["id"] == step["id"] and alone[-1]["rank"] == step["raw_rank"]
    assert alone[-1]["logprob"] == pytest.approx(step["raw_logprob"], abs=5e-5)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"prompt": "a", "text": ""}, "text to score is empty"),
        ({"prompt": "", "text": "a"}, "prompt is empty"),
        ({"prompt": "a", "text": 5}, "text must be text"),
        ({"prompt": 5, "text": "a"}, "the prompt must be text"),
        ({"prompt": "a", "text": "a", "top": 21}, "top must be a whole number from 0 to 20"),
        ({"prompt": "a", "text": "a", "top": "all"}, "top must be a whole number"),
        ({"prompt": "a", "text": "a", "chat": "no"}, "chat must be true or false"),
        ({"prompt": "a", "text": "a", "prompt_ids": "5"}, "prompt_ids must be a list"),
        ({"prompt": "a", "text": "a", "prompt_ids": [5.5]}, "prompt_ids must be a list"),
        ({"prompt": "a", "text": "a", "prompt_ids": [10**9]}, "outside this model's vocabulary"),
        ({"prompt": "a", "text": "a", "model": "/etc"}, "only the models in its list"),
        ({"prompt": "a" * 3, "text": "😊" * 2000}, "have .* tokens together"),
    ],
)
def test_bad_input_is_one_sentence(client: Any, arguments: dict[str, Any], sentence: str) -> None:
    from gradio_client.exceptions import AppError

    with pytest.raises(AppError, match=sentence):
        client.predict(api_name="/score", **arguments)


def test_what_has_no_model_says_so(first_port: int, echo: Any) -> None:
    gradio_client = pytest.importorskip("gradio_client")
    from gradio_client.exceptions import AppError

    demo = build(Models(lambda name, report: echo(), "tests/none", open_names=False))
    launch(demo, "127.0.0.1", free_port("127.0.0.1", first_port), quiet=True, prevent_thread_lock=True)
    try:
        one = gradio_client.Client(demo.local_url, verbose=False, analytics_enabled=False)
        with pytest.raises(AppError, match="has no model to ask"):
            one.predict(prompt="a", text="b", api_name="/score")
    finally:
        demo.close()


def test_nothing_more_is_computed_for_a_client_that_left(serviced: Any, backend: LocalBackend) -> None:
    assert isinstance(backend, Scorer)
    service = serviced(backend)
    calls = Calls(service.models, service.runs)
    with calls.asking("client") as control:
        assert not control.stopped
        calls.stop("client")
        assert control.stopped
        with pytest.raises(CannotScore, match="stopped"):
            score(backend.model, "hello", " world", control=control)
