"""The arena: one problem in many forms, what a round costs, the rules by hand, generated text."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib import data
from fedlib.core import Trace
from fedlib.problems.fairness import combine_gaps
from papers import arena
from papers.arena import multiples as arena_units
from papers.arena import report as arena_report
from papers.arena.methods import METHODS, applies, form_of, grid
from papers.arena.multiples import units
from papers.arena.numbers import contest, tuning
from papers.arena.problems import BATCHES, LEVELS, NAMES, arena_problem, shaped, shortest
from papers.arena.reference import doubled, residual, slope, solved
from papers.arena.rules import best_of, column, fields, off, setting, shown, taken, uploads
from papers.kit import plot
from papers.kit.numbers import mean

STAND_IN = 2000
STEPS = 3  # local steps of the small runs
SEEDS = (0, 1, 2)


def problem_of(name, form="constraint", seed=0):
    return arena_problem(seed, name=name, form=form, stand_in=STAND_IN)


def some_point(problem, seed=3):
    rng = torch.Generator().manual_seed(seed)
    return 0.3 * torch.randn(problem.dim, generator=rng, dtype=torch.float64)


CELLS = [(m, p) for p in NAMES for m in METHODS if not applies(m, p)]


# The problems


@pytest.mark.parametrize("name", NAMES)
def test_closed_gradients_are_those_of_the_losses(name):
    problem = doubled(problem_of(name))
    batch = fl.core.types.Batch(
        tuple(x[problem.rows[1]] for x in problem.data),
        torch.full((problem.rows.shape[1],), 1 / problem.rows.shape[1], dtype=torch.float64),
    )
    w, weights = some_point(problem), torch.tensor([0.7, -1.3], dtype=torch.float64)
    found = problem.gradient(w, batch, weights)
    by_hand = torch.func.grad(lambda u: weights @ problem.losses(u, batch))(w)
    torch.testing.assert_close(found, by_hand)


@pytest.mark.parametrize("name", NAMES)
def test_all_forms_have_the_same_losses(name):
    problem = problem_of(name)
    w = some_point(problem).float()
    exact = problem.metrics(w, problem)
    for form in ("objectives", "pooled"):
        other = problem_of(name, form)
        f, g = other.mean_losses(w)
        torch.testing.assert_close(torch.stack([exact["f"], exact["g"]]), torch.stack([f, g]))
    assert problem_of(name, "pooled").num_clients == 1
    assert problem_of(name, "objectives").num_objectives == 2


def test_the_set_of_the_sparse_problem_is_its_constraint():
    problem, inside = problem_of("sparse"), problem_of("sparse", "set")
    for seed in range(4):
        w = 0.6 * some_point(problem, seed).float()
        assert bool(inside.set.contains(w)) == bool(problem.mean_losses(w)[1] <= LEVELS["sparse"])
        torch.testing.assert_close(inside.mean_losses(w)[0], problem.mean_losses(w)[0])
    with pytest.raises(ValueError, match="shaped: form must be another"):
        shaped(problem_of("np"), "set")


def test_the_gap_is_that_of_all_rows_together():
    problem = problem_of("fair")
    w = some_point(problem).float()
    X, _, share = problem.data
    p, men = torch.sigmoid(X @ w), (share > 0).float()
    four = torch.stack([men @ p, men.sum(), (1 - men) @ p, (1 - men).sum()])
    size, sign = combine_gaps(four.unsqueeze(0))
    torch.testing.assert_close(problem.mean_losses(w)[1], size * sign)


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_training_validation_and_test_are_apart(name):
    problem = problem_of(name)
    count = len(problem.data)
    parts = [problem.data[0], problem.heldout[0], problem.heldout[count]]
    rows = [{tuple(x) for x in part.tolist()} for part in parts]
    if name in ("np", "sparse"):  # the others have people, or pictures, that are alike
        assert len(set.union(*rows)) == sum(map(len, rows)) == sum(map(len, parts))
    assert len(parts[1]) / (len(parts[0]) + len(parts[1])) == pytest.approx(0.2, abs=0.02)
    assert problem.rows.flatten().tolist() == [*range(len(parts[0]))]


def test_the_shortest_combination_is_that_of_a_fine_search():
    one, two = torch.tensor([1.0, 2.0]), torch.tensor([-2.0, 0.5])
    share = torch.linspace(0, 1, 10001).unsqueeze(1)
    search = ((1 - share) * one + share * two).norm(dim=1).min()
    assert shortest(one, two) == pytest.approx(float(search), abs=1e-4)
    assert shortest(one, 3 * one) == pytest.approx(float(one.norm()))


# The optimum


@pytest.mark.parametrize("name", NAMES)
def test_the_solver_ends_where_nothing_feasible_is_better(name):
    problem = solved(0, name=name, stand_in=STAND_IN)
    w = problem.w0
    found = problem.metrics(w, problem)
    assert found["residual"] < 1e-5
    assert found["g"] <= LEVELS[name] + 1e-7
    rng = torch.Generator().manual_seed(0)
    for size in (1e-3, 1e-2):
        for _ in range(20):
            step = torch.randn(problem.dim, generator=rng, dtype=torch.float64)
            f, g = problem.mean_losses(w + size * step / step.norm())
            assert f > found["f"] or g > LEVELS[name]


def test_the_residual_tells_another_point():
    problem = solved(0, name="pair")
    far, multiplier = residual(problem, problem.w0 + 0.01)
    assert far > 1e-3
    assert multiplier > 0
    free = torch.zeros_like(problem.w0)
    for _ in range(3000):
        free = free - 0.5 * slope(problem, free, [1.0, 0.0])
    assert residual(problem, free)[0] < 1e-4  # of f alone: no multiplier is needed


# The methods


@pytest.mark.parametrize(("method", "name"), CELLS)
def test_a_round_costs_the_gradients_and_bits_that_are_charged(method, name):
    entry = METHODS[method]
    problem = problem_of(name, form_of(method, name))
    rows = []

    def counted(w, batch, weights, gradient=problem.gradient):
        rows.append(batch.weight.numel())
        return gradient(w, batch, weights)

    of = units(name, 0, STEPS, 64, STAND_IN)
    algorithm = entry.make(of, *grid(entry, 1)[0])
    watched = replace(problem, gradient=counted)
    trace = fl.run(algorithm, watched, rounds=2, progress=False, engine=fl.Loop)
    base = problem_of(name)
    own = BATCHES[name] or base.rows.shape[1]
    assert sum(rows) == 2 * entry.passes(STEPS) * own * base.num_clients
    sent = 32 * base.num_clients * entry.sent(STEPS, problem.dim)
    if method != "conex":
        assert float(trace.info["bits_up"].mean()) == pytest.approx(sent, rel=0.45)
    assert np.isfinite(trace.metrics["f"]).all()


@pytest.mark.parametrize("method", ["fedfw", "plus"])
def test_who_needs_a_set_is_refused_without_one(method):
    of = units("np", 0, STEPS, 64, 0)
    free = replace(problem_of("np"), num_constraints=0)
    with pytest.raises(ValueError, match="must have a feasible set"):
        METHODS[method].make(of, 1.0, 0.0).init(free)
    assert "set" in applies(method, "np")
    assert applies(method, "sparse") == ""


def test_the_gap_may_be_negative_which_a_preference_does_not_take():
    problem = problem_of("fair")
    X, _, share = problem.data
    w = -X.T @ share / len(X)
    assert problem.mean_losses(w)[1] < 0
    assert "negative" in applies("pref", "fair")


@pytest.mark.parametrize("side", [1, 2, 3])
def test_all_grids_are_equally_large_and_without_repetition(side):
    for entry in METHODS.values():
        found = grid(entry, side)
        assert len(found) == len(set(found)) == side * side


def test_every_method_gets_the_passes_of_all_others():
    p = arena.STUDY.resolve("quick", passes=60, seeds=[0])
    specs = arena.specs({**p, "methods": tuple(METHODS)})
    for name, spec in specs.items():
        if not name.endswith("reference"):
            one = METHODS[name.split("_")[1]].passes(p["local_steps"])
            assert 60 - one < spec.rounds * one <= 60


def test_an_evaluation_lies_near_the_end_of_the_bits():
    for rounds, paid in ((120, 9), (200, 41), (240, 93), (600, 47), (240, 2000), (1200, 2000)):
        every = arena.evaluations(rounds, paid)
        last = min(rounds, paid) // every * every
        assert last > 0.8 * min(rounds, paid)
        assert arena.COARSE <= rounds // every <= 2 * arena.FINE
    assert arena.evaluations(600, 9) == 9
    assert arena.evaluations(10, 0) == 1


# The rules


def trace_of(f, g, *, sent=32.0, d=4, steps=STEPS, **more):
    """A run on np with `[S][T]` curves on all three kinds of rows."""
    f, g = np.asarray(f, float), np.asarray(g, float)
    metrics = {f"{side}{k}": v for side in ("", "val_", "test_") for k, v in (("f", f), ("g", g))}
    config = {
        "algorithm": {"local_steps": steps},
        "problem": {"clients": 2},
        "bits": {"bits_up": sent, "bits_down": 0.0},
    }
    extra = {k: np.asarray(v, float) for k, v in more.items()}
    rounds = 10 * np.arange(f.shape[1])
    return Trace(
        metrics | extra, {}, rounds, SEEDS[: len(f)], config, {"wall_s": 1.0}, np.zeros((len(f), d))
    )


LEVEL = LEVELS["np"]
OPTIMUM = trace_of([[0.5, 0.5]] * 3, [[LEVEL, LEVEL]] * 3, residual=[[0.0] * 2] * 3,
                   multiplier=[[1.0] * 2] * 3)  # fmt: skip
P = {"local_steps": STEPS, "passes": 6 * STEPS * 10}


def ending(f, g, spread=0.0, **more):
    """Three seeds that start at (1, 2 level) and end around (f, g)."""
    around = spread * np.array([-1.0, 0.0, 1.0])
    return trace_of([[1.0, f]] * 3, [[2 * LEVEL, g + x] for x in around], **more)


def test_a_violation_is_shown_only_by_a_whole_interval():
    assert shown(mean([5.2, 5.4, 5.3]))
    assert not shown(mean([-40.0, 5.3, 80.0]))
    assert not shown(mean([4.9, 4.9, 4.9]))


def test_the_smallest_loss_without_a_shown_violation_is_taken():
    runs = {
        "np_soft_1": ending(0.4, 1.2 * LEVEL),  # best, but violates
        "np_soft_2": ending(0.6, 1.03 * LEVEL),
        "np_soft_3": ending(0.7, 0.5 * LEVEL),
    }
    assert taken(runs, "np", "soft", "grads", P) == "np_soft_2"
    noisy = runs | {"np_soft_1": ending(0.4, 1.2 * LEVEL, spread=LEVEL)}
    assert taken(noisy, "np", "soft", "grads", P) == "np_soft_1"
    bad = {"np_soft_1": ending(0.4, 3 * LEVEL), "np_soft_2": ending(0.9, 2 * LEVEL)}
    assert taken(bad, "np", "soft", "grads", P) == "np_soft_2"


def test_only_validation_rows_decide_on_a_configuration():
    one, two = ending(0.6, LEVEL), ending(0.7, LEVEL)
    worse = {**one.metrics, "test_f": 9 + one.metrics["test_f"], "f": 9 + one.metrics["f"]}
    runs = {"np_soft_1": replace(one, metrics=worse), "np_soft_2": two}
    assert taken(runs, "np", "soft", "grads", P) == "np_soft_1"


def test_a_budget_of_bits_ends_a_run_at_the_last_evaluation_it_pays_for():
    d, clients, rounds = 4, 2, 60
    limit = 0.4 * rounds * 32 * d * clients
    curve = [[1.0] * 7] * 3
    for sent, last in ((limit / 60, 6), (limit / 30, 3), (limit / 29.9, 2), (10 * limit, 0)):
        run = trace_of(curve, curve, sent=sent, d=d)
        assert column("soft", run, "bits", P) == last
        assert column("soft", run, "grads", P) == 6


def test_the_centralized_method_is_charged_its_gradients():
    run = trace_of([[1.0]], [[1.0]], sent=0.0, d=7)
    assert uploads("conex", run, P) == 32 * 2 * STEPS * (2 * 7 + 1)
    assert uploads("soft", run, P) == 0


def test_off_is_the_larger_of_both_percentages():
    run = trace_of([[0.5, 0.6, 0.4, 0.51]] * 3, [[LEVEL, LEVEL, 1.5 * LEVEL, 1.1 * LEVEL]] * 3)
    np.testing.assert_allclose(off(run, OPTIMUM, "np")[0], [0, 20, 50, 10], atol=1e-9)


def test_the_winner_is_the_smallest_loss_of_those_that_are_not_shown_to_violate():
    gaps = {"soft": 0.1, "hard": 0.2, "fedavg": -0.5}
    fine = {"soft": mean([1.0] * 3), "hard": mean([-9.0] * 3), "fedavg": mean([40.0] * 3)}
    assert best_of(gaps, fine) == "soft"
    assert best_of(gaps, fine | {"fedavg": mean([-4.0, 40.0, 10.0])}) == "fedavg"
    bad = {"soft": mean([9.0] * 3), "hard": mean([8.0] * 3), "fedavg": mean([70.0] * 3)}
    assert best_of(gaps, bad) == "hard"


def field(soft=0.6):
    """A contest of three methods on np."""
    runs = {
        "np_soft_1": ending(soft, LEVEL),
        "np_soft_2": ending(0.9, 2 * LEVEL),
        "np_penalty_1": ending(0.7, LEVEL),
        "np_fedavg_1": ending(0.3, 3 * LEVEL),
    }
    return runs | {"np_reference": OPTIMUM}


def test_the_setting_is_read_off_the_runs():
    assert setting(field()) == {"local_steps": STEPS, "passes": 10 * STEPS}
    (one,) = fields(field(), P)
    assert {m: [*runs] for m, runs in one.runs.items()} == {
        "soft": ["np_soft_1", "np_soft_2"],
        "penalty": ["np_penalty_1"],
        "fedavg": ["np_fedavg_1"],
    }


def test_a_contest_pairs_seeds_and_names_one_winner():
    found = contest(*fields(field(), P), "grads")
    assert [found[f"np_{m}_grads.wins"].value for m in ("soft", "penalty", "fedavg")] == [1, 0, 0]
    assert [found[f"np_{m}_grads.out"].value for m in ("soft", "penalty", "fedavg")] == [0, 0, 1]
    assert found["np_penalty_grads.behind"].value == pytest.approx(0.1)
    assert found["np_soft_grads.test_gap"].value == pytest.approx(0.1)
    assert found["np_fedavg_grads.test_excess"].value == pytest.approx(200)
    after = contest(*fields(field(soft=0.8), P), "grads")
    assert after["np_penalty_grads.wins"].value == 1


def test_tuning_counts_usable_and_nearly_best_configurations():
    runs = {
        "np_soft_1": ending(0.6, LEVEL),
        "np_soft_2": ending(0.65, LEVEL),
        "np_soft_3": ending(0.7, LEVEL),
        "np_soft_4": ending(0.6, 2 * LEVEL),
    }
    found = tuning(*fields(runs | {"np_reference": OPTIMUM}, P), "soft")
    assert found["np_soft_tuning.feasible"].value == 75
    assert found["np_soft_tuning.near"].value == 50
    assert found["np_soft_tuning.best"].value == pytest.approx(20)
    assert found["np_soft_tuning.worst"].value == pytest.approx(100)
    assert found["np_soft_tuning.passes"].value == 4 * 10 * STEPS


# The page


def test_the_text_follows_the_numbers():
    first = arena.derive(field(), P)
    assert "the first place goes to FedSGM soft on Neyman-Pearson." in arena_report.in_short(first)
    text = arena_report.verdicts(first, "np")
    assert "FedSGM soft is first" in text
    assert "Behind it, by 0.1 to 0.1: Penalty-FedAvg." in text
    assert "Shown to violate: FedAvg." in text
    other = arena.derive(field(soft=0.8), P)
    assert "goes to Penalty-FedAvg on Neyman-Pearson." in arena_report.in_short(other)
    assert "by 0.1 to 0.1: FedSGM soft." in arena_report.verdicts(other, "np")


def test_a_problem_without_methods_is_left_out():
    alone = arena.derive({"np_reference": OPTIMUM}, P)
    assert "np_reference.f" in alone
    assert arena_report.in_short(alone) == "In short: nothing was run."
    assert arena_report.optima(alone).empty


def test_the_tables_hold_every_method_that_takes_part():
    numbers = arena.derive(field(), P)
    table = arena_report.standings(numbers, "np", "grads")
    assert [*table.index] == ["FedSGM soft", "Penalty-FedAvg", "FedAvg"]
    assert [*table[""]] == ["first", "behind", "violates"]
    rows = arena_report.entries()
    assert [*rows.index] == [entry.label for entry in METHODS.values()]
    assert "linear oracle" in rows.loc["FedFW", "not on"]
    assert arena_report.tuning(numbers, 3).loc["FedSGM soft", NAMES["np"]] == "50, 50; 20 to 100"


@pytest.mark.parametrize("name", arena.STUDY.figures)
def test_figures_of_one_problem_draw(name):
    assert len(plot.render(arena.STUDY.figures[name](field()), "dark")) > 5000


@pytest.mark.skipif(not data.available("adult"), reason="needs the files of Adult")
def test_recorded_units_are_those_of_the_files():
    assert arena_units.of_data("fair", 0, 0) == arena_units.ADULT


def test_the_full_profile_is_known_without_data(monkeypatch):
    monkeypatch.setenv("FEDLIB_DATA", "nowhere")
    names = arena.STUDY.specs(arena.STUDY.resolve("full"))
    assert sum(name.startswith("fair_") for name in names) > 80
