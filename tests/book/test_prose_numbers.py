"""A number that is typed into a page's prose is shown by its cells, or stands in its code."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from papers import STUDIES
from papers.kit.store import read_numbers
from tests.helpers import prose
from tests.helpers.page_figures import cells_of, source_of

PAGES = prose.pages()
NOTEBOOKS = [Path(page).stem for page in PAGES if page.startswith("notebooks/")]
#: Typed numbers of papers, data sets and proofs, which neither cells nor code have.
ELSEWHERE = {
    "cartpole_table": {"190"},
    "cmoo_many": {"162770", "11.2"},
    "cmoo_qm9": {"154", "0.09", "0.14"},
    "fairness": {"0.27"},
    "fw_rates": {"130", "53000"},
    "fw_tables": {"24380"},
    "note_balancing": {"0.3", "0.6", "1.02"},
    "note_compression": {"2500"},
    "note_fedfw": {"1.64"},
    "note_partial": {"12.4"},
    "note_ssca_constrained": {"0.181"},
    "note_stochastic": {"1.4"},
    "note_unbiased": {"0.37", "0.018"},
    "np_workshop": {"212", "357"},
    "ssca_convergence": {"6000"},
}
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[,_]\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")


def numbers_in(text):
    """The numbers of a text, without their signs."""
    digits = [number.replace(",", "") for number in NUMBER.findall(text)]
    return {abs(float(number)) for number in digits}


def shown(name):
    """What the cells of a committed page print or put in tables."""
    page = prose.ROOT / "notebooks" / f"{name}.ipynb"
    texts = []
    for cell in json.loads(page.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            texts += output.get("text", ())
            for kind in ("text/plain", "text/html", "text/markdown"):
                texts += output.get("data", {}).get(kind, ())
    text = re.sub(r'base64,[^"]*', "", "".join(texts))
    return re.sub(r"</?[a-z][^>]*>", " ", text)


def code(name):
    """The code of a page, and of its study with the modules of its paper."""
    texts = cells_of(source_of(name))
    if name in STUDIES:
        _, paper, *rooms = STUDIES[name].specs.__module__.split(".")
        home = prose.ROOT / "papers" / paper
        folders = ["", "problems/", "data/", *(f"{room}/" for room in rooms[:1])]
        for folder in folders:
            texts += [path.read_text(encoding="utf-8") for path in home.glob(f"{folder}*.py")]
    return "\n".join(texts)


@cache
def known(name):
    """The numbers that a page shows or has in its code, as they are and in per cent."""
    sizes = numbers_in(shown(name)) | numbers_in(code(name))
    return sizes | {100 * size for size in sizes}


def is_known(number, name):
    """Whether a number of a page rounds to a typed one."""
    mantissa, _, power = number.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(power or 0)
    tolerance = 0.5001 * 10.0**-digits if digits else 1e-9
    return any(abs(size - float(number)) <= tolerance for size in known(name))


def is_exact(number):
    """Whether a number tells more than a count in a sentence."""
    return not number.isdigit() or len(number) > 2


def unknown(name, text):
    """The exact numbers of a page's prose that are neither shown nor in its code."""
    numbers = filter(is_exact, prose.typed_numbers(text))
    return {number for number in numbers if not is_known(number, name)}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_typed_number_is_shown_or_in_the_code(name):
    numbers = unknown(name, PAGES[f"notebooks/src/{name}.py"]) - ELSEWHERE.get(name, set())
    assert not numbers, f"{numbers} must be shown by a cell: write a role such as {{result}}"


def test_a_typed_number_that_no_cell_shows_is_found():
    text = "Of 30 runs 0.7431 diverge, as $0.7432$ of 12,345 in Table 3.4."
    assert unknown("np_workshop", text) == {"0.7431", "0.7432", "12345"}


#: A stored number before a word that it would count, maybe with a line's end in between.
COUNTED = re.compile(
    r"\{result\}`(?P<study>\w+)/(?P<key>[^`]+?):[^`:]*`[*\s]*"
    r"(?P<counted>rounds|seeds|splits|repetitions|runs|clients)\b"
)


def miscounted(text):
    """Where a metric stands as a count: seeds and their like have a role, rounds are a unit."""
    for match in COUNTED.finditer(text):
        number = read_numbers(match["study"])[match["key"]]
        if match["counted"] != "rounds" or number.unit != "rounds":
            yield match.group()


def test_a_count_never_comes_from_a_metric():
    for page, text in PAGES.items():
        assert not [*miscounted(text)], page
