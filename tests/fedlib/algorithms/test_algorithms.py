"""What every algorithm must satisfy; a newcomer to ALGORITHMS is tested by one line here."""

import inspect
import re
from dataclasses import replace
from pathlib import Path

import plain
import pytest
import torch
from expect import close
from problems import np_problem

import fedlib as fl
from fedlib.algorithms import ALGORITHMS
from fedlib.compress import Identity
from fedlib.core.sampling import seeded
from fedlib.core.types import Draw
from fedlib.testing.account import CHECKS
from fedlib.testing.examples import examples

each = pytest.mark.parametrize("name", [a.__name__ for a in ALGORITHMS])


def test_every_algorithm_has_an_example():
    assert set(examples()) == {a.__name__ for a in ALGORITHMS}


def test_every_algorithm_has_a_name_of_its_own_at_the_top():
    assert tuple(getattr(fl, a.__name__) for a in ALGORITHMS) == ALGORITHMS
    assert len({a.__name__ for a in ALGORITHMS}) == len(ALGORITHMS) > 20


@each
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_is_held_to_account(name, check):
    for algorithm, problem in examples()[name]:
        check(algorithm, problem)


@each
def test_the_objective_falls(name):
    """By half within sixty rounds, on the first example that says how large it is."""
    told = [e for e in examples()[name] if "f" in e.problem.metrics(e.problem.w0, e.problem)]
    if not told:
        assert name == "PolicyFedSGM"
        return
    algorithm, problem = told[0]
    if isinstance(getattr(algorithm, "lr", None), float):
        algorithm = replace(algorithm, lr=0.3)
    f = fl.run(algorithm, problem, rounds=60, progress=False).metrics["f"][0]
    assert f[-1] < f[0] / 2


def test_penalty_fedavg_equals_its_plain_twin():
    problem, algorithm = np_problem(), fl.PenaltyFedAvg(0.1, 2, 5, tolerance=0.05, rho=2.0)
    X, y, shares = problem.data
    state, w = algorithm.init(problem), torch.zeros(30, dtype=torch.float64)
    rng = seeded(0, "rounds")
    for _ in range(30):
        draw = algorithm.draw(problem, rng)
        state, _ = algorithm.round(fl.Vectorized(problem), state, draw)
        rows = [problem.rows[j] for j in draw.participants]
        g = sum(plain.losses(w, X[r], y[r], shares[r])[1] for r in rows) / 5
        ends = []
        for r in rows:
            u = w
            for _ in range(2):
                d = plain.gradient(u, X[r], y[r], shares[r], 0)
                if g > 0.05:
                    d = d + 2.0 * plain.gradient(u, X[r], y[r], shares[r], 1)
                u = u - 0.1 * d
            ends.append(u)
        w = sum(ends) / 5
        close(state.w, w)


def test_fedavg_by_hand_and_its_bits():
    from fedlib.problems import quadratics

    a = torch.tensor([[4.0], [2.0]], dtype=torch.float64)
    problem = quadratics(a, a, level=1.0)
    avg = fl.FedAvg(lr=0.5, local_steps=2, participants=2)
    state, info = avg.round(fl.Vectorized(problem), avg.init(problem), Draw(torch.tensor([1, 0])))
    assert state.w.item() == pytest.approx((3.0 + 1.5) / 2)  # 0 -> 2 -> 3 and 0 -> 1 -> 1.5
    assert info["bits_up"] == 2 * Identity().bits(1) == info["bits_down"]


def test_no_code_of_the_algorithms_moves_tensors_between_devices():
    folder = Path(inspect.getfile(fl.FedSGM)).parent
    for path in folder.glob("*.py"):
        assert not re.search(r"\.cuda\(|\.cpu\(|\.to\(.*device|\.item\(", path.read_text()), (
            path.name
        )
