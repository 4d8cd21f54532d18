"""From a name to a model that is ready to run.

`sources` finds the files, `devices` the place, `checks` refuses what cannot work; this module loads
and writes down what is known. Never runs code that comes with a model. Knows no run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from playground import settings
from playground.engine import checks, devices, int8, sources, weights
from playground.engine.facts import kv_spec, model_facts, stop_ids, suggested
from playground.engine.lean import lean_step
from playground.engine.model import LoadedModel
from playground.engine.placement import Spread, read_limits
from playground.engine.progress import CannotLoad, Progress, Report, silent
from playground.engine.quiet import quiet
from playground.engine.sources import Source
from playground.engine.turns import turns_of
from playground.engine.weights import Weights

__all__ = ["CannotLoad", "Progress", "load_model", "load_tokenizer"]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a source will be loaded; with a `spread` accelerate places it over several devices."""

    source: Source
    device: torch.device
    dtype: str
    spread: Spread | None = None
    eight_bit: bool = False


def load_model(
    name: str | None = None,
    *,
    device: str = "auto",
    dtype: str = "auto",
    offline: bool = False,
    progress: Report | None = None,
    leave_a_core: bool = False,
    device_map: str | None = None,
) -> LoadedModel:
    """Load `name` (a catalog name, a Hub id, a folder, a GGUF file; None is the default model).

    `device` is auto, cpu, cuda, cuda:N or mps; `dtype` is auto, float32, bfloat16, float16, or int8: matrices
    in eight bits around numbers in fp32, on a CPU.
    `progress` is called with each step while files are fetched and read, also from another thread.
    `leave_a_core` keeps one CPU core free for a page that is watched on the same machine.
    `device_map` spreads the weights over GPUs, CPU memory and disk, where `device` is auto: `auto`, or the most
    for each place (`placement.read_limits`); None is what the environment says.
    Raises `CannotLoad` with one sentence; whatever was loaded before stays untouched.
    """
    report = progress or silent
    spread = _spread(device_map, device)
    place = spread.place if spread else devices.choose_device(device)
    devices.require_dtype(dtype)
    source = sources.find(name, offline=offline, report=report)
    started = monotonic()
    report(Progress("load"))
    plan = _plan(source, place, dtype, spread, may_spread=device == "auto")
    if place.type == "cpu":
        devices.set_threads(settings.from_environment().threads, leave_a_core=leave_a_core)
    module, tokenizer = _read(plan)
    turns, spec = turns_of(str(place)), kv_spec(module.config, plan.dtype)
    facts = model_facts(source.name, source.revision, module, tokenizer, spec, place, plan.dtype)
    step = turns.take(lambda: lean_step(module))
    if plan.eight_bit:
        facts = replace(facts, weights=int8.NAME, weights_bytes=int8.quantise(module))
        # Proven in full precision before, since eight bits would hide a small fault.
        step = step and turns.take(lambda: lean_step(module))
    return LoadedModel(
        module=module,
        tokenizer=tokenizer,
        facts=facts,
        spec=spec,
        stop_ids=stop_ids(module, tokenizer),
        load_seconds=monotonic() - started,
        suggested=suggested(module),
        lean_step=step,
        turns=turns,
    )


def load_tokenizer(name: str | None = None, *, offline: bool = False, progress: Report | None = None) -> Any:
    """The tokenizer of `name` alone: the model's files are found or fetched, its weights are not read.

    Raises `CannotLoad`.
    """
    return _tokenizer(sources.find(name, offline=offline, report=progress or silent))


def _spread(device_map: str | None, device: str) -> Spread | None:
    """What was asked for, here or by the environment, where no device was."""
    wanted = device_map or settings.from_environment().device_map
    return Spread(read_limits(wanted)) if wanted and device == "auto" else None


