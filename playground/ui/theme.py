"""The look inside gradio: our colours and type as its theme, and the links to our own files.

Flat, hairlines, no shadow, no gradient, system fonts only. The colours are custom properties of
`assets/tokens.css`, so that light and dark are decided in one place. Knows no component.
"""

from collections.abc import Iterator
from typing import Any

import gradio as gr
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from playground.settings import assets_dir, from_environment
from playground.ui.text import LANGUAGES

MOUNT = "first-token"
STYLES = (
    "tokens.css",
    "stage.css",
    "inspector.css",
    "whatif.css",
    "compare.css",
    "page.css",
    "figure.css",
    "measure.css",
    "connect.css",
    "kv.css",
    "learn.css",
    "traces.css",
    "branches.css",
)
SCRIPTS = ("page.js", "figure.js")
FONTS = ["system-ui", "Noto Sans", "Noto Sans CJK SC", "sans-serif"]
MONO = ["ui-monospace", "Noto Sans Mono", "monospace"]


class OwnFiles(StaticFiles):
    """Our files, asked for again at every visit: an old script with a new server would not do."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """The file, or 304 where the browser has it already."""
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


def asset_url(name: str) -> str:
    """The address of a file of ours, relative to the page."""
    return f"{MOUNT}/{name}"


def routes() -> list[Mount]:
    """What the server serves beside gradio's own: scripts, styles, texts and traces, read-only."""
    return [Mount(f"/{MOUNT}", OwnFiles(directory=assets_dir()))]


def head() -> str:
    """Our style sheets, the page's script and what it must know of the server, all from this machine."""
    return "\n".join([*_facts(), *_links()])


def _facts() -> Iterator[str]:
    yield f'<meta name="first-token-languages" content="{" ".join(LANGUAGES)}">'
    space = from_environment().space_address
    if space is not None:
        yield f'<meta name="first-token-space" content="{space}">'


def _links() -> Iterator[str]:
    for name in STYLES:
        yield f'<link rel="stylesheet" href="{asset_url(name)}">'
    for name in SCRIPTS:
        yield f'<script type="module" src="{asset_url(name)}"></script>'


class Plain(gr.themes.Base):
    """gradio's base theme with every decoration taken off."""

    def __init__(self) -> None:
        super().__init__(font=FONTS, font_mono=MONO, text_size="md", spacing_size="md", radius_size="lg")
        self.name = "first-token"
        self.set(**_both(_COLOURS), **_FLAT)


_COLOURS = {
    "body_background_fill": "var(--ft-page)", "body_text_color": "var(--ft-ink)",
    "body_text_color_subdued": "var(--ft-muted)", "background_fill_primary": "var(--ft-card)",
    "background_fill_secondary": "var(--ft-page)", "border_color_primary": "var(--ft-line)",
    "border_color_accent": "var(--ft-accent)", "color_accent_soft": "var(--ft-accent-soft)",
    "block_background_fill": "transparent", "block_label_background_fill": "transparent",
    "block_label_text_color": "var(--ft-muted)", "block_title_text_color": "var(--ft-muted)",
    "block_info_text_color": "var(--ft-muted)", "input_background_fill": "var(--ft-page)",
    "input_background_fill_focus": "var(--ft-card)", "input_border_color": "var(--ft-line)",
    "input_border_color_focus": "var(--ft-accent)", "input_placeholder_color": "var(--ft-muted)",
    "slider_color": "var(--ft-accent)", "link_text_color": "var(--ft-accent)",
    "button_primary_background_fill": "var(--ft-accent)",
    "button_primary_background_fill_hover": "var(--ft-accent)",
    "button_primary_text_color": "var(--ft-on-accent)", "button_primary_border_color": "var(--ft-accent)",
    "button_secondary_background_fill": "transparent",
    "button_secondary_background_fill_hover": "var(--ft-page)",
    "button_secondary_text_color": "var(--ft-muted)", "button_secondary_border_color": "var(--ft-line)",
    "error_background_fill": "var(--ft-card)", "error_text_color": "var(--ft-ink)",
    "code_background_fill": "var(--ft-page)",
}  # fmt: skip

_FLAT = {
    "shadow_drop": "none", "shadow_drop_lg": "none", "shadow_inset": "none", "shadow_spread": "0",
    "block_shadow": "none", "button_primary_shadow": "none", "button_secondary_shadow": "none",
    "button_primary_shadow_hover": "none", "button_secondary_shadow_hover": "none",
    "input_shadow": "none", "input_shadow_focus": "none", "input_border_width": "1px",
    "block_border_width": "0px", "block_padding": "0px", "block_radius": "0px",
    "block_label_padding": "0px", "layout_gap": "10px", "input_radius": "10px",
    "button_large_radius": "10px", "button_small_radius": "8px", "container_radius": "14px",
    "block_title_text_size": "13px", "block_title_text_weight": "500", "input_padding": "9px 11px",
    "button_large_text_weight": "600", "button_large_text_size": "14px",
    "button_small_text_size": "12.5px", "button_small_padding": "4px 10px",
}  # fmt: skip


def _both(colours: dict[str, str]) -> dict[str, str]:
    return colours | {f"{name}_dark": value for name, value in colours.items()}
