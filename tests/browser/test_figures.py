"""Figures in a page: drawn, in both themes, at a phone's width, with table and downloads that work."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playground.core.tables import Table
from tests.figures_made import MADE

pytestmark = pytest.mark.browser

PLOTS = [name for name, (chart, _) in MADE.items() if chart.figure is not None]
PNG, SVG = b"\x89PNG", b"<svg"


def elem_id(name: str) -> str:
    return "figure-" + name.replace(", ", "-").replace(" ", "-")


@pytest.fixture(scope="module")
def shelf() -> Iterator[str]:
    """A page with every figure, one under the other; the first one also hidden in a second tab."""
    import gradio as gr

    from playground.ui.app import free_port
    from playground.ui.figure import figure
    from playground.ui.text import Words
    from playground.ui.theme import Plain, head, routes

    words = Words()
    with gr.Blocks(analytics_enabled=False) as demo, gr.Tabs():
        with gr.Tab("all", id="all"):
            for name, (chart, make) in MADE.items():
                figure(words, chart, elem_id(name), make())
        with gr.Tab("later", id="later"):
            figure(words, MADE["prefill"][0], "figure-later", MADE["prefill"][1]())
    demo.launch(
        server_name="127.0.0.1", server_port=free_port("127.0.0.1", 7860), theme=Plain(), head=head(),
        app_kwargs={"routes": routes()}, quiet=True, prevent_thread_lock=True, ssr_mode=False,
    )  # fmt: skip
    yield demo.local_url
    demo.close()


@pytest.fixture
def look(browser: Any, watched: Any, shelf: str) -> Iterator[Any]:
    """`look(width=, color_scheme=)`: the page with all its figures drawn."""
    contexts = []

    def look(width: int = 1000, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, locale="en-US", **options)
        contexts.append(context)
        page = context.new_page()
        watched.attach(page)
        page.goto(shelf)
        page.wait_for_function(
            "n => document.querySelectorAll('.figure .js-plotly-plot .plot-container').length >= n", arg=len(PLOTS),
            timeout=30_000,
        )  # fmt: skip
        return page

    yield look
    for context in contexts:
        context.close()


def test_every_figure_is_drawn_and_fits_a_phone(look: Any) -> None:
    page = look(width=390)
    for name in PLOTS:
        box = page.locator(f"#{elem_id(name)} .plot-container").bounding_box()
        assert box["width"] > 250 and box["height"] > 60, name
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for name in ("roofline", "roofline, far below"):
        assert page.locator(f"#{elem_id(name)}").evaluate(TOUCHED) == [], name


TOUCHED = """figure => {
  const roof = figure.querySelector('.scatterlayer .trace path.js-line');
  const at = roof.getScreenCTM(), point = figure.querySelector('.main-svg').createSVGPoint(), touched = [];
  for (const text of figure.querySelectorAll('.annotation-text')) {
    const box = text.getBoundingClientRect();
    for (let i = 0; i <= 400; i += 1) {
      const on = roof.getPointAtLength((i / 400) * roof.getTotalLength());
      Object.assign(point, { x: on.x, y: on.y });
      const seen = point.matrixTransform(at);
      if (seen.x > box.left && seen.x < box.right && seen.y > box.top && seen.y < box.bottom) {
        touched.push(text.textContent);
        break;
      }
    }
  }
  return touched;
}"""
"""The words that the roof of a roofline runs through."""


def test_the_dark_theme_reaches_every_figure_at_once(look: Any) -> None:
    """Text and bars take the token's dark value without a word to the server."""
    page = look(color_scheme="light")
    read = """() => ['ink', 'muted', 'memory'].map(name =>
        getComputedStyle(document.body).getPropertyValue('--ft-' + name).trim())"""
    tick = "#figure-steps .xtick text"
    bar = "#figure-ghosts .bars .point:nth-child(2) path"
    light = page.evaluate(f"getComputedStyle(document.querySelector('{tick}')).fill")
    page.evaluate("window.firstToken.toggleTheme()")
    page.wait_for_function("document.body.classList.contains('dark')")
    _, muted, memory = page.evaluate(read)
    assert (
        _hex(page.evaluate(f"getComputedStyle(document.querySelector('{tick}')).fill"))
        == muted
        != _hex(light)
    )
    assert _hex(page.evaluate(f"getComputedStyle(document.querySelector('{bar}')).fill")) == memory
    strange = page.evaluate(
        """() => [...document.querySelectorAll('.figure-plot .main-svg [style*="rgb("]:not(.scrollbar)')].filter(e => {
        const page = getComputedStyle(e), own = e.style;
        return ['fill', 'stroke'].some(p => own[p].startsWith('rgb(') && own[p] === page[p]
          && own[p] !== 'rgb(0, 0, 0)' && own[p] !== 'rgb(68, 68, 68)');
      }).map(e => e.outerHTML.slice(0, 150))"""
    )
    assert not strange


def _hex(rgb: str) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in rgb.removeprefix("rgb(").rstrip(")").split(","))


def test_csv_png_and_svg_come_out_of_the_page(look: Any, tmp_path: Path) -> None:
    page = look(accept_downloads=True)
    place = page.locator("#figure-prefill")
    files = {}
    for kind in ("CSV", "PNG", "SVG"):
        with page.expect_download() as got:
            (
                place.get_by_role("link")
                if kind == "CSV"
                else place.get_by_role("button", name=f"Download {kind}")
            ).click()
        got.value.save_as(tmp_path / kind)
        files[kind] = (tmp_path / kind).read_bytes()
        assert got.value.suggested_filename == f"prefill.{kind.lower()}"
    assert files["PNG"].startswith(PNG) and files["SVG"].startswith(SVG)
    chart, make = MADE["prefill"]
    expected: Table = chart.rows(make())
    read = list(csv.reader(io.StringIO(files["CSV"].decode())))
    assert read[0] == list(expected.header) and read[1][0] == str(expected.rows[0][0]) and len(read) == 7


def test_the_table_opens_from_the_keyboard(look: Any) -> None:
    page = look()
    place = page.locator("#figure-roofline")
    assert not place.get_by_role("table").is_visible()
    place.locator("summary").focus()
    page.keyboard.press("Enter")
    assert place.get_by_role("table").get_by_role("row").count() == 3
    assert place.get_by_role("cell", name="prefill").is_visible()


def test_a_figure_drawn_out_of_sight_takes_its_width_when_seen(look: Any) -> None:
    page = look()
    page.get_by_role("tab", name="later").click()
    page.wait_for_function(
        """() => { const plot = document.querySelector('#figure-later .js-plotly-plot');
        return plot && plot._fullLayout
          && Math.abs(plot._fullLayout.width - plot.clientWidth) < 2 && plot.clientWidth > 500; }"""
    )
