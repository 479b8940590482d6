"""Forest plots: what lies where, what is said in words, and which rows share an axis."""

import re
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup

from papers import STUDIES, all_claims
from papers.kit import forest, parts, report
from papers.kit.claims import Claim, PaperValue
from papers.kit.numbers import Number, exact
from papers.kit.rules import Control, Rule, any_of, between, of
from tests.helpers.unlabelled import quantities

NUMBERS = quantities(
    {
        "a": Number(1.0, 0.0, 2.0, (0.9, 1.1), "points"),
        "b": Number(5.0, 4.0, 6.0, (4.9, 5.1), "points"),
        "c": Number(900.0, 800.0, 1000.0, (), "points"),
        "d": exact(3.0),
    }
)
STUDY = replace(
    STUDIES["np_workshop"],
    paper_values=(
        PaperValue(
            "a",
            "a",
            4.0,
            "4 ± 0.2",
            "Table 1",
            spread=0.2,
        ),
    ),
)


def table(primary):
    """The rows of a rule."""
    control = Control("large values", dict.fromkeys(NUMBERS, 1e6))
    claim = Claim(
        "x/C1",
        "W",
        "",
        "",
        Rule(primary, control=control),
        (),
    )
    return parts.frame(STUDY, claim, {"": claim.rule(NUMBERS)})


def rows_of(primary):
    """The rows of a plot as a parser reads them."""
    return BeautifulSoup(forest.plot(table(primary)), "html.parser").select("tr")


def test_estimate_interval_bound_and_printed_value_lie_on_one_axis():
    row, axis = rows_of({"the loss of <a> is small": of("a") < 8})
    assert "class" not in row.attrs
    assert row.th.find(string=True) == "The loss of <a> is small"
    interval, printed = row.svg.find_all("rect")
    # the axis goes from 0 to 8, with 4 % of that free at both ends
    assert interval["x"] == "3.7%"
    assert interval["width"] == "23.1%"
    assert row.svg.circle["cx"] == "15.3%"
    assert (printed["class"], printed["x"]) == (["d"], "50%")
    assert axis.i.text == "8"
    html = forest.plot(table({"x": of("a") < 8}))
    assert "<tbody style=--r:96.3%>" in html  # it holds left of the bound
    assert "aria-label=holds" in html
    assert "<td>1 [0, 2], paper 4 ± 0.2<td>a below 8<td>2<td>fails</tr>" in html


@pytest.mark.parametrize(
    ("condition", "ground"),
    [(of("a") > 1, "=--l:50%>"), (of("a") <= 1, "=--r:50%>")],
)
def test_the_ground_is_tinted_where_the_part_holds(condition, ground):
    rows = table({"x": condition}).assign(printed=float("nan"))
    assert ground in forest.plot(rows)


def test_the_axis_reaches_to_the_printed_value():
    rows = table({"x": between("a", 0.0, 2.0)}).assign(printed=4.0)
    start = 100 * 0.16 / 4.32  # from 0 to 4, with 4 % of that free at both ends
    assert f"--l:{start:.1f}%;--r:50%" in forest.plot(rows)


def test_a_part_that_fails_or_is_open_has_its_own_mark_and_word():
    fails, axis, opens, *_ = rows_of({"x": of("b") < 3, "y": of("a") < 1})
    assert fails.select_one("rect.e") is not None
    assert fails.b.text == "fails"
    assert axis["class"] == ["x"]
    assert opens.circle is not None
    assert opens.b.text == "open"


def test_cases_of_one_size_share_an_axis():
    primary = {"small": {"first": of("a") < 8, "second": of("b") < 8}}
    html = forest.plot(table(primary))
    assert html.count("<tbody") == html.count("class=x") == 1
    assert "<tr class=p><th colspan=3>Small</tr>" in html
    primary["small"]["third"] = of("c") < 8
    assert forest.plot(table(primary)).count("<tbody") == 2  # the others would be a dot on it
    primary["small"]["third"] = of("d") < 8
    assert forest.plot(table(primary)).count("<tbody") == 2  # of another unit


def test_rows_with_bounds_of_their_own_have_a_ground_of_their_own():
    html = forest.plot(table({"x": {"first": of("a") < 8, "second": of("b") < 7}}))
    assert len(re.findall(r"<tr style=--r:[\d.]+%>", html)) == 2
    assert "class=x" not in html


def test_what_has_no_number_has_no_mark():
    several = any_of(of("a") < 8, of("b") < 1)
    marked, _, unmarked = rows_of({"x": of("a") < 8, "y": several})
    assert marked.circle is not None
    assert unmarked.circle is None
    unread = table({"x": of("a") < 8}).assign(estimate=float("nan"))
    assert forest.plot(unread) == ""


def test_every_claim_with_numbers_is_drawn_inside_its_axis(judged):
    drawn = 0
    for study, claim in all_claims():
        rows = parts.frame(study, claim, judged[claim.id])
        for _, reading in rows.groupby("reading"):
            html = forest.plot(reading)
            if not html:
                continue
            drawn += 1
            marks = re.findall(r"(?:circle cx|rect x|rect class=. x)=([-\d.]+)%", html)
            assert all(0 <= float(percent) <= 100 for percent in marks), claim.id
            assert html.count("<svg role=img") == len(reading), claim.id
    assert drawn > 100


def test_a_page_shows_the_plots_of_its_own_runs():
    page = STUDIES["np_workshop"].open("full")
    verdicts = report.claims_table(page)
    html = verdicts._repr_html_()
    assert "<style>" in html
    assert html.count('<div class="claim">') == len(page.study.claims)
    assert 'class="badge-fed is-reproduced">reproduced: ' in html
    assert [*verdicts.columns] == ["the paper says", "verdict", "why"]
