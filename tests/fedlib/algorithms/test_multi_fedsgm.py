"""MultiFedSGM: by hand, against a plain twin, its reductions, its bits, and a known Pareto set."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Draw
from fedlib.problems import constrained_pareto
from fedlib.problems.constrained_pareto import constrained_pareto_point
from tests.helpers.expect import close
from tests.helpers.problems import double, np_problem
from tests.helpers.randoms import normal, numbers
from tests.helpers.rounds import walk

EXACT = fl.OneWay(fl.Exact())
BASE = fl.MultiFedSGM(
    lr=0.05,
    local_steps=3,
    participants=4,
    tolerance=0.01,
    weights=fl.MinNorm(),
    gram=EXACT,
)
MIDDLE = double([2.0, 0.0], [0.0, 2.0])
ORIGIN = double(0.0, 0.0)


def test_two_rounds_by_hand():
    # One client in the plane, f_k = |w - c_k|^2 / 2 with c_1 = (4, 0), c_2 = (0, 2), and
    # g = |w|^2 / 2 - 1/2; the start is 0.
    centres = double([4.0, 0.0], [0.0, 2.0])
    problem = constrained_pareto(centres.view(1, 1, 2, 2))
    method = replace(
        BASE,
        lr=0.25,
        local_steps=2,
        participants=1,
        tolerance=0.0,
    )
    fed = fl.Vectorized(problem)
    client = torch.tensor([0])
    draw = Draw(client, others=(Draw(client),))
    state, info = method.round(fed, method.init(problem), draw)
    # Gradients (-4, 0) and (0, -2): G = diag(16, 4), so lam = (1/5, 4/5) and the goal of the
    # weighted steps is (0.8, 1.6). Two steps of 1/4 go 7/16 of the way.
    assert info["g_hat"] == pytest.approx(-0.5)
    assert info["sigma"] == 0
    close(state.lam, double(0.2, 0.8))
    assert info["direction"] == pytest.approx(0.04 * 16 + 0.64 * 4)
    close(state.w, double(0.35, 0.7))
    outside = double(1.2, 1.6)
    state, info = method.round(fed, state._replace(w=outside, x=outside), draw)
    # g = 2 - 1/2 > 0: both steps shrink the model to three quarters, whatever the weights.
    assert info["g_hat"] == pytest.approx(1.5)
    assert info["sigma"] == 1
    close(state.w, double(0.675, 0.9))
    close(method.output(state), ORIGIN)  # the start of the only good round


def random_task():
    """Six clients with four rows each and two objectives; the ball cuts the front."""
    centres = normal(6, 4, 2, 5) + 2 * normal(
        1,
        1,
        2,
        5,
        seed=1,
    )
    balls = normal(6, 5, seed=2)
    w0 = torch.ones(5).double()
    return constrained_pareto(centres, balls, level=0.4, w0=w0)


def shortest(gram):
    """The weights of the shortest point of the segment between two gradients."""
    share = (gram[1, 1] - gram[0, 1]) / (gram[0, 0] + gram[1, 1] - 2 * gram[0, 1])
    share = min(max(float(share), 0.0), 1.0)
    return double(share, 1 - share)


def plain_twin(problem, draws, beta):
    """The pseudocode on lists of clients, with full gradients and the exact Gram matrix."""
    points, ball_centres, levels = problem.data
    centres = [points[rows].mean(0) for rows in problem.rows]
    balls = [ball_centres[rows[0]] for rows in problem.rows]
    constants = [levels[rows[0]] for rows in problem.rows]
    w = problem.w0
    for draw in draws:
        chosen = draw.participants.tolist()
        values = [0.5 * (w - balls[j]).square().sum() - constants[j] for j in chosen]
        z = float(sum(values)) / len(chosen) - BASE.tolerance
        sigma = float(z > 0) if beta is None else min(1.0, max(0.0, 1 + beta * z))
        H = sum(w - centres[j] for j in chosen) / len(chosen)
        lam = shortest(H @ H.T)
        ends = []
        for j in chosen:
            u = w
            for _ in range(BASE.local_steps):
                objective = lam @ (u - centres[j])
                u = u - BASE.lr * ((1 - sigma) * objective + sigma * (u - balls[j]))
            ends.append(u)
        w = sum(ends) / len(ends)
        yield w, sigma, lam


@pytest.mark.parametrize("beta", [None, 4.0])
def test_equals_the_plain_twin(beta):
    problem = random_task()
    method = replace(BASE, switch=fl.Hard() if beta is None else fl.Soft(beta))
    rounds = list(walk(method, problem, 40))
    twin = plain_twin(problem, [draw for _, draw, _, _ in rounds], beta)
    sigmas = set()
    for (_, _, state, info), (w, sigma, lam) in zip(rounds, twin, strict=True):
        close(state.w, w, 1e-10)
        close(state.lam, lam, 1e-8)
        assert float(info["sigma"]) == pytest.approx(sigma, abs=1e-9)
        sigmas.add(sigma)
    assert len(sigmas) > 1


@pytest.mark.parametrize(
    ("weights", "switch"),
    [(None, fl.Hard()), (fl.FixedWeights((1.0,)), fl.Soft(40.0))],
)
def test_with_one_objective_and_fixed_weights_it_is_fedsgm(weights, switch):
    """So its messages are compressed as those of FedSGM, which has a twin."""
    problem = np_problem()
    settings = {
        "lr": 0.3,
        "local_steps": 3,
        "participants": 10,
        "tolerance": 0.05,
        "switch": switch,
        "level": 0.01,
        "uplink": fl.TopK(0.1),
        "downlink": fl.TopK(0.2),
        "batch_size": 4,
        "value_batch_size": 6,
        "resample_for_update": True,
    }
    single = fl.run(fl.FedSGM(**settings), problem, rounds=25)
    several = fl.run(fl.MultiFedSGM(weights=weights, **settings), problem, rounds=25)
    for name, values in single.state._asdict().items():
        assert torch.equal(getattr(several.state, name), values)
    for name, values in single.info.items():
        assert several.info[name].tolist() == values.tolist()


NUMBER = 32
MODEL = 40 * NUMBER
BROADCAST = 6 * MODEL  # the step goes to all 6, what precedes it to 4


@pytest.mark.parametrize(
    ("changes", "up", "down"),
    [
        ({"weights": None}, 4 * (NUMBER + MODEL), 4 * NUMBER + BROADCAST),
        ({}, 4 * (NUMBER + 3 * MODEL), 4 * 3 * NUMBER + BROADCAST),  # with gradients and weights
        (
            {"gram": fl.MeanOfGrams(), "uplink": fl.TopK(0.1)},
            4 * (NUMBER + 4 * (NUMBER + 6) + 4 * NUMBER),  # 4 of 40 entries with their positions
            4 * 3 * NUMBER + BROADCAST,
        ),
    ],
)
def test_the_bits_of_a_round_by_hand(changes, up, down):
    problem = constrained_pareto(numbers(6, 1, 2, 40))
    method = replace(BASE, **changes)
    ((_, _, _, info),) = walk(method, problem, 1)
    assert info["bits_up"] == up
    assert info["bits_down"] == down


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0.5, double([1.0, 0.0], [0.5**0.5, 0.5**0.5], [0.0, 1.0])),
        (1.0, double([2**0.5, 0.0], [1.0, 1.0], [0.0, 2**0.5])),
    ],
)
def test_the_pareto_set_by_hand(level, expected):
    lam = double([1.0, 0.0], [0.5, 0.5], [0.0, 1.0])
    points = constrained_pareto_point(MIDDLE, ORIGIN, level, lam)
    close(points, expected)


#: The segment between the centres lies outside the ball, partly inside, or inside.
LEVELS = (0.5, 1.5, 8.0)


def plane(number):
    """Two objectives in a ball around the origin whose size has this number."""
    offsets = double([0.5, 0.0], [-0.5, 0.0], [0.0, 0.5], [0.0, -0.5])
    centres = offsets.view(4, 1, 1, 2) + MIDDLE
    return constrained_pareto(centres, level=LEVELS[number], w0=double(2.0, 1.5))


@pytest.mark.parametrize("weights", [(3, 1), fl.MinNorm()])
def test_runs_end_on_the_constrained_pareto_set(weights):
    """All levels at once: the seed is the number of the level."""
    method = replace(BASE, lr=0.02, tolerance=0.0, weights=weights)
    end = fl.run(
        method,
        plane,
        rounds=250,
        evaluate_every=250,
        seeds=range(3),
    )
    assert (end.metrics["distance"][:, -1] < 0.03).all()
    assert (end.metrics["g"][:, -1] < 0.01).all()
    if isinstance(weights, tuple):
        for level, w in zip(LEVELS, end.state.w, strict=True):
            goal = constrained_pareto_point(MIDDLE, ORIGIN, level, double(0.75, 0.25))
            close(w, goal, 0.03)
