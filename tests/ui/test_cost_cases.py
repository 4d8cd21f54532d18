"""Cases 31 to 33 on page, command and API: what a run cost is one record, told alike in three places."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from playground.backends.local import LocalBackend
from playground.backends.replay import ReplayBackend
from playground.cli import generate as generate_module
from playground.cli import race as race_module
from playground.cli import run as run_command
from playground.core.decoding import GREEDY
from playground.core.events import Prefilled
from playground.core.metrics import timing
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.engine.facts import model_facts
from playground.engine.model import LoadedModel
from playground.ui.app import build, free_port, launch
from playground.ui.kv_phases import drawn_phases
from playground.ui.models import Models
from playground.ui.seen import look_at
from playground.ui.session import Tab
from playground.ui.text import sections
from playground.views.measuring import rates_table
from tests.browser.conftest import made_run
from tests.engine.conftest import byte_level_tokenizer, loaded, tiny_module
from tests.engine.families import FAMILIES
from tests.engine.families import tiny as of_family

STEPS, PREFILL_SECONDS, STEP_SECONDS = 40, 0.08, 0.03
RACED, HELD_STEPS = 8, 24
"""The latter slide past the tiny models' windows."""


def cold_run() -> Run:
    """A run whose times are known: 80 ms of prefill with one-time work in it, then 30 ms a token."""
    events = made_run(STEPS).events
    return fold(replace(e, warm_up=True) if isinstance(e, Prefilled) else e for e in events)


def of_kind(family: str) -> LoadedModel:
    """A tiny model of the family, with the facts that loading it would find."""
    model = of_family(family)
    facts = model_facts(family, None, model.module, model.tokenizer, model.spec, model.device, "float32")
    model.facts = facts
    return model


@pytest.fixture(scope="module")
def tiny() -> LocalBackend:
    tokenizer = byte_level_tokenizer()
    model = loaded(tiny_module(len(tokenizer)), tokenizer)
    model.stop_ids = frozenset()
    return LocalBackend(model)


