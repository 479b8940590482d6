"""The exercises' commands are ones that run, and their solutions are read from stored runs."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "book" / "exercises.md").read_text(encoding="utf-8")
CHAPTERS = {part.partition("\n")[0]: part for part in TEXT.split("\n## ")[1:]}


def commands(text):
    return re.findall(r'make notebook NAME=(\w+) ARGS="([^"]*)"', text)


def test_every_chapter_has_three():
    assert [*CHAPTERS] == ["FedSGM", "FedCMOO", "SSCA", "FedFW"]
    for text in CHAPTERS.values():
        assert len(re.findall(r"^### ", text, re.M)) == 3
        assert len(commands(text)) == 3
        solutions = text.split(":::{admonition} Solution\n:class: dropdown\n")[1:]
        assert len(solutions) == 3
        assert all(solution.count("{result}") >= 2 for solution in solutions)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_commands_set_parameters_that_notebook_and_study_have(chapter, driver):
    from papers import STUDIES
    from papers.kit.parameters import read

    for name, arguments in commands(CHAPTERS[chapter]):
        words = shlex.split(arguments)
        assert words[::3] == ["-p"] * (len(words) // 3)
        values = {k: read(v) for k, v in zip(words[1::3], words[2::3], strict=True)}
        assert values.keys() <= driver.declared_parameters(driver.read_source(name)).keys()
        profile = values.pop("profile")
        STUDIES[name].resolve(profile, **values)
