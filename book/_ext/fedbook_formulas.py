"""Pseudocode of docstrings, which is plain text there, with its formulas set as mathematics.

A word is part of a formula if it is an operator, a letter, or a name of a quantity; neighbours form
one formula. Everything else stays prose.
"""

from __future__ import annotations

import re
from html import escape

GREEK = (
    *("alpha", "beta", "gamma", "eta", "theta", "kappa", "lambda", "mu"),
    *("xi", "pi", "rho", "sigma", "tau", "phi", "Delta"),
)
#: Name in a docstring -> its symbol in the book.
SYMBOLS = {
    **{name: f"\\{name}" for name in GREEK},
    "lr": r"\eta",
    "server_lr": r"\eta_s",
    "dual_lr": r"\eta_y",
    "lam": r"\lambda",
    "ridge": r"\lambda",
    "relaxation": r"\alpha",
    "level": "c",
    "levels": "U",
    "tolerance": r"\epsilon",
    "w_bar": r"\bar w",
    "xhat": r"\hat x",
    "grad": r"\nabla ",
    "argmin": r"\operatorname{arg\,min}",
    "mean": r"\operatorname{mean}",
    "sum": r"\sum",
    "C": r"\mathcal C",
    "p": r"\mathtt p",
    "n'": r"n^{\prime}",
}
#: Names of functions; without a bracket behind them they are words.
FUNCTIONS = {
    "project": r"\Pi",
    "max": r"\max",
    "lmo": r"\operatorname{lmo}",
    "switch": r"\operatorname{switch}",
    "weights": r"\operatorname{weights}",
    "least": r"\operatorname{least}",
    "preference": r"\operatorname{preference}",
}
INDEXED = {"mean", "sum", "levels", "C"}  # words or other letters without an index
OPERATORS = {"<-", "<=", ">=", "<", ">", "=", "+", "-", "/", "..."}
LETTER = re.compile(r"[B-HJ-Zb-z]'?|\d+")  # no article, no pronoun
NAME = re.compile(r"(?P<base>[A-Za-z]+?)_(?P<index>\w+|\{[^}]*\})")
PIECE = re.compile(r"w_bar|(?:server|dual)_lr|[A-Za-z]\w*?(?:_(?:\{[^}]*\}|\w+))?'?(?!\w)|\d+'?")
MARKS = ",;:."
#: What is written in another way in mathematics, after the names.
NOTATION = (
    (re.compile(r"1\{([^{}]*)\}"), r"\\mathbb 1\\{\1\\}"),
    (re.compile(r"\|([^|]*)\|"), r"\\lVert \1\\rVert "),
    (re.compile(r"<-"), r"\\leftarrow "),
    (re.compile(r"<="), r"\\le "),
    (re.compile(r">="), r"\\ge "),
    (re.compile(r"<([^<>]*)>"), r"\\langle \1\\rangle "),
    (re.compile(r"\.\.\."), r"\\dots"),
    (re.compile(r"\^-(\w+)"), r"^{-\1}"),
    (re.compile(r"(?<=[\w)}])'"), r"^\\top "),
    (re.compile(r"(?<=,) "), r"\\ "),
)


def set_formulas(line: str) -> str:
    """A line of pseudocode as HTML."""
    pieces: list[str] = []
    formula: list[str] = []
    for word in line.split():
        core, mark = without_mark(word)
        starts_prose = not formula and core.isdecimal() and mark == ","
        if is_formula(core) and not starts_prose:
            goes_on = mark in ("", ",")
            formula.append(word if goes_on else core)
            if goes_on:
                continue
            pieces.append(as_html(formula) + mark)
        else:
            if formula:
                pieces.append(as_html(formula))
            pieces.append(escape(word))
        formula = []
    if formula:
        pieces.append(as_html(formula))
    return " ".join(pieces)


def without_mark(word: str) -> tuple[str, str]:
    """A word and the marks behind it; three dots are no mark."""
    if word.startswith("..."):
        return "...", word[3:]
    core = word.removesuffix("'s").rstrip(MARKS)
    return core, word[len(core) :]


def is_formula(word: str) -> bool:
    """Whether a word of a line belongs to a formula."""
    if "`" in word:
        return False
    bare = word.strip("()-")
    if word in OPERATORS:
        return True
    if bare in INDEXED:
        return False
    pieces = PIECE.findall(bare)
    remainder = PIECE.sub("", bare)
    if re.search(r"[A-Za-z]", remainder) or not pieces:
        return False
    return all(is_quantity(piece, bare) for piece in pieces)


def is_quantity(piece: str, word: str) -> bool:
    """Whether a name in a word stands for a number, a vector or a function."""
    if LETTER.fullmatch(piece) or piece.rstrip("'") in SYMBOLS:
        return True
    if piece in FUNCTIONS:
        return f"{piece}(" in word
    name = NAME.fullmatch(piece.rstrip("'"))
    return bool(name) and (name["base"] in SYMBOLS or len(name["base"]) == 1)


def as_html(words: list[str]) -> str:
    """A formula as MathJax finds it; brackets without a partner and marks at its end are prose."""
    text = " ".join(words)
    body = text.rstrip(MARKS) if not text.endswith("...") else text
    mark = text[len(body) :]
    html = ""
    start = 0
    for position in unmatched(body):
        html += inline(body[start:position]) + body[position]
        start = position + 1
    return html + inline(body[start:]) + mark


def unmatched(text: str) -> list[int]:
    """The positions of brackets that are not closed, or not opened."""
    opened: list[int] = []
    wrong: list[int] = []
    for position, letter in enumerate(text):
        if letter == "(":
            opened.append(position)
        elif letter == ")":
            if opened:
                opened.pop()
            else:
                wrong.append(position)
    return sorted([*wrong, *opened])


def inline(text: str) -> str:
    """A formula between its marks, with the blanks around it outside."""
    bare = text.strip()
    if not re.search(r"[A-Za-z/=]", bare):
        return escape(text)
    left_space = " " if text.startswith(" ") else ""
    right_space = " " if text.endswith(" ") else ""
    formula = escape(latex(bare))
    span = f'<span class="math notranslate nohighlight">\\({formula}\\)</span>'
    return f"{left_space}{span}{right_space}"


def latex(text: str) -> str:
    """A formula of a docstring as LaTeX."""
    for pattern, replacement in NOTATION[:2]:
        text = pattern.sub(replacement, text)
    text = PIECE.sub(symbol, text)
    for pattern, replacement in NOTATION[2:]:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def symbol(match: re.Match[str]) -> str:
    """A name of a docstring as the book writes it."""
    name = match[0]
    if match.start() and match.string[match.start() - 1] == "\\":
        return name
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name in SYMBOLS and name not in INDEXED:
        return f"{SYMBOLS[name]} "
    bare = name.removesuffix("'")
    transposed = name[len(bare) :]
    indexed = NAME.fullmatch(bare)
    if not indexed:
        return name
    base = SYMBOLS.get(indexed["base"], indexed["base"])
    index = indexed["index"].strip("{}")
    return f"{base}_{{{index}}}{transposed}"
