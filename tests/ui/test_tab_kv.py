"""The tab KV cache without a browser: what the calculator answers, and what is told of the last run."""

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from playground import catalog
from playground.catalog import UnknownAccelerator
from playground.core.decoding import GREEDY
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.units import seconds_text
from playground.ui import kv_calculator, kv_memory
from playground.ui.calculation import Asked, ParameterCounts, calculated
from playground.ui.config_text import CHARACTERS_LIMIT, named_config, read_config
from playground.ui.endpoints import kv
from playground.ui.seen import look_at
from playground.ui.text import Words, sections
from playground.views.figures.frame import csv_text
from playground.views.figures.growth import GROWTH, Growth

FIELDS: list[Any] = ["llama-3.1-8b", "", 4096, 32, "short_bfloat16", "short_bfloat16", "h100-sxm"]
TEXT = sections("en")["kv"]


def asked(**changed: Any) -> Asked:
    """The calculator's fields, as the page sends them."""
    names = ("name", "text", "tokens", "sequences", "dtype", "weights_dtype", "accelerator")
    return Asked.of([changed.get(name, value) for name, value in zip(names, FIELDS, strict=True)])


def answer(**changed: Any) -> Any:
    return calculated(asked(**changed), ParameterCounts(), "en")


def words(markup: Any) -> str:
    """What a reader sees of it."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", str(markup)))


def test_the_articles_figures_on_the_page() -> None:
    """Case 34: 131,072 B a token, 16 GiB for 32 x 4,096; the weights beside it in one unit."""
    found = answer()
    said = words(found.headline)
    for part in (
        "16 GiB",
        "17,179,869,184 bytes",
        "128 KiB",
        "8,030,261,248 parameters",
        "15 GiB",
        "16,060,522,496 bytes",
    ):
        assert part in said, part
    assert found.ghosts.cache.with_kv_heads(32).used_bytes(1) == 524_288


def test_128_000_and_131_072_side_by_side() -> None:
    """Case 39: 15.6 and 16 GiB, whatever else is asked for."""
    for changed in ({}, {"tokens": 7, "sequences": 9}):
        said = words(answer(**changed).lengths)
        for part in ("15.6 GiB", "16 GiB", "16,777,216,000", "17,179,869,184"):
            assert part in said


@pytest.mark.parametrize(
    ("name", "tokens", "used", "allocated"),
    [
        ("llama-3.1-8b", 1, 131_072, 131_072),
        ("gpt2", 1, 36_864, 36_864),
        ("qwen2.5-0.5b", 1, 12_288, 12_288),
        ("qwen3-0.6b", 1, 114_688, 114_688),
        ("llama-2-70b", 1, 327_680, 327_680),
        ("gpt-oss-120b", 128, 128 * 73_728, 128 * 73_728),
        ("gpt-oss-120b", 1000, 128 * 73_728 + 872 * 36_864, 1000 * 73_728),
        ("gpt-oss-120b", 32_000, 128 * 73_728 + 31_872 * 36_864, 32_000 * 73_728),
        ("deepseek-v3", 1, 70_272, 70_272),
        ("mamba-codestral-7b", 1, 0, 0),
    ],
)
def test_page_command_and_api_agree(
    first_line: Any, name: str, tokens: int, used: int, allocated: int
) -> None:
    """Cases 34, 35, 36, 37 and 38 on page, command and API: the same arithmetic in three places."""
    on_page = asked(name=name, tokens=tokens, sequences=1).report(None)
    over_http = kv(name, tokens=tokens, dtype="bfloat16")
    in_terminal = first_line("kv", name, "--tokens", str(tokens), "--dtype", "bfloat16", "--json")
    for report in (on_page, over_http, in_terminal):
        assert (report["used_bytes"], report["allocated_bytes"]) == (used, allocated)
        assert report["state_bytes"] == over_http["state_bytes"]
        assert report["ghosts"] == over_http["ghosts"]
        assert report["token"] == over_http["token"]


@pytest.mark.parametrize(
    ("name", "tokens", "shown", "beside_weights"),
    [
        ("llama-3.1-8b", 4096, "512 MiB", "0.5 GiB"), ("llama-3.1-8b", 128_000, "15.6 GiB", "15.6 GiB"),
        ("gpt2", 1, "36 KiB", "36 KiB"),
    ],
)  # fmt: skip
def test_units_agree_everywhere(name: str, tokens: int, shown: str, beside_weights: str) -> None:
    """Case 39 on page, command and API: binary units, in that of the weights beside them, and the same bytes."""
    exact = kv(name, tokens=tokens, dtype="bfloat16")["used_bytes"]
    found = answer(name=name, tokens=tokens, sequences=1)
    printed = _printed("kv", name, "--tokens", str(tokens), "--dtype", "bfloat16")
    for said, unit in ((words(found.headline), beside_weights), (printed, shown)):
        assert unit in said and f"{exact:,} bytes" in said
        assert not re.search(r"\d [KMGT]B\b", said)
    exported = csv_text(GROWTH.rows(Growth(name, found.growth.cache, tokens, 1)))
    assert f"{tokens},{exact},{exact}" in exported
    assert shown in GROWTH.sentence(Growth(name, found.growth.cache, tokens, 1), sections("en")["figures"])


def _printed(*arguments: str) -> str:
    program = "import sys; from playground.cli import run; run(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def first_line() -> Any:
    """The JSON of a command, run in this process as a person would run it."""
    return lambda *arguments: json.loads(_printed(*arguments).splitlines()[-1])


def test_a_window_names_used_and_allocated() -> None:
    """Case 36."""
    said = words(answer(name="gpt-oss-120b", tokens=32_000, sequences=1).headline)
    assert "Allocated" in said
    assert "2.2 GiB" in said
    assert "Allocated" not in words(answer().headline)


def test_a_constant_state_stands_apart() -> None:
    """Case 38."""
    found = answer(name="mamba-codestral-7b", sequences=1)
    assert "Constant state 261 MiB" in words(found.headline)
    assert "261 MiB" in words(found.headline)


def test_every_unit_is_binary() -> None:
    """Case 39: title, tables and sentence."""
    for known in catalog.configs():
        found = calculated(asked(name=known.name), ParameterCounts(), "en")
        assert not re.search(r"\d [KMGT]B\b", words(found.headline) + words(found.lengths)), known.name


def test_sources_stand_beside_the_figures() -> None:
    for known in catalog.configs():
        found = words(calculated(asked(name=known.name), ParameterCounts(), "en").sources)
        assert known.source[:60] in found
        assert "not measured here" in found


def test_accelerators_stand_with_memory_bandwidth_and_what_fits() -> None:
    """32 x 4,096 tokens of Llama-3.1-8B are 15 GiB of weights, 16 of cache and an estimate of the rest."""
    said = words(answer().accelerators)
    plan = answer().capacity.plan
    needed = plan.need(4096, 32).total_bytes
    assert (
        f"{sum(a.memory_bytes >= needed for a in catalog.accelerators())} of {len(catalog.accelerators())}"
        in said
    )
    read = (16_060_522_496 + 17_179_869_184) / catalog.accelerator("h100-sxm").bytes_per_second
    assert f"NVIDIA H100 SXM 74.5 GiB 3.35 TB/s yes 118 {seconds_text(read)}" in said
    assert "NVIDIA L4 22.4 GiB 300 GB/s no 14 –" in said
    assert all(known.source[:30] in said for known in catalog.accelerators())
    odd = '{"model_type": "odd", "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}'
    unknown = words(answer(text=odd).accelerators)
    assert TEXT["accelerators_unknown"] in unknown and "yes" not in unknown.split()


HOSTILE = [
    "{}",
    '{"num_hidden_layers": 2, "num_attention_heads": 0, "hidden_size": 64}',
    '{"num_hidden_layers": -2, "num_attention_heads": 4, "hidden_size": 64}',
    '{"num_hidden_layers": 2, "num_attention_heads": "many", "hidden_size": 64}',
    '{"num_hidden_layers": 2, "num_attention_heads": 100, "hidden_size": 64}',
    '{"num_hidden_layers": 1e999, "num_attention_heads": 4, "hidden_size": 64}',
    '{"model_type": "gpt2", "n_layer": 999999999, "n_head": 4, "n_embd": 64}',
    '{"a": ' * 50_000,
    "[1, 2]",
    "null",
    "no json",
    '{"num_hidden_layers": ' + "9" * 5000 + "}",
    '{"x": "' + "y" * 10 * 2**20 + '"}',
]


@pytest.mark.alone
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_config_is_one_sentence(text: str) -> None:
    began = time.perf_counter()
    with pytest.raises(Refused) as raised:
        answer(text=text)
    assert time.perf_counter() - began < 0.5
    sentence = str(raised.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 1200


@pytest.mark.parametrize(
    "changed",
    [
        {"tokens": None}, {"tokens": 0}, {"tokens": 1.5}, {"sequences": -1}, {"dtype": "x"},
        {"accelerator": "x"}, {"name": None}, {"name": "x"},
    ],
)  # fmt: skip
def test_a_field_that_is_not_understood_is_one_sentence(changed: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=r"\.$"):
        answer(**changed)


def test_a_config_is_never_markup() -> None:
    text = json.dumps({
        "model_type": "<img src=x onerror=alert(1)>", "num_hidden_layers": 2, "num_attention_heads": 4,
        "hidden_size": 64,
    })  # fmt: skip
    found = answer(text=text)
    assert "<img" not in str(found.headline)
    assert "&lt;img" in str(found.headline)


def test_ten_megabytes_are_not_even_read() -> None:
    with pytest.raises(Refused, match="at most 1,000,000 characters"):
        read_config("{" + " " * CHARACTERS_LIMIT + "}")


def test_names_are_of_the_catalog_and_open_no_file() -> None:
    assert named_config(" Llama-3.1-8B ").title == "Llama 3.1 8B"
    for name in ("/etc/hostname", "", 5, None):
        with pytest.raises(Refused, match="config must be the text"):
            named_config(name)
    with pytest.raises(UnknownAccelerator):
        answer(accelerator="abacus")


@pytest.mark.alone
def test_an_answer_takes_no_longer_than_a_tenth_of_a_second() -> None:
    answer()
    began = time.perf_counter()
    for known in catalog.configs():
        calculated(asked(name=known.name, tokens=128_000), ParameterCounts(), "en")
    assert (time.perf_counter() - began) / len(catalog.configs()) < 0.1


def test_parameters_are_counted_once_and_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    from playground.ui import calculation

    counted: list[Any] = []
    monkeypatch.setattr(calculation, "_count", lambda config: counted.append(config) or 1000)
    text = json.dumps(
        {"model_type": "other", "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}
    )
    counts, wanted = ParameterCounts(), asked(text=text)
    assert TEXT["weights_counting"] in words(calculated(wanted, counts, "en").headline)
    assert counts.find(wanted)
    assert not counts.find(asked(text=text, tokens=9))
    assert len(counted) == 1
    assert "1,000 parameters" in words(calculated(wanted, counts, "en").headline)


def test_parameters_that_cannot_be_counted_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from playground.ui import calculation

    monkeypatch.setattr(calculation, "_count", lambda config: None)
    counts, wanted = (
        ParameterCounts(),
        asked(text='{"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 8}'),
    )
    counts.find(wanted)
    assert TEXT["weights_unknown"] in words(calculated(wanted, counts, "en").headline)


def test_known_families_are_never_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from playground.ui import calculation

    monkeypatch.setattr(calculation, "_count", lambda config: pytest.fail("counted"))
    assert not ParameterCounts().find(asked())
    assert not ParameterCounts().find(asked(text="{"))


@pytest.fixture
def section(serviced: Any, echo: Any) -> Any:
    import gradio as gr

    def build(kind: Any, service: Any) -> Any:
        with gr.Blocks():
            who, model = gr.Textbox(visible=False), gr.Textbox(visible=False)
            return kind(Words(), service, who, model)

    return lambda kind, service=None: build(kind, service or serviced(echo()))


def test_the_calculator_answers_in_the_tabs_language(section: Any) -> None:
    built = section(kv_calculator.build_calculator)
    said = built.calculate(*FIELDS, json.dumps({"session": "0" * 32, "language": "zh"}))
    assert "KV 缓存，计算值" in str(said)
    refused = built.calculate(*(["", "{", *FIELDS[2:]]), json.dumps({"language": "zh"}))
    assert "config 开头像 JSON 却不是" in str(refused[0])
    assert len(said) == len(refused) == len(built.outputs)


def test_memory_before_a_model_a_run_and_after_one(section: Any, serviced: Any, echo: Any, tab: Any) -> None:
    service = serviced(echo())
    assert look_at(service, None, None) is None
    built = section(kv_memory.build_memory, service)
    by = json.dumps({"session": tab.token, "language": "en"})
    looking = built.look(None, by)
    assert "No model is loaded yet" in str(next(looking)[0])
    service.models.begin()
    while service.models.loaded() is None:
        time.sleep(0.01)
    assert "its cache is empty" in str(list(looking)[-1][0])
    run = service.runs.start(
        tab.key("run"), service.models.loaded(), Request("abc", (replace(GREEDY, max_new_tokens=3),))
    )
    list(run.follow())
    *_, last = built.look(None, by)
    assert "keeps <b>5 tokens</b>: 3 of the prompt and 2 of the answer" in str(last[0])
    assert "are <b>equal</b>" in str(last[0])
    assert "The context of 1,000 tokens is full after" in str(last[1])
    assert len(last) == len(built.outputs)


def test_memory_is_of_the_run_that_was_begun_last(section: Any, serviced: Any, echo: Any, tab: Any) -> None:
    service = serviced(echo())
    service.models.begin()
    built = section(kv_memory.build_memory, service)
    while service.models.loaded() is None:
        time.sleep(0.01)
    for place, prompt, lanes in (("run", "abc", 1), ("compare", "abcd", 2)):
        request = Request(prompt, (replace(GREEDY, max_new_tokens=2),) * lanes)
        list(service.runs.start(tab.key(place), service.models.loaded(), request).follow())
    by = json.dumps({"session": tab.token, "language": "en"})
    assert "in 2 runs: 4 of the prompt in each" in str(list(built.look(None, by))[-1][0])
    other = json.dumps({"session": "f" * 32, "language": "en"})
    assert "its cache is empty" in str(list(built.look(None, other))[-1][0]), (
        "another session's run is its own"
    )


def test_a_run_finds_its_model_under_whatever_name_it_was_asked_for(
    serviced: Any, echo: Any, tab: Any
) -> None:
    from types import SimpleNamespace

    from playground.core.kv import CacheSpec, LayerSpec
    from playground.ui.models import Models

    backend = echo()
    spec = CacheSpec((LayerSpec("full", 1, 1),), 1, "float32")
    backend.model = SimpleNamespace(spec=spec)
    service = serviced(backend)
    service.models = Models(lambda name, report: backend, "a path", ("a path",))
    service.models.begin()
    while service.models.loaded() is None:
        time.sleep(0.01)
    hosted = service.runs.start(tab.key("run"), backend, Request("ab", (replace(GREEDY, max_new_tokens=1),)))
    list(hosted.follow())
    seen = look_at(service, hosted.run, None)
    assert seen is not None
    assert seen.spec is spec
