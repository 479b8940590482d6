"""The prose of the book's pages, and the numbers that are typed into it.

What is not looked at: displayed formulas, code, roles, links, numbers of theorems and sections, and
in formulas within a line whatever has no decimals and fewer than three digits.
"""

import re
from pathlib import Path

import jupytext

ROOT = Path(__file__).resolve().parents[2]

NAMED = (
    r"(?:Sections?|Figures?|Tables?|Theorems?|Lemmas?|Assumptions?|Algorithms?|Propositions?|"
    r"Problems?|Corollar(?:y|ies)|Appendi(?:x|ces)|Remarks?|Equations?|Definitions?|Facts?|Point|"
    r"[Ll]ines?|[Pp]ages?|[Ss]teps?|[Pp]oints?|[Cc]ases?|[Rr]ules?|pp?\.|eqs?\.|Eqs?\.|[Ee]quations?|"
    r"[Ss]ections?|[Ff]igures?|[Aa]ppendix|Objectives?|Items?|Code|index)"
)
NUMBERED = r"\(?[A-Z]?\.?\d[\d.]*\)?"
#: What is read as no number: names of places in a paper, dates, conferences.
PLACES = re.compile(
    rf"\b{NAMED}[\s~]*{NUMBERED}(?:(?:,? and|,? or| to|,|–|-)\s*{NUMBERED}(?![.\d]*\s*%))*"
    r"|\(\d+\)(?:(?: and|,| to)\s*\(\d+\))*"
    r"|\b\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November"
    r"|December) \d{4}|\b(?:June|November|NeurIPS|AISTATS|OPT|ICML|ICLR) \d{4}"
)
VERBATIM = re.compile(r"\{(?:math|code-block|code|toctree|eval-rst|auto\w+|bibliography)\}")
BLOCKS = (
    re.compile(
        r"^(`{3,}|~{3,}|:{3,})\{(?:math|code-block|code|toctree|eval-rst|auto\w+|bibliography)\}"
        r".*?^\1[ ]*$",
        re.S | re.M,
    ),
    re.compile(r"^(`{3,}|~{3,})(?!\{)[^\n]*\n.*?^\1[ ]*$", re.S | re.M),
    re.compile(r"\$\$.*?\$\$", re.S),
    re.compile(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", re.S),
    re.compile(r"<!--.*?-->", re.S),
    re.compile(r"^\([\w-]+\)=$|^:\w[\w-]*:.*$", re.M),
)
CODE = re.compile(r"(?:\{[\w:+-]+\})?(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"\]\([^)]*\)|https?://\S+")
FORMULA = re.compile(r"\$([^$]+)\$", re.S)
IN_FORMULA = re.compile(
    r"(?<![\w.])((?:\d+(?:\\,\d{3})+|\d+\.\d+|\d{3,})(?![\d.]))(?:\\(?:cdot|times)10\^\{?(-?\d+))?"
)
NUMBER = re.compile(r"(?<![\w.\-\u2013])(\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?)(?![\w]|[.,]\d|-\w)")
ITEM = re.compile(r"^[ >]*\d+\. ", re.M)  # of a list


def pages():
    """Name -> text of everything that is prose: the book's pages and the notebooks' Markdown."""
    texts = {}
    for path in sorted((ROOT / "book").rglob("*.md")):
        texts[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "notebooks" / "src").glob("*.py")):
        cells = jupytext.read(path, fmt="py:percent").cells
        prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
        texts[str(path.relative_to(ROOT))] = "\n\n".join(prose)
    return texts


def unfenced(text):
    """The text without the fences of directives whose content is prose; blocks of code keep theirs.

    A closing fence must not be taken for the opening one of a block of code.
    """
    lines = text.split("\n")
    opened = []
    for i, line in enumerate(lines):
        fence = re.match(r"(`{3,}|~{3,}|:{3,})(\{?[^`]*)$", line)
        if fence is None:
            continue
        marks = fence[1]
        name = fence[2].strip()
        if opened and not name and marks == opened[-1][0]:
            if opened.pop()[1]:
                lines[i] = " " * len(line)
        elif name or not opened or opened[-1][1]:
            prose = name.startswith("{") and not VERBATIM.match(name)
            opened.append((marks, prose))
            if prose:
                lines[i] = " " * len(line)
    return "\n".join(lines)


def masked(text):
    """The prose with blanks in the place of what has no typed numbers."""
    text = unfenced(text)
    for block in (*BLOCKS, CODE, LINK):
        text = block.sub(blank, text)
    return text


def blank(match):
    """As many blanks; what ends a line still does."""
    return re.sub(r"[^\n]", " ", match[0])


def typed_numbers(text):
    """The numbers that are typed in some prose, in words and in formulas, as Python writes them."""
    plain = masked(text)
    words = PLACES.sub(blank, ITEM.sub(blank, FORMULA.sub(blank, plain)))
    formulas = re.sub(r"(?:^|\$)[^$]*(?:\$|$)", blank, plain)
    numbers = {match[1].replace(",", "") for match in NUMBER.finditer(words)}
    for match in IN_FORMULA.finditer(formulas):
        mantissa = match[1].replace("\\,", "")
        numbers.add(f"{mantissa}e{match[2]}" if match[2] else mantissa)
    return numbers
