"""What every algorithm must satisfy; a newcomer to ALGORITHMS is tested by one line here."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.algorithms import ALGORITHMS
from fedlib.compress import Identity
from fedlib.core.floats import fill, floats
from fedlib.core.problem import Draw
from fedlib.problems import quadratics
from fedlib.testing.contract import CHECKS
from fedlib.testing.examples import examples
from tests.helpers import plain
from tests.helpers.docstrings import check_docstring
from tests.helpers.expect import close, refuses
from tests.helpers.problems import np_problem
from tests.helpers.rounds import walk
from tests.helpers.weekly import further_weekly

every_method = pytest.mark.parametrize("name", [a.__name__ for a in ALGORITHMS])


def test_every_algorithm_has_an_example():
    assert set(examples()) == {a.__name__ for a in ALGORITHMS}


def test_every_algorithm_has_a_name_of_its_own_at_the_top():
    assert tuple(getattr(fl, a.__name__) for a in ALGORITHMS) == ALGORITHMS
    assert len({a.__name__ for a in ALGORITHMS}) == len(ALGORITHMS) > 20


@every_method
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_is_held_to_account(name, check):
    for algorithm, problem in examples()[name]:
        check(algorithm, problem)


@every_method
def test_explains_itself(name):
    for algorithm, _ in examples()[name]:
        check_docstring(algorithm)


@every_method
def test_refuses_what_the_problem_has_not(name):
    algorithm, problem = examples()[name][0]
    vertical = hasattr(problem, "composite")
    clients = problem.composite.clients if vertical else problem.num_clients
    distinct = "a batch has distinct rows of the smallest client"
    of = "the problem's samples" if vertical else distinct
    most = {
        **dict.fromkeys(("participants", "head"), f"{clients} (the problem's clients)"),
        "shared": f"{problem.dim} (the model's parameters)",
        "task": f"{problem.num_objectives} (the problem's objectives)",
    }
    if vertical or "SSCA" in name or name == "MiniBatchSGD":  # others draw a row more than once
        most["batch_size"] = f"{min(problem.sizes)} ({of})"
    for field in most.keys() & {f.name for f in fields(algorithm)}:
        larger = replace(algorithm, **{field: int(most[field].split()[0]) + 1})
        refuses(f"{name}: {field} must lie in 1..{most[field]}, got", larger.init, problem)


#: Fields that the last example of a method has otherwise: its rounds are recorded with them too.
OTHERS = (
    ("FedCMOO", {"gram": fl.OneWay(fl.Largest()), "weights": fl.MinNorm()}),
    ("FedCMOOPref", {"batch_size": 2, "value_batch_size": 2}),
    ("FedFW", {"participation": 0.3}),
    ("ConstrainedSSCA", {"growth": 2.0, "patience": 2}),
    ("SSCA", {"batch_size": 2, "ridge": 0.01}),
)


#: A method of each family; the contract holds every method to its runs with seeds and in a grid.
FAMILIES = [
    *("FedAvg", "FedSGM", "MultiFedSGM", "FedCMOOPref", "FSMGDA", "FedFWPlus", "FedDR"),
    *("ConstrainedSSCA", "VerticalSGD", "ConEx"),
]
UNCHANGED = [(method.__name__, {}) for method in ALGORITHMS]
#: Methods of families that `OTHERS` has none of.
FURTHER_FAMILIES = ("FedAvg", "FedSGM", "MultiFedSGM", "FSMGDA", "FedDR", "VerticalSGD", "ConEx")


@pytest.mark.parametrize(
    ("name", "changes"),
    further_weekly([*UNCHANGED, *OTHERS], [*((name, {}) for name in FURTHER_FAMILIES), *OTHERS]),
)
def test_a_grid_with_seeds_on_any_engine_is_each_run_alone(name, changes):
    algorithm, problem = examples()[name][-1]
    algorithm = replace(algorithm, **changes)
    less = {field: 0.8 * x for field, x in floats(algorithm).items() if field != "growth"}
    grid = [algorithm, fill(algorithm, less)]
    options = {"rounds": 4, "seeds": [3, 4]}
    together = fl.run(grid, problem, **options)
    looped = fl.run(grid, problem, **options, engine=fl.Loop)
    in_turn = fl.run(grid, replace(problem, sequential_clients=True), **options)
    alone = fl.run(grid[1], problem, rounds=4, seeds=[4])
    assert together[1].config["algorithm"] == alone.config["algorithm"]
    for _, trace in (together, looped, in_turn):
        close(trace.state.w[1], alone.state.w[0], 1e-10)
        for key, values in alone.info.items():
            np.testing.assert_allclose(trace.info[key][1], values[0], rtol=1e-8, atol=1e-8)
        for key, values in alone.metrics.items():
            np.testing.assert_allclose(trace.metrics[key][1], values[0], rtol=1e-8, atol=1e-8)

    assert not less or not torch.equal(together[0].state.w, together[1].state.w)


@pytest.mark.parametrize("name", further_weekly(examples(), FAMILIES))
def test_the_objective_falls(name):
    """By half within sixty rounds, on the first example that says how large it is."""
    measured = [e for e in examples()[name] if "f" in e.problem.metrics(e.problem.w0, e.problem)]
    algorithm, problem = measured[0]
    if isinstance(getattr(algorithm, "lr", None), float):
        algorithm = replace(algorithm, lr=0.3)
    options = {"rounds": 60, "evaluate_every": 60, "progress": False}
    f = fl.run(algorithm, problem, **options).metrics["f"][0]
    assert f[-1] < f[0] / 2


def test_penalty_fedavg_equals_its_plain_twin():
    problem = np_problem()
    algorithm = fl.PenaltyFedAvg(0.1, 2, 5, tolerance=0.05, rho=2.0)
    X, y, shares = problem.data
    w = torch.zeros(30, dtype=torch.float64)
    for _, draw, state, _ in walk(algorithm, problem, 30):
        rows = [problem.rows[j] for j in draw.participants]
        clients = [(X[r], y[r], shares[r]) for r in rows]
        g = sum(plain.losses(w, *client)[1] for client in clients) / 5
        ends = []
        for client in clients:
            u = w
            for _ in range(2):
                d = plain.gradient(u, *client, 0)
                if g > 0.05:
                    d = d + 2.0 * plain.gradient(u, *client, 1)
                u = u - 0.1 * d
            ends.append(u)
        w = sum(ends) / 5
        close(state.w, w)


def test_fedavg_by_hand_and_its_bits():
    a = torch.tensor([[4.0], [2.0]], dtype=torch.float64)
    problem = quadratics(a, a, level=1.0)
    method = fl.FedAvg(lr=0.5, local_steps=2, participants=2)
    draw = Draw(torch.tensor([1, 0]))
    state, info = method.round(fl.Vectorized(problem), method.init(problem), draw)
    assert state.w.item() == pytest.approx((3.0 + 1.5) / 2)  # 0 -> 2 -> 3 and 0 -> 1 -> 1.5
    assert info["bits_up"] == 2 * Identity().bits(1)
    assert info["bits_down"] == 2 * Identity().bits(1)


@pytest.mark.parametrize("name", ["FedSGM", "PenaltyFedAvg", "SGM", "PenaltySGM", "ConEx"])
def test_the_level_and_the_tolerance_raise_the_threshold_alike(name):
    algorithm, problem = examples()[name][0]

    def end(level, tolerance):
        method = replace(algorithm, level=level, tolerance=tolerance)
        return fl.run(method, problem, rounds=6).state.w[0]

    lifted = end(level=0.125, tolerance=0.25)
    close(lifted, end(level=0.0, tolerance=0.375), 1e-10)
    assert (lifted - end(level=0.0, tolerance=0.0)).abs().max() > 1e-4