@pytest.fixture(scope="module")
def client(first_port: int, tiny: LocalBackend) -> Iterator[Any]:
    """The page over a replay of `cold_run`, a tiny model under the name “tiny”, and one of each family."""
    gradio_client = pytest.importorskip("gradio_client")

    def load(name: str, report: Any) -> Any:
        if name in FAMILIES:
            return LocalBackend(of_kind(name))
        return tiny if name == "tiny" else ReplayBackend(cold_run(), None)

    demo = build(Models(load, "tests/made", ("tiny", *FAMILIES)))
    launch(demo, "127.0.0.1", free_port("127.0.0.1", first_port), quiet=True, prevent_thread_lock=True)
    yield gradio_client.Client(demo.local_url, verbose=False, analytics_enabled=False)
    demo.close()


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny: LocalBackend
) -> Callable[..., Any]:
    """The JSON of a command."""
    monkeypatch.setattr(generate_module, "chosen_backend", lambda *_, **__: ReplayBackend(cold_run(), None))
    monkeypatch.setattr(race_module, "local_backend", lambda *_: tiny)

    def run(*arguments: object) -> Any:
        assert run_command([str(argument) for argument in (*arguments, "--json")]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


def test_prefill_and_decode_are_never_mixed(client: Any, command: Callable[..., Any]) -> None:
    """Case 31 on page, command and API: time to first token, prefill rate and decode rate, each its own."""
    in_terminal = command("generate", "What is gravity?", "--max-new-tokens", STEPS)["timing"]
    over_http = client.predict(prompt="What is gravity?", max_new_tokens=STEPS, api_name="/generate")[
        "timing"
    ]
    assert in_terminal == over_http
    assert over_http["prefill_seconds"] == pytest.approx(PREFILL_SECONDS)
    assert over_http["prefill_tokens_per_second"] == pytest.approx(4 / PREFILL_SECONDS)
    assert over_http["time_to_first_token_seconds"] == pytest.approx(PREFILL_SECONDS + STEP_SECONDS)
    assert over_http["decode_tokens_per_second"] == pytest.approx(1 / STEP_SECONDS), "no prefill in it"
    run = cold_run()
    (drawn, _) = drawn_phases(run, None)
    assert drawn.prefill_share == pytest.approx(over_http["prefill_share"])
    on_page = rates_table([("a", timing(run, run.lanes[0]))], sections("en")["phases"])
    for cell in ("110 ms", "30 ms", "50.0", "33.3"):
        assert f"<td>{cell}</td>" in on_page


def test_a_first_run_says_that_it_holds_one_time_work(client: Any, command: Callable[..., Any]) -> None:
    """Case 32 on page, command and API: the warm-up is marked wherever the times stand."""
    assert command("generate", "a")["timing"]["warm_up"] is True
    assert client.predict(prompt="a", api_name="/generate")["timing"]["warm_up"] is True
    run = cold_run()
    on_page = rates_table([("a", timing(run, run.lanes[0]))], sections("en")["phases"])
    assert "with warm-up" in on_page


def test_equality_is_ticked_alike(
    client: Any, command: Callable[..., Any], tiny: LocalBackend, serviced: Any
) -> None:
    """Case 33 on page, command and API: the same race, its ticks and its counts."""
    in_terminal = command("race", "hello", "--raw", "--max-new-tokens", RACED)
    over_http = client.predict(
        prompt="hello", chat=False, max_new_tokens=RACED, model="tiny", api_name="/race"
    )
    for told in (in_terminal, over_http):
        assert told["ticks"] == [True] * RACED and told["tokens_equal"] is True
        assert told["first_divergence"] is None and told["max_logit_difference"] < 1e-3
    counts = ("kv_computed", "attention_dot_products_needed", "attention_dot_products_computed", "token_ids")
    for side in ("cached", "uncached"):
        assert [in_terminal[side][name] for name in counts] == [over_http[side][name] for name in counts]
    request = Request("hello", (replace(GREEDY, max_new_tokens=RACED),), chat=False, top_n=1)
    packets = serviced(tiny).race(Tab("0" * 32), "race", None, request)
    events = [event for packet in packets for event in json.loads(packet).get("events", ())]
    assert [event["equal"] for event in events if event["event"] == "ticked"] == [True] * RACED
    raced = next(event for event in events if event["event"] == "raced")
    assert raced["uncached"]["kv_computed"] == over_http["uncached"]["kv_computed"]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_cache_holds_is_told_alike(
    family: str, client: Any, command: Callable[..., Any], serviced: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases 36, 37 and 38 on page, command and API: what the cache of each kind holds is as predicted, layer by
    layer, or it is told why not."""
    backend = LocalBackend(of_kind(family))
    monkeypatch.setattr(generate_module, "chosen_backend", lambda *_, **__: backend)
    asked = ("generate", "hello", "--raw", "--max-new-tokens", HELD_STEPS)
    in_terminal = command(*asked)["kv_cache"]
    over_http = client.predict(
        prompt="hello", chat=False, max_new_tokens=HELD_STEPS, model=family, api_name="/generate"
    )["kv_cache"]
    assert in_terminal == over_http
    service, tab = serviced(backend), Tab("0" * 32)
    request = Request("hello", (replace(GREEDY, max_new_tokens=HELD_STEPS),), chat=False)
    list(service.generate(tab, "run", None, request))
    seen = look_at(service, service.runs.latest(tab.key("run")).run, None)
    assert seen is not None
    held = seen.holding
    for name in ("tokens", "used_bytes", "predicted_bytes", "state_bytes", "predicted_state_bytes"):
        assert getattr(held, name) == over_http[name], name
    assert [reason.text for reason in held.reasons] == over_http["reasons"]
    as_predicted = (held.used_bytes, held.state_bytes) == (held.predicted_bytes, held.predicted_state_bytes)
    assert as_predicted or held.reasons
    assert sum(layer.used_bytes or 0 for layer in held.layers) == held.used_bytes
    assert sum(layer.predicted_bytes for layer in held.layers) == held.predicted_bytes
    assert sum(layer.state_bytes or 0 for layer in held.layers) == held.state_bytes


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"max_new_tokens": 513}, "at most 512 in a race"), ({"max_new_tokens": 0}, "max_new_tokens must be"),
        ({"model": None}, "no model that could race"), ({"prompt": ""}, "The prompt is empty"),
    ],
)  # fmt: skip
def test_a_race_that_cannot_be_is_one_sentence(client: Any, wrong: dict[str, Any], sentence: str) -> None:
    from gradio_client.exceptions import AppError

    with pytest.raises(AppError, match=sentence):
        client.predict(**{"prompt": "hello", "max_new_tokens": 4, "model": "tiny"} | wrong, api_name="/race")
