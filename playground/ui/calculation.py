"""What the calculator shows for what was asked, or the one sentence in its place. Knows no component."""

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from markupsafe import Markup

from playground import catalog
from playground.catalog import Accelerator, KnownConfig
from playground.core.fits import Plan
from playground.core.kv import cache_spec
from playground.core.refusal import Refused
from playground.core.sizing import SEQUENCES_LIMIT, TOKENS_LIMIT, kv_report
from playground.ui.config_text import named_config, read_config
from playground.ui.sentences import translated
from playground.ui.text import sections
from playground.views import calculation
from playground.views.figures.capacity import Capacity
from playground.views.figures.drilldown import Drilldown
from playground.views.figures.ghosts import Ghosts
from playground.views.figures.growth import Growth

LENGTHS = (128_000, 131_072)
COUNTS_KEPT = 64

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Asked:
    """The fields of the calculator as they stand; nothing of them has been checked."""

    name: Any
    text: Any
    tokens: Any
    sequences: Any
    dtype: Any
    weights_dtype: Any
    accelerator: Any

    @classmethod
    def of(cls, fields: Sequence[Any]) -> "Asked":
        """From the page's fields; its choices of a format carry the prefix of their words."""
        name, text, tokens, sequences, dtype, weights, accelerator = fields
        dtype, weights = (str(form).removeprefix("short_") for form in (dtype, weights))
        return cls(name, text, _whole(tokens), _whole(sequences), dtype, weights, accelerator)

    @cached_property
    def known(self) -> KnownConfig | None:
        """The catalog's entry; None where a config of one's own was given. Raises `Refused`."""
        return None if str(self.text or "").strip() else named_config(self.name)

    @cached_property
    def config(self) -> dict[str, Any]:
        """What is computed from. Raises `Refused`."""
        return self.known.shape if self.known else read_config(self.text)

    @cached_property
    def device(self) -> Accelerator:
        """The memory it is held against. Raises `Refused`."""
        return catalog.accelerator(str(self.accelerator))

    @property
    def title(self) -> str:
        """What the config is called for people."""
        return self.known.title if self.known else str(self.config.get("model_type") or "config.json")[:60]

    def report(self, parameters: int | None, **changed: Any) -> dict[str, Any]:
        """The answer of command and endpoint to the same question. Raises `Refused`."""
        wanted = {"tokens": self.tokens, "sequences": self.sequences, **changed}
        return kv_report(
            self.config, dtype=self.dtype, weights_dtype=self.weights_dtype, parameters=parameters,
            memory_bytes=self.device.memory_bytes, **wanted,
        )  # fmt: skip


class ParameterCounts:
    """Parameters of configs that were counted before, by the engine; bounded."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, int | None] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, asked: Asked) -> int | None:
        """The catalog's published count, else what was counted; None where that has not been."""
        if asked.known and asked.known.parameters:
            return asked.known.parameters
        return self._counts.get(json.dumps(asked.config, sort_keys=True))

    def counted(self, asked: Asked) -> bool:
        """Whether counting has been tried, in whatever way."""
        return (
            bool(asked.known and asked.known.parameters)
            or json.dumps(asked.config, sort_keys=True) in self._counts
        )

    def find(self, asked: Asked) -> bool:
        """Count what is not known yet; whether there is anything new."""
        try:
            if self.counted(asked) or asked.report(None)["parameters"] is not None:
                return False
        except Refused:
            return False
        found = _count(asked.config)
        with self._lock:
            self._counts[json.dumps(asked.config, sort_keys=True)] = found
            while len(self._counts) > COUNTS_KEPT:
                self._counts.popitem(last=False)
        return True


def _count(config: dict[str, Any]) -> int | None:
    from playground.engine.costing import count_parameters  # the calculator answers before torch is imported

    try:
        return count_parameters(config)
    except Refused:
        return None
    except Exception:
        _log.exception("The parameters of a config could not be counted.")
        return None


@dataclass(frozen=True)
class Calculated:
    """The calculator's answer: markup, and the values of its figures."""

    headline: Markup
    lengths: Markup
    accelerators: Markup
    sources: Markup
    drilldown: Drilldown
    ghosts: Ghosts
    growth: Growth
    capacity: Capacity


def calculated(asked: Asked, counts: ParameterCounts, language: str) -> Calculated:
    """The answer to what was asked. Raises `Refused`."""
    text = sections(language)["kv"]
    report = asked.report(counts.known(asked))
    others = [asked.report(None, tokens=tokens) for tokens in LENGTHS]
    spec, context = cache_spec(asked.config, asked.dtype), report["context"]
    tokens, sequences = report["tokens"], report["sequences"]
    counting = report["parameters"] is None and not counts.counted(asked)
    plan = Plan(asked.config, spec, report["weights_bytes"])
    return Calculated(
        calculation.headline(report, asked.title, text, counting=counting),
        calculation.lengths(report, others, text) + calculation.layers(report, text),
        calculation.accelerators(_placed(asked, plan), report, text),
        _sources(asked, text),
        Drilldown(asked.title, spec, tokens, sequences),
        Ghosts(asked.title, spec, tokens, sequences),
        Growth(asked.title, spec, max(tokens, context or 0), sequences),
        Capacity(
            asked.title, asked.device.title, asked.device.memory_bytes,
            plan, sequences, tokens, context,
        ),
    )  # fmt: skip


def _placed(asked: Asked, plan: Plan) -> list[calculation.Placed]:
    limits = (TOKENS_LIMIT, SEQUENCES_LIMIT)
    return [
        calculation.Placed(
            known.title, known.bytes_per_second,
            plan.fit(known.memory_bytes, asked.tokens, asked.sequences, limits), known is asked.device,
            known.source, known.note,
        )
        for known in catalog.accelerators()
    ]  # fmt: skip


def refused(error: Refused, language: str) -> str:
    """The sentence that stands in place of the answer."""
    said = translated(str(error), language)
    return str(Markup('<p class="kv-refused" role="alert">{}</p>').format(said))


def _sources(asked: Asked, text: dict[str, str]) -> Markup:
    read = [(asked.known.title, asked.known.source, asked.known.read)] if asked.known else []
    read.append((asked.device.title, asked.device.source, asked.device.note))
    return calculation.sources(read, text)


def _whole(value: Any) -> Any:
    """A number field's value as the whole number it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
