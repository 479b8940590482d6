"""The study of leakage: networks, attackers, quantities by hand."""

import math

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.core.sampling import seeded
from papers.fedfw.leakage import STUDY
from papers.fedfw.leakage.attacks import (
    Attacker,
    Oracle,
    SmoothL1,
    Whole,
    attack,
    leaked_gradient,
    message,
    one_hot,
)
from papers.fedfw.leakage.pictures import LABELS, places
from papers.fedfw.leakage.problem import Network, dummies, leak_problem
from papers.fedfw.leakage.quantities import first_seen
from tests.helpers.page_figures import figures_of

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
def test_networks_have_their_size_and_a_start_of_their_own(net, dim):
    w = net.start(seeded(0, "split"))
    assert w.shape == (dim,)
    assert sum(map(math.prod, net.shapes())) == dim
    assert torch.equal(w, net.start(seeded(0, "split")))
    assert not torch.equal(w, net.start(seeded(1, "split")))
    X = torch.rand(2, net.channels, net.side, net.side, generator=seeded(0, "rounds")).double()
    out = net(w, X)
    assert out.shape == (2, 10)
    torch.testing.assert_close(out[:1], net(w, X[:1]))
    assert not torch.allclose(out, net(w, X.flip(-1)))


@pytest.mark.parametrize(
    "signal",
    [Whole(), Oracle(fl.Ball(1.0)), Oracle(fl.Blocks.of_shapes(SMALL.shapes(), fl.Ball(1.0)))],
    ids=["gradient", "l2 oracle", "l2 oracle of each tensor"],
)
def test_gradients_and_l2_answers_give_the_picture_away(signal):
    trace = fl.run(Attacker(SMALL, signal, steps=25), PROBLEM, rounds=25, progress=False)
    assert trace.metrics["psnr"][0, 0] < 5
    assert trace.metrics["psnr"][0, -1] > 40
    assert trace.info["mismatch"][0, -1] < 1e-6
    torch.testing.assert_close(trace.state.w[0], PROBLEM.heldout[0].flatten(), atol=0.05, rtol=0)


def test_the_attackers_path_is_that_of_the_search():
    trace = fl.run(Attacker(SMALL, Whole(), steps=4), PROBLEM, rounds=4, progress=False)
    truth, label, weights, number = PROBLEM.heldout
    options = {"signal": Whole(), "guess": Whole(), "rng": dummies(number), "steps": 4}
    guesses, mismatch = attack(SMALL, weights, truth, one_hot(label), **options)
    assert torch.equal(guesses[0].flatten(), PROBLEM.w0)
    apart = (guesses - truth).square().flatten(1).mean(1)
    assert trace.metrics["psnr"][0] == pytest.approx((-10 * apart.log10()).numpy())
    share = mismatch[1:] / message(SMALL, Whole(), PROBLEM).square().sum()
    assert trace.info["mismatch"][0] == pytest.approx(share.numpy())


def test_the_leaked_gradient_is_the_gradient():
    X, y, w, _ = PROBLEM.heldout
    wanted = torch.func.grad(lambda u: torch.nn.functional.cross_entropy(SMALL(u, X), y))(w)
    torch.testing.assert_close(leaked_gradient(SMALL, w, X, one_hot(y)).detach(), wanted)


def test_the_soft_vertex_tends_to_the_vertex():
    g = torch.tensor([0.3, -2.0, 1.0], dtype=torch.float64)
    for sharpness, close in ((20.0, 1e-3), (200.0, 1e-12)):
        soft = SmoothL1(3.0, sharpness)(g)
        assert (soft - fl.L1Ball(3.0).lmo(g)).abs().max() < close
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


def test_seeds_have_pictures_networks_and_dummies_of_their_own():
    other = leak_problem(1, name="digits", network=SMALL)
    for a, b in zip(PROBLEM.heldout[::2], other.heldout[::2], strict=True):
        assert not torch.equal(a, b)
    assert not torch.equal(PROBLEM.w0, other.w0)
    assert 0 <= PROBLEM.data[0].min() < PROBLEM.data[0].max() <= 1


# Quantities


def test_quantities_by_hand():
    traces = STUDY.load()
    quantities = STUDY.numbers(traces)
    path = traces["mnist_lenet_gradient"].metrics["psnr"]
    ends = {signal: traces[f"mnist_lenet_{signal}"].metrics["psnr"][:, -1] for signal in LABELS}
    assert quantities["mnist_lenet_gradient.psnr"].per_seed == pytest.approx(path[:, -1])
    assert quantities["mnist_lenet_gradient.best"].per_seed == pytest.approx(path.max(1))
    capped = np.minimum(ends["gradient"], 60) - np.minimum(ends["l2"], 60)
    apart = quantities["mnist_lenet.gradient_minus_l2"]
    assert apart.per_seed == pytest.approx(capped)
    better = np.minimum(ends["l2"], 60) - np.maximum(ends["l1"], ends["soft"])
    assert quantities["mnist_lenet.l2_minus_l1"].per_seed == pytest.approx(better)
    places = [f"{data}_{net}" for data in ("mnist", "cifar10") for net in ("mlp", "lenet")]
    values = [quantities[f"fresh_{place}.l2_minus_l1"].per_seed for place in places]
    assert quantities["fresh_all.l2_minus_l1"].per_seed == pytest.approx(np.mean(values, 0))


def test_the_first_step_with_a_picture():
    psnr = np.array([[0.0, 24.9, 25.0, 10.0], [0, 1, 2, 3]])
    assert first_seen(psnr).tolist() == [2, 3]


# The study


def test_figures_draw_what_there_is():
    axes = figures_of("fw_leakage")["figure_1"].drawn.axes
    assert [len(ax.images) for ax in axes] == [1] * 2 * len(places(STUDY.load())) * 5
