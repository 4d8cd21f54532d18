"""What the two phases of a run need and what they waited for, as a small table with a sentence above it.

Each row says whether it is computed, measured or estimated. Knows a run's phases and no engine.
"""

from collections.abc import Callable, Mapping

from markupsafe import Markup

from playground.core.cost import Device
from playground.core.phases import Phase, Phases
from playground.core.units import bytes_text, probability_text, seconds_text
from playground.views.figures.frame import emphasised
from playground.views.figures.numbers import figures_text, power_text

Text = Mapping[str, str]
_SCATTER = 1.1

Write = Callable[[Phase], str | None]

_ROWS: tuple[tuple[str, str, Write], ...] = (
    ("weights", "computed", lambda p: bytes_text(p.cost.weight_bytes) if p.cost else None),
    ("cache", "computed", lambda p: bytes_text(p.cost.cache_bytes) if p.cost else None),
    ("operations", "computed", lambda p: power_text(p.cost.flops, "FLOP") if p.cost else None),
    ("intensity", "computed", lambda p: f"{figures_text(p.cost.intensity)} FLOP/B" if p.cost else None),
    ("time", "measured", lambda p: seconds_text(p.forward_seconds)),
    ("floor", "estimated", lambda p: seconds_text(p.verdict.floor_seconds) if p.verdict else None),
    ("mbu", "estimated", lambda p: _share(p.verdict.bandwidth_share) if p.verdict else None),
    ("mfu", "estimated", lambda p: _share(p.verdict.compute_share) if p.verdict else None),
)


def needs(found: Phases, device: Device | None, text: Text) -> Markup:
    """The finding in a sentence, then the table; without a `device` the ceilings are left open."""
    columns = [phase for phase in (found.prefill, found.decode) if phase is not None]
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(_title(p, text)) for p in columns)
    rows = Markup("").join(_row(name, origin, write, columns, text) for name, origin, write in _ROWS)
    return Markup(
        '<p class="finding">{}</p><div class="rates needs" tabindex="0" role="region" aria-label="{}"><table>'
        "<thead><tr><td></td>{}</tr></thead><tbody>{}{}</tbody></table></div>"
    ).format(
        emphasised(verdict_sentence(found, device, text)), text["needs"], head, rows, _waits(columns, text)
    )


def verdict_sentence(found: Phases, device: Device | None, text: Text) -> str:
    """What decode waited for, or the prefill of a run without a decode step, with the run's own numbers."""
    phase = found.decode or found.prefill
    if phase is None or phase.cost is None:
        return text["no_shape"]
    if phase.verdict is None or device is None:
        return text["no_device"].format(
            read=bytes_text(phase.cost.bytes),
            rate=power_text(phase.cost.bytes / phase.forward_seconds, "B/s"),
        )
    verdict = phase.verdict
    told = text[f"{phase.name}_{verdict.limit}"].format(
        read=bytes_text(phase.cost.bytes), floor=seconds_text(verdict.floor_seconds),
        time=seconds_text(phase.forward_seconds), share=_share(min(1.0, verdict.share)),
        bandwidth=power_text(device.bytes_per_second, "B/s"),
        rate=power_text(device.flops_per_second, "FLOP/s"),
    )  # fmt: skip
    return told + text["join"] + text["above"] if _above_the_roof(found) else told


def _above_the_roof(found: Phases) -> bool:
    """Whether a phase beat the measured rates by more than scatter: they were taken at a bad moment."""
    verdicts = [phase.verdict for phase in (found.prefill, found.decode) if phase is not None]
    return any(verdict is not None and verdict.share > _SCATTER for verdict in verdicts)


def _title(phase: Phase, text: Text) -> str:
    key = "column_prefill" if phase.name == "prefill" else "column_decode"
    return text[key].format(tokens=f"{phase.tokens:,}")


def _row(name: str, origin: str, write: Write, columns: list[Phase], text: Text) -> Markup:
    cells = Markup("").join(Markup("<td>{}</td>").format(write(p) or text["unknown"]) for p in columns)
    return Markup('<tr><th scope="row">{} <small>{}</small></th>{}</tr>').format(
        text[f"row_{name}"], text[origin], cells
    )


def _waits(columns: list[Phase], text: Text) -> Markup:
    """The last row: what each phase waited for, in a word."""
    names = [text[f"limit_{p.verdict.limit}"] if p.verdict else text["unknown"] for p in columns]
    cells = Markup("").join(Markup("<td><b>{}</b></td>").format(name) for name in names)
    return Markup('<tr><th scope="row">{} <small>{}</small></th>{}</tr>').format(
        text["row_waits"], text["estimated"], cells
    )


def _share(share: float) -> str:
    return probability_text(round(share, 2) if share >= 0.1 else share)
