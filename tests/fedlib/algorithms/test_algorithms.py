"""What every algorithm must satisfy; a newcomer to ALGORITHMS is tested by one line here."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.algorithms import ALGORITHMS
from fedlib.core.floats import fill, floats
from fedlib.core.problem import Draw
from fedlib.problems import quadratics
from fedlib.testing.contract import CHECKS
from fedlib.testing.examples import examples
from tests.helpers import plain
from tests.helpers.docstrings import check_docstring
from tests.helpers.expect import close, refuses
from tests.helpers.problems import double
from tests.helpers.rounds import walk
from tests.helpers.weekly import further_weekly

NAMES = [method.__name__ for method in ALGORITHMS]
every_method = pytest.mark.parametrize("name", NAMES)


def test_every_algorithm_has_an_example():
    assert set(examples()) == set(NAMES)


def test_every_algorithm_has_a_name_of_its_own_at_the_top():
    assert tuple(getattr(fl, name) for name in NAMES) == ALGORITHMS
    assert len(set(NAMES)) == len(ALGORITHMS) > 20


@every_method
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_is_held_to_account(name, check):
    for method, problem in examples()[name]:
        check(method, problem)


@every_method
def test_explains_itself(name):
    for method, _ in examples()[name]:
        check_docstring(method)


@every_method
def test_refuses_what_the_problem_has_not(name):
    method, problem = examples()[name][0]
    vertical = hasattr(problem, "composite")
    clients = problem.composite.clients if vertical else problem.num_clients
    most = {
        "participants": f"{clients} (the problem's clients)",
        "head": f"{clients} (the problem's clients)",
        "shared": f"{problem.dim} (the model's parameters)",
        "task": f"{problem.num_objectives} (the problem's objectives)",
    }
    if vertical:
        most["batch_size"] = f"{min(problem.sizes)} (the problem's samples)"
    elif "SSCA" in name or name == "MiniBatchSGD":  # others draw a row more than once
        rows = min(problem.sizes)
        most["batch_size"] = f"{rows} (a batch has distinct rows of the smallest client)"
    for field in most.keys() & {f.name for f in fields(method)}:
        number, _ = most[field].split(" ", 1)
        larger = replace(method, **{field: int(number) + 1})
        refuses(f"{name}: {field} must lie in 1..{most[field]}, got", larger.init, problem)


#: Fields that the last example of a method has otherwise: its rounds are recorded with them too.
OTHERS = (
    ("FedCMOO", {"gram": fl.OneWay(fl.Largest()), "weights": fl.MinNorm()}),
    ("FedCMOOPref", {"batch_size": 2, "value_batch_size": 2}),
    ("FedFW", {"participation": 0.3}),
    ("ConstrainedSSCA", {"growth": 2.0, "patience": 2}),
    ("SSCA", {"batch_size": 2, "ridge": 0.01}),
)
UNCHANGED = [(name, {}) for name in NAMES]
#: Methods of families that `OTHERS` has none of.
FURTHER_FAMILIES = [
    ("FedAvg", {}),
    ("FedSGM", {}),
    ("MultiFedSGM", {}),
    ("FSMGDA", {}),
    ("FedDR", {}),
    ("VerticalSGD", {}),
    ("ConEx", {}),
]


@pytest.mark.parametrize(
    ("name", "changes"),
    further_weekly([*UNCHANGED, *OTHERS], [*FURTHER_FAMILIES, *OTHERS]),
)
def test_a_grid_with_seeds_on_any_engine_is_each_run_alone(name, changes):
    method, problem = examples()[name][-1]
    method = replace(method, **changes)
    smaller = {field: 0.8 * x for field, x in floats(method).items() if field != "growth"}
    grid = [method, fill(method, smaller)]
    in_turn = replace(problem, sequential_clients=True)
    options = {"rounds": 4, "seeds": [3, 4]}
    together = [
        fl.run(grid, problem, **options),
        fl.run(grid, problem, **options, engine=fl.Loop),
        fl.run(grid, in_turn, **options),
    ]
    alone = fl.run(grid[1], problem, rounds=4, seeds=[4])
    for larger, changed in together:
        assert changed.config["algorithm"] == alone.config["algorithm"]
        close(changed.state.w[1], alone.state.w[0], 1e-10)
        curves = changed.info | changed.metrics
        for key, values in (alone.info | alone.metrics).items():
            np.testing.assert_allclose(curves[key][1], values[0], rtol=1e-8, atol=1e-8)
        assert not smaller or not torch.equal(larger.state.w, changed.state.w)


def test_penalty_fedavg_equals_its_plain_twin(problem):
    method = fl.PenaltyFedAvg(
        lr=0.1,
        local_steps=2,
        participants=5,
        tolerance=0.05,
        rho=2.0,
    )
    X, y, shares = problem.data
    w = torch.zeros(30).double()
    for _, draw, state, _ in walk(method, problem, 30):
        rows = [problem.rows[j] for j in draw.participants]
        clients = [(X[r], y[r], shares[r]) for r in rows]
        g = sum(plain.losses(w, *client)[1] for client in clients) / 5
        ends = []
        for client in clients:
            u = w
            for _ in range(2):
                direction = plain.gradient(u, *client, 0)
                if g > 0.05:
                    direction = direction + 2.0 * plain.gradient(u, *client, 1)
                u = u - 0.1 * direction
            ends.append(u)
        w = sum(ends) / 5
        close(state.w, w)


def test_fedavg_by_hand_and_its_bits():
    a = double([4.0], [2.0])
    problem = quadratics(a, a, level=1.0)
    method = fl.FedAvg(lr=0.5, local_steps=2, participants=2)
    draw = Draw(torch.tensor([1, 0]))
    state, info = method.round(fl.Vectorized(problem), method.init(problem), draw)
    assert state.w.item() == pytest.approx((3.0 + 1.5) / 2)  # 0 -> 2 -> 3 and 0 -> 1 -> 1.5
    assert info["bits_up"] == info["bits_down"] == 2 * 32
