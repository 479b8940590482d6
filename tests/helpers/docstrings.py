"""How the docstring of a method of this library must be written."""

import inspect
import re
from dataclasses import fields


def check_docstring(algorithm):
    """The docstring has numbered pseudocode that the code cites, and words for every field."""
    kind = type(algorithm)
    doc = inspect.cleandoc(kind.__doc__ or "")
    bases = [c for c in kind.__mro__ if c.__module__ == kind.__module__ or is_shared_work(c)]
    source = "".join(inspect.getsource(base) for base in bases)
    above_the_table = doc.partition("\nParameters\n")[0]
    steps = [int(n) for n in re.findall(r"^ {4}(\d+) ", above_the_table, re.MULTILINE)]
    _require(
        steps == list(range(1, len(steps) + 1)) and len(steps) >= 3,
        "the docstring must hold the method's lines, indented by four and numbered 1, 2, 3, ...",
    )
    cited = set()
    for comment in re.findall(
        r"#\s(\d[\d, -]*)$", re.sub(r'""".*?"""', "", source, flags=re.DOTALL), re.MULTILINE
    ):
        for part in comment.split(","):
            low, _, high = part.strip().partition("-")
            cited |= set(range(int(low), int(high or low) + 1))
    missing = sorted(set(steps) - cited)
    _require(not missing, f"the code must cite lines {missing} of its docstring, as in `# 3`")
    silent = [f.name for f in fields(algorithm) if not re.search(rf"\b{f.name}\b", doc)]
    _require(not silent, f"the docstring must say what these fields are: {', '.join(silent)}")


def is_shared_work(kind):
    """Whether a class is a base that several methods share."""
    return kind.__module__.startswith("fedlib.work.")


def _require(holds, sentence):
    if not holds:
        raise AssertionError(f"{sentence}.")
