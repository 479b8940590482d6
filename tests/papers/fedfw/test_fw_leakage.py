"""The study of leakage: networks, attackers, quantities by hand."""

import pytest
import torch
from torch.testing import assert_close

import fedlib as fl
from fedlib.core.sampling import seeded
from papers.fedfw.leakage.attacks import (
    Attacker,
    Oracle,
    SmoothL1,
    Whole,
    leaked_gradient,
    one_hot,
)
from papers.fedfw.leakage.problem import Network, leak_problem
from tests.helpers.expect import close
from tests.helpers.problems import double
from tests.helpers.randoms import uniform

SMALL = Network("mlp", 1, 8, hidden=12)
PROBLEM = leak_problem(0, name="digits", network=SMALL)


# Networks and attackers


@pytest.mark.parametrize(
    ("net", "dim"),
    [
        (Network("mlp", 1, 8), 64 * 32 + 32 + 330),
        (Network("lenet", 3, 16), 912 + 2 * 3612 + 12 * 16 * 10 + 10),
        (Network("lenet", 1, 28), 312 + 2 * 3612 + 12 * 49 * 10 + 10),
    ],
)
def test_networks_have_their_size_and_outputs_of_each_picture(net, dim):
    w = net.start(seeded(0, "split"))
    assert w.shape == (dim,)
    X = uniform(2, net.channels, net.side, net.side)
    outputs = net(w, X)
    assert outputs.shape == (2, 10)
    assert_close(outputs[:1], net(w, X[:1]))


@pytest.mark.parametrize(
    "signal",
    [Whole(), Oracle(fl.Ball(1.0)), Oracle(fl.Blocks.of_shapes(SMALL.shapes(), fl.Ball(1.0)))],
    ids=["gradient", "l2 oracle", "l2 oracle of each tensor"],
)
def test_gradients_and_l2_answers_give_the_picture_away(signal):
    trace = fl.run(
        Attacker(SMALL, signal, steps=25),
        PROBLEM,
        rounds=25,
        progress=False,
    )
    assert trace.metrics["psnr"][0, 0] < 5
    assert trace.metrics["psnr"][0, -1] > 40
    assert trace.info["mismatch"][0, -1] < 1e-6
    close(trace.state.w[0], PROBLEM.heldout[0].flatten(), 0.05)


def test_the_leaked_gradient_is_the_gradient():
    X, y, w, _ = PROBLEM.heldout
    slope = torch.func.grad(lambda u: torch.nn.functional.cross_entropy(SMALL(u, X), y))(w)
    leaked = leaked_gradient(SMALL, w, X, one_hot(y)).detach()
    assert_close(leaked, slope)


def test_the_soft_vertex_tends_to_the_vertex():
    g = double(0.3, -2.0, 1.0)
    for sharpness, distance in ((20.0, 1e-3), (200.0, 1e-12)):
        soft = SmoothL1(3.0, sharpness)(g)
        assert (soft - fl.L1Ball(3.0).lmo(g)).abs().max() < distance
    assert (SmoothL1(3.0, 2.0)(g) - fl.L1Ball(3.0).lmo(g)).abs().max() > 0.1
    assert SmoothL1(1.0)(torch.zeros(3)).tolist() == [0, 0, 0]


def test_the_l1_answer_does_not_let_the_attacker_move():
    exact = Attacker(SMALL, Oracle(fl.L1Ball(10.0)), steps=2)
    trace = fl.run(exact, PROBLEM, rounds=2, progress=False)
    assert torch.equal(trace.state.w[0], PROBLEM.w0)
    soft = Attacker(SMALL, Oracle(fl.L1Ball(10.0)), SmoothL1(10.0), steps=2)
    trace = fl.run(soft, PROBLEM, rounds=2, progress=False)
    assert not torch.equal(trace.state.w[0], PROBLEM.w0)
    assert trace.metrics["psnr"][0, -1] < 15


# Quantities


# The study
