"""The named models, shapes and accelerators, checked against published sizes."""

import json
from pathlib import Path
from typing import Any

import pytest

from playground import catalog, settings
from playground.catalog import UnknownAccelerator, UnknownConfig
from playground.core.kv import cache_spec
from playground.core.sizing import kv_report

BYTES_PER_TOKEN = {
    "gpt2": 36_864,
    "smollm2-135m": 23_040,
    "smollm2-360m": 40_960,
    "smollm2-1.7b": 196_608,
    "llama-2-70b": 327_680,
    "llama-3.1-8b": 131_072,
    "llama-3.1-70b": 327_680,
    "llama-3.1-405b": 516_096,
    "qwen2.5-0.5b": 12_288,
    "qwen3-0.6b": 114_688,
    "gpt-oss-20b": 49_152,
    "gpt-oss-120b": 73_728,
    "deepseek-v3": 70_272,
    "mamba-codestral-7b": 0,
}
"""In 16 bits, as published or worked out by hand."""

CONSTANT_STATE = {
    "qwen3-next-80b": 77_856_768,
    "mamba-codestral-7b": 273_678_336,
    "falcon-h1-0.5b": 28_827_648,
}

NOT_WEIGHTS = {"llama-2-7b": 32 * 64, "llama-2-70b": 80 * 64, "deepseek-v3": 58 * 256}
"""Rotary frequencies and biases of routers that a published count holds and transformers keeps as buffers."""


@pytest.mark.parametrize("name", BYTES_PER_TOKEN)
def test_bytes_of_a_token(name: str) -> None:
    assert cache_spec(catalog.kv_config(name)).bytes_per_token == BYTES_PER_TOKEN[name]


@pytest.mark.parametrize("name", CONSTANT_STATE)
def test_bytes_of_a_constant_state(name: str) -> None:
    assert cache_spec(catalog.kv_config(name)).state_bytes() == CONSTANT_STATE[name]


@pytest.mark.parametrize("name", [c.name for c in catalog.configs() if c.parameters])
def test_a_shape_adds_up_to_the_published_number_of_parameters(name: str) -> None:
    """Where the family's weights are counted: a figure read wrongly would not add up."""
    known = catalog.config(name)
    assert known is not None and known.parameters is not None
    weights = kv_report(known.shape, 1, dtype="bfloat16")["weights_bytes"]
    assert weights in (None, (known.parameters - NOT_WEIGHTS.get(name, 0)) * 2)


def test_weights_of_many_shapes_are_counted() -> None:
    counted = [c for c in catalog.configs() if c.parameters and kv_report(c.shape, 1)["weights_bytes"]]
    assert len(counted) >= 18


def test_every_config_has_a_shape_that_can_be_computed() -> None:
    for known in catalog.configs():
        spec = cache_spec(known.shape)
        assert spec.bytes_per_token + spec.state_bytes() > 0
        assert spec.bytes_per_number == 2, "the catalog compares in 16 bits"


def test_every_config_says_where_it_was_read() -> None:
    known = catalog.configs()
    assert len(known) >= 16
    for of in ("name", "hub", "title"):
        assert len({getattr(config, of) for config in known}) == len(known)
    for config in known:
        assert config.hub.count("/") == 1
        assert config.source.startswith("https://") and config.read
        assert (config.parameters is None) == (config.parameters_source == "")


def test_models_that_run_have_a_shape() -> None:
    assert all(catalog.config(model.hub) for model in catalog.models())


def test_windows_stop_growing() -> None:
    """Case 36: 36 layers of 2,048 bytes a token, half of them up to 128 tokens."""
    spec = cache_spec(catalog.kv_config("gpt-oss-120b"))
    assert spec.used_bytes(128) == 73_728 * 128
    assert spec.used_bytes(1128) - spec.used_bytes(128) == 36_864 * 1000
    assert spec.allocated_bytes(1128) == 73_728 * 1128


@pytest.mark.parametrize("device", catalog.accelerators(), ids=lambda device: device.name)
def test_an_accelerator_says_where_it_was_read(device: catalog.Accelerator) -> None:
    assert device.source
    assert 10**10 < device.memory_bytes < 10**12
    assert 10**11 < device.bytes_per_second < 10**13
    assert device.matrix_flops is None or 20 < device.matrix_flops / device.bytes_per_second < 500
    assert device.reported_bytes is None or device.memory_bytes < device.reported_bytes
    assert not device.note or device.note.endswith(".")


def test_an_accelerator_by_name_and_title() -> None:
    h100 = catalog.accelerator(" H100-SXM ")
    assert catalog.accelerator("nvidia h100 sxm") == h100
    assert (h100.memory_bytes, h100.bytes_per_second) == (80 * 10**9, 3350 * 10**9)
    assert h100.matrix_flops == 989_500_000_000_000
    assert len({device.name for device in catalog.accelerators()}) == len(catalog.accelerators())


