"""MultiFedSGM: by hand, against a plain twin, its reductions, its bits, and a known Pareto set."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.func import vmap
from torch.nn.functional import binary_cross_entropy_with_logits

import fedlib as fl
from fedlib import models, problems
from fedlib.core.problem import Draw
from fedlib.problems import constrained_pareto
from fedlib.problems.constrained_pareto import constrained_pareto_point
from tests.helpers.expect import close, refuses
from tests.helpers.problems import np_problem
from tests.helpers.rounds import walk
from tests.helpers.weekly import further_weekly

EXACT = fl.OneWay(fl.Exact())
BASE = fl.MultiFedSGM(
    lr=0.05,
    local_steps=3,
    participants=4,
    tolerance=0.01,
    weights=fl.MinNorm(),
    gram=EXACT,
)


def double(*values):
    """A tensor of float64 numbers."""
    return torch.tensor(values, dtype=torch.float64)


def plane(start, level=0.5):
    """Two objectives with centres (2, 0) and (0, 2), in a ball around the origin."""
    offsets = double([0.5, 0.0], [-0.5, 0.0], [0.0, 0.5], [0.0, -0.5])
    centres = offsets.view(4, 1, 1, 2) + 2 * torch.eye(2).double()
    return constrained_pareto(centres, level=level, w0=double(*start))


def random_task(seed=0, dim=5):
    """Six clients with four rows each and two objectives; the ball cuts the front."""
    rng = torch.Generator().manual_seed(seed)
    centres = torch.randn(6, 4, 2, dim, generator=rng, dtype=torch.float64)
    centres += 2 * torch.randn(1, 1, 2, dim, generator=rng, dtype=torch.float64)
    balls = torch.randn(6, dim, generator=rng, dtype=torch.float64)
    return constrained_pareto(centres, balls, level=0.4, w0=torch.ones(dim).double())


def test_two_rounds_by_hand():
    # One client in the plane, f_k = |w - c_k|^2 / 2 with c_1 = (4, 0), c_2 = (0, 2), and
    # g = |w|^2 / 2 - 1/2; the start is 0.
    centres = double([4.0, 0.0], [0.0, 2.0]).view(1, 1, 2, 2)
    problem = constrained_pareto(centres)
    method = replace(
        BASE,
        lr=0.25,
        local_steps=2,
        participants=1,
        tolerance=0.0,
    )
    fed = fl.Vectorized(problem)
    draw = Draw(torch.tensor([0]), others=(Draw(torch.tensor([0])),))
    state, info = method.round(fed, method.init(problem), draw)
    # Gradients (-4, 0) and (0, -2): G = diag(16, 4), so lam = (1/5, 4/5) and the goal of the
    # weighted steps is (0.8, 1.6). Two steps of 1/4 go 7/16 of the way.
    assert info["g_hat"] == pytest.approx(-0.5)
    assert info["sigma"] == 0
    close(state.lam, double(0.2, 0.8))
    assert info["direction"] == pytest.approx(0.04 * 16 + 0.64 * 4)
    close(state.w, double(0.35, 0.7))
    outside = state._replace(w=double(1.2, 1.6), x=double(1.2, 1.6))
    state, info = method.round(fl.Vectorized(problem), outside, draw)
    # g = 2 - 1/2 > 0: both steps shrink the model to three quarters, whatever the weights.
    assert info["g_hat"] == pytest.approx(1.5)
    assert info["sigma"] == 1
    close(state.w, double(0.675, 0.9))
    close(method.output(state), torch.zeros(2).double())  # the start of the only good round


def shortest(gram):
    """The weights of the shortest point of the segment between two gradients."""
    share = (gram[1, 1] - gram[0, 1]) / (gram[0, 0] + gram[1, 1] - 2 * gram[0, 1])
    share = min(max(float(share), 0.0), 1.0)
    return double(share, 1 - share)


def top(x, k):
    """The k entries of x with the largest magnitude."""
    sent = torch.zeros_like(x)
    for i in x.abs().argsort(descending=True)[:k]:
        sent[i] = x[i]
    return sent


def plain_twin(problem, draws, lr, steps, beta, tolerance, k_up, k_down):
    """The pseudocode on lists of clients, with full gradients and the exact Gram matrix."""
    points, ball_centres, levels = problem.data
    centres = [points[rows].mean(0) for rows in problem.rows]
    balls = [ball_centres[rows[0]] for rows in problem.rows]
    constants = [levels[rows[0]] for rows in problem.rows]
    w = problem.w0
    x = w
    residuals = [torch.zeros_like(w) for _ in centres]
    path = []
    for draw in draws:
        chosen = draw.participants.tolist()
        values = [0.5 * (w - balls[j]).square().sum() - constants[j] for j in chosen]
        z = float(sum(values)) / len(chosen) - tolerance
        sigma = float(z > 0) if beta is None else min(1.0, max(0.0, 1 + beta * z))
        H = sum(w - centres[j] for j in chosen) / len(chosen)
        lam = shortest(H @ H.T)
        messages = []
        for j in chosen:
            u = w
            for _ in range(steps):
                objective = lam @ (u - centres[j])
                constraint = u - balls[j]
                u = u - lr * ((1 - sigma) * objective + sigma * constraint)
            delta = (w - u) / lr
            message = top(residuals[j] + delta, k_up)
            residuals[j] = residuals[j] + delta - message
            messages.append(message)
        x = x - lr * sum(messages) / len(messages)
        w = w + top(x - w, k_down)
        path.append((w, sigma, lam))
    return path, residuals


@pytest.mark.parametrize("beta", [None, 4.0])
@pytest.mark.parametrize(("k_up", "k_down"), [(5, 5), (2, 3)])
def test_equals_the_plain_twin(beta, k_up, k_down):
    problem = random_task()
    switch = fl.Hard() if beta is None else fl.Soft(beta)
    uplink = fl.TopK(k_up / 5)
    downlink = fl.TopK(k_down / 5)
    method = replace(BASE, switch=switch, uplink=uplink, downlink=downlink)
    rounds = [*walk(method, problem, 40)]
    draws = [draw for _, draw, _, _ in rounds]
    path, residuals = plain_twin(problem, draws, 0.05, 3, beta, 0.01, k_up, k_down)
    for (_, _, state, info), (w, sigma, lam) in zip(rounds, path, strict=True):
        close(state.w, w, 1e-10)
        close(state.lam, lam, 1e-8)
        assert float(info["sigma"]) == pytest.approx(sigma, abs=1e-9)
    _, _, end_state, _ = rounds[-1]
    close(end_state.residual, torch.stack(residuals), 1e-10)
    assert len({sigma for _, sigma, _ in path}) > 1


ONE_OBJECTIVE = [*product([None, (2.0,), fl.FixedWeights((1.0,))], [fl.Hard(), fl.Soft(40.0)])]


@pytest.mark.parametrize(
    ("weights", "switch"), further_weekly(ONE_OBJECTIVE, [ONE_OBJECTIVE[0], ONE_OBJECTIVE[3]])
)
def test_with_one_objective_and_fixed_weights_it_is_fedsgm(weights, switch):
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
    options = {"rounds": 25, "seeds": [0, 1], "progress": False}
    single = fl.run(fl.FedSGM(**settings), problem, **options)
    several = fl.run(fl.MultiFedSGM(weights=weights, **settings), problem, **options)
    for name, values in single.state._asdict().items():
        assert torch.equal(getattr(several.state, name), values)
    assert single.info.keys() == several.info.keys()
    for name, values in single.info.items():
        assert (several.info[name] == values).all()
    assert single.metrics["g"].tolist() == several.metrics["g"].tolist()


def test_with_fixed_weights_it_is_fedsgm_on_the_weighted_objective():
    problem = random_task()

    def weighted(w, batch):
        losses = problem.losses(w, batch)
        return torch.stack([0.75 * losses[0] + 0.25 * losses[1], losses[2]])

    single = replace(
        problem,
        losses=weighted,
        gradient=None,
        num_objectives=1,
        metrics=lambda w, p: {"f": p.mean_losses(w)[0]},
    )
    settings = {
        "lr": 0.05,
        "local_steps": 3,
        "participants": 4,
        "tolerance": 0.01,
    }
    options = {"rounds": 30, "progress": False}
    several_end = fl.run(fl.MultiFedSGM(weights=(3, 1), **settings), problem, **options)
    single_end = fl.run(fl.FedSGM(**settings), single, **options)
    close(several_end.state.w, single_end.state.w, 1e-12)


def bits(method, problem):
    """The bits of a first round, up and down."""
    ((_, _, _, info),) = walk(method, problem, 1)
    return int(info["bits_up"]), int(info["bits_down"])


def test_the_bits_of_a_round_by_hand():
    problem = constrained_pareto(torch.randn(6, 1, 2, 40, generator=torch.Generator()))
    number = 32
    model = 40 * number
    broadcast = 6 * model  # the step goes to all 6, what precedes it to 4
    plain = fl.MultiFedSGM(
        lr=0.05,
        local_steps=3,
        participants=4,
        tolerance=0.01,
    )
    assert bits(plain, problem) == (4 * (number + model), 4 * number + broadcast)
    exact = replace(plain, weights=fl.MinNorm(), gram=EXACT)  # with both gradients and weights
    assert bits(exact, problem) == (4 * (number + 3 * model), 4 * 3 * number + broadcast)
    small = replace(exact, gram=fl.MeanOfGrams(), uplink=fl.TopK(0.1))
    entries = 4 * (number + 6)  # 4 of 40 entries with their positions
    matrix = 4 * number
    assert bits(small, problem) == (4 * (number + entries + matrix), 4 * 3 * number + broadcast)


def test_a_two_way_estimate_has_the_messages_of_fedcmoo():
    centres = torch.randn(6, 1, 2, 40, generator=torch.Generator())
    method = replace(BASE, gram=fl.TwoWay())
    sketch = fl.FedCMOO(0.05, 3, 4, gram=fl.TwoWay())
    expected, _ = bits(sketch, problems.pareto(centres))
    actual, _ = bits(method, constrained_pareto(centres))
    assert actual == expected + 4 * 32  # and the four values of the constraint


#: The segment between the centres lies outside the ball, partly inside, or inside.
PLANES = [*product([0.5, 1.5, 8.0], [(0.0, 0.0), (2.0, 1.5)])]


def numbered_plane(number):
    """The problem of a level and a start."""
    level, start = PLANES[number]
    return plane(start, level)


@pytest.mark.parametrize("weights", [(3, 1), fl.MinNorm()])
def test_runs_end_on_the_constrained_pareto_set(weights):
    """From two starts for each level, all at once: the seed is the number of the plane."""
    method = fl.MultiFedSGM(0.02, 2, 4, tolerance=0.0, weights=weights, gram=EXACT)
    options = {"rounds": 250, "evaluate_every": 250, "progress": False}
    end = fl.run(method, numbered_plane, seeds=range(len(PLANES)), **options)
    assert (end.metrics["distance"][:, -1] < 0.03).all()
    assert (end.metrics["g"][:, -1] < 0.01).all()
    if isinstance(weights, tuple):
        lam = double(*weights)
        middle = 2 * torch.eye(2).double()
        for (level, _), w in zip(PLANES, end.state.w, strict=True):
            goal = constrained_pareto_point(middle, torch.zeros(2).double(), level, lam / lam.sum())
            close(w, goal, 0.03)


def test_minimum_norm_weights_leave_an_optimal_model_for_the_one_nearest_to_the_segment():
    problem = plane((1.0, 0.0))  # the best feasible model for objective 1
    method = fl.MultiFedSGM(0.02, 2, 4, tolerance=0.0, weights=fl.MinNorm(), gram=EXACT)
    trace = fl.run(method, problem, rounds=300, evaluate_every=300, progress=False)
    assert trace.metrics["distance"][0, 0] < 1e-6
    close(trace.state.w[0], double(0.5**0.5, 0.5**0.5), 0.03)
    assert trace.metrics["f_1"][0, -1] > trace.metrics["f_1"][0, 0] + 0.3


def test_soft_switching_and_compression_end_there_too():
    problem = random_task()
    method = replace(
        BASE,
        lr=0.02,
        participants=6,
        tolerance=0.0,
        switch=fl.Soft(20.0),
        uplink=fl.TopK(0.4),
        downlink=fl.TopK(0.4),
        gram=fl.TwoWay(),
    )
    end = fl.run(method, problem, rounds=200, evaluate_every=200, progress=False)
    assert end.metrics["distance"][0, 0] > 1
    assert end.metrics["distance"][0, -1] < 0.05
    assert abs(end.metrics["g"][0, -1]) < 0.06


def test_the_pareto_set_by_hand():
    middle = double([2.0, 0.0], [0.0, 2.0])
    lam = double([1.0, 0.0], [0.5, 0.5], [0.0, 1.0])
    points = constrained_pareto_point(middle, torch.zeros(2).double(), 0.5, lam)
    close(points, double([1.0, 0.0], [0.5**0.5, 0.5**0.5], [0.0, 1.0]))
    inside = constrained_pareto_point(middle, torch.zeros(2).double(), 1.0, lam)
    close(inside, double([2**0.5, 0.0], [1.0, 1.0], [0.0, 2**0.5]))


def test_no_feasible_model_is_better_than_a_point_of_the_set_in_both_objectives():
    problem = random_task()
    (front,) = problem.heldout
    rng = torch.Generator().manual_seed(1)
    points = front[::50]
    candidates = front[torch.randint(len(front), (2000,), generator=rng)]
    candidates = candidates + 0.3 * torch.randn(2000, 5, generator=rng, dtype=torch.float64)
    losses = vmap(problem.mean_losses)(candidates)
    feasible = losses[losses[:, 2] <= 0]
    assert len(feasible) > 100
    for point in points:
        at_point = problem.mean_losses(point)
        assert at_point[2] < 1e-9
        better = (feasible[:, :2] < at_point[:2] - 1e-9).all(1)
        assert not better.any()


def first_loss(rows):
    values = binary_cross_entropy_with_logits(
        rows.output.squeeze(-1), rows.target, reduction="none"
    )
    return rows.mean(values)


def second_loss(rows):
    return rows.mean((rows.output.squeeze(-1) - rows.target) ** 2)


def rate(rows):
    return rows.mean(torch.sigmoid(rows.output.squeeze(-1))) - 0.4


def people_s_task():
    """Two objectives and two constraints of people's own on a linear model."""
    rng = torch.Generator().manual_seed(0)
    clients = []
    for size in (20, 12, 30):
        inputs = torch.randn(size, 4, generator=rng)
        clients.append((inputs, (inputs[:, 0] > -0.5).float()))
    return problems.from_clients(
        clients,
        module=models.linear(4, 1),
        objective=[first_loss, second_loss],
        constraint=[rate, lambda rows: rows.mean(rows.output.squeeze(-1)) - 1.0],
    )


