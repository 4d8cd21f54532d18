"""Loading from files on disk: what is written down, and one sentence for each way to fail."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from playground.core.decoding import Decoding
from playground.core.kv import UnknownShape
from playground.engine import checks, devices, facts
from playground.engine.convert import gguf_to_safetensors
from playground.engine.devices import Memory
from playground.engine.load import CannotLoad, Progress, load_model, load_tokenizer
from tests.engine.conftest import TEMPLATE, byte_level_tokenizer, tiny_module
from tests.engine.gguf_file import write_gguf

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Writes a tiny seeded model to a folder, as `save_pretrained` leaves it."""

    def write(
        *, template: str | None = TEMPLATE, generation: dict[str, Any] | None = None, **changes: Any
    ) -> Path:
        place = tmp_path / "tiny"
        tokenizer = byte_level_tokenizer(template)
        tiny_module(len(tokenizer), **changes).save_pretrained(place)
        tokenizer.save_pretrained(place)
        if generation is not None:
            (place / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
        return place

    return write


def change_config(place: Path, **changes: Any) -> None:
    file = place / "config.json"
    config = json.loads(file.read_text(encoding="utf-8")) | changes
    file.write_text(json.dumps({k: v for k, v in config.items() if v is not None}), encoding="utf-8")


def refusal(name: object, **options: Any) -> str:
    """The sentence with which a load is refused; checked to be one."""
    with pytest.raises(CannotLoad) as caught:
        load_model(str(name), **{"device": "cpu", **options})
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "nothing was changed" in sentence
    assert not re.search(r"\. [A-Z]", sentence), "one sentence"
    return sentence


def test_a_folder_loads_with_everything_that_is_known_of_it(folder: Folder) -> None:
    steps: list[Progress] = []
    place = folder()
    model = load_model(str(place), device="cpu", progress=steps.append)
    known = model.facts
    assert (known.name, known.device, known.dtype, known.context) == ("tiny", "cpu", "float32", 1024)
    assert known.vocabulary == len(byte_level_tokenizer())
    assert known.kv_formula == (2, 2, 16, 4)
    assert known.kv_bytes_per_token == 2 * 2 * 2 * 16 * 4
    assert known.query_heads == 4
    assert known.weights_bytes == sum(p.numel() for p in model.module.parameters()) * 4
    assert known.memory_bytes and known.memory_bytes >= known.weights_bytes
    assert re.fullmatch(r"CPU, \d+ cores?", known.device_name)
    assert known.chat_template
    assert model.spec is not None and model.spec.bytes_per_token == known.kv_bytes_per_token
    assert not model.module.training
    assert model.module.config._attn_implementation == "sdpa"
    assert model.stop_ids == {1}
    assert model.suggested is None
    assert [step.step for step in steps] == ["load"]


def test_weights_arrive_unchanged(folder: Folder) -> None:
    place = folder()
    kept = tiny_module(len(byte_level_tokenizer())).state_dict()
    found = load_model(str(place), device="cpu").module.state_dict()
    assert all(torch.equal(found[name], kept[name]) for name in kept)


def test_a_tied_matrix_counts_once(folder: Folder) -> None:
    model = load_model(str(folder(tie_word_embeddings=True)), device="cpu")
    module = model.module
    assert module.lm_head.weight is module.model.embed_tokens.weight
    twice = sum(p.numel() for _, p in module.named_parameters(remove_duplicate=False)) * 4
    assert model.facts.weights_bytes == twice - module.lm_head.weight.numel() * 4


def test_a_base_model_without_a_template_loads(folder: Folder) -> None:
    assert load_model(str(folder(template=None)), device="cpu").facts.chat_template is False


def test_a_dtype_asked_for_is_used(folder: Folder) -> None:
    model = load_model(str(folder()), device="cpu", dtype="bfloat16")
    assert model.module.dtype == torch.bfloat16
    assert (model.facts.dtype, model.facts.kv_bytes_per_token) == ("bfloat16", 256)


def test_several_stop_tokens(folder: Folder) -> None:
    assert load_model(str(folder(generation={"eos_token_id": [1, 3]})), device="cpu").stop_ids == {1, 3}


def test_the_authors_sampling_values_are_a_preset_and_nothing_more(folder: Folder) -> None:
    generation = {
        "do_sample": True,
        "top_k": 50,
        "temperature": 0.6,
        "repetition_penalty": 1.1,
        "eos_token_id": 1,
    }
    model = load_model(str(folder(generation=generation)), device="cpu")
    assert model.suggested == Decoding(
        strategy="sample", temperature=0.6, top_k=50, top_p=1.0, repetition_penalty=1.1, name="model"
    )


def test_values_out_of_range_suggest_nothing(folder: Folder) -> None:
    generation = {"do_sample": True, "top_p": 0.9, "temperature": 1e9, "eos_token_id": 1}
    assert load_model(str(folder(generation=generation)), device="cpu").suggested is None


def test_a_cache_shape_that_is_not_known_is_none(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any) -> None:
        raise UnknownShape("latent attention")

    monkeypatch.setattr(facts, "cache_spec", unknown)
    model = load_model(str(folder()), device="cpu")
    assert (model.spec, model.facts.kv_bytes_per_token, model.facts.kv_formula) == (None, None, None)


# Refusals


def test_a_model_that_does_not_fit_is_refused_before_anything_is_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder()
    numbers = sum(p.numel() for p in tiny_module(len(byte_level_tokenizer())).parameters())
    needed = int(numbers * 4 * checks.LOADING_OVERHEAD)
    monkeypatch.setattr(devices, "memory", lambda _: Memory(2**40, needed - 1))
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda *_, **__: pytest.fail("was read"))
    sentence = refusal(place, dtype="float32")
    assert "float32" in sentence
    assert "--dtype bfloat16" in sentence
    assert "free on CPU" in sentence
    monkeypatch.undo()
    monkeypatch.setattr(devices, "memory", lambda _: Memory(2**40, needed))
    assert load_model(str(place), device="cpu", dtype="float32").facts.dtype == "float32"


