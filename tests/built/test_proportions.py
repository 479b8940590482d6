"""The pictures of a built page have the proportions of those in its notebook."""

import base64
import io
import json
import re

import pytest
from PIL import Image

from tests.helpers.built_book import HTML, IS_BUILT, ROOT, pages

pytestmark = IS_BUILT
NOTEBOOKS = pages("notebooks/*.html")
PNG = re.compile(r'<img class="fig"[^>]*? src="data:image/png;base64,([^"]+)"')
SVG = re.compile(r'<img [^>]*?width="(\d+)" height="(\d+)"[^>]*? class="fig dark-light"')


def proportions(sizes):
    return [int(width) / int(height) for width, height in sizes]


def executed_sizes(name):
    """Width and height of every picture in an executed notebook."""
    notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    texts = ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    pictures = [picture for text in texts for picture in PNG.findall(text)]
    return [Image.open(io.BytesIO(base64.b64decode(picture))).size for picture in pictures]


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_pictures_have_the_proportions_of_the_notebook(page):
    name = page.removeprefix("notebooks/").removesuffix(".html")
    text = (HTML / page).read_text(encoding="utf-8")
    expected = proportions(executed_sizes(name))
    assert proportions(SVG.findall(text)) == pytest.approx(expected, rel=0.01)


def test_pages_have_pictures_to_compare():
    assert executed_sizes("fw_rates")
