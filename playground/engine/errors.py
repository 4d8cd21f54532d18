"""What the engine says when a request cannot be run. The message is one sentence for a person."""

from playground.core.refusal import Refused


class RequestError(Refused, ValueError):
    """A request refused before any forward: what is wrong and what to do, nothing was changed."""

    wrong_use = True
