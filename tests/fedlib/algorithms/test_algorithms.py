"""What every algorithm must satisfy; a newcomer to ALGORITHMS is tested by one line here."""

import inspect
import re
from dataclasses import fields, replace
from math import inf, nan
from pathlib import Path

import numpy as np
import plain
import pytest
import torch
from expect import close, refuses
from problems import np_problem, three_objectives, vertical_np_problem

import fedlib as fl
from fedlib.algorithms import ALGORITHMS, PolicyFedSGM
from fedlib.compress import Identity
from fedlib.core.grid import fill, floats
from fedlib.core.sampling import seeded
from fedlib.core.types import Draw
from fedlib.problems import cartpole
from fedlib.testing.account import CHECKS

STEPS = {"tau": 1.0, "rho": fl.PowerLaw(0.6, 0.3), "gamma": fl.PowerLaw(0.9, 0.35)}
EXAMPLES = {
    fl.FedSGM: fl.FedSGM(lr=0.1, local_steps=2, participants=5, tolerance=0.05),
    fl.FedAvg: fl.FedAvg(lr=0.1, local_steps=2, participants=5, batch_size=6),
    fl.PenaltyFedAvg: fl.PenaltyFedAvg(
        lr=0.1, local_steps=2, participants=5, tolerance=0.05, rho=2.0
    ),
    fl.SGM: fl.SGM(lr=0.1, tolerance=0.05, steps=2),
    fl.PenaltySGM: fl.PenaltySGM(lr=0.1, tolerance=0.05, rho=2.0, steps=2),
    PolicyFedSGM: PolicyFedSGM(participants=2, tolerance=0.0, switch=fl.Soft(0.2), cg_steps=3),
    fl.ConEx: fl.ConEx(lr=0.1, dual_lr=0.5, tolerance=0.05, steps=2, batch_size=20),
    fl.FedCMOO: fl.FedCMOO(lr=0.1, local_steps=2, participants=5, batch_size=2),
    fl.FedCMOOPref: fl.FedCMOOPref(lr=0.1, local_steps=2, participants=5),
    fl.FedCMOOTheory: fl.FedCMOOTheory(
        0.1, 2, 5, step=0.05, gram_participants=3, batch_size=2, compressor=fl.RandK(0.5)
    ),
    fl.FSMGDA: fl.FSMGDA(lr=0.1, local_steps=2, participants=5, batch_size=2),
    fl.Scalarized: fl.Scalarized(lr=0.1, local_steps=2, participants=5, batch_size=2),
    fl.MGDA: fl.MGDA(lr=0.1),
    fl.FedFW: fl.FedFW(lam0=0.1, participation=0.8),
    fl.FedFWPlus: fl.FedFWPlus(lam0=0.1, participation=0.8),
    fl.FedFWSto: fl.FedFWSto(lam0=0.1, batch_size=2, participation=0.8),
    fl.FedFWReset: fl.FedFWReset(lam0=0.1, participation=0.8, local_steps=2, batch_size=2),
    fl.NaiveFW: fl.NaiveFW(),
    fl.FedDR: fl.FedDR(lr=0.1, local_steps=2, participation=0.8, batch_size=2),
    fl.FedProx: fl.FedProx(lr=0.1, local_steps=2, participants=5, batch_size=2),
    fl.SSCA: fl.SSCA(**STEPS),
    fl.ConstrainedSSCA: fl.ConstrainedSSCA(**STEPS, penalty=100.0, levels=0.3, batch_size=6),
    fl.MiniBatchSGD: fl.MiniBatchSGD(lr=fl.PowerLaw(0.3), local_steps=2, batch_size=6),
    fl.VerticalSSCA: fl.VerticalSSCA(**STEPS, batch_size=100),
    fl.ConstrainedVerticalSSCA: fl.ConstrainedVerticalSSCA(
        tau=1.0, rho=fl.PowerLaw(0.6, 0.3), gamma=fl.PowerLaw(0.9, 0.35), penalty=100.0, levels=0.3
    ),
    fl.VerticalSGD: fl.VerticalSGD(lr=fl.PowerLaw(0.3), batch_size=100),
}
FEASIBLE = (fl.FedFW, fl.FedFWPlus, fl.FedFWSto, fl.FedFWReset, fl.NaiveFW, fl.FedDR, fl.FedProx)
VERTICAL = (fl.VerticalSSCA, fl.ConstrainedVerticalSSCA, fl.VerticalSGD)
SEVERAL = (fl.FedCMOO, fl.FedCMOOPref, fl.FedCMOOTheory, fl.FSMGDA, fl.Scalarized, fl.MGDA)
each = pytest.mark.parametrize("algorithm", EXAMPLES.values(), ids=lambda a: type(a).__name__)


rows_only = pytest.mark.parametrize(
    "algorithm",
    [a for a in EXAMPLES.values() if not isinstance(a, PolicyFedSGM)],
    ids=lambda a: type(a).__name__,
)


def task(algorithm):
    if isinstance(algorithm, PolicyFedSGM):
        return cartpole(0, clients=3, environments=2, evaluation=4)
    if isinstance(algorithm, FEASIBLE):
        return three_objectives().within(fl.Ball(2.5))
    if isinstance(algorithm, SEVERAL):
        return three_objectives()
    if isinstance(algorithm, VERTICAL):
        return vertical_np_problem()
    return np_problem(clients=1 if isinstance(algorithm, (fl.SGM, fl.PenaltySGM, fl.ConEx)) else 20)


