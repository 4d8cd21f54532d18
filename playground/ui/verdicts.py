"""What a run waited for: its phases beside the shape of its model and the rates of the device.

The device is measured once, a second or two, when the first run has ended. Knows no component.
"""

import logging

from playground.backends.protocol import Measurer
from playground.core.cost import Device
from playground.core.phases import Phases, phases
from playground.core.run import Run
from playground.ui.models import Models
from playground.views.packets import Packet, cost_packet

_log = logging.getLogger(__name__)


def judged(models: Models, run: Run, measure: bool = False) -> tuple[Phases, Device | None]:
    """The run's phases, their costs where its model is loaded, and verdicts where the device is known.

    `measure` measures a device that is not.
    """
    backend: object = models.maker_of(run.started.model) if run.started is not None else None
    if not isinstance(backend, Measurer):
        return phases(run), None
    device = _rates(backend, measure)
    return phases(run, backend.cost_shape(), device), device


def verdict_packet(models: Models, run: Run) -> Packet | None:
    """What the stage is told of a finished run; None where nothing can be said of it."""
    if not any(len(lane.steps) > 1 for lane in run.lanes):
        return None
    found, device = judged(models, run, measure=True)
    decode = found.decode
    if decode is None or decode.cost is None or decode.verdict is None or device is None:
        return None
    return cost_packet(run.id, len(run.events), decode, device)


def _rates(backend: Measurer, measure: bool) -> Device | None:
    try:
        return backend.rates(measure=measure)
    except Exception:  # a verdict is not worth a run
        _log.exception("The device could not be measured.")
        return None
