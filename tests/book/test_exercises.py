"""The exercises' commands are ones that run, and their solutions are read from stored runs."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "book").glob("*/exercises.md"))


def commands(path):
    return re.findall(r'make notebook NAME=(\w+) ARGS="([^"]*)"', path.read_text(encoding="utf-8"))


def test_every_chapter_has_three():
    assert [p.parent.name for p in PAGES] == ["fedcmoo", "fedfw", "fedsgm", "ssca"]
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        assert len(re.findall(r"^## ", text, re.M)) == 3
        assert len(commands(path)) == 3
        solutions = text.split(":::{admonition} Solution\n:class: dropdown\n")[1:]
        assert len(solutions) == 3
        assert all(part.count("{result}") >= 2 for part in solutions)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.parent.name)
def test_commands_set_parameters_that_notebook_and_study_have(path, driver):
    from papers import STUDIES

    for name, arguments in commands(path):
        words = shlex.split(arguments)
        assert words[::3] == ["-p"] * (len(words) // 3)
        given = {k: driver.literal(v) for k, v in zip(words[1::3], words[2::3], strict=True)}
        assert given.keys() <= driver.declared_parameters(driver.read_source(name)).keys()
        profile = given.pop("profile")
        STUDIES[name].resolve(profile, **given)
