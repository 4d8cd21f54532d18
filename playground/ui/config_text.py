"""From what somebody typed, pasted or uploaded to a config; opens no file and asks nobody.

The page and the endpoint read configs by these rules. Knows no arithmetic.
"""

import json
from typing import Any

from playground import catalog
from playground.catalog import KnownConfig
from playground.core.decoding import InvalidSetting

CHARACTERS_LIMIT = 1_000_000
BYTE_ORDER_MARK = "\ufeff"
"""Some editors begin a file with it."""


def named_config(name: object) -> KnownConfig:
    """A config of the catalog; raises `InvalidSetting`."""
    known = catalog.config(name) if isinstance(name, str) else None
    if known is None:
        names = ", ".join(config.name for config in catalog.configs())
        raise InvalidSetting(f"config must be the text of a config.json, or one of {names}.")
    return known


def too_long() -> InvalidSetting:
    """What is said of a config that is not even read."""
    return InvalidSetting(f"config must be text of at most {CHARACTERS_LIMIT:,} characters.")


def read_config(text: object) -> dict[str, Any]:
    """The dictionary of a config.json's text; raises `InvalidSetting`."""
    if not isinstance(text, str) or len(text) > CHARACTERS_LIMIT:
        raise too_long()
    try:
        found = json.loads(text.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        raise InvalidSetting(
            "config begins like JSON and is not; send a config.json's text or a catalog name."
            if text.lstrip().startswith("{")
            else "This is no JSON; paste the text of a config.json, from its first brace to its last."
        ) from None
    if not isinstance(found, dict):
        raise InvalidSetting("This JSON is no config; paste the text of a config.json.")
    return found
