"""How the docstring of a method of this library must be written."""

import inspect
import re
from dataclasses import fields


def check_docstring(algorithm):
    """The docstring has numbered pseudocode that the code cites, and words for every field."""
    method = type(algorithm)
    doc = inspect.cleandoc(method.__doc__ or "")
    bases = [base for base in method.__mro__ if belongs_to(base, method)]
    source = "".join(map(inspect.getsource, bases))
    above_the_table = doc.partition("\nParameters\n")[0]
    steps = [int(n) for n in re.findall(r"^ {4}(\d+) ", above_the_table, re.MULTILINE)]
    _require(
        steps == list(range(1, len(steps) + 1)) and len(steps) >= 3,
        "the docstring must hold the method's lines, indented by four and numbered 1, 2, 3, ...",
    )
    cited = set()
    code = re.sub(
        r'""".*?"""',
        "",
        source,
        flags=re.DOTALL,
    )
    for comment in re.findall(r"#\s(\d[\d, -]*)$", code, re.MULTILINE):
        for lines in comment.split(","):
            low, _, high = lines.strip().partition("-")
            cited.update(range(int(low), int(high or low) + 1))
    missing = sorted(set(steps) - cited)
    _require(not missing, f"the code must cite lines {missing} of its docstring, as in `# 3`")
    silent = [f.name for f in fields(algorithm) if not re.search(rf"\b{f.name}\b", doc)]
    _require(not silent, f"the docstring must say what these fields are: {', '.join(silent)}")


def belongs_to(base, method):
    """Whether a base has code of a method: of its own file, or shared by several methods."""
    return base.__module__ == method.__module__ or base.__module__.startswith("fedlib.work.")


def _require(holds, sentence):
    if not holds:
        raise AssertionError(f"{sentence}.")
