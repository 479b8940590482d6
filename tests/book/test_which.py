"""The programs of the section *Which method?* run as printed, and their constraints are met."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "book" / "methods" / "index.md"
PROGRAMS = re.findall(
    r"^```python\n(.*?)^```\n\n```text\n(.*?)^```",
    PAGE.read_text(encoding="utf-8"),
    re.DOTALL | re.M,
)


def test_every_program_shows_what_it_prints():
    assert len(PROGRAMS) == PAGE.read_text(encoding="utf-8").count("```python\n") == 5


@pytest.mark.parametrize(("program", "printed"), PROGRAMS)
def test_a_program_prints_what_the_page_shows(program, printed, capsys):
    names = {}
    exec(program, names)
    assert capsys.readouterr().out == printed
    trace = names["trace"]
    if "g" in trace.metrics:
        assert (trace.late("g") <= 0.05).all()
    assert (trace.late("f") < trace.metrics["f"][:, 0]).all()


def test_a_lower_level_meets_the_constraint_at_the_price_that_the_page_says():
    names = {}
    exec(PROGRAMS[0][0].replace("tolerance=0.05", "tolerance=0.05, level=-0.05"), names)
    assert names["trace"].late("g").round(2) == -0.01
    assert names["trace"].late("f").round(2) == 0.01
