"""The pages about methods, all errata in one table, notation and terms: read as files, no build."""

import importlib
import inspect
import re
import sys
from html import unescape
from pathlib import Path

import pytest
import yaml

from fedlib.algorithms import ALGORITHMS
from fedlib.testing.examples import examples
from papers import STUDIES

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
PAGES = sorted(p for p in (BOOK / "methods").glob("*.md") if p.stem != "index")
SECTIONS = ["Pseudocode and code", "Who sees what, and the bits", "What is proved",
            "What we found", "Run it"]  # fmt: skip
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


def labels():
    """The names of all statements in the notes."""
    notes = (ROOT / "notebooks" / "src").glob("note_*.py")
    return {
        x
        for note in notes
        for x in re.findall(r":label: ([\w-]+)", note.read_text(encoding="utf-8"))
    }


def terms():
    """The terms of the glossary."""
    text = (BOOK / "notation.md").read_text(encoding="utf-8")
    found = re.findall(r"^```{glossary}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [t for part in found for t in re.findall(r"^(\S.*)\n  \S", part, re.MULTILINE)]


def test_every_algorithm_is_shown_once(ext):
    """On a page, or below the overview, where a method is that has none yet."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    shown = [c for text in pages for c in directives(text, "pseudocode")]
    assert len(shown) == len(set(shown))
    others = ext("methods").others("".join(pages))
    each = set(CLASSES.values()) - set(others)
    assert sorted(shown) == sorted(f"fedlib.algorithms.{a.__name__}" for a in each)
    assert set(ext("methods").others("")) == set(ALGORITHMS)
    assert "```{other-methods}\n```" in (BOOK / "methods" / "index.md").read_text(encoding="utf-8")


def test_the_overview_has_a_line_for_every_algorithm_and_links_to_its_page():
    text = (BOOK / "methods" / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        for name in directives(page.read_text(encoding="utf-8"), "round"):
            (line,) = [x for x in text.split("\n") if f"{{round-bits}}`{name} up`" in x]
            assert f"({page.name})" in line
            assert f"{{round-bits}}`{name} down`" in line


def test_the_table_of_contents_has_every_page():
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    (part,) = [p for p in toc["parts"] if p["caption"] == "Methods"]
    listed = [s["file"] for s in part["chapters"][0]["sections"]]
    assert sorted(listed) == [f"book/methods/{p.stem}" for p in PAGES]
    last = [c["file"] for c in toc["parts"][-1]["chapters"]]
    assert {"book/errata", "book/notation"} <= set(last)


def test_names_of_figures_are_used_once():
    text = "".join(p.read_text(encoding="utf-8") for p in BOOK.rglob("*.md"))
    names = re.findall(r"^:name: (\S+)", text, re.MULTILINE)
    assert len(names) == len(set(names))


@each_page
def test_a_page_has_its_parts(page):
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert text.partition("## ")[0].count("\n$$\n") == 2, "one formula: the problem"
    classes = [c.rpartition(".")[2] for c in directives(text, "pseudocode")]
    assert directives(text, "round") == classes
    proved = section(text, "What is proved")
    assert "{prf:ref}" in proved or "No theorem" in proved
    found = section(text, "What we found")
    assert len(directives(found, "themed-figure")) == len(directives(found, "verdicts")) == 1
    assert re.findall(r"^:(alt|name): \S", found, re.MULTILINE) == ["alt", "name"]


@each_page
def test_a_page_names_what_there_is(page):
    text = page.read_text(encoding="utf-8")
    (figure,) = directives(text, "themed-figure")
    study, _, drawn = figure.partition("/")
    assert drawn in STUDIES[study].figures
    claims = {c.id for s in STUDIES.values() for c in s.claims}
    assert set(directives(text, "verdicts")[0].split()) <= claims
    assert set(re.findall(r"{prf:ref}`([^`]+)`", text)) <= labels()
    used = {x.partition(" <")[2].rstrip(">") or x for x in re.findall(r"{term}`([^`]+)`", text)}
    assert used <= set(terms())
    commands = re.findall(r"make notebook NAME=(\w+)", section(text, "Run it"))
    assert commands
    assert set(commands) <= set(STUDIES)
    assert f"notebooks/{study}.ipynb" in text


@each_class
def test_the_pseudocode_is_shown_whole_and_its_numbers_are_in_the_margin(ext, name):
    methods = ext("methods")
    steps = methods.steps_of(inspect.getdoc(CLASSES[name]))
    assert [s.number for s in steps] == list(range(1, len(steps) + 1))
    words = " ".join(" ".join(s.lines) for s in steps).split()
    block = re.search(r"^ {4}1 .*?\n\n", inspect.getdoc(CLASSES[name]), re.DOTALL | re.MULTILINE)
    assert words == re.sub(r"^ {4}\d+ ", "", block[0], flags=re.MULTILINE).split()
    code = methods.listing(CLASSES[name])
    cited = [n for line in code for n in methods.numbers_in(line.cites)]
    assert set(cited) == {s.number for s in steps}
    shown = methods.code_html("x", code)
    assert set(re.findall(r'id="x-code-(\d+)"', shown)) == {str(n) for n in cited}
    plain = unescape(re.sub(r"<span class=\"linenos\">.*?  </span>|<[^>]+>", "", shown))
    assert plain.strip() == "\n".join(line.text for line in code).strip(), (
        "the source, nothing less"
    )


def test_a_method_made_by_dataclass_is_not_shown(ext):
    text = "\n".join(line.text for line in ext("methods").listing(CLASSES["FedSGM"]))
    assert "def round(" in text
    assert "def local_update(" in text
    assert "def __init__" not in text
    assert "def __post_init__" not in text


@each_class
def test_the_recorded_messages_add_up_to_what_the_round_reports(ext, name):
    recorder = ext("recorder")
    for example, found in recorder.rounds_of(name):
        assert type(example.algorithm).__name__ == name
        sums = {"bits_up": 0, "bits_down": 0, "bits_between": 0}
        for m in found.sent:
            sums[recorder.direction(m)] += m.bits * m.copies
        assert {k: v for k, v in sums.items() if k in found.bits} == found.bits
        assert bool(found.sent) == (name not in ("SGM", "PenaltySGM", "ConEx"))


def test_a_recorded_round_by_hand(ext):
    example, found = ext("recorder").rounds_of("FedSGM")[0]
    entry = 32 + 5  # a number and its position among 30
    assert [(m.lines, m.receiver, m.bits, m.copies) for m in found.sent] == [
        ("2", "server", 32, 10),
        ("4-7", "participant", 32, 10),
        ("4-7", "server", 3 * entry, 10),
        ("9", "every client", 3 * entry, 20),
    ]
    assert found.sent[3].what == "`x - w`"
    assert found.keeps
    assert example.problem.dim == 30


def test_a_message_that_is_not_counted_is_found_out(ext, monkeypatch):
    recorder = ext("recorder")
    example = examples()["FedAvg"][0]
    whole = recorder.merged
    monkeypatch.setattr(recorder, "merged", lambda sent: whole(sent)[:-1])
    with pytest.raises(recorder.BookError, match="FedAvg: the messages add up to"):
        recorder.recorded(example)


# All errata


def errata(paper):
    return BOOK / paper / "errata.md"


def test_the_table_of_all_errata_has_every_line_of_the_pages(ext):
    module = ext("errata")
    assert sorted(module.PAPERS) == sorted(p.parent.name for p in BOOK.glob("*/errata.md"))
    numbers = []
    for paper in module.PAPERS:
        part = (
            errata(paper)
            .read_text(encoding="utf-8")
            .partition(f"## {module.TITLE}")[2]
            .partition("\n## ")[0]
        )
        first = re.search(r"^\| no\..*?(?:\n\n|\Z)", part, re.DOTALL | re.MULTILINE)[0]
        items = module.items(paper, errata(paper).read_text(encoding="utf-8"))
        assert len(items) == len(first.strip().split("\n")) - 2
        numbers += [item.number for item in items]
    assert len(numbers) == len(set(numbers))


def test_every_erratum_leads_to_a_page_with_a_check(ext):
    module = ext("errata")
    for paper in module.PAPERS:
        for item in module.items(paper, errata(paper).read_text(encoding="utf-8")):
            for link in item.linked:
                page = (errata(paper).parent / link).resolve()
                assert page.parent == ROOT / "notebooks", (item.number, link)
                source = ROOT / "notebooks" / "src" / f"{page.stem}.py"
                assert re.search(r"\bcheck\(", source.read_text(encoding="utf-8")), (
                    item.number,
                    link,
                )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| no. | where | printed |", "| nr | where | printed |"),
        ("## Items that change", "## Things that change"),
        ("| [compression](../../notebooks/note_compression.ipynb) |", "| compression |"),
        ("| E5 |", "| five |"),
    ],
)
def test_a_page_that_loses_its_form_is_refused(ext, old, new):
    module = ext("errata")
    text = errata("fedsgm").read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(module.BookError, match="errata of fedsgm"):
        module.items("fedsgm", text.replace(old, new))


def test_links_are_moved_with_the_table(ext):
    text = "[a](../../notebooks/x.ipynb), [b](https://x.org/y), [c](#z) {prf:ref}`q`"
    moved = ext("errata").moved(text, errata("fedsgm"), BOOK / "errata.md")
    assert moved == text.replace("../../notebooks", "../notebooks")


# Notation and terms


def test_terms_are_there_once_and_used_ones_are_there():
    found = terms()
    assert len(found) == len(set(found)) > 30
    text = (BOOK / "notation.md").read_text(encoding="utf-8")
    used = {x.partition(" <")[2].rstrip(">") or x for x in re.findall(r"{term}`([^`]+)`", text)}
    assert used <= set(found)
    assert set(re.findall(r"{prf:ref}`([^`]+)`", text)) <= labels()


def test_every_line_of_the_notation_has_all_columns():
    text = (BOOK / "notation.md").read_text(encoding="utf-8").partition("## Terms")[0]
    lines = [x for x in text.split("\n") if x.startswith("|")]
    assert len(lines) > 40
    assert {line.count("|") for line in lines} == {9}
