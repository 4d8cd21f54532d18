"""The named models and configs, checked against published sizes."""

import json
from pathlib import Path
from typing import Any

import pytest

from playground import catalog, settings
from playground.catalog import UnknownConfig
from playground.core.kv import cache_spec
from playground.core.sizing import kv_report

PARAMETERS = {
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "qwen2.5-0.5b": 494_032_768,
    "qwen3-0.6b": 596_049_920,
    "tinyllama-1.1b": 1_100_048_384,
    "llama-2-7b": 6_738_415_616,
    "mistral-7b": 7_248_023_552,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "qwen3-8b": 8_190_735_360,
    "llama-3.1-70b": 70_553_706_496,
}
"""As the Hub counts them from the weight files: a wrong shape would not add up to them."""


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_shape_adds_up_to_the_published_number_of_parameters(name: str) -> None:
    assert kv_report(catalog.kv_config(name), 1)["weights_bytes"] == PARAMETERS[name] * 2


def test_every_config_has_a_shape_that_can_be_computed() -> None:
    names = [config.name for config in catalog.configs()]
    assert len(set(names)) == len(names)
    assert set(PARAMETERS) | {"gpt2"} == set(names)
    for config in catalog.configs():
        assert cache_spec(config.shape).bytes_per_token > 0
        assert config.hub.count("/") == 1


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
    assert (settings.assets_dir() / "models.toml").is_file()
