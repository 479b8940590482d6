"""Leakage: matched gradients and oracle answers, a linear layer's input, rebuilt models."""

import math

import pytest
import torch
from expect import refuses
from problems import objectives
from randoms import generator

import fedlib as fl
from fedlib import data, models
from fedlib.core.sampling import seeded
from papers.fedfw.leakage import gradients as c

SHAPES = [(32, 64), (32,), (10, 32), (10,)]


@pytest.fixture(scope="module")
def picture():
    """One digit of 8 x 8, and a sigmoid network 64-32-10 in float64."""
    table = data.digits()
    X = (table.X[:1] / 16).flatten(1).double()
    module = models.mlp((64, 32, 10), torch.nn.Sigmoid, rng=generator())
    w, apply = models.ravel(module)
    return apply, w.double(), X, table.y[:1]


def attacked(picture, signal, guess=None, steps=25):
    return c.attack(
        *picture, 10, signal=signal, guess=guess, rng=generator(1), steps=steps, every=steps
    )


@pytest.mark.parametrize(
    "signal",
    [c.Whole(), c.Oracle(fl.Ball(1.0)), c.Oracle(fl.Blocks.of_shapes(SHAPES, fl.Ball(1.0)))],
    ids=["gradient", "l2 oracle", "l2 oracle of each tensor"],
)
def test_gradients_and_l2_answers_give_the_picture_away(picture, signal):
    found = attacked(picture, signal)
    assert found.steps.tolist() == [0, 25]
    assert found.psnr[0] < 5
    assert found.psnr[1] > 40
    assert found.mismatch[1] < 1e-6 * found.mismatch[0]
    torch.testing.assert_close(found.guesses[-1], picture[2], atol=0.05, rtol=0)


def test_the_l1_answer_hides_it(picture):
    """The exact oracle's answer has no derivative; matching the soft one finds another picture."""
    exact = attacked(picture, c.Oracle(fl.L1Ball(1.0)))
    assert torch.equal(exact.guesses[0], exact.guesses[1])
    soft = attacked(picture, c.Oracle(fl.L1Ball(1.0)), guess=c.SmoothL1(1.0))
    assert soft.mismatch[1] < 0.01 * soft.mismatch[0]
    assert soft.psnr[1] < 10


def test_the_soft_vertex_tends_to_the_vertex():
    g = torch.tensor([0.3, -2.0, 1.0], dtype=torch.float64)
    for sharpness, close in ((20.0, 1e-3), (200.0, 1e-12)):
        soft = c.SmoothL1(3.0, sharpness)(g)
        assert (soft - fl.L1Ball(3.0).lmo(g)).abs().max() < close
    assert (c.SmoothL1(3.0, 2.0)(g) - fl.L1Ball(3.0).lmo(g)).abs().max() > 0.1
    assert c.SmoothL1(1.0)(torch.zeros(3)).tolist() == [0, 0, 0]


def test_the_leaked_gradient_is_the_gradient(picture):
    apply, w, X, y = picture
    wanted = torch.func.grad(lambda u: torch.nn.functional.cross_entropy(apply(u, X), y))(w)
    hot = torch.nn.functional.one_hot(y, 10).double()
    found = c.leaked_gradient(apply, w, X, hot)
    torch.testing.assert_close(found.detach(), wanted)


@pytest.mark.parametrize("scale", [1.0, -7.5])
def test_a_linear_layer_with_bias_tells_its_input_exactly(picture, scale):
    apply, w, X, y = picture
    hot = torch.nn.functional.one_hot(y, 10).double()
    message = scale * c.leaked_gradient(apply, w, X, hot).detach()
    weights, biases = message[: 32 * 64].view(32, 64), message[32 * 64 : 32 * 64 + 32]
    torch.testing.assert_close(c.input_of_linear_layer(weights, biases), X[0], atol=1e-14, rtol=0)
    answer = fl.Ball(10.0).lmo(message)
    seen = c.input_of_linear_layer(answer[: 32 * 64].view(32, 64), answer[32 * 64 : 32 * 64 + 32])
    torch.testing.assert_close(seen, X[0], atol=1e-14, rtol=0)


def test_psnr_by_hand():
    assert c.psnr(torch.full((4,), 0.1), torch.zeros(4)) == pytest.approx(20)
    assert c.psnr(torch.full((4,), 0.1), torch.zeros(4), peak=2.0) == pytest.approx(20 + 6.0206)
    assert c.psnr(torch.ones(3), torch.ones(3)) == math.inf


@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_the_server_rebuilds_every_clients_model_from_the_messages(participation):
    """Nothing but the wire is read: what `decode` gives, the steps, and who sent something."""
    problem = objectives(clients=5, tasks=1, dim=6, spread=0.5).within(fl.L1Ball(0.5))
    method = fl.FedFW(0.1, participation=participation)
    sent, eta, active = [], [], []

    class Tapped(fl.Loop):
        def ask(self, *arguments, **options):
            answer = super().ask(*arguments, **options)
            sent.append(answer[0])
            active.append(options["active"])
            return answer

    state, rng, path = method.init(problem), seeded(0, "rounds"), []
    for t in range(1, 16):
        path.append(state.x)
        eta.append(2 / (participation * (t - 1) + 2))
        state, _ = method.round(Tapped(problem), state, method.draw(problem, rng))
    rebuilt = c.rebuilt_models(path[0], torch.stack(sent), eta, torch.stack(active))
    torch.testing.assert_close(rebuilt, torch.stack([*path, state.x]), atol=1e-12, rtol=0)
    if participation == 1:
        everybody = c.rebuilt_models(path[0], torch.stack(sent), torch.tensor(eta))
        torch.testing.assert_close(everybody, rebuilt, atol=1e-6, rtol=0)


def test_refusals(picture):
    refuses("attack: steps must be at least 1, got 0.", attacked, picture, c.Whole(), steps=0)
    refuses("SmoothL1: radius must be positive, got 0.0.", c.SmoothL1, 0.0)
    words = "input_of_linear_layer: biases must have a gradient that is not 0, got 'zeros'."
    refuses(words, c.input_of_linear_layer, torch.ones(2, 3), torch.zeros(2))
    words = "rebuilt_models: eta must hold one number for each of the 4 rounds, got 1."
    refuses(words, c.rebuilt_models, torch.zeros(2, 3), torch.zeros(4, 2, 3), [0.5])
