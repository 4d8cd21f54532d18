"""The pictures in the README are those of the page as it is: `make screenshots` takes them anew."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageStat

pytestmark = [pytest.mark.browser, pytest.mark.model]

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "screenshots"
WRITE = "WRITE_SCREENSHOTS" in os.environ
WIDE, PHONE = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}

GRID = (72, 48)
"""Pictures are compared as so many patches of grey: fonts may differ, the layout may not."""

TOLERANCE = 8.0
"""Mean difference of the patches, of 255; a missing card or the other theme gives more than 20."""

VIEWS: dict[str, dict[str, Any]] = {
    "light": {"viewport": WIDE},
    "dark": {"viewport": WIDE},
    "phone": {"viewport": PHONE, "has_touch": True},
    "compare": {"viewport": WIDE},
    "chinese": {"viewport": WIDE, "locale": "zh-CN"},
    "calculator": {"viewport": WIDE},
    "race": {"viewport": WIDE},
}


@pytest.mark.parametrize("name", VIEWS)
def test_the_picture_shows_the_page_as_it_is(name: str, on_model: Any, open_page: Callable[..., Any]) -> None:
    taken = picture(open_page, on_model.url, name)
    if WRITE:
        taken.save(FOLDER / f"{name}.png", optimize=True)
    kept = Image.open(FOLDER / f"{name}.png")
    assert kept.width == taken.width
    assert abs(kept.height - taken.height) <= 0.1 * taken.height
    assert difference(kept, taken) < TOLERANCE


def test_a_changed_page_would_be_noticed() -> None:
    assert difference(Image.open(FOLDER / "light.png"), Image.open(FOLDER / "dark.png")) > 2 * TOLERANCE
    assert difference(Image.open(FOLDER / "light.png"), Image.open(FOLDER / "compare.png")) > TOLERANCE


def difference(a: Image.Image, b: Image.Image) -> float:
    """Mean absolute difference of the two pictures' patches, 0 to 255."""
    small = [picture.convert("L").resize(GRID, Image.Resampling.BOX) for picture in (a, b)]
    return float(ImageStat.Stat(ImageChops.difference(*small)).mean[0])


def picture(open_page: Callable[..., Any], url: str, name: str) -> Image.Image:
    """The page with the recorded run that it opens with, no tour over it; the race is run."""
    page = open_page(url, color_scheme="light", **VIEWS[name])
    page.keyboard.press("Escape")  # the tour
    if name == "dark":
        page.get_by_role("button", name="Dark mode").click()
    if name == "compare":
        page.get_by_role("tab", name="Compare").click()
        page.wait_for_timeout(500)
    page.wait_for_function("document.querySelector('#device-chip .chip')?.textContent")
    if name in ("calculator", "race"):
        page.get_by_role("tab", name="KV cache").click()
        page.get_by_role("tab", name=name.capitalize(), exact=True).click()
    if name == "race":
        run_race(page)
    page.wait_for_timeout(700)  # the bars come to rest
    return Image.open(io.BytesIO(page.screenshot(full_page=True)))


def run_race(page: Any) -> None:
    """A race of 32 tokens, to its end."""
    page.get_by_label("New tokens").first.fill("32")
    page.get_by_role("button", name="Start race").click()
    page.locator("#stage-race .ft-label").wait_for(state="hidden", timeout=60_000)  # the recorded one is gone
    page.get_by_text("limit reached").nth(1).wait_for(timeout=60_000)
    page.get_by_text("31 steps:").wait_for(timeout=60_000)  # the chart of it comes last, from the server
