"""The arena's page: sentences and tables follow the numbers, figures draw."""

import numpy as np
import pytest
from arena_runs import LEVEL, OPTIMUM, P, ending, trace_of

from papers import arena
from papers.arena import figures, report, sentences
from papers.arena.methods import METHODS
from papers.arena.problems import LEVELS, NAMES
from papers.arena.report import Place
from papers.kit import plot
from papers.kit.numbers import Number


def runs_of(soft=0.6, penalty=0.7):
    """Three methods on np, one of which violates."""
    return {
        "np_soft_1": ending(soft, LEVEL, own=True),
        "np_soft_2": ending(0.9, 2 * LEVEL, own=True),
        "np_penalty_1": ending(penalty, LEVEL),
        "np_fedavg_1": ending(0.3, 3 * LEVEL),
        "np_reference": OPTIMUM,
    }


def everywhere():
    """Two methods on every problem of the first group, and two with sets."""
    found = {}
    for name in NAMES:
        level = LEVELS[name]
        extra = {"residual": [[0.0] * 2] * 3, "multiplier": [[1.0] * 2] * 3}
        found[f"{name}_reference"] = trace_of([[0.5] * 2] * 3, [[level] * 2] * 3, metrics=extra)
        methods = ("dr", "fedavg") if name == "rank" else ("soft", "fedavg", "dr")
        for method in methods[: 3 if name == "sparse" else 2]:
            f = {"soft": 0.6, "fedavg": 0.7, "dr": 0.55}[method]
            found[f"{name}_{method}_1"] = trace_of([[1.0, f]] * 3, [[2 * level, level]] * 3)
    return found


def test_the_text_follows_the_numbers():
    first = arena.derive(runs_of(), P)
    assert "FedSGM soft on Neyman-Pearson (wins)." in sentences.in_short(first)
    text = sentences.verdicts(first, "np")
    assert "FedSGM soft wins: its test objective is above the optimum's by 20 %" in text
    assert "Shown to be behind, by 20 to 20 %: Penalty-FedAvg." in text
    assert "Shown to violate: FedAvg." in text
    other = arena.derive(runs_of(soft=0.8), P)
    assert "Penalty-FedAvg on Neyman-Pearson (wins)." in sentences.in_short(other)
    assert "behind, by 20 to 20 %: FedSGM soft." in sentences.verdicts(other, "np")
    assert "Shown to keep it wherever they take part: FedSGM soft and Penalty-FedAvg." in (
        sentences.in_short(first)
    )


def test_an_equivalent_is_no_loser_and_no_proof_is_no_equivalence():
    near = arena.derive(runs_of(penalty=0.601), P)
    text = sentences.verdicts(near, "np")
    assert "FedSGM soft is first" in text
    assert "Equivalent to it, within 1 %: Penalty-FedAvg." in text
    noisy = runs_of(penalty=0.601)
    f = noisy["np_penalty_1"].metrics
    f["test_f"] = f["test_f"] + np.array([[-0.09], [0.0], [0.09]])
    text = sentences.verdicts(arena.derive(noisy, P), "np")
    assert "No clear difference from it: Penalty-FedAvg." in text


def test_nobody_is_first_where_nobody_is_shown_to_keep():
    runs = {
        "np_soft_1": ending(0.6, LEVEL, spread=LEVEL),
        "np_fedavg_1": ending(0.3, 3 * LEVEL),
        "np_reference": OPTIMUM,
    }
    numbers = arena.derive(runs, P)
    assert Place(numbers, "np").first() is None
    assert "no method is shown to keep the constraint" in sentences.verdicts(numbers, "np")
    assert "nobody on Neyman-Pearson" in sentences.in_short(numbers)
    assert "behind" not in report.standings(numbers, "np").columns


def test_a_problem_without_methods_is_left_out():
    alone = arena.derive({"np_reference": OPTIMUM}, P)
    assert sentences.in_short(alone) == "In short: nothing was run."
    assert report.optima(alone).empty
    assert sentences.easiest(alone) == ""


def test_the_tables_hold_every_method_that_takes_part():
    numbers = arena.derive(runs_of(), P)
    table = report.standings(numbers, "np")
    assert [*table.index] == ["FedSGM soft", "Penalty-FedAvg", "FedAvg"]
    assert [*table[""]] == [*table["average"]] == ["winner", "behind", "violates"]
    assert [*report.outputs(numbers).index] == ["Neyman-Pearson: FedSGM soft"]
    rows = report.entries()
    assert [*rows.index] == [entry.label for entry in METHODS.values()]
    assert "linear oracle" in rows.loc["FedFW", "not on"]


def test_groups_are_complete_or_left_out():
    numbers = arena.derive(everywhere(), P)
    table = report.together(numbers, "functions")
    assert [*table.index] == ["FedSGM soft", "FedAvg"]
    assert table.iloc[0, 1] == "itself"
    assert table.iloc[1, 1].startswith("0.000")
    assert [*report.together(numbers, "sets").index] == ["FedDR", "projected FedAvg"]
    assert report.together(arena.derive(runs_of(), P), "functions").empty


def test_oracles_are_counted_for_clients_and_server():
    numbers = arena.derive(everywhere(), P)
    numbers |= {
        f"rank_oracle.{k}": Number(x, x, x, ()) for k, x in (("lmo", 2.0), ("project", 5.0))
    }
    table = report.oracles(numbers)
    assert table.loc["FedDR", "s, one after another"] == "0.05"  # 10 rounds of 5 ms


def test_numbers_are_short():
    told = report.brief(Number(-0.01234, -0.5, 12.3, ()))
    assert told == "\N{MINUS SIGN}0.012\N{NO-BREAK SPACE}[\N{MINUS SIGN}0.5,\N{NO-BREAK SPACE}12]"
    assert report.brief(Number(2.0, 2.0, 2.0, ())) == "2"


CASES = [(name, runs) for name in arena.STUDY.figures for runs in (runs_of, everywhere)]


@pytest.mark.parametrize(("name", "runs"), CASES)
def test_figures_draw(name, runs):
    picture = plot.render(arena.STUDY.figures[name](runs()), (6, 6))
    empty = (name, runs) == ("together", runs_of)  # one problem makes no group
    assert (len(picture) > 3000) is not empty


def test_labels_keep_their_distance():
    placed = figures.spread([0.1, 0.1, 0.11, 0.9, 1.0])
    assert min(np.diff(placed)) >= figures.ROOM - 1e-9
    assert max(placed) <= 1


def test_health_stands_beside_the_tuned_runs():
    runs = runs_of()
    numbers, health = arena.derive(runs, P), arena.STUDY.health(runs)
    table = report.standings(numbers, "np", health)
    assert "not healthy" not in table
    assert "all are healthy" in sentences.healthy(numbers, health)
    flat = runs | {"np_soft_1": trace_of([[0.55] * 9] * 3, [[LEVEL] * 9] * 3, own=True)}
    numbers, health = arena.derive(flat, P), arena.STUDY.health(flat)
    assert "1 are not: np_soft_1 (never moved" in sentences.healthy(numbers, health)
    table = report.standings(numbers, "np", health)
    assert table.loc["FedSGM soft", "not healthy"].startswith("never moved")
