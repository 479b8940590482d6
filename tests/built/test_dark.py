"""Dark pages of the built book: no patches of another ground, no white pictures."""

import io

import pytest
from PIL import Image, ImageStat

from tests.helpers.built_book import IN_A_BROWSER

pytestmark = IN_A_BROWSER

# The colour of the ground under each formula that may scroll, and of what covers its shadow.
GROUNDS = """() => {
  const rgba = (text) => [...text.match(/[\\d.]+/g), 1].slice(0, 4).map(Number);
  const over = (top, low) => low.map((x, i) => top[i] * top[3] + x * (1 - top[3])).map(Math.round);
  const page = rgba(getComputedStyle(document.body).backgroundColor).slice(0, 3);
  return [...document.querySelectorAll(".bd-content div.math mjx-container")].map((e) => {
    const probe = document.body.appendChild(document.createElement("i")), layers = [];
    const ground = getComputedStyle(e).getPropertyValue("--ground");
    probe.style.background = `color-mix(in srgb, ${ground} 100%, white)`;
    const cover = getComputedStyle(probe).backgroundColor;
    probe.remove();
    for (let p = e.parentElement; p !== document.body; p = p.parentElement)
      layers.unshift(rgba(getComputedStyle(p).backgroundColor));
    const scale = cover.startsWith("color(") ? 255 : 1;
    const shown = rgba(cover.replace("srgb", "")).slice(0, 3).map((x) => Math.round(x * scale));
    return [layers.reduce((low, top) => over(top, low), page), shown];
  });
}"""


@pytest.mark.parametrize("name", ["note_fedfw", "np_workshop"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_patches_beside_the_formulas_of_a_box(tab, name, theme):
    page = tab(f"notebooks/{name}.html")
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    grounds = page.evaluate(GROUNDS)
    assert len({tuple(under) for under, _ in grounds}) > (theme == "dark")  # boxes among them
    apart = [max(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in grounds]
    assert max(apart) <= 1  # of 255: rounding


def test_a_figure_is_drawn_for_the_theme_of_the_page(tab):
    page = tab("notebooks/np_workshop.html")
    picture = page.locator("img.fig").first
    light = {}
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        with Image.open(io.BytesIO(picture.screenshot())) as image:
            light[theme] = image.convert("L")
    assert ImageStat.Stat(light["light"]).mean[0] > 200
    assert ImageStat.Stat(light["dark"]).mean[0] < 60
    assert light["dark"].getextrema()[1] > 180  # its words
