"""A comparison written down for elsewhere: as a command, as a call of the HTTP API, as Python.

Pure: knows settings, and no page, no model object and no clock. All that people typed is quoted.
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from playground.core.decoding import Decoding, describe
from playground.core.stages import STAGE_ORDER

ENDPOINT = "gradio_api/call/compare"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is to be run. `specs` are the settings as they were typed, `lanes` the same, read.

    `model` is None for the default one of whoever runs it, or for the one of `server`, where that is given.
    """

    prompt: str
    specs: tuple[str, ...]
    lanes: tuple[Decoding, ...]
    max_new_tokens: int
    chat: bool = True
    system: str | None = None
    model: str | None = None
    server: str | None = None


def as_command(asked: Comparison) -> str:
    """`first-token compare ...` for a POSIX shell."""
    words = ["first-token", "compare"]
    for spec in asked.specs:
        words += ["--lane", spec]
    words += [] if asked.chat else ["--raw"]
    words += ["--system", asked.system] if asked.system else []
    words += ["--max-new-tokens", str(asked.max_new_tokens)]
    words += ["--model", asked.model] if asked.model else []
    words += ["--server", asked.server] if asked.server else []
    if asked.prompt == "-":  # the command reads its input for a dash
        return f"printf %s - | {shlex.join([*words, '-'])}"
    return shlex.join([*words, "--", asked.prompt])


def as_curl(asked: Comparison, address: str) -> str:
    """Two calls in one line: the first asks the page at `address`, the second waits for the answer."""
    place = f"{address.rstrip('/')}/{ENDPOINT}"
    data = [
        asked.prompt, list(asked.specs), asked.chat, asked.system, asked.max_new_tokens, 20, asked.model,
    ]  # fmt: skip
    ask = [
        "curl", "-s", "-X", "POST", place, "-H", "Content-Type: application/json",
        "-d", json.dumps({"data": data}),
    ]  # fmt: skip
    event = f"$({shlex.join(ask)} | cut -d '\"' -f 4)"
    return f'curl -sN {shlex.quote(place + "/")}"{event}"'


def as_python(asked: Comparison, model: str, dtype: str = "float32") -> str:
    """A script for transformers alone: greedy runs give the same ids, sampled ones other draws.

    `model` is an id on the Hub, a folder or a GGUF file.
    """
    return "\n".join([*_loading(model, dtype), *_reading(asked), "", *_runs(asked.lanes), *_LOOP, ""])


def _loading(model: str, dtype: str) -> Iterator[str]:
    path = PurePath(model)
    gguf = path.suffix.lower() == ".gguf"
    more = f", gguf_file={path.name!r}" if gguf else ""
    yield "# A greedy run has the same ids. A sampled one draws from torch, so only its probabilities are the same."
    yield "import torch"
    yield "from transformers import AutoModelForCausalLM, AutoTokenizer"
    yield ""
    yield f"MODEL = {str(path.parent) if gguf else model!r}"
    yield f"tokenizer = AutoTokenizer.from_pretrained(MODEL{more})"
    yield f"model = AutoModelForCausalLM.from_pretrained(MODEL{more}, dtype=torch.{dtype})"


def _reading(asked: Comparison) -> Iterator[str]:
    if not asked.chat:
        yield f'prompt = tokenizer({asked.prompt!r}, return_tensors="pt")'
        return
    system = [] if not asked.system else [{"role": "system", "content": asked.system}]
    yield f"messages = {[*system, {'role': 'user', 'content': asked.prompt}]!r}"
    yield "prompt = tokenizer.apply_chat_template("
    yield '    messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"'
    yield ")"


def _runs(lanes: tuple[Decoding, ...]) -> Iterator[str]:
    yield "RUNS = {"
    for index, lane in enumerate(lanes):
        written = ", ".join(f"{name}={value!r}" for name, value in _settings(lane).items())
        yield f"    # {describe(lane)}{_only_here(lane)}"
        yield f"    {chr(65 + index)!r}: dict({written}),"
    yield "}"


def _settings(lane: Decoding) -> dict[str, Any]:
    """As `generate` names them; what a model's own generation_config often sets is always said."""
    found: dict[str, Any] = {"do_sample": not lane.greedy, "max_new_tokens": lane.max_new_tokens}
    found["repetition_penalty"] = float(lane.repetition_penalty)
    if not lane.greedy:
        found |= {"temperature": float(lane.temperature), "top_k": lane.top_k, "top_p": float(lane.top_p)}
        found |= {"min_p": float(lane.min_p)} if lane.min_p else {}
        found |= {"typical_p": float(lane.typical_p)} if lane.typical_p < 1 else {}
        found |= {"seed": lane.seed} if lane.seed is not None else {}
    if lane.stop:
        found["stop_strings"] = list(lane.stop)
    return found


def _only_here(lane: Decoding) -> str:
    """What `generate` has no setting for."""
    missing = []
    if lane.active_stages() != tuple(s for s in STAGE_ORDER if s in lane.active_stages()):
        missing.append("this order")
    if lane.penalty_scope == "output" and lane.repetition_penalty != 1:
        missing.append("a penalty on the answer alone")
    return f" (generate does not know {' or '.join(missing)})" if missing else ""


_LOOP = (
    "for name, settings in RUNS.items():",
    '    seed = settings.pop("seed", None)',
    "    if seed is not None:",
    "        torch.manual_seed(seed)",
    "    output = model.generate(**prompt, tokenizer=tokenizer, pad_token_id=0, **settings)",
    '    ids = output[0, prompt["input_ids"].shape[1] :].tolist()',
    "    print(name, ids, repr(tokenizer.decode(ids, skip_special_tokens=True)))",
)
