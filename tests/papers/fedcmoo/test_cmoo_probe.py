"""Probes of Gram estimates and of local progress against plain computation."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from fedlib import FSMGDA, FedCMOO, FedCMOOPref, Loop, Sequential, Vectorized
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
        for k in range(problem.num_objectives):
            chosen = problem.rows[j, batches[k]]
            weight = torch.full((len(chosen),), 1 / len(chosen), dtype=w.dtype)
            batch = Batch(tuple(x[chosen] for x in problem.data), weight)
            v = w.clone().requires_grad_()
            loss = problem.losses(v, batch)[k]
            rows.append(torch.autograd.grad(loss, v)[0])
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
    scales = torch.linspace(
        0,
        1.5,
        15_001,
        dtype=H.dtype,
    )
    scaled = scales[:, None, None] * mean_gram
    distances = (scaled - G).flatten(1).norm(dim=1)
    errors["nrmse_own_grams_scaled"] = float(distances.min() / G.norm())
    return errors


class TestGramProbe:
    @pytest.mark.parametrize("engine", [Vectorized, Sequential])
    def test_every_error_is_that_of_a_plain_computation(self, engine):
        problem = quadratics()
        probe = GramProbe(PREF)
        state = probe.init(problem)
        draw = probe.draw(problem, seeded(0, "rounds"))
        _, info = probe.round(engine(problem), state, draw)
        H = plain_jacobians(problem, state.w, draw)[..., :SHARED]
        expected = plain_errors(H, unpacked(draw.chance, TASKS, SHARED))
        assert set(expected) == set(ERRORS) == {k for k in info if k.startswith("nrmse")}
        for name, error in expected.items():
            assert float(info[name]) == pytest.approx(error, rel=1e-6, abs=1e-7), name
        assert len({round(x, 9) for x in expected.values()}) >= len(ERRORS) - 2


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


class TestProgressProbe:
    def test_the_gains_are_those_of_networks_trained_by_hand(self):
        problem = pictures()
        probe = ProgressProbe(CMOO, RIVAL)
        state = probe.init(problem)
        draw = probe.draw(problem, seeded(0, "rounds"))
        reached, info = probe.round(Sequential(problem), state, draw)
        expected = by_hand(
            problem,
            state,
            reached.weights,
            draw,
        )
        for name, gain in expected.items():
            assert float(info[name]) == pytest.approx(gain, abs=2e-5), name
        assert expected["method_loss"] > 0


@pytest.mark.parametrize(
    ("make", "method", "probe"),
    [
        (quadratics, PREF, GramProbe(PREF)),
        (pictures, CMOO, ProgressProbe(CMOO, RIVAL)),
    ],
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


class PlainNetwork:
    """The network of pairs as a module of torch with its own backward passes."""

    def __init__(self, problem):
        self.problem = problem
        self.module = networks.pair_lenet(torch.Generator())

    def outputs(self, w, rows):
        torch.nn.utils.vector_to_parameters(w, self.module.parameters())
        pictures = self.problem.data[0][rows]
        return self.module((pictures / 255 - 0.1307) / 0.3081)

    def losses(self, w, rows):
        outputs = self.outputs(w, rows)
        y = self.problem.data[1][rows]
        return torch.stack([cross_entropy(outputs[:, k], y[:, k]) for k in range(2)])

    def stepped(self, w, rows, weights, lr):
        self.module.zero_grad()
        (self.losses(w, rows) @ weights).backward()
        slopes = []
        for parameter in self.module.parameters():
            slope = parameter.grad
            slopes.append(torch.zeros(parameter.numel()) if slope is None else slope.flatten())
        return w - lr * torch.cat(slopes)

    def gains(self, w, rows):
        """Minus the losses, and the accuracies: `[2, K]`."""
        with torch.no_grad():
            hits = self.outputs(w, rows).argmax(-1) == self.problem.data[1][rows]
            return torch.stack([-self.losses(w, rows), hits.float().mean(0)])


def by_hand(problem, state, lam, draw):
    """The gains of both local trainings, and of the shared step, by task and on average."""
    network = PlainNetwork(problem)
    w0 = state.w
    units = torch.eye(2)
    ends = []
    deltas = []
    for i, j in enumerate(draw.participants):
        rows = problem.rows[j]
        u = w0.clone()
        for k in range(2):
            first_step = network.stepped(
                w0,
                rows[draw.batches[i, k]],
                units[k],
                0.5,
            )
            u = u + lam[k] * (first_step - w0)
        for step in (2, 3):
            u = network.stepped(
                u,
                rows[draw.batches[i, step]],
                lam,
                0.5,
            )
        alone = []
        for k in range(2):
            v = w0
            for step in range(2):
                v = network.stepped(
                    v,
                    rows[draw.chance[i, 2 * k + step]],
                    units[k],
                    0.1,
                )
            alone.append(v)
        deltas.append((w0 - torch.stack(alone)) / 0.2)
        ends.append((rows, u, alone))
    mean = sum(deltas)[:, :28_515] / len(deltas)
    weights = MinNorm()(mean @ mean.T, state.weights)
    total = torch.zeros(3, 2, 2)
    for (rows, u, alone), delta in zip(ends, deltas, strict=True):
        shared_step = w0 - 0.2 * (weights @ delta)
        of_tasks = [network.gains(alone[k], rows)[:, k] for k in range(2)]
        trained = network.gains(u, rows)
        shared = network.gains(shared_step, rows)
        reached = torch.stack([trained, torch.stack(of_tasks, 1), shared])
        total += reached - network.gains(w0, rows)
    return named_gains(total / len(ends))


def named_gains(gains):
    """`[3, 2, 2]`: trainings, curves and tasks, by the names that the probe gives them."""
    named = {}
    for a, training in enumerate(("method", "alone", "share")):
        for b, curve in enumerate(("loss", "accuracy")):
            named[f"{training}_{curve}"] = float(gains[a, b].mean())
            for k in range(2):
                named[f"{training}_{curve}_{k + 1}"] = float(gains[a, b, k])
    return named
