"""Sealed JSON files: what is written is read back, anything else is refused."""

import json

import pytest

from fedlib.core.files import Format, digest, json_text, read_json, write_json
from tests.helpers.expect import refuses

CONTENT = {"metrics": {"f": [[1.0, 0.5], [2.0, 0.25]]}}
CURVES = Format("curves", 2, {1: lambda content: {"metrics": content["metrics"]}})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.json"


def test_what_is_written_is_read_back_a_line_a_seed(path):
    sealed = {**CONTENT, "digest": digest(CONTENT)}
    write_json(path, sealed)
    assert read_json(path) == sealed
    text = path.read_text(encoding="utf-8")
    assert "\n   [ 1.0, 0.5 ],\n   [ 2.0, 0.25 ]\n" in text
    assert text == json_text(sealed)


def test_the_digest_is_pinned_and_does_not_depend_on_the_order_of_the_keys():
    assert digest({"b": [1, 2.5], "a": None}) == digest({"a": None, "b": [1, 2.5]})
    assert digest({"a": 1})[:12] == "015abd7f5cc5"


@pytest.mark.parametrize("sealed", [{}, {"digest": None}, {"digest": digest([])}, {"digest": ""}])
def test_a_file_without_its_digest_is_refused(tmp_path, sealed):
    path = tmp_path / "deep" / "study" / "full" / "a.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**CONTENT, **sealed}), encoding="utf-8")
    refuses("store: study/full/a.json must agree with its digest", read_json, path)


@pytest.mark.parametrize("text", ["[]", "3", '{"schema": 0}', '{"a": 1}', '{"schema": 2}'])
def test_json_of_another_origin_is_refused(path, text):
    path.write_text(text, encoding="utf-8")
    refuses("a.json must agree with its digest", read_json, path, CURVES)


@pytest.mark.parametrize(
    ("written", "content"),
    [
        (CURVES, CONTENT),
        (Format("curves", 1), {**CONTENT, "old": True}),  # migrated and sealed anew
    ],
)
def test_a_file_of_a_format_is_read_back(path, written, content):
    write_json(path, written.sealed(content))
    sealed = read_json(path, CURVES)
    assert sealed == CURVES.sealed(CONTENT)
    assert sealed["schema"] == 2
    assert sealed["kind"] == "curves"


VERSION = "a.json must have version 2 of the format 'curves', got"


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("curves", 0, f"{VERSION} 0"),
        ("curves", 3, f"{VERSION} 3"),
        ("curves", "2", f"{VERSION} '2'"),
        ("curves", None, f"{VERSION} None"),
        ("models", 2, "must be of kind 'curves', got 'models'"),
    ],
)
def test_a_file_of_another_format_is_refused(path, name, version, words):
    write_json(path, Format(name, version).sealed(CONTENT))
    refuses(words, read_json, path, CURVES)
