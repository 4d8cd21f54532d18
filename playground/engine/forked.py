"""A loaded model in a process that was forked from the one that loaded it.

Threads do not come along with a fork, and locks come as they stood, so the twin gets a queue of turns and
stores of its own: what the parent keeps is not reused there, and what is kept there the parent never sees. Knows
no platform and no run.
"""

from copy import copy

import torch

from playground.engine import devices
from playground.engine.facts import model_facts
from playground.engine.kept import KeptLogits
from playground.engine.lean import lean_step
from playground.engine.load import load_model
from playground.engine.model import LoadedModel
from playground.engine.store import CacheStore
from playground.engine.turns import Turns, turns_of


def twin(model: LoadedModel, device: str = "auto") -> LoadedModel:
    """`model` for this process, on `device` (as `choose_device`): the same module, moved where it is elsewhere."""
    here, place = copy(model), devices.choose_device(device)
    here.turns, here.caches, here.kept = Turns(), CacheStore(), KeptLogits()
    if place.type != torch.device(model.device).type:
        here.turns.take(lambda: _move(here, place))
    return here


def load_anew(name: str, dtype: str) -> LoadedModel:
    """`name` loaded by this process itself, which was forked before its parent had it; as `load_model`."""
    turns_of.cache_clear()  # the parent's threads are not here
    return load_model(name, dtype=dtype)


def _move(model: LoadedModel, place: torch.device) -> None:
    facts = model.facts
    model.module = model.module.to(place)
    model.lean_step = lean_step(model.module)  # it holds the weights themselves
    model.facts = model_facts(
        facts.name, facts.revision, model.module, model.tokenizer, model.spec, place, facts.dtype
    )
