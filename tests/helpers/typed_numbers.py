"""What every number rests on that is typed into the book's prose.

A number of ours comes from a role; any other stands in `book/typed_numbers.toml`, where a line has
the numbers of one paragraph, or of one line of a table, by what they rest on:

    "E9 W Theorems 1, 2" = "shown(note_unbiased) 0.25 0.0042; statement 0.37; paper(W, Table 1) 10"

- `shown(PAGE ...)`: what the cells of these pages print or put in tables; held against it.
- `code(NOTEBOOK ...)`: a literal in the code of a notebook and its study, or in a file: a setting,
  or what a cell checks; held against it. Without a name: of this notebook.
- `stored(STUDY/KEY)`: a stored number; `computed(EXPRESSION)`: arithmetic; held against it.
- `paper(PLACE)`, `theirs(WHOSE)`: quoted from a paper, from other people's code and data.
- `statement`: part of a statement or proof; `words`: an index or an example.
- `tried(HOW)`: ours, and no run of it is stored: there is nothing to hold it against.

    python -m tests.helpers.typed_numbers        # lines for the numbers that are not listed
"""

from __future__ import annotations

import ast
import io
import json
import math
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.helpers.prose import ROOT, pages, units

HELD = ("shown", "code", "stored", "computed")
LISTED = ROOT / "book" / "typed_numbers.toml"
KINDS = (*HELD, "paper", "theirs", "statement", "words", "tried")


class Entry(NamedTuple):
    """What is listed of a unit: kind, what stands in its brackets, and the numbers."""

    kind: str
    where: str
    numbers: tuple[str, ...]


def listed() -> dict[str, dict[str, tuple[Entry, ...]]]:
    """Page -> beginning of a unit -> what its numbers rest on."""
    with LISTED.open("rb") as file:
        content = tomllib.load(file)
    return {
        page: {near: tuple(entries(text)) for near, text in lines.items()}
        for page, lines in content.items()
    }


def entries(text: str) -> Iterator[Entry]:
    """The parts of a line."""
    for part in text.split("; "):
        found = re.fullmatch(r"(\w+)(?:\((.*)\))?((?: [\d.e-]+)+)", part.strip())
        if not found or found[1] not in KINDS:
            raise ValueError(f"typed_numbers.toml: {part!r} must be KIND(WHERE) NUMBERS.")
        yield Entry(found[1], found[2] or "", tuple(found[3].split()))


def all_numbers(line: tuple[Entry, ...]) -> tuple[str, ...]:
    return tuple(sorted((n for entry in line for n in entry.numbers), key=float))


def unlisted(texts: dict[str, str], lines: dict[str, dict[str, tuple[Entry, ...]]]) -> list[str]:
    """One sentence for every unit that is not listed, and for every line whose unit is gone."""
    found = []
    for page in sorted({*texts, *lines}):
        there = list(units(page, texts.get(page, "")))
        left = Counter(all_numbers(line) for line in lines.get(page, {}).values())
        for unit in there:
            if left[unit.numbers]:
                left[unit.numbers] -= 1
                continue
            shown = ", ".join(unit.numbers)
            found.append(
                f"{page}: the numbers {shown} in {unit.near!r} must come from a role or be listed "
                f"in book/typed_numbers.toml; `python -m tests.helpers.typed_numbers` gives it."
            )
        for numbers in left.elements():
            shown = ", ".join(numbers)
            found.append(f"{page}: the listed numbers {shown} are gone; take out their line.")
    return found


def untrue(page: str, line: tuple[Entry, ...]) -> list[str]:
    """One sentence for every listed number that is not what it rests on."""
    return [
        f"{page}: {number} must be {entry.kind} by {entry.where or 'its page'}, and is not; "
        f"correct the sentence or its line in book/typed_numbers.toml."
        for entry in line
        for number in entry.numbers
        if entry.kind in HELD and not rests(page, entry, number)
    ]


def rests(page: str, entry: Entry, number: str) -> bool:
    """Whether a number is what a page shows, what the code has, what is stored or computed."""
    names = entry.where.split() or [Path(page).stem]
    if entry.kind == "shown":
        return any(is_one_of(number, shown_by(name)) for name in names)
    if entry.kind == "code":
        return any(is_one_of(number, literals(name)) for name in names)
    if entry.kind == "stored":
        return is_one_of(number, frozenset({stored(entry.where)}), whole=0.5)
    return is_one_of(number, frozenset({eval_arithmetic(entry.where)}), whole=0.5)


