"""Sealed JSON files: what is written is read back, anything else is refused."""

import json

import pytest

from fedlib.core.files import Format, digest, json_text, read_json, write_json
from tests.helpers.expect import refuses

CONTENT = {"metrics": {"f": [[1.0, 0.5], [2.0, 0.25]]}}
CURVES = Format("curves", 2, {1: lambda content: {"metrics": content["metrics"]}})


def test_what_is_written_is_read_back_a_line_a_seed(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {**CONTENT, "digest": digest(CONTENT)})
    assert read_json(path) == {**CONTENT, "digest": digest(CONTENT)}
    assert "\n   [ 1.0, 0.5 ],\n   [ 2.0, 0.25 ]\n" in path.read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8") == json_text(read_json(path))


def test_the_digest_is_pinned_and_does_not_depend_on_the_order_of_the_keys():
    assert digest({"b": [1, 2.5], "a": None}) == digest({"a": None, "b": [1, 2.5]})
    assert digest({"a": 1})[:12] == "015abd7f5cc5"


@pytest.mark.parametrize(
    "sealed",
    [
        {},
        {"digest": None},
        {"digest": digest([])},
        {"digest": ""},
    ],
)
def test_a_file_without_its_digest_is_refused(tmp_path, sealed):
    path = tmp_path / "deep" / "study" / "full" / "a.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**CONTENT, **sealed}), encoding="utf-8")
    refuses("store: study/full/a.json must agree with its digest", read_json, path)


@pytest.mark.parametrize("text", ["[]", "3", '{"schema": 0}', '{"a": 1}', '{"schema": 2}'])
def test_json_of_another_origin_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    refuses("a.json must agree with its digest", read_json, tmp_path / "a.json", CURVES)


def test_a_file_of_a_format_is_read_back(tmp_path):
    write_json(tmp_path / "a.json", CURVES.sealed(CONTENT))
    content = read_json(tmp_path / "a.json", CURVES)
    assert content == {
        "schema": 2,
        "kind": "curves",
        **CONTENT,
        "digest": content["digest"],
    }


@pytest.mark.parametrize("version", [0, 3, "2", None])
def test_a_version_without_a_migration_is_refused(tmp_path, version):
    write_json(tmp_path / "a.json", Format("curves", version).sealed(CONTENT))
    rule = f"a.json must have version 2 of the format 'curves', got {version!r}"
    refuses(rule, read_json, tmp_path / "a.json", CURVES)


def test_a_file_of_another_kind_is_refused(tmp_path):
    write_json(tmp_path / "a.json", Format("models", 2).sealed(CONTENT))
    refuses("must be of kind 'curves', got 'models'", read_json, tmp_path / "a.json", CURVES)


def test_an_older_version_is_migrated_and_sealed_anew(tmp_path):
    write_json(tmp_path / "a.json", Format("curves", 1).sealed({**CONTENT, "old": True}))
    assert read_json(tmp_path / "a.json", CURVES) == CURVES.sealed(CONTENT)
