"""What two executions of a cell show, held against each other."""

import base64
import importlib
import io

import numpy as np
import pytest
from nbformat.v4 import new_output
from PIL import Image


@pytest.fixture
def comparing(driver):
    assert driver  # whose folder is on the path
    return importlib.import_module("comparing")


def table(text):
    return [new_output("execute_result", data={"text/html": f"<table>{text}", "text/plain": "cut"})]


def printed(text):
    return [new_output("stream", name="stdout", text=text)]


def encoded(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8), "RGBA").save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def figure(pixels):
    return table(f'<img alt="a" src="data:image/png;base64,{encoded(pixels)}"/>')


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("gap 0.123", "gap 0.124", False),
        ("7 of 9", "8 of 9", False),
        ("it holds: yes", "it holds: NO", False),
        ("gap 0.5", "gap -0.5", False),
        ("at 0x7f12ab", "at 0x7f34cd", True),
    ],
)
def test_texts_and_tables_are_equal(comparing, one, other, same):
    for make in (printed, table):
        assert (comparing.unlike(make(one), make(other)) == "") is same


def test_kinds_and_numbers_of_outputs_are_equal(comparing):
    both = printed("a") + table("b")
    assert comparing.unlike(both, both) == ""
    assert "shows stdout, text/html, and running it again text/html" in comparing.unlike(
        both, table("b")
    )
    assert "nothing" in comparing.unlike([], both)


def test_a_notice_of_changed_sources_is_not_compared(comparing):
    printed = new_output("stream", name="stdout", text="f: 0.5")
    sentence = {"text/plain": "a file has changed"}
    notice = new_output("display_data", data=sentence, metadata={"notice": True})
    assert not comparing.unlike([printed], [notice, printed])
    assert comparing.unlike([printed], [new_output("display_data", data=sentence)])


def test_a_dot_in_a_picture_is_seen_and_smoothing_is_not(comparing):
    picture = np.full((200, 300, 4), 255)
    smooth, dot = picture.copy(), picture.copy()
    smooth[:, 100, :3] -= 20
    dot[50:54, 50:54, :3] = 0
    assert comparing.unlike(figure(picture), figure(smooth)) == ""
    assert "the picture" in comparing.unlike(figure(picture), figure(dot))
    assert "the picture" in comparing.unlike(figure(picture), figure(picture[1:]))


def test_the_pictures_of_both_themes_are_of_one_figure(comparing):
    light, dark = np.zeros((2, 200, 300, 4))
    light[20:30, :, :] = (34, 34, 34, 255)  # text
    dark[20:30, :, :] = (224, 224, 224, 255)
    for picture in (light, dark):
        picture[60:64, :, :] = (42, 127, 191, 255)  # a curve
    pixels = [comparing.pixels(encoded(p)) for p in (light, dark)]
    assert not comparing.themes_differ(*pixels)
    dark[60:64] = 0
    assert comparing.themes_differ(pixels[0], comparing.pixels(encoded(dark)))
