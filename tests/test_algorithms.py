"""What every algorithm must satisfy; a newcomer to ALGORITHMS is tested by one line here."""

import inspect
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import plain
import pytest
import torch
from problems import np_problem, three_objectives, vertical_np_problem

import fedlib as fl
from fedlib.algorithms import ALGORITHMS
from fedlib.algorithms.policy_fedsgm import PolicyFedSGM
from fedlib.compress import Identity
from fedlib.problems import cartpole
from fedlib.sampling import seeded
from fedlib.types import Draw, describe

EXAMPLES = {
    fl.FedSGM: fl.FedSGM(lr=0.1, local_steps=2, participants=5, tolerance=0.05),
    fl.FedAvg: fl.FedAvg(lr=0.1, local_steps=2, participants=5, batch_size=6),
    fl.PenaltyFedAvg: fl.PenaltyFedAvg(
        lr=0.1, local_steps=2, participants=5, tolerance=0.05, rho=2.0
    ),
    fl.SGM: fl.SGM(lr=0.1, tolerance=0.05, steps=2),
    PolicyFedSGM: PolicyFedSGM(participants=2, tolerance=0.0, switch=fl.Soft(0.2), cg_steps=3),
    fl.ConEx: fl.ConEx(lr=0.1, dual_lr=0.5, tolerance=0.05, steps=2, batch_size=20),
    fl.FedCMOO: fl.FedCMOO(lr=0.1, local_steps=2, participants=5, batch_size=2),
    fl.FedCMOOPref: fl.FedCMOOPref(lr=0.1, local_steps=2, participants=5),
    fl.FedCMOOTheory: fl.FedCMOOTheory(
        lr=0.1,
        local_steps=2,
        participants=5,
        step=0.05,
        gram_participants=3,
        batch_size=2,
        compressor=fl.RandK(0.5),
    ),
    fl.FSMGDA: fl.FSMGDA(lr=0.1, local_steps=2, participants=5, batch_size=2),
    fl.Scalarized: fl.Scalarized(lr=0.1, local_steps=2, participants=5, batch_size=2),
    fl.MGDA: fl.MGDA(lr=0.1),
    fl.FedFW: fl.FedFW(lam0=0.1, participation=0.8),
    fl.FedFWPlus: fl.FedFWPlus(lam0=0.1, participation=0.8),
    fl.FedFWSto: fl.FedFWSto(lam0=0.1, batch_size=2, participation=0.8),
    fl.NaiveFW: fl.NaiveFW(),
    fl.FedDR: fl.FedDR(lr=0.1, local_steps=2, participation=0.8, batch_size=2),
    fl.FedProx: fl.FedProx(lr=0.1, local_steps=2, participants=5, batch_size=2),
    fl.SSCA: fl.SSCA(tau=1.0, rho=fl.PowerLaw(0.6, 0.3), gamma=fl.PowerLaw(0.9, 0.35)),
    fl.ConstrainedSSCA: fl.ConstrainedSSCA(
        tau=1.0,
        rho=fl.PowerLaw(0.6, 0.3),
        gamma=fl.PowerLaw(0.9, 0.35),
        penalty=100.0,
        levels=0.3,
        batch_size=6,
    ),
    fl.MiniBatchSGD: fl.MiniBatchSGD(lr=fl.PowerLaw(0.3), local_steps=2, batch_size=6),
    fl.VerticalSSCA: fl.VerticalSSCA(
        tau=1.0, rho=fl.PowerLaw(0.6, 0.3), gamma=fl.PowerLaw(0.9, 0.35), batch_size=100
    ),
    fl.ConstrainedVerticalSSCA: fl.ConstrainedVerticalSSCA(
        tau=1.0,
        rho=fl.PowerLaw(0.6, 0.3),
        gamma=fl.PowerLaw(0.9, 0.35),
        penalty=100.0,
        levels=0.3,
    ),
    fl.VerticalSGD: fl.VerticalSGD(lr=fl.PowerLaw(0.3), batch_size=100),
}
FEASIBLE = (fl.FedFW, fl.FedFWPlus, fl.FedFWSto, fl.NaiveFW, fl.FedDR, fl.FedProx)
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
    return np_problem(clients=1 if isinstance(algorithm, (fl.SGM, fl.ConEx)) else 20)


