"""A small model that knows Chinese, for the Chinese page, where it can be had.

Offered only when it lies on this machine or the Hub answers. Knows no page.
"""

from collections.abc import Callable

from playground import catalog
from playground.core.deadline import within

Offer = Callable[[], str | None]


def no_offer() -> str | None:
    """Nothing is offered."""
    return None


def multilingual(offline: bool) -> Offer:
    """The name of the first multilingual model of the catalog, each time it is asked for, or None.

    Takes as long as the Hub is given to answer; not for the path of another answer.
    """
    known = next((model for model in catalog.models() if model.multilingual), None)
    found: list[str] = []

    def offer() -> str | None:
        if known is not None and not found and _can_be_had(known.hub, offline):
            found.append(known.hub)
        return found[0] if found else None

    return offer


def _can_be_had(hub_id: str, offline: bool) -> bool:
    from huggingface_hub import HfApi

    from playground.engine import hub

    try:
        if hub.cached(hub_id) is not None:
            return True
        return not offline and bool(
            within(catalog.ANSWER_SECONDS, lambda: HfApi().model_info(hub_id, timeout=catalog.ANSWER_SECONDS))
        )
    except Exception:  # a broken copy or a Hub that does not answer: there is nothing to offer
        return False
