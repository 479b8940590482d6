"""Settings under figures, the API's pages."""

import re
from importlib import import_module
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document

import fedlib
from papers import STUDIES
from tests.book import test_book_figures
from tests.helpers.toy_book import BOOK

extension = test_book_figures.extension


def test_settings_stand_in_the_order_in_which_one_asks_for_them(extension):
    config = {
        "algorithm": {
            "type": "Around",
            "own": True,
            "method": {
                "type": "FedSGM", "lr": 0.3, "local_steps": 5, "participants": None,
                "uplink": {"type": "TopK", "fraction": 0.1, "scaled": True}, "tolerance": 0.05,
            },
        },
        "problem": {"clients": 20, "data": "adult", "alpha": None},
        "rounds": 100, "seeds": [0, 1, 2], "evaluate_every": 1,
        "bits": {"bits_up": 1.0, "bits_down": 1.0},
    }  # fmt: skip
    assert list(extension("fedbook_figures").flat(config).items()) == [
        ("method", "FedSGM"),
        ("clients N", "20"),
        ("participants n", "all"),
        ("local steps E", "5"),
        ("step size", "0.3"),
        ("uplink", "Top-K, 0.1 of the entries"),
        ("rounds T", "100"),
        ("seeds", "0 to 2"),
        ("data", "adult"),
    ]


def test_many_values_are_abridged(extension):
    listed = extension("fedbook_figures").listed
    assert listed(["0.1", "0.3"]) == "0.1, 0.3"
    assert listed(["3", *map(str, range(20, 4, -1))]) == "3 to 20 (17 values)"
    assert listed(["none", "exact", "low rank", "0.1"]) == "none, exact, low rank, 0.1"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"type": "Identity"}, "none"),
        ({"type": "PowerLaw", "scale": 0.4, "exponent": 0.45}, "0.4 / t^0.45"),
        ({"type": "PowerLaw", "scale": 0.4, "exponent": 0}, "0.4"),
        ({"type": "TwoWay", "sketch": {"type": "LowRank", "budget": 1}}, "two-way, low rank"),
        ({"type": "Least", "share": 0.002, "mixture": False}, "0.002"),
        ({"type": "Strange", "one": 1, "none": None}, "Strange: one 1"),
    ],
)
def test_a_part_of_a_method_is_called_as_a_reader_does(extension, value, words):
    assert extension("fedbook_figures").text_of(value) == words


def test_every_public_name_of_the_library_is_in_the_api():
    """The pages name packages, of which autodoc takes the public names, or single names."""
    text = "".join((BOOK / name).read_text(encoding="utf-8") for name in ("api.md", "api_own.md"))
    offered = {
        name
        for module, members in re.findall(r"automodule:: (\S+)\n   :members:(.*)", text)
        for name in (members.split(",") if members else vars(import_module(module)))
    }
    single = {name.rpartition(".")[2] for name in re.findall(r"auto\w+:: (fedlib\S+)", text)}
    assert {*fedlib.__all__} <= {name.strip() for name in offered} | single


def code_cell(source):
    return nodes.container(
        "",
        nodes.literal_block(source, source),
        nb_element="cell_code",
    )


def test_a_figure_has_its_number_and_that_of_the_paper(extension):
    figures = extension("fedbook_figures")
    assert figures.numbered(3, "figure_4") == "Fig. 3 (the paper's Figure 4)."
    assert figures.numbered(1, "learning_rates") == "Fig. 1."


def test_a_page_lists_the_verdicts_that_its_notebook_draws(extension):
    claims = extension("fedbook_claims")
    study = STUDIES["np_workshop"]
    environment = SimpleNamespace(docname="notebooks/np_workshop", note_dependency=lambda _: None)
    page = new_document("page")
    page += nodes.section(
        "",
        nodes.title("", "Verdicts"),
        code_cell("report.claims_table(page)"),
    )
    claims.shorten_verdicts(SimpleNamespace(env=environment), page)
    lines = page[0][1].children
    assert len(lines) == len(study.claims)
    for claim, line in zip(study.claims, lines, strict=True):
        assert line.astext().startswith(f"{claim.id} {claim.wording}")
        badges = [node for node in line.findall(nodes.inline) if "badge-fed" in node["classes"]]
        assert len(badges) == len(claim.each)


def page_with_last_section(study, title):
    fold = nodes.raw("", study.FOLD, format="html")
    section = nodes.section(
        "",
        nodes.title("", title),
        nodes.paragraph("", "Ours."),
        fold,
        ids=["x"],
    )
    page = new_document("page")
    page += nodes.section("", nodes.title("", "Page"), section)
    return page


def test_what_a_paper_leaves_open_is_in_the_fold(extension):
    study = extension("fedbook_study")
    page = page_with_last_section(study, "What the paper leaves open")
    study.fold_settings(None, page)
    _, fold, name, content = page[0].children
    assert study.LONGER in fold.astext()
    assert (name.astext(), name["ids"]) == ("What the paper leaves open", ["x"])
    assert content.astext() == "Ours."


def test_a_last_section_of_results_stays(extension):
    study = extension("fedbook_study")
    page = page_with_last_section(study, "Verdicts")
    study.fold_settings(None, page)
    assert isinstance(page[0][1], nodes.section)
