"""What a server can do, as a value: found at the connection, and why not where it cannot.

Knows no server.
"""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing, whether it is there, and the key of the sentence that says why or how."""

    there: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Of one model behind one server. Reasons are keys of the page's section `connect`."""

    prompt_ids: Capability
    """The prompt goes as token ids, so that a branch and a forced token are exact."""
    tokenizer: Capability
    """The server cuts a text into tokens as the model reads them."""
    candidate_ids: Capability
    """Chosen tokens and candidates come with the vocabulary's ids."""
    raw: Capability
    """Log-probabilities are of the model itself, before any setting."""
    stages: Capability
    """All sampling stages, in the order that is set."""
    prompt_logprobs: Capability
    """The probability of a given text can be asked for."""
    usage: Capability
    """How full the server's own KV cache is."""
    reuse: Capability
    """How many tokens of the prompt were reused from the server's cache."""
    internals: Capability = Capability(False, "internals")
    """Full logits, the filter waterfall, races and experiments: a model in this process."""

    def items(self) -> list[tuple[str, Capability]]:
        """Each by its name, in order."""
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


YES = Capability(True)
