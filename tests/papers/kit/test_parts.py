"""The table of all parts: one row a part, with what a reader needs to check a verdict."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from papers import STUDIES, all_claims
from papers.__main__ import main
from papers.kit import parts
from papers.kit.claims import Claim, PaperValue, Reading
from papers.kit.health import Evidence, Needs
from papers.kit.numbers import Number, exact, mean
from papers.kit.rules import Control, Rule, Size, of
from tests.helpers.unlabelled import quantities

ROOT = Path(__file__).resolve().parents[3]
NUMBERS = quantities(
    {
        "a.f": mean([1.0, 2.0, 3.0], "points"),
        "b.f": mean([2.0, 3.1, 4.0], "points"),
        "bits": exact(8.0),
    }
)
RULE = Rule(
    {
        "a is lower": {"first": of("a.f") < of("b.f"), "second": of("a.f") < 2.5},
        "few bits": of("bits") <= 8,
    },
    control=Control("b instead of a", {"a.f": "b.f"}),
)
STUDY = replace(
    STUDIES["np_workshop"],
    paper_values=(
        PaperValue(
            "a",
            "a.f",
            1.5,
            "1.5 ± 0.1",
            "Table 1",
            spread=0.1,
        ),
        PaperValue("b", "b.f", 4.0, "4.0", "Table 2"),
        PaperValue(
            "bits",
            "bits",
            9.0,
            "at most 9",
            "Table 3",
            at_most=True,
        ),
    ),
)


def table(rule=RULE):
    """The parts of a claim with one rule."""
    claim = Claim(
        "x/C1",
        "W",
        "Figure 1",
        "",
        rule,
        (),
        rule_fixed="0123abcd",
    )
    return parts.frame(STUDY, claim, {claim.reading: rule(NUMBERS)})


def snippets():
    """The programs that the book prints for its own data."""
    page = (ROOT / "book" / "rerun.md").read_text(encoding="utf-8")
    _, _, section = page.partition("Use our data")
    return re.findall(r"```python\n(.*?)```", section, re.S)


def test_each_part_is_a_row():
    rows = table()
    assert [*rows.columns] == [*parts.COLUMNS]
    assert [*rows["part"]] == ["a is lower", "a is lower", "few bits"]
    assert [*rows["case"]] == ["first", "second", ""]
    assert [*rows["state"]] == ["holds", "open", "holds"]
    assert [*rows["control_state"]] == ["fails", "open", ""]  # none of the bits is exchanged
    assert [*rows["unit"]] == ["points", "points", ""]
    assert [*rows["seeds"].fillna(0)] == [3, 3, 0]
    assert [*rows["relation"]] == ["below", "below", "at most"]
    assert [*rows["bound"]] == [0.0, 2.5, 8.0]
    assert rows["estimate"].tolist() == pytest.approx([-1.0333333, 2.0, 8.0])
    assert {*rows["verdict"]} == {"mixed: 2 hold, 1 open"}
    assert {*rows["rule_fixed"]} == {"0123abcd"}


def test_a_printed_value_is_compared_like_ours():
    rows = table()
    assert rows["printed"].tolist()[:2] == [-2.5, 1.5]  # of a difference both are printed
    assert rows["printed_place"].tolist()[:2] == ["Table 1; Table 2", "Table 1"]
    assert rows["printed_spread"].tolist()[:2] == pytest.approx([0.1, 0.1])
    assert pd.isna(rows["printed"][2])  # a printed bound is no value
    with_size = replace(RULE, sizes=(Size("a.f", 7.0, "text", 0.2),))
    assert table(with_size)["printed"].tolist()[:2] == [3.0, 7.0]
    assert table(with_size)["printed_spread"][1] == pytest.approx(0.2)


def test_what_is_not_judged_has_rows_too():
    vacuous = replace(RULE, proviso={"it is vacuous": of("bits") < 1})
    rows = table(vacuous)
    assert {*rows["state"]} == {"not judged"}
    assert rows["estimate"].notna().all()
    claim = Claim(
        "x/C1",
        "W",
        "",
        "",
        RULE,
        ("gone",),
        needs=Needs(),
    )
    rows = parts.frame(STUDY, claim, claim.verdicts(Evidence(NUMBERS, {}, {})))
    assert {*rows["state"]} == {*rows["verdict"]} == {"not judged"}
    assert len(rows) == 3
    assert rows["estimate"].isna().all()


def test_every_reading_has_its_rows():
    printed = Reading("as printed", Rule({"a is high": of("a.f") > 9}), ())
    claim = Claim(
        "x/C1",
        "W",
        "",
        "",
        RULE,
        (),
        reading="as traced",
        readings=(printed,),
    )
    outcomes = {"as traced": RULE(NUMBERS), "as printed": printed.rule(NUMBERS)}
    rows = parts.frame(STUDY, claim, outcomes)
    assert [*rows["reading"]] == ["as traced"] * 3 + ["as printed"]


def test_the_command_lists_claims_and_pandas_alone_says_which_parts_fail(
    tmp_path, capsys, monkeypatch, judged
):
    path = tmp_path / "claims.csv"
    assert main(["claims", "--csv", str(path)]) == 0
    rows = pd.read_csv(path)
    *lines, counts, summary = capsys.readouterr().out.splitlines()
    assert len(lines) == len(all_claims())
    assert re.match(r"fedsgm/C1 +\w+.*np_workshop/hard.*\)$", lines[0])
    assert "not judged" in counts
    assert any(re.search(r" not judged +because a run of ", line) for line in lines)
    assert {*rows.loc[rows["claim"] == "fedsgm/C1", "profile"]} == {"full"}
    assert {*rows.loc[rows["claim"] == "ssca/C6", "profile"]} == {"paper"}
    assert summary == f"{len(rows)} parts in {path}"
    monkeypatch.chdir(tmp_path)
    exec(snippets()[0])
    assert "fedsgm/C3" in capsys.readouterr().out
    assert {*rows["claim"]} == {claim.id for _, claim in all_claims()}
    failing = rows[rows["state"] == "fails"]
    failures = 0
    for readings in judged.values():
        for outcome in readings.values():
            if outcome.verdict != "not judged":
                failures += [*outcome.states.values()].count("fails")
    assert len(failing) == failures
    assert failing["estimate"].between(failing["low"], failing["high"]).all()


def test_numbers_of_the_table_have_six_digits(tmp_path):
    path = tmp_path / "parts.csv"
    parts.write_csv(table(), path)
    assert "-1.03333," in path.read_text(encoding="utf-8")


def test_an_interval_that_is_open_at_a_side_stays_so():
    rule = Rule({"x": of("once") < 2})
    claim = Claim("x/C1", "W", "", "", rule, ())
    numbers = {"once": Number(1.0, float("nan"), float("nan"), (1.0,))}
    row = parts.frame(STUDY, claim, {"": rule(numbers)}).iloc[0]
    assert (row["state"], row["estimate"], row["seeds"]) == ("open", 1.0, 1)
    assert pd.isna(row["low"])


def test_the_snippet_of_the_curves_draws_what_the_study_has(monkeypatch):
    (snippet,) = (code for code in snippets() if "parquet" in code)
    monkeypatch.chdir(ROOT / "results")
    names = {}
    exec(snippet, names)
    drawn = names["means"].unstack("switch")
    traces = STUDIES["np_unified"].load()
    for mode in ("hard", "soft"):
        expected = traces[mode].metrics["g"].mean(0)
        np.testing.assert_allclose(drawn[mode], expected, rtol=1e-6)


def test_the_snippet_of_a_quantity_computes_the_stored_one(monkeypatch, capsys):
    curves, quantity = (code for code in snippets() if "np_unified" in code)
    monkeypatch.chdir(ROOT / "results")
    exec(curves + quantity, {})
    computed, stored = map(float, capsys.readouterr().out.split())
    assert computed == pytest.approx(stored, rel=1e-5)
