"""The stages of sampling by name, and the orders in which they can act.

Knows no settings and no logits.
"""

from typing import Literal, get_args

Stage = Literal["bias", "repetition_penalty", "ban", "temperature", "top_k", "top_p", "min_p", "typical_p"]

STAGE_ORDER: tuple[Stage, ...] = get_args(Stage)
"""The order in which transformers' `generate` applies them."""

ORDERS: dict[str, tuple[Stage, ...]] = {
    "transformers": STAGE_ORDER,
    "llama.cpp": (
        "bias",
        "ban",
        "repetition_penalty",
        "top_k",
        "typical_p",
        "top_p",
        "min_p",
        "temperature",
    ),
}
"""Orders by name. llama.cpp's is the default of `common_params_sampling.samplers` in its common/common.h
(at 001d906, https://github.com/ggml-org/llama.cpp), less the samplers that are not here."""

BY_HAND: tuple[Stage, ...] = ("bias", "ban")
"""The stages that name single tokens, and have no control of their own."""

RESHAPING: tuple[Stage, ...] = ("bias", "repetition_penalty", "temperature")
"""The stages that change scores; the others are filters, which remove candidates."""


def read_order(text: str) -> tuple[str, ...]:
    """The order that `text` writes: a name of `ORDERS`, or names of stages between colons.

    Names that are no stage are kept, for whoever checks the settings to refuse.
    """
    text = text.strip()
    return ORDERS.get(text) or tuple(name.strip().replace("-", "_") for name in text.split(":"))


def write_order(order: tuple[str, ...]) -> str:
    """What `read_order` reads: the order's name where it has one."""
    return next((name for name, named in ORDERS.items() if named == tuple(order)), ":".join(order))


def in_order(order: tuple[str, ...], on: dict[Stage, bool]) -> tuple[Stage, ...]:
    """The stages that are `on`, as `order` has them; those that it leaves out come last."""
    rank = {stage: place for place, stage in reversed(list(enumerate(order)))}
    return tuple(sorted((s for s in STAGE_ORDER if on[s]), key=lambda stage: rank.get(stage, len(order))))


def fault(order: object) -> str | None:
    """What is wrong with `order`, as one sentence, or None."""
    if not isinstance(order, tuple | list) or not order or any(stage not in STAGE_ORDER for stage in order):
        return f"order must be {', '.join(ORDERS)}, or of these between colons: {', '.join(STAGE_ORDER)}."
    twice = next((stage for stage in STAGE_ORDER if order.count(stage) > 1), None)
    return None if twice is None else f"order must name each stage once, and {twice} stands there again."


def left_out(order: tuple[str, ...], active: tuple[Stage, ...]) -> str | None:
    """The sentence for a stage that is on and has no place in `order`, or None.

    Where it acts changes what is drawn, so no place is chosen for it; orders from before tokens could be
    named by hand do not have those stages, which come last there.
    """
    missing = next((stage for stage in active if stage not in (*order, *BY_HAND)), None)
    return missing and f"order must name every stage that is on, and {missing} is missing."