def test_every_algorithm_has_an_example():
    assert set(EXAMPLES) == set(ALGORITHMS)


@each
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_is_held_to_account(algorithm, check):
    check(algorithm, task(algorithm))


#: By the name of a field: what no method takes.
BAD = {
    **dict.fromkeys(("lr", "dual_lr", "server_lr", "tau"), (0.0, -1.0, nan, True)),
    **dict.fromkeys(("eta", "kl_limit"), (0, -1.0)),
    **dict.fromkeys(("lam0", "mu", "ridge", "step", "prox", "constraint_prox"), (-1.0, inf, "1")),
    **dict.fromkeys(("participation", "theta"), (0.0, 1.5, "1")),
    **dict.fromkeys(("local_steps", "participants", "steps", "inner_steps"), (0, -3, 1.5)),
    **dict.fromkeys(("cg_steps", "curvature_states", "gram_participants"), (0, 2.0)),
    **dict.fromkeys(("tolerance", "level"), (nan, "a")),
    **{"rho": (-1.0, fl.PowerLaw(1.2, 0.4)), "gamma": (0.5, fl.PowerLaw(1.1)), "gae": (1.5,)},
    **{"relaxation": (2.0,), "penalty": (-1.0,), "growth": (0.5,), "patience": (0,), "task": (0,)},
    **{"objective": ("loss",), "damping": (-1,), "discount": (1.5,)},
}


@each
def test_refuses_bad_parameters(algorithm):
    for name in BAD.keys() & {f.name for f in fields(algorithm)}:
        for value in BAD[name]:
            words = f"{type(algorithm).__name__}: {name} must *, got {value!r}"
            errors = (ValueError, TypeError)
            refuses(words, replace, algorithm, **{name: value}, error=errors)


@each
def test_refuses_what_the_problem_has_not(algorithm):
    problem, who = task(algorithm), type(algorithm).__name__
    vertical = isinstance(algorithm, VERTICAL)
    clients = problem.composite.clients if vertical else problem.num_clients
    of = "the problem's samples" if vertical else "the rows of the smallest client"
    most = {
        **dict.fromkeys(("participants", "head"), f"{clients} (the problem's clients)"),
        **dict.fromkeys(("batch_size", "value_batch_size"), f"{min(problem.sizes)} ({of})"),
        "shared": f"{problem.dim} (the model's parameters)",
        "task": f"{problem.num_objectives} (the problem's objectives)",
    }
    for name in most.keys() & {f.name for f in fields(algorithm)}:
        larger = replace(algorithm, **{name: int(most[name].split()[0]) + 1})
        refuses(f"{who}: {name} must lie in 1..{most[name]}, got", larger.init, problem)


#: Settings that the examples have not, whose rounds are recorded too.
OTHERS = (
    fl.FedCMOO(0.1, 3, 4, batch_size=2, gram=fl.OneWay(fl.Largest()), weights=fl.MinNorm()),
    fl.FedCMOOPref(0.1, 3, 4, batch_size=2, value_batch_size=2),
    fl.FedFW(0.1, participation=0.3),
    replace(EXAMPLES[fl.ConstrainedSSCA], growth=2.0, patience=2),
    replace(EXAMPLES[fl.SSCA], ridge=0.01, batch_size=2),
)


@pytest.mark.parametrize(
    "algorithm",
    [*(a for a in EXAMPLES.values() if not isinstance(a, PolicyFedSGM)), *OTHERS],
    ids=lambda a: type(a).__name__,
)
def test_a_grid_with_seeds_on_any_engine_is_each_run_alone(algorithm):
    less = {name: 0.8 * x for name, x in floats(algorithm).items() if name != "growth"}
    grid, problem = [algorithm, fill(algorithm, less)], task(algorithm)
    together = fl.run(grid, problem, rounds=4, seeds=[3, 4])
    loop = fl.run(grid, problem, rounds=4, seeds=[3, 4], engine=fl.Loop)
    ordered = fl.run(grid, replace(problem, one_by_one=True), rounds=4, seeds=[3, 4])
    alone = fl.run(grid[1], problem, rounds=4, seeds=[4])
    for trace in (together[1], loop[1], ordered[1]):
        close(trace.state.w[1], alone.state.w[0], 1e-10)
        for name, values in alone.info.items():
            np.testing.assert_allclose(trace.info[name][1], values[0], rtol=1e-8, atol=1e-8)
    assert not less or not torch.equal(together[0].state.w, together[1].state.w)


@rows_only
def test_the_objective_falls(algorithm):
    if isinstance(getattr(algorithm, "lr", None), float):
        algorithm = replace(algorithm, lr=0.3)
    trace = fl.run(algorithm, task(algorithm), rounds=60)
    assert trace.metrics["f"][0, -1] < 0.35 < trace.metrics["f"][0, 0]


def test_penalty_fedavg_equals_its_plain_twin():
    problem, algorithm = np_problem(), EXAMPLES[fl.PenaltyFedAvg]
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
