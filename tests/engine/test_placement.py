"""A model whose weights lie in several places: the same ids, its bytes by place, and no lean step around its hooks."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import cpu_offload

from playground.core.decoding import GREEDY, Decoding
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.engine.decode import stream
from playground.engine.lean import lean_step
from playground.engine.load import CannotLoad, load_model
from playground.engine.placement import read_limits, weights_by_place
from tests.engine.conftest import byte_level_tokenizer, loaded, tiny_module

TWO = Request(
    "hello", (Decoding(seed=1, max_new_tokens=12), Decoding("greedy", max_new_tokens=9)), chat=False, run="r"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny seeded model of six layers, 1 MiB of weights, in files of 200 KB."""
    place = tmp_path_factory.mktemp("models") / "tiny"
    tokenizer = byte_level_tokenizer()
    tiny_module(len(tokenizer), num_hidden_layers=6).save_pretrained(place, max_shard_size="200KB")
    tokenizer.save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def plain(folder: Path) -> Any:
    return load_model(str(folder), device="cpu", dtype="float32")


def ids(model: Any, request: Request = TWO) -> list[tuple[int, ...]]:
    run: Run = fold(stream(model, request))
    return [tuple(lane.token_ids) for lane in run.lanes]


def on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path, most: str) -> Any:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return load_model(str(folder), dtype="float32", device_map=most)


def test_what_exceeds_the_limit_lies_on_disk_and_the_ids_are_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path, plain: Any, capfd: Any
) -> None:
    model = on_disk(monkeypatch, tmp_path, folder, "cpu=0.7MiB")
    assert "meta device" not in capfd.readouterr().err
    places = dict(model.facts.weights_places)
    assert set(places) == {"cpu", "disk"}
    assert 0 < places["cpu"] <= 0.7 * 2**20
    assert sum(places.values()) == plain.facts.weights_bytes == model.facts.weights_bytes
    assert model.lean_step is None and plain.lean_step is not None
    assert model.facts.device == "cpu" and model.device == torch.device("cpu")
    assert ids(model) == ids(plain)
    assert ids(model, Request("hello", TWO.lanes, chat=False, cached=False)) == ids(plain)


def test_with_every_weight_on_disk_the_cpu_still_computes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path, plain: Any
) -> None:
    model = on_disk(monkeypatch, tmp_path, folder, "cpu=0.001MiB")
    assert model.facts.weights_places == (("disk", plain.facts.weights_bytes),)
    assert model.module.device.type == "meta" and model.device == torch.device("cpu")
    assert ids(model) == ids(plain)


def test_what_is_converted_on_its_way_to_the_disk_goes_with_the_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path
) -> None:
    model = on_disk(monkeypatch, tmp_path, folder, "cpu=0.7MiB")
    assert len(os.listdir(tmp_path)) == 1
    del model
    import gc

    gc.collect()
    assert not os.listdir(tmp_path)
    (folder / "broken").mkdir(exist_ok=True)
    monkeypatch.setattr("playground.engine.load.AutoModelForCausalLM.from_pretrained", lambda *_, **__: 1 / 0)
    with pytest.raises(CannotLoad, match="could not read"):
        on_disk(monkeypatch, tmp_path, folder, "cpu=0.7MiB")
    assert not os.listdir(tmp_path)


def test_a_model_that_fits_is_as_without_a_map(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path, plain: Any
) -> None:
    monkeypatch.setenv("FIRST_TOKEN_DEVICE_MAP", "cpu=1GiB")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    model = load_model(str(folder), dtype="float32")
    assert model.facts.weights_places == () and model.lean_step is not None
    assert ids(model) == ids(plain)


def test_the_environment_asks_for_it_and_a_named_device_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path
) -> None:
    monkeypatch.setenv("FIRST_TOKEN_DEVICE_MAP", "cpu=0.7MiB")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert load_model(str(folder), dtype="float32").facts.weights_places
    assert not load_model(str(folder), dtype="float32", device="cpu").facts.weights_places


def test_hooks_of_an_offloaded_model_keep_their_forwards(plain: Any) -> None:
    """accelerate's own CPU offload, which names no map: every weight is fetched by a hook."""
    tokenizer = byte_level_tokenizer()
    module = tiny_module(len(tokenizer))
    expected = ids(loaded(module, tokenizer), Request("hello", (GREEDY,), chat=False))
    cpu_offload(module, execution_device=torch.device("cpu"))
    assert lean_step(module) is None
    assert ids(loaded(module, tokenizer), Request("hello", (GREEDY,), chat=False)) == expected


def test_a_hook_on_one_layer_alone_is_noticed() -> None:
    from accelerate.hooks import ModelHook, add_hook_to_module

    module = tiny_module(300)
    assert lean_step(module) is not None
    add_hook_to_module(module.model.layers[1].mlp, ModelHook())
    assert lean_step(module) is None


def test_limits_are_read_in_the_order_in_which_they_are_filled() -> None:
    assert read_limits("auto") is None
    assert read_limits("cpu=1.5GiB, cuda:1=2 GB,cuda:0=100MiB") == {
        "cuda:0": 100 * 2**20,
        "cuda:1": 2 * 10**9,
        "cpu": 3 * 2**29,
    }
    assert list(read_limits("cpu=1GiB,cuda:0=1GiB") or ()) == ["cuda:0", "cpu"]


@pytest.mark.parametrize(
    "text", ["gpu", "cpu=1", "cpu=-1GiB", "cpu=1GiB,cpu=2GiB", "disk=1GiB", "", "mps=1GiB"]
)
def test_what_is_no_map_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(CannotLoad, match="FIRST_TOKEN_DEVICE_MAP cannot be"):
        read_limits(text)


def test_a_device_that_is_not_here_is_refused(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(CannotLoad, match="no device 'cuda:0'"):
        load_model(str(folder), device_map="cuda:0=1GiB,cpu=1GiB")


def test_eight_bits_are_not_made_of_what_lies_elsewhere(folder: Path) -> None:
    with pytest.raises(CannotLoad, match="int8"):
        load_model(str(folder), dtype="int8", device_map="cpu=0.7MiB")


def test_a_module_that_lies_in_one_place_has_no_places() -> None:
    assert weights_by_place(tiny_module(300)) == ()
