"""Names within the book: each is given once, and every name of the library knows its source.

Pages are read side by side, so that Sphinx does not see a label that two of them give.
"""

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: `(label)=`, `:name:` and `:label:` of directives, the label of a formula.
LABEL = re.compile(
    r"^(?:# )?(?:\((?P<target>[\w-]+)\)=$|:(?:name|label): (?P<option>[\w-]+)$|"
    r"\$\$ \((?P<formula>[\w-]+)\)$)",
    re.MULTILINE,
)


def labels(texts):
    return Counter(found[found.lastgroup].lower() for t in texts for found in LABEL.finditer(t))


def test_no_label_is_given_twice():
    pages = [*(ROOT / "book").rglob("*.md"), *(ROOT / "notebooks" / "src").glob("*.py")]
    given = labels(page.read_text(encoding="utf-8") for page in pages)
    assert len(given) > 50
    assert [label for label, times in given.items() if times > 1] == []


def test_a_label_that_is_given_twice_would_be_seen():
    first, second = "(a-place)=\n# Title\n$$\nx\n$$ (eq-x)\n", "# :name: A-Place\n# $$ (eq-x)\n"
    assert labels([first, second]) == {"a-place": 2, "eq-x": 2}


@pytest.fixture
def source(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    return importlib.import_module("fedbook_docstrings")


@pytest.mark.parametrize(
    ("module", "name", "begins"),
    [
        ("fedlib.run", "run", "def run("),
        ("fedlib.algorithms.fedsgm", "FedSGM.round", "    def round("),
        ("papers.kit", "plot.band", "def band("),
    ],
)
def test_a_name_leads_to_its_lines_in_the_repository(source, module, name, begins):
    importlib.import_module(module)
    importlib.import_module("papers.kit.plot")
    address = source.address_of("https://example.org/b", "py", {"module": module, "fullname": name})
    path, first = re.fullmatch(r"https://example.org/b/(.+)#L(\d+)-L\d+", address).groups()
    assert (ROOT / path).read_text(encoding="utf-8").splitlines()[int(first) - 1].startswith(begins)


def test_what_has_no_lines_has_no_address(source):
    for name in ("COLORS", "nothing"):
        info = {"module": "papers.kit.plot", "fullname": name}
        assert source.address_of("https://example.org/b", "py", info) is None
    assert source.address_of("https://example.org/b", "c", {}) is None