def is_one_of(number: str, values: frozenset[float], whole: float = 1e-9) -> bool:
    """Whether one of the values rounds to a printed number, or its share to a whole percentage.

    A number without decimals must be met but for `whole`.
    """
    mantissa, _, power = number.partition("e")
    _, _, digits = mantissa.partition(".")
    half = 0.5001 * 10.0 ** (int(power or 0) - len(digits))
    typed = float(number)
    exact = half if digits or power else whole
    scales = (1,) if digits or power else (1, 100)
    return any(abs(abs(v) * scale - typed) <= exact for v in values for scale in scales)


@cache
def shown_by(name: str) -> frozenset[float]:
    """All numbers that the cells of a committed page print or put in tables."""
    page = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
    texts = []
    for output in (o for cell in page["cells"] for o in cell.get("outputs", [])):
        texts.append("".join(output.get("text", "")))
        data = output.get("data", {})
        texts += ["".join(data.get(k, "")) for k in ("text/plain", "text/html", "text/markdown")]
    text = re.sub(r"base64,[^\"]*", "", "\n".join(texts))
    return numbers_in(re.sub(r"</?[a-z][^>]*>", " ", text))


def numbers_in(text: str) -> frozenset[float]:
    """All numbers of a text."""
    found = re.findall(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?", text)
    return frozenset(float(n.replace(",", "")) for n in found)


@cache
def literals(name: str) -> frozenset[float]:
    """All numbers in the code of a notebook, a study with its paper's modules, or a file."""
    from papers import STUDIES

    files = [ROOT / "notebooks" / "src" / f"{name}.py", ROOT / name]
    if name in STUDIES:
        _, paper, *rest = STUDIES[name].specs.__module__.split(".")
        home = ROOT / "papers" / paper
        files += [*home.glob("*.py"), *home.glob("problems/*.py"), *home.glob("data/*.py")]
        files += (home / rest[0]).rglob("*.py") if rest else []
    found: set[float] = set()
    for path in files:
        if path.is_file():
            found |= number_tokens(path.read_text(encoding="utf-8"))
    return frozenset(found)


def number_tokens(code: str) -> set[float]:
    """The literals of some Python code, and the numbers in its names: texts without a blank."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    found = set()
    for token in tokens:
        if token.type == tokenize.NUMBER:
            found.add(float(ast.literal_eval(token.string)))
        if token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)):
            found |= numbers_in(token.string) if " " not in token.string else set()
    return found


def stored(where: str) -> float:
    """A stored number, STUDY/KEY."""
    study, _, key = where.partition("/")
    from papers.kit.store import read_numbers

    return float(read_numbers(study)[key].value)


def eval_arithmetic(expression: str) -> float:
    """The value of an expression of numbers, mathematical functions and `stored('STUDY/KEY')`."""
    names = {k: v for k, v in vars(math).items() if not k.startswith("_")}
    return float(eval(expression, {"__builtins__": {}}, names | {"stored": stored}))


def guess(page: str, numbers: tuple[str, ...]) -> str:
    """A line for a unit, as far as it can be guessed."""
    name, groups = Path(page).stem, dict[str, list[str]]()
    own = page.startswith("notebooks/")
    for number in numbers:
        kind = "paper"
        if own and is_one_of(number, literals(name)):
            kind = "code"
        groups.setdefault(kind, []).append(number)
    return "; ".join(" ".join([kind, *found]) for kind, found in groups.items())


def main() -> None:
    """Prints lines for what is not listed."""
    lines = listed() if LISTED.is_file() else {}
    for page, text in pages().items():
        left = Counter(all_numbers(line) for line in lines.get(page, {}).values())
        fresh, seen = [], Counter[str]()
        for unit in units(page, text):
            if left[unit.numbers]:
                left[unit.numbers] -= 1
                continue
            seen[unit.near] += 1
            near = unit.near + (f" ({seen[unit.near]})" if seen[unit.near] > 1 else "")
            fresh.append(f'"{near}" = "{guess(page, unit.numbers)}"')
        if fresh:
            print(f'["{page}"]', *fresh, "", sep="\n")


if __name__ == "__main__":
    sys.exit(main())
