"""The uniform number behind every sampled token.

u = f(seed, absolute step), with no hidden state: the same seed gives the same draws on every
device, for any number of lanes, and after any rewind. Knows no distribution.
"""

import secrets
from hashlib import blake2b

SEED_LIMIT = 2**53
"""Seeds are below this, so that JSON and JavaScript carry them exactly."""


def uniform(seed: int, step: int) -> float:
    """The draw of `step` (0-based, absolute) under `seed`: a float in [0, 1) with 53 random bits."""
    message = seed.to_bytes(8, "little") + step.to_bytes(8, "little")
    word = int.from_bytes(blake2b(message, digest_size=8).digest(), "little")
    return (word >> 11) / 2**53


def fresh_seed() -> int:
    """A seed nobody chose, small enough to read aloud."""
    return secrets.randbelow(1_000_000)