def _plan(
    source: Source, place: torch.device, dtype: str, spread: Spread | None, *, may_spread: bool
) -> _Plan:
    """Decide dtype and placing, and refuse what cannot work before a byte of weights is read."""
    quantised = False
    if source.gguf_file is None:
        config = checks.read_config(source.folder)
        checks.require_causal(source.name, config)
        quantised = bool(config.get("quantization_config"))
    held = _weights(source)
    eight_bit = dtype == int8.NAME
    if eight_bit and (quantised or place.type != "cpu" or spread):
        raise CannotLoad(
            f"int8 is made here for a CPU, of weights that are not quantised yet, so {source.name!r} was not loaded: "
            "use --device cpu, or --dtype auto."
        )
    chosen = devices.choose_dtype("float32" if eight_bit else dtype, place, held.numbers, held.dtype)
    weight_bytes = held.file_bytes if quantised else held.numbers * devices.DTYPES[chosen].itemsize
    needed = int(weight_bytes * checks.LOADING_OVERHEAD)
    memory, where = devices.memory(place), devices.device_name(place)
    if spread:  # what fits nowhere lies on disk
        return _Plan(source, place, chosen, spread)
    if may_spread and place.type == "cuda" and needed > memory.free_bytes:
        spread = Spread()
        memory, where = devices.memory_together(), "all devices together"
    checks.require_memory(source.name, needed, memory, where, chosen)
    return _Plan(source, place, chosen, spread, eight_bit)


def _weights(source: Source) -> Weights:
    if source.gguf_file is not None:
        return weights.in_gguf(source.folder / source.gguf_file)
    held = weights.in_folder(source.folder)
    if held is None:
        raise CannotLoad(
            f"The weights of {source.name!r} are incomplete; nothing was changed: fetch the model again."
        )
    return held


def _read(plan: _Plan) -> tuple[Any, Any]:
    """The module, in eval mode on its device, and the tokenizer; every failure as one sentence."""
    tokenizer = _tokenizer(plan.source)
    read = partial(
        AutoModelForCausalLM.from_pretrained,
        plan.source.folder,
        dtype=devices.DTYPES[plan.dtype],
        attn_implementation="sdpa",
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they are refused below, with a better sentence
        **_where(plan.source),
    )
    with _in_a_sentence(plan.source.name), quiet():
        if plan.spread:
            module, found = plan.spread.placed(read)
        else:
            module, found = read()
            module = module.to(plan.device)
    _require_complete(plan.source.name, found)
    return module.eval(), tokenizer


def _tokenizer(source: Source) -> Any:
    with _in_a_sentence(source.name), quiet():
        return AutoTokenizer.from_pretrained(source.folder, **_where(source))


def _where(source: Source) -> dict[str, Any]:
    where: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    return where | ({"gguf_file": source.gguf_file} if source.gguf_file else {})


@contextmanager
def _in_a_sentence(name: str) -> Iterator[None]:
    """Whatever fails inside as one sentence."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise CannotLoad(
            f"There was not enough memory for {name!r}; nothing was changed: choose a smaller model or dtype."
        ) from error
    except Exception as error:  # transformers raises whatever its parts raise; the kind and first line tell
        raise CannotLoad(
            f"transformers could not read {name!r} ({type(error).__name__}: {_first_line(error)}); "
            "nothing was changed: fetch the model again, or choose another."
        ) from error


def _require_complete(name: str, found: dict[str, Any]) -> None:
    """Refuse a model of which transformers would draw a part at random."""
    missing = sorted(found.get("missing_keys") or ())
    misfits = sorted(str(entry[0]) for entry in found.get("mismatched_keys") or ())
    if missing or misfits:
        what = (
            f"lacks {len(missing)} of its weights"
            if missing
            else "has weights of another shape than its config"
        )
        raise CannotLoad(
            f"{name!r} {what} (first: {(missing or misfits)[0]}); nothing was changed: fetch the model again, "
            "or choose another."
        )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or ["no reason given"]
    return lines[0].split(". ")[0][:200].rstrip(".")
