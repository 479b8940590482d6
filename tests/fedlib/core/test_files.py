"""Sealed JSON files: what is written is read back, anything else is refused."""

import json

import pytest

from fedlib.core.files import SCHEMA, digest, json_text, read_json, write_json
from tests.helpers.expect import refuses

CONTENT = {"schema": SCHEMA, "metrics": {"f": [[1.0, 0.5], [2.0, 0.25]]}}


def test_what_is_written_is_read_back_a_line_a_seed(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {**CONTENT, "digest": digest(CONTENT)})
    assert read_json(path) == {**CONTENT, "digest": digest(CONTENT)}
    assert "\n   [ 1.0, 0.5 ],\n   [ 2.0, 0.25 ]\n" in path.read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8") == json_text(read_json(path))


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
def test_a_file_of_another_schema_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    refuses(f"a.json must have schema {SCHEMA}, got", read_json, tmp_path / "a.json")
