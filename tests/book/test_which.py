"""The programs of the section *Which method?* run as printed, and their constraints are met."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "book" / "methods" / "index.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.M)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs_as_printed(program, capsys):
    names = {}
    exec(program, names)
    assert capsys.readouterr().out
    trace = names["trace"]
    if "g" in trace.metrics:
        assert (trace.late("g") <= 0.05).all()
    assert (trace.late("f") < trace.metrics["f"][:, 0]).all()
