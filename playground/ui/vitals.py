"""How the server is: `/health` for whoever starts and restarts it, `/metrics` for Prometheus.

Numbers only: no prompt, no address, no session. `/metrics` needs the extra `[metrics]`. Knows no page.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from playground.backends.hosted import Hosted, Runs
from playground.backends.hosted_run import HostedRun
from playground.ui.models import Models

FIRST_TOKEN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60)
STEP_SECONDS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2)


class Vitals:
    """Counts each run that ends; tells what is there now."""

    def __init__(self, models: Models, runs: Runs) -> None:
        self._models, self._runs = models, runs
        self._metrics = _Metrics(self) if find_spec("prometheus_client") else None

    def __call__(self, hosted: Hosted[Any]) -> None:
        """A run has ended."""
        if self._metrics is not None and isinstance(hosted, HostedRun) and not hosted.label:
            self._metrics.count(hosted)

    @property
    def in_flight(self) -> int:
        """Runs that have begun and not ended, paused ones too."""
        return self._runs.in_flight

    @property
    def cache_bytes(self) -> int:
        """Of the caches that the loaded models keep to go on from."""
        return sum(backend.kept()[0] for backend in self._models.there() if hasattr(backend, "kept"))

    def close(self) -> None:
        """Stop what is running and wait for its end."""
        self._runs.close()

    def routes(self) -> list[Route]:
        """The two addresses."""
        return [Route("/health", self._health), Route("/metrics", self._told)]

    async def _health(self, request: Request) -> Response:
        here = self._models.loaded()
        return JSONResponse(
            {
                "status": "ok",
                "model": here.facts().name if here is not None else None,
                "model_state": "ready" if here is not None else self._models.state(),
                "runs_in_flight": self.in_flight,
            }
        )

    async def _told(self, request: Request) -> Response:
        if self._metrics is None:
            return PlainTextResponse(
                "No metrics are kept: install prometheus-client with pip install 'first-token[metrics]'.", 404
            )
        text, kind = self._metrics.text()
        return Response(text, media_type=kind)


class _Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self, vitals: Vitals) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        here = self._registry = CollectorRegistry()
        self._ends = Counter(
            "first_token_lanes_ended", "Lanes by the reason of their end.", ["reason"], registry=here
        )
        self._made = Counter("first_token_tokens_generated", "Tokens chosen.", registry=here)
        self._read = Counter("first_token_prompt_tokens", "Prompt tokens read.", ["from"], registry=here)
        self._first = Histogram(
            "first_token_time_to_first_token_seconds", "From the start of a run to its first token.",
            registry=here, buckets=FIRST_TOKEN_SECONDS,
        )  # fmt: skip
        self._steps = Histogram(
            "first_token_inter_token_seconds",
            "Between two tokens of a lane.",
            registry=here,
            buckets=STEP_SECONDS,
        )
        flying = Gauge("first_token_runs_in_flight", "Runs begun and not ended.", registry=here)
        flying.set_function(lambda: vitals.in_flight)
        cached = Gauge("first_token_kept_cache_bytes", "Caches kept to go on from.", registry=here)
        cached.set_function(lambda: vitals.cache_bytes)

    def count(self, hosted: HostedRun) -> None:
        """Add one run that has ended."""
        run, first = hosted.run, 0 if hosted.joined is None else hosted.joined.step
        for lane in run.lanes:
            self._ends.labels(lane.finish_reason or "error").inc()
            steps = lane.steps[first:]
            self._made.inc(len(steps))
            for before, after in pairwise(steps):
                self._steps.observe(max(0.0, after.end_seconds - before.end_seconds))
        if run.prefilled is not None:
            self._read.labels("computed").inc(run.prefilled.tokens_computed)
            self._read.labels("reused").inc(run.prefilled.tokens_reused)
        for seconds in _first_token_seconds(hosted):
            self._first.observe(seconds)

    def text(self) -> tuple[bytes, str]:
        """All of them as Prometheus reads them, and the media type."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self._registry), CONTENT_TYPE_LATEST


def _first_token_seconds(hosted: HostedRun) -> Iterator[float]:
    """Of a run from its beginning; one that goes on has no first token of its own."""
    lanes = hosted.run.lanes
    if hosted.joined is None and lanes and lanes[0].steps:
        yield lanes[0].steps[0].end_seconds