@pytest.mark.parametrize("name", ["", "h100", "x" * 500])
def test_an_accelerator_that_is_not_known(name: str) -> None:
    with pytest.raises(
        UnknownAccelerator, match=r"^No accelerator .{0,70} is known; known are h200-sxm, .*\.$"
    ):
        catalog.accelerator(name)


def test_kv_heads_are_not_heads() -> None:
    """Case 34."""
    spec = cache_spec(catalog.kv_config("llama-3-8b"))
    assert spec.bytes_per_token == 131_072
    assert spec.with_kv_heads(spec.query_heads).bytes_per_token == 524_288


def test_an_explicit_head_dim_comes_first() -> None:
    """Case 35."""
    config = catalog.kv_config("qwen3-0.6b")
    assert config["hidden_size"] // config["num_attention_heads"] == 64
    assert cache_spec(config).bytes_per_token == 114_688


def test_llama_3_1_8b_at_length() -> None:
    spec = cache_spec(catalog.kv_config("llama-3.1-8b"))
    assert spec.bytes_per_token == 131_072
    assert spec.used_bytes(4096) == 512 * 2**20
    assert spec.used_bytes(4096, 32) == 16 * 2**30
    assert spec.used_bytes(128_000) == pytest.approx(15.6 * 2**30, rel=0.002)


def test_the_default_in_both_widths() -> None:
    config = catalog.kv_config("smollm2-135m")
    assert cache_spec(config, "float32").bytes_per_token == 46_080
    assert cache_spec(config).bytes_per_token == 23_040


def test_there_is_one_default_and_a_multilingual_offer() -> None:
    known = catalog.models()
    assert [model.default for model in known].count(True) == 1
    assert catalog.default_model().hub == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert any(model.multilingual for model in known)
    assert all(model.about.endswith(".") for model in known)


@pytest.mark.parametrize("name", ["gpt2", "GPT2", " gpt2 ", "openai-community/gpt2"])
def test_a_model_answers_to_its_names(name: str) -> None:
    known = catalog.model(name)
    assert known is not None
    assert known.name == "gpt2"


def test_a_name_that_is_not_known() -> None:
    assert catalog.model("gpt-9") is None
    assert catalog.model("") is None


@pytest.mark.parametrize("by", ["file", "folder", "LLAMA-3.1-8B", "meta-llama/Llama-3.1-8B"])
def test_a_config_by_file_folder_name_and_id(by: str, tmp_path: Path) -> None:
    shape = catalog.kv_config("llama-3.1-8b")
    (tmp_path / "config.json").write_text(json.dumps(shape), encoding="utf-8")
    given = {"file": str(tmp_path / "config.json"), "folder": str(tmp_path)}.get(by, by)
    assert catalog.kv_config(given) == shape


def test_what_is_returned_may_be_changed(tmp_path: Path) -> None:
    catalog.kv_config("gpt2")["n_layer"] = 1
    assert catalog.kv_config("gpt2")["n_layer"] == 12
    catalog.kv_config("gpt-oss-20b")["layer_types"].clear()
    assert len(catalog.kv_config("gpt-oss-20b")["layer_types"]) == 24


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("the network was asked")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", refuse)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: None)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "Give a config.json"),
        ("a\0b", "Give a config.json"),
        ("x" * 2000, "Give a config.json"),
        ("a/b/c", "no file, folder or name"),
        ("../up", "no file, folder or name"),
        ("~nosuchuser/config.json", "no file, folder or name"),
        ("a" * 300, "no file, folder or name"),
        ("someone/something", "the network is switched off"),
    ],
)
def test_a_config_that_is_nowhere(name: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_TOKEN_OFFLINE", "1")
    with pytest.raises(UnknownConfig, match=says) as caught:
        catalog.kv_config(name)
    assert str(caught.value).endswith(".")


def test_a_hub_that_is_not_there(no_network: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_TOKEN_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)

    def silent(*_: Any, **__: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", silent)
    with pytest.raises(
        UnknownConfig, match=r"the Hub cannot be reached; give a config.json, or one of gpt2, "
    ):
        catalog.kv_config("someone/something")


def test_a_config_in_the_hub_cache_needs_no_network(
    no_network: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text('{"n_head": 1}', encoding="utf-8")
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: str(tmp_path / "config.json"))
    assert catalog.kv_config("someone/something") == {"n_head": 1}


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "[" * 100_000, "\xff"])
def test_a_file_that_is_no_config(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(UnknownConfig, match=r"'mine.json' .*give a model's config.json"):
        catalog.kv_config(str(file))


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    with pytest.raises(UnknownConfig, match=r"has no config.json"):
        catalog.kv_config(str(tmp_path))


def test_the_assets_are_found() -> None:
    for name in ("models.toml", "shapes/configs.toml", "shapes/accelerators.toml"):
        assert (settings.assets_dir() / name).is_file()
