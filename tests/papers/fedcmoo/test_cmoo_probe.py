"""Probes of Gram estimates and of local progress against plain computation."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from fedlib import FSMGDA, FedCMOO, FedCMOOPref, Loop, Sequential, Vectorized, run
from fedlib.compress import Masked
from fedlib.core.sampling import seeded
from fedlib.weights import MinNorm
from papers.fedcmoo import networks
from papers.fedcmoo.probe.methods import (
    ERRORS,
    SKETCHES,
    GramProbe,
    ProgressProbe,
    shapes,
    unpacked,
)
from papers.fedcmoo.problems.paired_digits import paired_digits
from tests.helpers.composite import random_pairs
from tests.helpers.problems import objectives

PREF = FedCMOOPref(lr=0.1, local_steps=2, participants=3, batch_size=2, shared=40)
TASKS = 3
DIM = 50
SHARED = 40


def quadratics():
    return objectives(rows=5, tasks=TASKS, dim=DIM, spread=0.6, noise=0.4)


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
            data = tuple(x[chosen] for x in problem.data)
            v = w.clone().requires_grad_()
            weight = torch.full((len(chosen),), 1 / len(chosen), dtype=w.dtype)
            loss = problem.losses(v, type(problem.all_clients())(data, weight))[k]
            rows.append(torch.autograd.grad(loss, v)[0])
        jacobians.append(torch.stack(rows))
    return torch.stack(jacobians)


def plain_errors(H, noises):
    """Every error by sums over clients and pairs of clients."""
    n = len(H)
    G = sum(H[i] @ H[j].T for i in range(n) for j in range(n)) / n**2
    grams = {}
    for name, sketch in SKETCHES.items():
        noise = noises.get(name)
        C = [sketch(H[i], () if noise is None else noise[i]) for i in range(n)]
        grams[f"one_way_{name}"] = sum(C) @ sum(C).T / n**2
        h = sketch(sum(C), () if noise is None else noise[n])
        total = sum(x @ x.T for x in H)
        total = total + sum(C[i] @ C[j].T for i in range(n) for j in range(n) if i != j)
        cross = sum((H[i] - C[i]) @ (h - C[i]).T for i in range(n))
        grams[f"two_way_{name}"] = (total + cross + cross.T) / n**2
    mean_gram = sum(x @ x.T for x in H) / n
    grams["own_grams"] = mean_gram
    scales = torch.linspace(0, 1.5, 15_001, dtype=H.dtype)
    errors = {f"nrmse_{k}": float((x - G).norm() / G.norm()) for k, x in grams.items()}
    tried = (scales[:, None, None] * mean_gram - G).flatten(1).norm(dim=1)
    return errors | {"nrmse_own_grams_scaled": float(tried.min() / G.norm())}


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

    def test_the_run_is_left_as_it_is_and_costs_what_it_costs(self):
        problem = quadratics()
        probe = GramProbe(PREF)
        draw = probe.draw(problem, seeded(0, "rounds"))
        alone = PREF.draw(problem, seeded(0, "rounds"))
        for x, y in zip(draw._replace(chance=()), alone, strict=True):
            assert x is y or torch.equal(x, y)
        state = probe.init(problem)
        probed, seen = probe.round(Vectorized(problem), state, draw)
        plain, info = PREF.round(Vectorized(problem), state, alone)
        assert torch.equal(probed.w, plain.w)
        assert all(torch.equal(seen[k], v) for k, v in info.items())

    def test_noise_comes_back_as_it_was_drawn(self):
        draw = GramProbe(PREF).draw(quadratics(), seeded(0, "rounds"))
        noises = unpacked(draw.chance, TASKS, SHARED)
        assert {name: tuple(x.shape[1:]) for name, x in noises.items()} == {
            name: shape for name, shape in shapes(TASKS, SHARED).items() if shape
        }
        positions = noises["masked"]
        assert positions.shape == (
            4,
            Masked().rule(TASKS).draw(1, TASKS * SHARED, seeded(0, "split")).shape[1],
        )
        assert all(len(row.unique()) == len(row) for row in positions)
        assert 0 <= int(positions.min()) <= int(positions.max()) < TASKS * SHARED
        assert torch.equal(positions, noises["unscaled"])
        assert abs(float(noises["block"].std()) - 1) < 0.2

    def test_it_runs_in_the_loop(self):
        trace = run(GramProbe(PREF), quadratics(), rounds=2, seeds=[0, 1], progress=False)
        assert trace.info["nrmse_one_way_block"].shape == (2, 2)


CMOO = FedCMOO(lr=0.5, local_steps=3, participants=2, batch_size=4, shared=28_515)
RIVAL = FSMGDA(lr=0.1, local_steps=2, participants=2, batch_size=4, shared=28_515)


class TestProgressProbe:
    def test_the_gains_are_those_of_networks_trained_by_hand(self):
        problem = pictures()
        probe = ProgressProbe(CMOO, RIVAL)
        state = probe.init(problem)
        draw = probe.draw(problem, seeded(0, "rounds"))
        reached, info = probe.round(Sequential(problem), state, draw)
        expected = by_hand(problem, state, reached.weights, draw)
        for name, gain in expected.items():
            assert float(info[name]) == pytest.approx(gain, abs=2e-5), name
        assert expected["method_loss"] > 0
        names = [f"{n}_{k}" for n in ("method", "alone", "share") for k in ("loss", "accuracy")]
        for name in names:
            mean = (info[f"{name}_1"] + info[f"{name}_2"]) / 2
            assert float(info[name]) == pytest.approx(float(mean), abs=1e-6)

    def test_the_run_is_left_as_it_is_and_both_have_the_same_participants(self):
        problem = pictures()
        probe = ProgressProbe(CMOO, RIVAL)
        draw = probe.draw(problem, seeded(0, "rounds"))
        alone = CMOO.draw(problem, seeded(0, "rounds"))
        state = probe.init(problem)
        probed, seen = probe.round(Loop(problem), state, draw)
        plain, info = CMOO.round(Loop(problem), state, alone)
        assert torch.equal(probed.w, plain.w)
        assert all(torch.equal(seen[k], v) for k, v in info.items())
        twin = RIVAL.draw(problem, seeded(0, "rounds"))
        assert torch.equal(twin.participants, draw.participants)
        assert torch.equal(twin.batches, draw.chance)


def by_hand(problem, state, lam, draw):
    """The gains of both local trainings with modules of torch and their own backward passes."""
    module = networks.pair_lenet(torch.Generator())

    def forward(w, rows):
        torch.nn.utils.vector_to_parameters(w, module.parameters())
        return module((problem.data[0][rows] / 255 - 0.1307) / 0.3081), problem.data[1][rows]

    def losses(w, rows):
        outputs, y = forward(w, rows)
        return torch.stack([cross_entropy(outputs[:, k], y[:, k]) for k in range(2)])

    def stepped(w, rows, weights, lr):
        module.zero_grad()
        (losses(w, rows) @ weights).backward()
        return w - lr * torch.cat(
            [
                p.grad.flatten() if p.grad is not None else torch.zeros(p.numel())
                for p in module.parameters()
            ]
        )

    def own(w, rows):
        with torch.no_grad():
            outputs, y = forward(w, rows)
            hits = (outputs.argmax(-1) == y).float().mean(0)
            return torch.stack([-losses(w, rows), hits])

    w0 = state.w
    eye = torch.eye(2)
    total = []
    deltas = []
    for i, j in enumerate(draw.participants):
        rows = problem.rows[j]
        steps = [stepped(w0, rows[draw.batches[i, k]], eye[k], 0.5) - w0 for k in range(2)]
        u = w0 + lam[0] * steps[0] + lam[1] * steps[1]
        for step in (2, 3):
            u = stepped(u, rows[draw.batches[i, step]], lam, 0.5)
        alone = []
        for k in range(2):
            v = w0
            for e in range(2):
                v = stepped(v, rows[draw.chance[i, 2 * k + e]], eye[k], 0.1)
            alone.append(v)
        deltas.append(torch.stack([w0 - v for v in alone]) / 0.2)
        total.append((rows, u, alone))
    mean = sum(deltas)[:, :28_515] / len(deltas)
    weights = MinNorm()(mean @ mean.T, state.weights)
    of_clients = []
    for (rows, u, alone), delta in zip(total, deltas, strict=True):
        start = own(w0, rows)
        own_ends = torch.stack([own(alone[k], rows)[:, k] for k in range(2)], 1)
        share = w0 - 0.2 * (weights @ delta)
        of_clients.append(torch.stack([own(u, rows), own_ends, own(share, rows)]) - start)
    gains = sum(of_clients) / len(of_clients)
    return {
        f"{trained}_{curve}{end}": float(gains[a, b].mean() if k is None else gains[a, b, k])
        for a, trained in enumerate(("method", "alone", "share"))
        for b, curve in enumerate(("loss", "accuracy"))
        for k, end in ((None, ""), (0, "_1"), (1, "_2"))
    }
