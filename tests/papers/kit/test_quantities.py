"""Tables of quantities: rows by name and by labels, intervals of a whole frame, their text."""

import numpy as np
import pandas as pd
import pytest

import fedlib as fl
from papers.kit import quantities as kit
from papers.kit import spreadsheet
from papers.kit.numbers import Number, exact, mean, share
from papers.kit.quantities import Quantities, Query
from papers.kit.rules import Control, Rule, of, rises
from tests.helpers.unlabelled import quantities

DEFAULTS = {"method": "SGM", "switch": None, "lr": 0.1, "steps": 1.0}
SWITCHES = ("hard", "soft")


def trace(labels, seeds=3, interval=1, rounds=20, start=0):
    rng = np.random.default_rng(start)
    evaluated = np.array([*range(0, rounds, interval), rounds])
    metrics = {"f": rng.normal(size=(seeds, len(evaluated)))}
    info = {"sigma": rng.normal(size=(seeds, rounds))}
    return fl.Trace(
        metrics,
        info,
        evaluated,
        tuple(range(seeds)),
        {"labels": labels},
    )


TRACES = {
    "hard": trace({"method": "SGM", "switch": "hard", "lr": 0.1}),
    "soft": trace({"method": "SGM", "switch": "soft", "lr": 0.1}, interval=3, start=1),
    "soft_lr1": trace({"method": "SGM", "switch": "soft", "lr": 1.0}, seeds=5, start=2),
}


def table(**values):
    """Quantities of two switches at three numbers of steps: the value is 10 steps + switch."""
    rows = [
        kit.row(
            "f",
            mean(10 * steps + number + np.arange(3.0)),
            switch=switch,
            steps=steps,
        )
        for number, switch in enumerate(SWITCHES)
        for steps in (1.0, 2.0, 4.0)
    ]
    return Quantities.of([rows], {**DEFAULTS, **values})


def test_late_values_of_the_frame_are_those_of_the_traces():
    frame = kit.curves(TRACES)
    late = kit.per_seed(kit.late(frame, "f"), "f", ["run"])
    for name, run in TRACES.items():
        np.testing.assert_allclose(late[name], run.late("f"), rtol=1e-12)
    assert frame.loc[frame["run"] == "soft_lr1", "lr"].eq(1.0).all()


def test_a_seed_without_a_number_in_a_late_round_has_no_late_value():
    broken = trace({"switch": "hard"})
    broken.metrics["f"][1, -2] = np.nan
    frame = kit.curves({"hard": broken})
    late = kit.per_seed(kit.late(frame, "f"), "f", ["run"])
    assert late.isna().tolist() == [False, True, False]


def test_a_sweep_has_the_runs_that_differ_in_one_label():
    assert [*kit.sweep(TRACES, DEFAULTS, "lr", switch="soft")] == [0.1, 1.0]
    assert [*kit.sweep(TRACES, DEFAULTS, "switch")] == ["hard", "soft"]
    rows = kit.late(kit.curves(TRACES), "f")
    swept = kit.along(rows, ["lr"], DEFAULTS, switch="soft")
    assert {*swept.index.get_level_values("lr")} == {0.1, 1.0}
    assert {*swept["run"]} == {"soft", "soft_lr1"}
    assert kit.along(rows, ["lr"], DEFAULTS).empty  # every run has a switch, which has no default
    assert kit.along(
        rows,
        ["lr"],
        DEFAULTS,
        switch="soft",
        rho=1.0,
    ).empty  # none has that label


def test_a_label_with_a_value_does_not_vary():
    assert [*kit.chosen(TRACES, ["switch", "lr"], DEFAULTS, switch="hard")] == ["hard"]
    rows = table().rows("f", ["switch", "steps"], switch="soft")
    assert {*rows["switch"]} == {"soft"}
    assert len(rows) == 3


def test_differences_are_of_the_seeds_that_both_have():
    rows = kit.late(kit.curves(TRACES), "f")
    values = rows.groupby(["switch", "lr", "method", "seed"], as_index=False)["f"].mean()
    apart = kit.minus(
        values,
        DEFAULTS,
        {"switch": "soft", "lr": 1.0},
        {"switch": "hard"},
    )
    expected = TRACES["soft_lr1"].late("f")[:3] - TRACES["hard"].late("f")
    np.testing.assert_allclose(apart["f"], expected, rtol=1e-12)
    assert kit.minus(values, DEFAULTS, {"switch": "soft"}, {"switch": "none"}).empty


def test_halves_are_the_first_seeds_minus_the_last():
    values = pd.DataFrame({"switch": "soft", "seed": range(5), "f": [1.0, 2.0, 4.0, 8.0, 16.0]})
    apart = kit.halves_apart(values, DEFAULTS, {"switch": "soft"})
    assert [*apart["f"]] == [1.0 - 8.0, 2.0 - 16.0]
    assert [*apart.index] == [0, 1]
    assert kit.halves_apart(values[:2], DEFAULTS, {"switch": "soft"}).empty


