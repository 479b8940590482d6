"""The pages about methods, all errata in one table, notation and terms: read as files, no build."""

import importlib
import inspect
import re
import sys
from html import unescape
from pathlib import Path

import pytest

from fedlib.algorithms import ALGORITHMS

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
PAGES = sorted(p for p in (BOOK / "methods").glob("*.md") if p.stem != "index")
SECTIONS = [
    "Pseudocode and code",
    "Who sees what, and the bits",
    "What is proved",
    "What we found",
    "Run it",
]
CLASSES = {a.__name__: a for a in ALGORITHMS}
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
each_class = pytest.mark.parametrize("name", CLASSES)


@pytest.fixture(scope="module")
def ext():
    """The extension's modules, by name."""
    sys.path.insert(0, str(BOOK / "_ext"))
    yield lambda name: importlib.import_module(f"fedbook_{name}")
    sys.path.remove(str(BOOK / "_ext"))


def directives(text, kind):
    """Arguments of all directives of a kind."""
    return re.findall(rf"^```{{{kind}}} (.+)$", text, re.MULTILINE)


def section(text, title):
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_every_algorithm_is_shown_once(ext):
    """On a page, or below the overview, where a method is that has none yet."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    shown = [c for text in pages for c in directives(text, "pseudocode")]
    assert len(shown) == len(set(shown))
    not_shown = ext("methods").others("".join(pages))
    classes = set(CLASSES.values()) - set(not_shown)
    assert sorted(shown) == sorted(f"fedlib.algorithms.{a.__name__}" for a in classes)
    assert set(ext("methods").others("")) == set(ALGORITHMS)
    assert "```{other-methods}\n```" in (BOOK / "methods" / "index.md").read_text(encoding="utf-8")


def test_the_overview_has_a_line_for_every_algorithm_and_links_to_its_page():
    text = (BOOK / "methods" / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        for name in directives(page.read_text(encoding="utf-8"), "round"):
            (line,) = [x for x in text.split("\n") if f"{{round-bits}}`{name} up`" in x]
            assert f"({page.name}" in line
            assert f"{{round-bits}}`{name} down`" in line


@each_page
def test_a_page_has_its_parts(page):
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert titles[: len(SECTIONS)] == SECTIONS
    assert text.partition("## ")[0].count("\n$$\n") == 2, "one formula: the problem"
    classes = [c.rpartition(".")[2] for c in directives(text, "pseudocode")]
    assert directives(text, "round") == classes
    proved = section(text, "What is proved")
    assert "{prf:ref}" in proved or "No theorem" in proved
    findings = section(text, "What we found")
    assert len(directives(findings, "themed-figure")) == 1
    assert "{claim}" in findings
    assert re.findall(r"^:(alt|name): \S", findings, re.MULTILINE) == ["alt", "name"]


@each_class
def test_the_pseudocode_is_read_whole(ext, name):
    docstring = inspect.getdoc(CLASSES[name])
    steps = ext("methods").steps_of(docstring)
    assert [step.number for step in steps] == [*range(1, len(steps) + 1)]
    block = re.search(r"^ {4}1 .*?\n\n", docstring, re.DOTALL | re.MULTILINE)
    written = re.sub(r"^ {4}\d+ ", "", block[0], flags=re.MULTILINE)
    read = " ".join(line for step in steps for line in step.lines)
    assert read.split() == written.split()


FORMULA = re.compile(r'<span class="math notranslate nohighlight">\\\((.*?)\\\)</span>')
#: A line of pseudocode -> the formulas in it.
FORMULAS = {
    "E times: u <- u - lr grad f_jk(u), batches of its own": [
        "E",
        r"u \leftarrow u - \eta \nabla f_{jk}(u)",
    ],
    "lam = weights(G, lam) with G the matrix": [
        r"\lambda = \operatorname{weights}(G,\ \lambda )",
        "G",
    ],
    "l_t = <grad phi_1(w_0), w_t>  (first: l_{-1} = l_0)": [
        r"l_{t} = \langle \nabla \phi_{1}(w_{0}),\ w_{t}\rangle",
        "l_{-1} = l_{0}",
    ],
    "f <- -f' w + |w|^2, with client i's share": [
        r"f \leftarrow -f^\top w + \lVert w\rVert ^2",
        "i",
    ],
    "the average of line 7, w <- u, its mean gradient": [r"w \leftarrow u"],
    "x + (sum of the changes) / N": ["x +", "/ N"],
    "on a fresh batch, the first step sends what was drawn": [],
}


@pytest.mark.parametrize("line", FORMULAS)
def test_formulas_of_pseudocode_are_set_and_words_are_not(ext, line):
    html = ext("formulas").set_formulas(line)
    assert [unescape(formula) for formula in FORMULA.findall(html)] == FORMULAS[line]


@each_class
def test_no_pseudocode_is_left_in_plain_letters(ext, name):
    steps = ext("methods").steps_of(inspect.getdoc(CLASSES[name]))
    for line in [line for step in steps for line in step.lines]:
        html = ext("formulas").set_formulas(line)
        prose = unescape(re.sub(r"`[^`]*`", "", FORMULA.sub("", html)))
        assert not re.findall(r"<-|[\w)]_\w|\||=|\blam\b|\blr\b|\bgrad\b", prose)


@each_class
def test_the_recorded_messages_add_up_to_what_the_round_reports(ext, name):
    example, log, bits, participants = ext("methods").recorded(name)
    assert type(example.algorithm).__name__ == name
    assert sum(sent.bits * sent.copies for sent in log) == sum(bits.values())
    assert bool(log) == (name not in ("SGM", "PenaltySGM", "ConEx"))
    assert participants >= 1


def test_a_recorded_round_by_hand(ext):
    example, log, _, participants = ext("methods").recorded("FedSGM")
    entry = 32 + 5  # a number and its position among 30
    assert (example.problem.dim, participants) == (30, 10)
    assert [(m.receiver, m.bits, m.copies) for m in log] == [
        ("server", 32, 10),
        ("participant", 32, 10),
        ("server", 3 * entry, 10),
        ("every client", 3 * entry, 20),
    ]


# Errata

HEAD = "| no. | where | printed | what holds | how much it matters | shown in |"


def test_every_erratum_has_a_number_of_its_own_and_leads_to_a_page_with_a_check():
    tables = (BOOK / "errata.md").read_text(encoding="utf-8").split(HEAD)[1:]
    assert len(tables) == 4
    numbers = []
    for table in tables:
        lines = table.partition("\n\n")[0].split("\n")[2:]
        for line in filter(None, lines):
            number, *_, shown = [cell.strip() for cell in line.strip("| ").split(" | ")]
            assert re.fullmatch(r"[A-Z]\d+", number), line
            numbers.append(number)
            names = re.findall(r"notebooks/(\w+)\.ipynb", shown)
            assert names, line
            for name in names:
                source = ROOT / "notebooks" / "src" / f"{name}.py"
                assert "check(" in source.read_text(encoding="utf-8"), line
    assert len(numbers) == len({*numbers})


# Notation and terms