def test_memory_that_runs_out_while_reading(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nMore.")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", full)
    assert "not enough memory for 'tiny'" in refusal(folder())


@pytest.mark.parametrize("cut", [0, 4, 100, -1])
def test_a_safetensors_file_cut_short(folder: Folder, cut: int) -> None:
    """Case 29."""
    file = folder() / "model.safetensors"
    data = file.read_bytes()
    file.write_bytes(data[:cut])
    assert "model.safetensors is broken or cut short" in refusal(file.parent)


def test_garbage_for_safetensors(folder: Folder) -> None:
    file = folder() / "model.safetensors"
    file.write_bytes(b"\xff" * 200)
    assert "broken" in refusal(file.parent)


def test_a_folder_without_weights(folder: Folder) -> None:
    """Case 29."""
    place = folder()
    (place / "model.safetensors").unlink()
    (place / "pytorch_model.bin").write_bytes(b"pickle")
    assert "no complete safetensors weights" in refusal(place)


def test_a_shard_that_is_missing(folder: Folder) -> None:
    place = folder()
    (place / "model.safetensors").rename(place / "model-00001-of-00002.safetensors")
    shards = {
        "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    }
    (place / "model.safetensors.index.json").write_text(json.dumps(shards), encoding="utf-8")
    assert "no complete safetensors weights" in refusal(place)


def test_an_index_that_leads_out_of_the_folder(folder: Folder) -> None:
    place = folder()
    (place / "model.safetensors").rename(place.parent / "outside.safetensors")
    shards = {"weight_map": {"a": "../outside.safetensors"}}
    (place / "model.safetensors.index.json").write_text(json.dumps(shards), encoding="utf-8")
    assert "no complete safetensors weights" in refusal(place)


def test_weights_that_lack_a_layer_are_not_filled_at_random(folder: Folder) -> None:
    place = folder()
    change_config(place, num_hidden_layers=3, layer_types=None)
    sentence = refusal(place)
    assert "lacks 9 of its weights" in sentence
    assert "model.layers.2." in sentence


def test_weights_of_another_shape(folder: Folder) -> None:
    place = folder()
    change_config(place, intermediate_size=96)
    assert "weights of another shape than its config (first: model.layers.0.mlp." in refusal(place)


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    assert "no config.json" in refusal(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, "\xff"])
def test_a_config_that_is_no_json_object(folder: Folder, text: str) -> None:
    place = folder()
    (place / "config.json").write_text(text, encoding="latin-1")
    assert "config.json in 'tiny' cannot be read" in refusal(place)


