"""The colours of figures in both themes, read from `assets/tokens.css`: decided in one place for the page.

On the page a figure is drawn in light colours and `assets/figure.css` replaces each by its token in dark, so
that the theme changes at once; an exported picture is light, as paper is.
"""

import re
from functools import cache
from typing import Literal

from playground import settings

Theme = Literal["light", "dark"]
Palette = dict[str, str]
"""A colour by its name in tokens.css without `--ft-`: ink, muted, line, memory, prefill, bar, ..."""

SANS = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Microsoft YaHei", '
    '"Noto Sans CJK SC", sans-serif'
)


@cache
def palette(theme: Theme) -> Palette:
    """All colours of one theme."""
    style = (settings.assets_dir() / "tokens.css").read_text("utf-8")
    block = re.search(rf'\[data-theme="{theme}"\] {{(.*?)}}', style, re.DOTALL)
    assert block is not None, f"tokens.css has no theme {theme}"
    return dict(re.findall(r"--ft-([\w-]+): (#[0-9a-f]{6});", block[1]))
