"""A model of a known shape whose weights were drawn: its speed is that of the real one, its words are none.

For the benchmark and for a GPU that has no weights at hand. Knows shapes; reads no weights.
"""

from time import monotonic
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from playground import catalog, settings
from playground.engine import checks, devices
from playground.engine.facts import kv_spec, model_facts
from playground.engine.lean import lean_step
from playground.engine.model import LoadedModel
from playground.engine.progress import CannotLoad
from playground.engine.quiet import quiet
from playground.engine.turns import turns_of

SEED = 0


def drawn_model(name: str, *, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """A model of the config `name` (a file, a folder, a name of the catalog), its weights drawn with one seed.

    Its tokens are their numbers, and none of them ends an answer. Raises `CannotLoad` and
    `catalog.UnknownConfig`.
    """
    started = monotonic()
    place = devices.choose_device(device)
    devices.require_dtype(dtype)
    config = _config(name)
    chosen = devices.choose_dtype(dtype, place, _numbers(config), "bfloat16")
    _require_room(name, config, place, chosen)
    if place.type == "cpu":
        devices.set_threads(settings.from_environment().threads)
    module = _drawn(config, place, chosen)
    turns, spec = turns_of(str(place)), kv_spec(module.config, chosen)
    tokenizer = numbers_tokenizer(config.get_text_config().vocab_size)
    return LoadedModel(
        module=module,
        tokenizer=tokenizer,
        facts=model_facts(f"{name} (drawn)", None, module, tokenizer, spec, place, chosen),
        spec=spec,
        stop_ids=frozenset(),
        load_seconds=monotonic() - started,
        lean_step=turns.take(lambda: lean_step(module)),
        turns=turns,
    )


def numbers_tokenizer(vocabulary: int) -> Any:
    """A tokenizer of `vocabulary` entries, each of which is written as its number."""
    words = models.WordLevel({str(number): number for number in range(vocabulary)}, unk_token="0")
    made = Tokenizer(words)
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="0")


def _config(name: str) -> Any:
    shape = dict(catalog.kv_config(name))
    kind = shape.pop("model_type", None)
    try:
        with quiet():
            return AutoConfig.for_model(kind, **shape)
    except Exception as error:  # transformers raises whatever its parts raise
        raise CannotLoad(
            f"transformers knows no model of the shape {name!r} ({type(error).__name__}); nothing was drawn: name "
            "another config."
        ) from error


def _numbers(config: Any) -> int:
    """How many weights a model of this shape has, without making it."""
    with torch.device("meta"), quiet():
        module = AutoModelForCausalLM.from_config(config)
    return sum(weight.numel() for weight in module.parameters())


def _require_room(name: str, config: Any, place: torch.device, dtype: str) -> None:
    needed = int(_numbers(config) * devices.DTYPES[dtype].itemsize * checks.LOADING_OVERHEAD)
    checks.require_memory(name, needed, devices.memory(place), devices.device_name(place), dtype)


def _drawn(config: Any, place: torch.device, dtype: str) -> Any:
    torch.manual_seed(SEED)
    with torch.device(place), quiet():
        module = AutoModelForCausalLM.from_config(
            config, dtype=devices.DTYPES[dtype], attn_implementation="sdpa"
        )
    return module.eval()
