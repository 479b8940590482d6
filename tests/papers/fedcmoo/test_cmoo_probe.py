"""Probes of Gram estimates and of local progress against plain computation."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from fedlib import FSMGDA, FedCMOO, FedCMOOPref, Loop, Sequential, Vectorized, models
from fedlib.core.problem import Batch
from fedlib.core.sampling import seeded
from fedlib.weights import MinNorm
from papers.fedcmoo import networks
from papers.fedcmoo.probe.methods import (
    ERRORS,
    SKETCHES,
    GramProbe,
    ProgressProbe,
    unpacked,
)
from papers.fedcmoo.problems.paired_digits import paired_digits
from tests.helpers.composite import random_pairs
from tests.helpers.expect import near
from tests.helpers.problems import objectives

PREF = FedCMOOPref(
    lr=0.1,
    local_steps=2,
    participants=3,
    batch_size=2,
    shared=40,
)
TASKS = 3
DIM = 50
SHARED = 40


def quadratics():
    return objectives(
        rows=5,
        tasks=TASKS,
        dim=DIM,
        spread=0.6,
        noise=0.4,
    )


def pictures(clients=4):
    composites = random_pairs(60, 3)
    return paired_digits(composites, composites, clients=clients)


def plain_jacobians(problem, w, draw):
    """The participants' Jacobians, a gradient and a minibatch at a time, by autograd."""
    jacobians = []
    for j, batches in zip(draw.participants, draw.batches, strict=True):
        rows = []
        for k in range(TASKS):
            chosen = problem.rows[j, batches[k]]
            weight = torch.full((len(chosen),), 1 / len(chosen), dtype=w.dtype)
            batch = Batch(tuple(x[chosen] for x in problem.data), weight)
            jacobian = torch.func.jacrev(problem.losses)(w, batch)
            rows.append(jacobian[k])
        jacobians.append(torch.stack(rows))
    return torch.stack(jacobians)


def plain_errors(H, noises):
    """Every error by sums over clients and pairs of clients."""
    n = len(H)
    clients = range(n)
    G = sum(H[i] @ H[j].T for i in clients for j in clients) / n**2
    grams = {}
    for name, sketch in SKETCHES.items():
        noise = noises.get(name, [()] * (n + 1))
        C = [sketch(H[i], noise[i]) for i in clients]
        mean = sum(C)
        grams[f"one_way_{name}"] = mean @ mean.T / n**2
        h = sketch(mean, noise[n])
        total = sum(x @ x.T for x in H)
        for i in clients:
            total = total + sum(C[i] @ C[j].T for j in clients if i != j)
        cross = sum((H[i] - C[i]) @ (h - C[i]).T for i in clients)
        grams[f"two_way_{name}"] = (total + cross + cross.T) / n**2
    mean_gram = sum(x @ x.T for x in H) / n
    grams["own_grams"] = mean_gram
    errors = {}
    for name, gram in grams.items():
        errors[f"nrmse_{name}"] = float((gram - G).norm() / G.norm())
    scales = torch.linspace(0, 1.5, 15_001, dtype=H.dtype)
    scaled = scales[:, None, None] * mean_gram
    distances = (scaled - G).flatten(1).norm(dim=1)
    errors["nrmse_own_grams_scaled"] = float(distances.min() / G.norm())
    return errors


@pytest.mark.parametrize("engine", [Vectorized, Sequential])
def test_every_error_of_a_gram_matrix_is_that_of_a_plain_computation(engine):
    problem = quadratics()
    probe = GramProbe(PREF)
    state = probe.init(problem)
    draw = probe.draw(problem, seeded(0, "rounds"))
    _, info = probe.round(engine(problem), state, draw)
    H = plain_jacobians(problem, state.w, draw)[..., :SHARED]
    expected = plain_errors(H, unpacked(draw.chance, TASKS, SHARED))
    assert {*expected} == {*ERRORS}
    for name, error in expected.items():
        near(float(info[name]), error, rel=1e-6, abs=1e-7)
    distinct = {round(error, 9) for error in expected.values()}
    assert len(distinct) >= len(ERRORS) - 2


CMOO = FedCMOO(
    lr=0.5,
    local_steps=3,
    participants=2,
    batch_size=4,
    shared=28_515,
)
RIVAL = FSMGDA(
    lr=0.1,
    local_steps=2,
    participants=2,
    batch_size=4,
    shared=28_515,
)


