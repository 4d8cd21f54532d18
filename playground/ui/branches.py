"""What a stage is told of how its run can go on: playing or paused, its branches, what is kept for them.

Knows runs and models, and nothing of how a wish is carried out.
"""

from collections.abc import Iterator
from typing import Any

from playground.backends.hosted import HostedRun, Runs
from playground.backends.protocol import Backend, Continuer
from playground.backends.remote.backend import RemoteBackend
from playground.core.run import Run
from playground.ui.models import Models
from playground.ui.text import say
from playground.views.packets import Packet

BRANCHES_LIMIT = 40
WORDS = 40
ENDS = ("stop_token", "stop_string", "context_limit")
"""Ends after which nothing comes by itself; one can still go back."""


def maker(models: Models, hosted: HostedRun) -> Backend | None:
    """The loaded model that made the run, or one of the same name, revision and dtype.

    A run of a server goes on there, over the connection that made it: no other one has its key.
    """
    run = hosted.run
    if run.started is None:
        return None
    if isinstance(hosted.backend, RemoteBackend):
        return hosted.backend
    facts = run.started.model
    found = models.maker_of(facts) or models.loaded()
    if found is None:
        return None
    own = found.facts()
    told = ((one.name, one.revision, one.dtype, one.weights) for one in (own, facts))
    same = next(told) == next(told)
    return found if same else None


def steering_packet(models: Models, runs: Runs, run: HostedRun, language: str) -> Packet:
    """The side packet `steering` of the stage that shows `run`."""
    backend = maker(models, run)
    here = not isinstance(backend, RemoteBackend)
    kept = backend.kept() if here and isinstance(backend, Continuer) else None
    why = "" if backend is not None else say(language, "steering.no_model")
    if not why and run.done and _reason(run.run) in ENDS:
        why = say(language, "steering.over")
    return {
        "steering": {
            "state": _state(run),
            "can": not why or not run.done,
            "back": backend is not None,
            "why": why if run.done else "",
            "tokens_per_second": run.control.tokens_per_second,
            "branches": list(_told(run, runs)),
            "kept": None if kept is None else {"held_bytes": kept[0], "limit_bytes": kept[1]},
        }
    }


def _state(run: HostedRun) -> str:
    if run.done:
        return "ended"
    return "paused" if run.control.asked_at is not None else "playing"


def _reason(run: Run) -> str | None:
    return run.lanes[0].finish_reason if run.lanes else None


def _told(shown: HostedRun, runs: Runs) -> Iterator[dict[str, Any]]:
    """The tree that the run stands in, each branch after the one that it parts from."""
    here = {run.id: run for run in runs.of(shown.session) if isinstance(run, HostedRun)}
    root = shown
    while (parent := _parent(root)) in here and parent is not None:
        root = here[parent]
    children: dict[str, list[HostedRun]] = {}
    for run in here.values():
        children.setdefault(_parent(run) or "", []).append(run)
    waiting, count = [root], 0
    while waiting and count < BRANCHES_LIMIT:
        run = waiting.pop()
        count += 1
        yield _branch(run, shown)
        waiting += sorted(children.get(run.id, ()), key=_first_step, reverse=True)


def _first_step(run: HostedRun) -> int:
    return run.joined.step if run.joined is not None else 0


def _parent(run: HostedRun) -> str | None:
    return run.joined.parent.id if run.joined is not None else None


def _branch(run: HostedRun, shown: HostedRun) -> dict[str, Any]:
    first = _first_step(run)
    steps = run.run.lanes[0].steps[first:] if run.run.lanes else []
    return {
        "run": run.id,
        "parent": _parent(run),
        "step": first,
        "text": "".join(step.text for step in steps[:12])[:WORDS] if run.done else "",
        "tokens": len(steps) if run.done else None,
        "forced": bool(steps) and steps[0].origin == "forced",
        "current": run is shown,
    }