def test_a_model_that_brings_code_is_never_run(folder: Folder) -> None:
    place = folder()
    change_config(
        place, model_type="own", auto_map={"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"}
    )
    marker = place / "ran"
    (place / "own.py").write_text(f"open({str(marker)!r}, 'w')", encoding="utf-8")
    assert "never run here" in refusal(place)
    assert not marker.exists()


def test_code_beside_a_known_kind_is_not_run_either(folder: Folder) -> None:
    place = folder()
    change_config(place, auto_map={"AutoModelForCausalLM": "own.Own"})
    marker = place / "ran"
    (place / "own.py").write_text(f"open({str(marker)!r}, 'w')", encoding="utf-8")
    assert type(load_model(str(place), device="cpu").module).__name__ == "LlamaForCausalLM"
    assert not marker.exists()


def test_a_kind_that_transformers_does_not_know(folder: Folder) -> None:
    place = folder()
    change_config(place, model_type="llama99")
    assert "'llama99', which transformers" in refusal(place)


@pytest.mark.parametrize(
    ("kind", "architecture"),
    [
        ("bert", "BertForMaskedLM"),
        ("t5", "T5ForConditionalGeneration"),
        ("vit", None),
        ("llama", "LlamaForSequenceClassification"),
    ],
)
def test_a_config_that_is_no_causal_language_model(
    folder: Folder, kind: str, architecture: str | None
) -> None:
    place = folder()
    change_config(place, model_type=kind, architectures=[architecture] if architecture else None)
    assert "no causal language model" in refusal(place)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model_type": []}, "which transformers"),
        ({"model_type": {"a": 1}}, "which transformers"),
        ({"architectures": 5, "model_type": "vit"}, "no causal language model"),
        ({"architectures": [["x"]]}, "no causal language model"),
    ],
)
def test_a_config_of_odd_values(folder: Folder, changes: dict[str, Any], says: str) -> None:
    place = folder()
    change_config(place, **changes)
    assert says in refusal(place)


