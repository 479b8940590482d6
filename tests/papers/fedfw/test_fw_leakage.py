"""The study of leakage: networks, attackers, numbers by hand, the rule both ways."""

import math

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.core import Trace
from fedlib.core.sampling import seeded
from papers.fedfw.leakage import (
    C12,
    C12_CODE,
    FIGURES,
    FRESH,
    PLACES,
    SIGNALS,
    STUDY,
    derive,
    first_seen,
)
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
from papers.fedfw.leakage.problem import Network, dummies, leak_problem
from tests.helpers.planted import drawn

FULL = STUDY.resolve("full")
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


# Numbers


def path(*values, seeds=2):
    """An attack whose PSNR runs through some values for every seed, a hundredth apart."""
    x = np.array([[v + s / 100 for v in values] for s in range(seeds)])
    T = len(values)
    metrics = {"psnr": x, "cosine": np.ones_like(x)}
    state = np.zeros((seeds, 64))
    return Trace(metrics, {}, np.arange(T), tuple(range(seeds)), {}, {"wall_s": 2.0}, state)


def whole(**ends):
    """All runs of the full profile; `ends` are final PSNRs by signal."""
    end = {"gradient": 55.0, "l2": 45.0, "tensors": 40.0, "l1": 0.0, "soft": 5.0, **ends}
    runs = [
        (f"{seeds}{place}_{s}", s) for seeds in ("", FRESH) for place in PLACES for s in SIGNALS
    ]
    return {run: path(-1.0, 3.0, end[s]) for run, s in runs}


def numbers(**ends):
    return derive(whole(**ends), FULL)


def test_numbers_by_hand():
    n = numbers(gradient=90.0)
    assert n["mnist_mlp_gradient.psnr"].per_seed == pytest.approx((90, 90.01))
    assert n["mnist_mlp_gradient.seen"].value == 100
    assert n["mnist_mlp_gradient.steps"].value == 2
    assert n["mnist_mlp_soft.seen"].value == 0
    assert n["cifar10_lenet.gradient_minus_l2"].per_seed == pytest.approx((15, 14.99))
    assert n["cifar10_lenet.l2_minus_l1"].value == pytest.approx(40)
    assert n["places.gradient_minus_l2"].per_seed == pytest.approx((15, 14.99))
    assert n["cifar10_lenet_l2.best"].value == pytest.approx(45.005)


def test_the_better_attack_on_l1_counts_for_every_seed():
    n = numbers(l1=30.0, soft=20.0)
    assert n["mnist_mlp.l2_minus_l1"].value == pytest.approx(15)


def test_the_first_step_with_a_picture():
    assert first_seen(np.array([[0.0, 24.9, 25.0, 10.0], [0, 1, 2, 3]])).tolist() == [2, 3]


# The rule


GRADIENT, ORACLE = "higher from gradients than from", "higher from answers of the l2 oracle than"


@pytest.mark.parametrize("rule", [C12, C12_CODE])
def test_c12_holds_in_the_papers_order(rule):
    done = rule(numbers())
    assert done.verdict == "reproduced"
    assert "mnist mlp: 55" in done.measured


@pytest.mark.parametrize(
    ("rule", "ends", "failing"),
    [
        (C12, {"l2": 56.0}, [GRADIENT]),
        (C12, {"tensors": 56.0}, []),
        (C12, {"l1": 47.0}, [ORACLE]),
        (C12, {"soft": 48.0}, [ORACLE]),
        (C12, {"gradient": 120.0, "l2": 100.0}, [GRADIENT]),
        (C12_CODE, {"l2": 56.0}, []),
        (C12_CODE, {"tensors": 56.0}, [GRADIENT]),
        (C12_CODE, {"l1": 42.0}, [ORACLE]),
        (C12_CODE, {"soft": 48.0}, [ORACLE]),
    ],
)
def test_each_part_of_c12_can_fail(rule, ends, failing):
    done = rule(numbers(**ends))
    assert done.verdict == ("mixed" if failing else "reproduced")
    assert {text for text in (GRADIENT, ORACLE) if text in done.reason} == set(failing)


def test_a_mean_over_the_places_decides():
    traces = whole()
    traces[f"{FRESH}mnist_mlp_gradient"] = path(-1.0, 3.0, 41.0)  # 4 dB worse; 10 better elsewhere
    assert C12(derive(traces, FULL)).verdict == "reproduced"


def test_c12_fails_where_all_are_alike():
    assert C12(numbers(**dict.fromkeys(SIGNALS, 70.0))).verdict == "not reproduced"


# The study


def test_figures_draw_what_there_is():
    traces = {k: t for k, t in whole().items() if k.startswith("mnist")}
    axes = drawn(FIGURES["figure_1"], traces)
    assert [len(ax.images) for ax in axes] == [1] * 2 * 2 * 5