def test_estimates_are_those_of_single_numbers():
    values = pd.DataFrame(
        {"f": [1.0, 2.0, 4.0, 7.0], "kept": [True, False, True, True]},
        index=pd.MultiIndex.from_tuples(
            [("a", 0), ("a", 1), ("b", 0), ("b", 1)], names=["run", "seed"]
        ),
    )
    rows = kit.estimates(values, {"kept": "of seeds"}, setting="x")
    expected = {
        ("a", "f"): mean([1, 2]),
        ("b", "f"): mean([4, 7]),
        ("a", "kept"): share(np.array([True, False]), "of seeds"),
        ("b", "kept"): share(np.array([True, True]), "of seeds"),
    }
    assert {row.labels["setting"] for row in rows} == {"x"}
    assert {(row.labels["run"], row.measure): row.number for row in rows} == expected


def test_a_query_finds_one_row_by_the_labels_it_names_and_the_defaults():
    known = table()
    assert known.name(Query.of("f", switch="soft")) == "soft.f"
    assert known[Query.of("f", switch="soft", steps=4.0)] == known["soft_steps4.f"]
    assert known["soft_steps4.f"].value == pytest.approx(42)
    assert Query.of("f", switch="none") not in known
    assert Query.of("f") not in known  # two rows fit
    assert Query.of("g", switch="soft") not in known
    assert Query.of("f", switch="soft", lr=0.1) not in known  # no row says its lr
    assert [*known] == [f"{s}{n}.f" for s in SWITCHES for n in ("", "_steps2", "_steps4")]


def test_rows_with_the_same_labels_are_refused():
    row = kit.row("f", exact(1.0), switch="hard")
    with pytest.raises(ValueError, match=r"rows must differ, got hard\.f twice"):
        Quantities.of([[row, row]], DEFAULTS)


def test_a_control_reads_other_labels_or_other_keys():
    known = table()
    cases = {}
    for switch in SWITCHES:
        cases[switch] = rises(*(Query.of("f", switch=switch, steps=x) for x in (1.0, 2.0, 4.0)))
    control = Control("one step in every run", labels={"steps": 1.0})
    rising = Rule({"f rises with the steps": cases}, control=control)
    outcome = rising(known)
    assert outcome.verdict == "reproduced"
    assert [part.control for part in outcome.parts] == ["fails", "fails"]
    assert outcome.measured.startswith("f rises with the steps, hard: 11, 21, 41")
    exchanged = Rule(
        {"soft is larger": of("f", switch="soft") > of("f", switch="hard")},
        control=Control("exchanged", labels={"switch": {"hard": "soft", "soft": "hard"}}),
    )
    assert exchanged(known).parts[0].state == "holds"
    assert exchanged(known).parts[0].control == "fails"
    single = Rule(
        {"large": of("f", switch="soft") > 5},
        control=Control("a constant", {Query.of("f", switch="soft"): 1.0}),
    )
    assert single(known).parts[0].control == "fails"


def test_what_is_stored_is_read_back_with_labels_and_defaults():
    known = table()
    back = Quantities.from_json(known.to_json(), known.defaults)
    query = Query.of("f", switch="soft", steps=2.0)
    assert back[query].text(".5g") == known[query].text(".5g")
    assert [*back] == [*known]


def test_a_text_table_gives_the_numbers_back():
    odd = Number(
        float("nan"),
        0.5,
        1e-20,
        (1.0, float("nan")),
        "%",
    )
    profiles = {"full": table().to_json(), "paper": quantities({"f": odd}).to_json()}
    text = spreadsheet.to_csv(profiles)
    assert text.splitlines()[0] == (
        "profile,name,measure,switch,steps,value,low,high,unit,seeds,per_seed"
    )
    assert spreadsheet.from_csv(text) == profiles


@pytest.mark.parametrize("label", ["1.5", "True", "nan", ""])
def test_a_label_that_would_be_read_as_another_thing_is_refused(label):
    number = {**exact(1.0).to_json(), "measure": "f", "labels": {"x": label}}
    with pytest.raises(ValueError, match="a label must"):
        spreadsheet.to_csv({"full": {"a": number}})


def test_names_follow_the_order_of_the_defaults():
    labels = {"steps": 2.0, "switch": "hard", "feedback": False, "lr": 0.1}
    assert kit.name_of(labels, DEFAULTS) == "hard_steps2_no_feedback"
    assert kit.names_of(DEFAULTS, switch=SWITCHES, steps=(1.0, 2.0)) == (
        "hard",
        "hard_steps2",
        "soft",
        "soft_steps2",
    )
