"""The arena's page: sentences and tables follow the numbers, the figure draws."""

import pytest
from arena_runs import LEVEL, OPTIMUM, P, ending, trace_of

from papers import arena
from papers.arena import report
from papers.arena.problems import LEVELS, NAMES
from papers.kit import plot
from papers.kit.numbers import Number


def runs_of(soft=0.6, penalty=0.7):
    """Three methods on np, one of which violates."""
    return {
        "np_soft_1": ending(soft, LEVEL),
        "np_soft_2": ending(0.9, 2 * LEVEL),
        "np_penalty_1": ending(penalty, LEVEL),
        "np_fedavg_1": ending(0.3, 3 * LEVEL),
        "np_reference": OPTIMUM,
    }


def everywhere():
    """Two methods on every problem."""
    found = {}
    for name in NAMES:
        level = LEVELS[name]
        extra = {"residual": [[0.0] * 2] * 3}
        found[f"{name}_reference"] = trace_of([[0.5] * 2] * 3, [[level] * 2] * 3, metrics=extra)
        for method, f in (("soft", 0.6), ("fedavg", 0.7)):
            found[f"{name}_{method}_1"] = trace_of([[1.0, f]] * 3, [[2 * level, level]] * 3)
    return found


def test_the_text_follows_the_numbers():
    text = report.in_short(arena.derive(runs_of(), P))
    assert text == "- **Neyman-Pearson**: FedSGM soft wins, 20 % above the optimum."
    other = report.in_short(arena.derive(runs_of(soft=0.8), P))
    assert "Penalty-FedAvg wins" in other
    near = report.in_short(arena.derive(runs_of(penalty=0.601), P))
    assert near.endswith("FedSGM soft is first, 20 % above the optimum. "
                         "Not shown to be behind: Penalty-FedAvg.")  # fmt: skip


def test_nobody_is_first_where_nobody_is_shown_to_keep():
    runs = {
        "np_soft_1": ending(0.6, LEVEL, spread=LEVEL),
        "np_fedavg_1": ending(0.3, 3 * LEVEL),
        "np_reference": OPTIMUM,
    }
    numbers = arena.derive(runs, P)
    assert report.standing(numbers, "np", "soft") == "unclear"
    assert "no method is shown to keep the constraint" in report.in_short(numbers)
    assert {*report.standings(numbers, "np")["behind, %"]} == {""}


def test_the_tables_hold_every_method_that_takes_part():
    numbers = arena.derive(runs_of(), P)
    table = report.standings(numbers, "np")
    assert [*table.index] == ["FedSGM soft", "Penalty-FedAvg", "FedAvg"]
    assert [*table["equal gradients"]] == ["winner", "behind", "violates"]
    assert [*table["equal bits"]] == ["winner", "behind", "violates"]
    assert (
        "FedFW on Neyman-Pearson: needs a set with a projection or a linear oracle"
        in report.absent()
    )
    assert report.optima(arena.derive({"np_reference": OPTIMUM}, P)).empty


def test_numbers_are_short():
    told = report.brief(Number(-0.01234, -0.5, 12.3, ()))
    assert told == "\N{MINUS SIGN}0.012\N{NO-BREAK SPACE}[\N{MINUS SIGN}0.5,\N{NO-BREAK SPACE}12]"
    assert report.brief(Number(2.0, 2.0, 2.0, ())) == "2"


@pytest.mark.parametrize("runs", [runs_of, everywhere])
def test_the_figure_draws(runs):
    assert len(plot.render(arena.STUDY.figures["tradeoff"](runs()), (6, 6))) > 3000