def test_a_tokenizer_is_loaded_without_weights(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder()
    monkeypatch.setattr("playground.engine.load.AutoModelForCausalLM", None)
    assert load_tokenizer(str(place))("Hello")["input_ids"] == byte_level_tokenizer()("Hello")["input_ids"]
    (place / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(CannotLoad, match="transformers could not read 'tiny'"):
        load_tokenizer(str(place))


def test_a_folder_without_a_tokenizer(folder: Folder) -> None:
    place = folder()
    for file in place.glob("tokenizer*"):
        file.unlink()
    assert "transformers could not read 'tiny'" in refusal(place)


@pytest.mark.parametrize("device", ["tpu", "", "cuda:99", "mps", "meta"])
def test_a_device_that_is_not_here(folder: Folder, device: str) -> None:
    assert repr(device) in refusal(folder(), device=device)


def test_a_dtype_that_is_not_known(folder: Folder) -> None:
    assert "'int4'" in refusal(folder(), dtype="int4")


@pytest.mark.parametrize(
    ("options", "wrong_use"),
    [({"device": "tpu"}, True), ({"dtype": "int4"}, True), ({"device": "cuda:99"}, False)],
)
def test_what_no_machine_has_is_wrong_use(folder: Folder, options: dict[str, str], wrong_use: bool) -> None:
    """A command ends with 2 for the one and with 1 for the other."""
    with pytest.raises(CannotLoad) as raised:
        load_model(str(folder()), **options)
    assert raised.value.wrong_use is wrong_use


# GGUF


def test_a_gguf_file_loads_and_its_copy_holds_the_same_numbers(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "small.Q8_0.gguf")
    direct = load_model(str(file), device="cpu")
    assert (direct.facts.name, direct.facts.dtype) == ("small.Q8_0", "float32")
    assert direct.facts.chat_template
    assert direct.stop_ids == {1}
    gguf_to_safetensors(file, tmp_path / "copy")
    copy = load_model(str(tmp_path / "copy"), device="cpu")
    kept, found = direct.module.state_dict(), copy.module.state_dict()
    assert kept.keys() == found.keys()
    assert all(torch.equal(kept[name], found[name]) for name in kept)
    assert not (tmp_path / "copy" / "config.json").read_text(encoding="utf-8").count("quantization_config")
    text = "hello 😊 聪\n\n  b\t"
    assert copy.tokenizer.encode(text) == direct.tokenizer.encode(text) == byte_level_tokenizer().encode(text)
    assert copy.tokenizer.chat_template == direct.tokenizer.chat_template == TEMPLATE
    assert copy.stop_ids == {1}


@pytest.mark.parametrize("data", [b"", b"GGUF", b"not a model at all", None])
def test_a_broken_gguf(tmp_path: Path, data: bytes | None) -> None:
    """Case 29."""
    file = tmp_path / "small.gguf"
    file.write_bytes(write_gguf(tmp_path / "whole.gguf").read_bytes()[:-1000] if data is None else data)
    assert "small.gguf is broken or cut short" in refusal(file)


# dtype and threads


@pytest.mark.parametrize(
    ("device", "numbers", "own", "free", "chosen"),
    [
        ("cpu", 10**9, "bfloat16", 8 * 10**9, "float32"),
        ("cpu", 10**9, "bfloat16", 8 * 10**9 - 2, "bfloat16"),
        ("cpu", 10**9, "float16", 10**9, "float16"),
        ("cpu", 10**9, None, 10**9, "bfloat16"),
        ("mps", 10**8, "bfloat16", 0, "float32"),
        ("mps", 10**10, "bfloat16", 0, "float16"),
    ],
)
def test_auto_dtype(
    device: str, numbers: int, own: str | None, free: int, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "memory", lambda _: Memory(2**50, free))
    assert devices.choose_dtype("auto", torch.device(device), numbers, own) == chosen
    assert devices.choose_dtype("float16", torch.device(device), numbers, own) == "float16"


def test_a_container_counts_where_it_is_smaller_than_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "max").write_text("1000000\n", encoding="ascii")
    (tmp_path / "current").write_text("400000\n", encoding="ascii")
    (tmp_path / "cpu").write_text("100000 100000\n", encoding="ascii")
    monkeypatch.setattr(devices, "_MEMORY_LIMIT", tmp_path / "max")
    monkeypatch.setattr(devices, "_MEMORY_USED", tmp_path / "current")
    monkeypatch.setattr(devices, "_CPU_QUOTA", tmp_path / "cpu")
    assert devices.memory(torch.device("cpu")) == Memory(1_000_000, 600_000)
    assert devices.core_count() == 1
    assert devices.device_name(torch.device("cpu")) == "CPU, 1 core"
    (tmp_path / "max").write_text("max\n", encoding="ascii")
    assert devices.memory(torch.device("cpu")).total_bytes > 1_000_000


def test_one_core_stays_free(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    try:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.delenv("FIRST_TOKEN_THREADS", raising=False)
        load_model(str(folder()), device="cpu")
        assert torch.get_num_threads() == devices.core_count()
        devices.set_threads(None, leave_a_core=True)
        assert torch.get_num_threads() == max(1, devices.core_count() - 1)
        monkeypatch.setenv("FIRST_TOKEN_THREADS", "2")
        load_model(str(folder()), device="cpu")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.model
def test_the_default_model() -> None:
    model = load_model(device="cpu")
    known = model.facts
    assert sum(p.numel() for p in model.module.parameters()) == 134_515_008
    assert (known.dtype, known.vocabulary, known.context) == ("float32", 49_152, 8_192)
    assert known.weights_bytes == 538_060_032
    assert model.spec is not None and model.spec.bytes_per_token == known.kv_bytes_per_token == 46_080
    assert known.kv_formula == (30, 3, 64, 4)
    assert model.stop_ids == {2}
    assert known.chat_template
    rendered = model.tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert rendered.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert load_model(known.name, device="cpu").facts == known, "a name in a record leads back"