@pytest.mark.parametrize("weights", [pytest.param((3, 1), marks=pytest.mark.weekly), fl.MinNorm()])
def test_people_s_own_objectives_and_constraints(weights):
    method = fl.MultiFedSGM(0.3, 2, 3, tolerance=0.02, weights=weights, batch_size=8)
    options = {"rounds": 80, "evaluate_every": 10, "progress": False}
    trace = fl.run(method, people_s_task(), **options)
    assert trace.late("f_1") < trace.metrics["f_1"][0, 0]
    assert trace.late("g") < 0.08


@pytest.mark.weekly  # the contract holds MultiFedSGM to the checks on the library's problems
@pytest.mark.parametrize("weights", [(3, 1), fl.MinNorm()])
def test_the_common_checks_hold_on_people_s_own_problem(weights):
    method = fl.MultiFedSGM(0.3, 2, 3, tolerance=0.02, weights=weights, batch_size=8)
    fl.check_algorithm(method, people_s_task())


def test_refuses_what_does_not_fit():
    sentence = "MultiFedSGM: problem must have at least one constraint, got 0; without any, take"
    refuses(sentence, BASE.init, problems.pareto(torch.ones(4, 1, 2, 3)))
    three = replace(BASE, weights=(1, 2, 3))
    refuses(
        "FixedWeights: values must hold a number for each of 2 objectives",
        three.init,
        plane((0, 0)),
    )
    with pytest.raises((TypeError, ValueError), match="MultiFedSGM: weights"):
        replace(BASE, weights=(1.0, -1.0))