class PlainNetwork:
    """The network of pairs as a module of torch, on the rows of a problem."""

    def __init__(self, problem):
        self.problem = problem
        _, self.apply = models.ravel(networks.pair_lenet())

    def outputs(self, w, rows):
        pictures = self.problem.data[0][rows] / 255
        return self.apply(w, (pictures - 0.1307) / 0.3081)

    def losses(self, w, rows):
        outputs = self.outputs(w, rows)
        labels = self.problem.data[1][rows]
        return torch.stack([cross_entropy(outputs[:, k], labels[:, k]) for k in range(2)])

    def stepped(self, w, rows, weights, lr):
        return w - lr * torch.func.grad(lambda u: self.losses(u, rows) @ weights)(w)

    def gains(self, w, rows):
        """Minus the losses, and the accuracies: `[2, K]`."""
        hits = self.outputs(w, rows).argmax(-1) == self.problem.data[1][rows]
        return torch.stack([-self.losses(w, rows), hits.float().mean(0)])


def trained_by_the_method(network, w0, lam, rows, batches):
    """FedCMOO's local training: its first step is made of those of both tasks."""
    w = w0
    for k, unit in enumerate(torch.eye(2)):
        step = network.stepped(w0, rows[batches[k]], unit, CMOO.lr) - w0
        w = w + lam[k] * step
    for batch in batches[2:]:
        w = network.stepped(w, rows[batch], lam, CMOO.lr)
    return w


def trained_alone(network, w0, rows, batches):
    """FSMGDA's local trainings, a task at a time: `[K, d]`."""
    ends = []
    for unit, of_task in zip(torch.eye(2), batches.split(2), strict=True):
        w = w0
        for batch in of_task:
            w = network.stepped(w, rows[batch], unit, RIVAL.lr)
        ends.append(w)
    return torch.stack(ends)


def by_hand(problem, state, lam, draw):
    """The gains of both local trainings, and of the shared step, by task and on average."""
    network = PlainNetwork(problem)
    w0 = state.w
    clients = []
    for i, j in enumerate(draw.participants):
        rows = problem.rows[j]
        joint = trained_by_the_method(
            network,
            w0,
            lam,
            rows,
            draw.batches[i],
        )
        alone = trained_alone(network, w0, rows, draw.chance[i])
        clients.append((rows, joint, alone))
    deltas = torch.stack([(w0 - alone) / (2 * RIVAL.lr) for _, _, alone in clients])
    mean = deltas.mean(0)[:, :28_515]
    weights = MinNorm()(mean @ mean.T, state.weights)
    gains = []
    for (rows, joint, alone), delta in zip(clients, deltas, strict=True):
        shared_step = w0 - 2 * RIVAL.lr * (weights @ delta)
        of_tasks = [network.gains(alone[k], rows)[:, k] for k in range(2)]
        reached = [
            network.gains(joint, rows),
            torch.stack(of_tasks, 1),
            network.gains(shared_step, rows),
        ]
        gains.append(torch.stack(reached) - network.gains(w0, rows))
    return named_gains(torch.stack(gains).mean(0))


def named_gains(gains):
    """`[3, 2, 2]`: trainings, curves and tasks, by the names that the probe gives them."""
    named = {}
    for a, training in enumerate(("method", "alone", "share")):
        for b, curve in enumerate(("loss", "accuracy")):
            named[f"{training}_{curve}"] = float(gains[a, b].mean())
            for k in range(2):
                named[f"{training}_{curve}_{k + 1}"] = float(gains[a, b, k])
    return named


def test_the_gains_are_those_of_networks_trained_by_hand():
    problem = pictures()
    probe = ProgressProbe(CMOO, RIVAL)
    state = probe.init(problem)
    draw = probe.draw(problem, seeded(0, "rounds"))
    reached, info = probe.round(Sequential(problem), state, draw)
    expected = by_hand(problem, state, reached.weights, draw)
    assert expected["method_loss"] > 0
    for name, gain in expected.items():
        near(float(info[name]), gain, abs=2e-5)


@pytest.mark.parametrize(
    ("make", "method", "probe"),
    [(quadratics, PREF, GramProbe(PREF)), (pictures, CMOO, ProgressProbe(CMOO, RIVAL))],
)
def test_a_probe_leaves_the_run_as_it_is(make, method, probe):
    problem = make()
    draw = probe.draw(problem, seeded(0, "rounds"))
    plain_draw = method.draw(problem, seeded(0, "rounds"))
    assert torch.equal(draw.batches, plain_draw.batches)
    state = probe.init(problem)
    probed, seen = probe.round(Loop(problem), state, draw)
    plain, info = method.round(Loop(problem), state, plain_draw)
    assert torch.equal(probed.w, plain.w)
    for name, value in info.items():
        assert torch.equal(seen[name], value)
