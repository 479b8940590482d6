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

CHECKED = ("shown", "code", "stored", "computed")
LISTED = ROOT / "book" / "typed_numbers.toml"
SOURCES = (*CHECKED, "paper", "theirs", "statement", "words", "tried")


class Entry(NamedTuple):
    """What is listed of a unit: the source, what stands in its brackets, and the numbers."""

    source: str
    where: str
    numbers: tuple[str, ...]


def listed() -> dict[str, dict[str, tuple[Entry, ...]]]:
    """Page -> beginning of a unit -> what its numbers rest on."""
    with LISTED.open("rb") as file:
        content = tomllib.load(file)
    pages: dict[str, dict[str, tuple[Entry, ...]]] = {}
    for page, lines in content.items():
        pages[page] = {near: tuple(entries(text)) for near, text in lines.items()}
    return pages


def entries(line: str) -> Iterator[Entry]:
    """The entries of a line."""
    for text in line.split("; "):
        match = re.fullmatch(r"(\w+)(?:\((.*)\))?((?: [\d.e-]+)+)", text.strip())
        if not match or match[1] not in SOURCES:
            raise ValueError(f"typed_numbers.toml: {text!r} must be SOURCE(WHERE) NUMBERS.")
        yield Entry(match[1], match[2] or "", tuple(match[3].split()))


def all_numbers(line: tuple[Entry, ...]) -> tuple[str, ...]:
    numbers: list[str] = []
    for entry in line:
        numbers += entry.numbers
    return tuple(sorted(numbers, key=float))


def unlisted(texts: dict[str, str], lines: dict[str, dict[str, tuple[Entry, ...]]]) -> list[str]:
    """One sentence for every unit that is not listed, and for every line whose unit is gone."""
    sentences = []
    for page in sorted({*texts, *lines}):
        left = Counter(map(all_numbers, lines.get(page, {}).values()))
        for unit in units(page, texts.get(page, "")):
            if left[unit.numbers]:
                left[unit.numbers] -= 1
                continue
            shown = ", ".join(unit.numbers)
            sentences.append(
                f"{page}: the numbers {shown} in {unit.near!r} must come from a role or be listed "
                f"in book/typed_numbers.toml; `python -m tests.helpers.typed_numbers` gives it."
            )
        for numbers in left.elements():
            shown = ", ".join(numbers)
            sentences.append(f"{page}: the listed numbers {shown} are gone; take out their line.")
    return sentences


def untrue(page: str, line: tuple[Entry, ...]) -> list[str]:
    """One sentence for every listed number that is not what it rests on."""
    sentences = []
    for entry in line:
        if entry.source not in CHECKED:
            continue
        rule = f"must be {entry.source} by {entry.where or 'its page'}, and is not"
        remedy = "correct the sentence or its line in book/typed_numbers.toml"
        wrong = [number for number in entry.numbers if not rests(page, entry, number)]
        sentences += [f"{page}: {number} {rule}; {remedy}." for number in wrong]
    return sentences


def rests(page: str, entry: Entry, number: str) -> bool:
    """Whether a number is what a page shows, what the code has, what is stored or computed."""
    names = entry.where.split() or [Path(page).stem]
    if entry.source == "shown":
        return any(is_one_of(number, shown_by(name)) for name in names)
    if entry.source == "code":
        return any(is_one_of(number, literals(name)) for name in names)
    value_of = stored if entry.source == "stored" else eval_arithmetic
    return is_one_of(number, frozenset({value_of(entry.where)}), tolerance=0.5)


def is_one_of(number: str, values: frozenset[float], tolerance: float = 1e-9) -> bool:
    """Whether one of the values rounds to a printed number, or its share to a whole percentage.

    A number without decimals must be met but for the tolerance.
    """
    mantissa, _, power = number.partition("e")
    _, _, digits = mantissa.partition(".")
    typed = float(number)
    sizes = [abs(value) for value in values]
    if digits or power:
        tolerance = 0.5001 * 10.0 ** (int(power or 0) - len(digits))
    else:
        sizes += [100 * size for size in sizes]
    return any(abs(size - typed) <= tolerance for size in sizes)


@cache
def shown_by(name: str) -> frozenset[float]:
    """All numbers that the cells of a committed page print or put in tables."""
    page = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
    texts = []
    for cell in page["cells"]:
        for output in cell.get("outputs", []):
            texts.append("".join(output.get("text", "")))
            data = output.get("data", {})
            contents = [data.get(name, "") for name in ("text/plain", "text/html", "text/markdown")]
            texts += map("".join, contents)
    text = re.sub(r"base64,[^\"]*", "", "\n".join(texts))
    return numbers_in(re.sub(r"</?[a-z][^>]*>", " ", text))


def numbers_in(text: str) -> frozenset[float]:
    """All numbers of a text."""
    numbers = re.findall(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?", text)
    return frozenset(float(number.replace(",", "")) for number in numbers)


@cache
def literals(name: str) -> frozenset[float]:
    """All numbers in the code of a notebook, a study with its paper's modules, or a file."""
    from papers import STUDIES

    files = [ROOT / "notebooks" / "src" / f"{name}.py", ROOT / name]
    if name in STUDIES:
        _, paper, *rooms = STUDIES[name].specs.__module__.split(".")
        home = ROOT / "papers" / paper
        for pattern in ("*.py", "problems/*.py", "data/*.py"):
            files += home.glob(pattern)
        if rooms:
            files += (home / rooms[0]).rglob("*.py")
    numbers: set[float] = set()
    for path in files:
        if path.is_file():
            numbers |= number_tokens(path.read_text(encoding="utf-8"))
    return frozenset(numbers)


def number_tokens(code: str) -> set[float]:
    """The literals of some Python code, and the numbers in its names: texts without a blank."""
    text_types = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
    numbers = set()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.NUMBER:
            numbers.add(float(ast.literal_eval(token.string)))
        elif token.type in text_types and " " not in token.string:
            numbers |= numbers_in(token.string)
    return numbers


def stored(where: str) -> float:
    """A stored number, STUDY/KEY."""
    study, _, key = where.partition("/")
    from papers.kit.store import read_numbers

    return float(read_numbers(study)[key].value)


def eval_arithmetic(expression: str) -> float:
    """The value of an expression of numbers, mathematical functions and `stored('STUDY/KEY')`."""
    names = {**vars(math), "__builtins__": {}, "stored": stored}
    return float(eval(expression, names))


def guess(page: str, numbers: tuple[str, ...]) -> str:
    """A line for a unit, as far as it can be guessed."""
    groups: dict[str, list[str]] = {}
    for number in numbers:
        source = "paper"
        if page.startswith("notebooks/") and is_one_of(number, literals(Path(page).stem)):
            source = "code"
        groups.setdefault(source, [source]).append(number)
    return "; ".join(map(" ".join, groups.values()))


def main() -> None:
    """Prints lines for what is not listed."""
    lines = listed() if LISTED.is_file() else {}
    for page, text in pages().items():
        left = Counter(map(all_numbers, lines.get(page, {}).values()))
        new_lines = []
        seen = Counter[str]()
        for unit in units(page, text):
            if left[unit.numbers]:
                left[unit.numbers] -= 1
                continue
            seen[unit.near] += 1
            near = unit.near
            if seen[near] > 1:
                near += f" ({seen[near]})"
            new_lines.append(f'"{near}" = "{guess(page, unit.numbers)}"')
        if new_lines:
            print(f'["{page}"]', *new_lines, "", sep="\n")


if __name__ == "__main__":
    sys.exit(main())