def test_every_algorithm_has_an_example():
    assert set(EXAMPLES) == set(ALGORITHMS)


@each
def test_is_a_frozen_record_whose_state_starts_with_w(algorithm):
    assert is_dataclass(algorithm)
    with pytest.raises(AttributeError):
        setattr(algorithm, fields(algorithm)[0].name, 1.0)
    assert algorithm.init(task(algorithm))._fields[0] == "w"
    assert describe(algorithm)["type"] == type(algorithm).__name__


@each
def test_a_round_is_a_pure_function_of_its_draw(algorithm):
    problem = task(algorithm)
    state, draw = algorithm.init(problem), algorithm.draw(problem, seeded(0, "rounds"))
    copies = [x.clone() for x in state]
    first, info = algorithm.round(fl.Vectorized(problem), state, draw)
    second, _ = algorithm.round(fl.Vectorized(problem), state, draw)
    for a, b, c, d in zip(first, second, state, copies, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(c, d)
    assert {"bits_up", "bits_down"} <= info.keys()


@each
def test_both_engines_agree(algorithm):
    problem = task(algorithm)
    state, rng = algorithm.init(problem), seeded(3, "rounds")
    exact = problem.w0.dtype == torch.float64
    for _ in range(5 if exact else 1):
        draw = algorithm.draw(problem, rng)
        slow, slow_info = algorithm.round(fl.Loop(problem), state, draw)
        state, info = algorithm.round(fl.Vectorized(problem), state, draw)
        torch.testing.assert_close(state.w, slow.w, atol=1e-12 if exact else 1e-4, rtol=0)
        assert info["bits_up"] == slow_info["bits_up"]


@rows_only
def test_autograd_gives_what_the_closed_form_gives(algorithm):
    with_closed, general = task(algorithm), replace(task(algorithm), gradient=None)
    a = fl.run(algorithm, with_closed, rounds=6, progress=False)
    b = fl.run(algorithm, general, rounds=6, progress=False)
    np.testing.assert_allclose(a.metrics["f"], b.metrics["f"], atol=1e-12)


@rows_only
def test_the_objective_falls(algorithm):
    if isinstance(getattr(algorithm, "lr", None), float):
        algorithm = replace(algorithm, lr=0.3)
    trace = fl.run(algorithm, task(algorithm), rounds=60, progress=False)
    assert trace.metrics["f"][0, -1] < 0.35 < trace.metrics["f"][0, 0]


@each
def test_the_pseudocode_is_numbered_and_every_number_is_cited_in_the_code(algorithm):
    source = inspect.getsource(type(algorithm))
    doc = type(algorithm).__doc__
    steps = [int(n) for n in re.findall(r"^ {8}(\d+) ", doc, re.MULTILINE)]
    assert steps == list(range(1, len(steps) + 1)), "numbered 1, 2, ..."
    assert len(steps) >= 3
    cited = set()
    for comment in re.findall(r"#\s(\d[\d, -]*)$", source.replace(doc, ""), re.MULTILINE):
        for part in comment.split(","):
            low, _, high = part.strip().partition("-")
            cited |= set(range(int(low), int(high or low) + 1))
    assert cited >= set(steps), f"cited nowhere: {set(steps) - cited}"


@each
def test_every_field_is_explained(algorithm):
    for f in fields(algorithm):
        assert re.search(rf"\b{f.name}\b", type(algorithm).__doc__), f.name


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
        torch.testing.assert_close(state.w, w, atol=1e-12, rtol=0)


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
