"""Federated Frank-Wolfe and its kin: plain-loop twins, rounds by hand, bounds, participation."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Draw
from fedlib.metrics import fw_gap
from fedlib.problems import pareto
from tests.helpers.expect import close, refuses
from tests.helpers.problems import centred, double, objectives
from tests.helpers.randoms import normal
from tests.helpers.rounds import walk

SETS = {
    "l1": fl.L1Ball(0.5),
    "l2": fl.Ball(0.5),
    "box": fl.Box(0.2),
    "simplex": fl.Simplex(),
    "nuclear": fl.NuclearBall(0.5, 2, 3),
}
every_set = pytest.mark.parametrize("convex_set", SETS.values(), ids=SETS)
every_engine = pytest.mark.parametrize("engine", [fl.Vectorized, fl.Loop])
LAM = 0.1
N = 5
TASK = centred(SETS["l1"])


def gradient(problem, i, x, rows=None):
    """The gradient of client i's objective on some rows, or on all."""
    centres = problem.data[0][problem.rows[i]][:, 0]
    batch = centres if rows is None else centres[rows]
    return x - batch.mean(0)


def laws(method, t):
    """The step, the penalty and the momentum of round t."""
    if isinstance(method, fl.FedFWSto):
        return 9 / (t + 8), LAM * math.sqrt(t + 8), 4 / (t + 7) ** (2 / 3)
    clock = method.participation * (t - 1) + 2
    return 2 / clock, LAM * math.sqrt(clock), None


def plain_twin(method, draws):
    """Algorithm 1 on lists, with its three variants; gives w and the x_i after every round."""
    x = [TASK.w0.clone() for _ in range(N)]
    extra = [torch.zeros_like(TASK.w0) for _ in range(N)]
    for t, draw in enumerate(draws, start=1):
        w = sum(x) / N
        eta, penalty, rho = laws(method, t)
        for i in range(N):
            if draw.chance[i] >= method.participation:
                continue
            rows = draw.batches[i, 0] if method.batch_size else None
            g = gradient(TASK, i, x[i], rows) / N
            if isinstance(method, fl.FedFWSto):
                extra[i] = (1 - rho) * extra[i] + rho * g
                g = extra[i]
            if isinstance(method, fl.FedFWPlus):
                extra[i] = extra[i] + LAM * (x[i] - w)
                g = g + extra[i]
            point = TASK.set.lmo(g + penalty * (x[i] - w))
            x[i] = (1 - eta) * x[i] + eta * point
        yield sum(x) / N, torch.stack(x), torch.stack(extra)


METHODS = {
    "FedFW": fl.FedFW(LAM),
    "FedFW of some": fl.FedFW(LAM, participation=0.4),
    "FedFW with minibatches": fl.FedFW(LAM, batch_size=2),
    "FedFW+": fl.FedFWPlus(LAM),
    "FedFW+ of some": fl.FedFWPlus(LAM, participation=0.4),
    "FedFW-sto": fl.FedFWSto(LAM, batch_size=2),
    "FedFW-sto of some": fl.FedFWSto(LAM, batch_size=2, participation=0.4),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@every_engine
def test_equals_the_plain_twin(method, engine):
    rounds = list(walk(method, TASK, 25, engine))
    draws = [draw for _, draw, _, _ in rounds]
    twin = plain_twin(method, draws)
    for (w, x, extra), (_, _, state, _) in zip(twin, rounds, strict=True):
        close(state.w, w)
        close(state.x, x)
        if not isinstance(method, fl.FedFW):
            close(state.extra[:, 0], extra)
    assert float((state.x - state.w).norm()) > 0.01  # the models differ: the average says something


def test_overwriting_steps_equal_their_plain_twin():
    """t counts local steps, the penalty acts within the round, the server averages the models."""
    steps = 3
    method = fl.FedFWReset(LAM, participation=0.6, local_steps=steps, batch_size=2)
    w = TASK.w0
    for t, (_, draw, state, _) in enumerate(walk(method, TASK, 10, seed=1)):
        ends = []
        for i in range(N):
            if draw.chance[i] >= 0.6:
                continue
            x = w
            for e in range(steps):
                clock = 0.6 * (t * steps + e) + 2
                g = gradient(TASK, i, x, draw.batches[i, e]) / N
                g = g + LAM * math.sqrt(clock) * (x - w)
                eta = 2 / clock
                x = (1 - eta) * x + eta * TASK.set.lmo(g)
            ends.append(x)
        w = sum(ends) / len(ends) if ends else w
        close(state.w, w)


@dataclass(frozen=True)
class ByShare:
    """A schedule whose step and penalty depend on the round and on the share of clients."""

    step: float = 1.0

    def eta(self, t, share):
        return self.step * share / (t + 1)

    def growth(self, t, share):
        return share * t

    def rho(self, t):
        return 1 / t


def round_with(method, coins, problem=TASK, engine=fl.Vectorized):
    """The state and the report after a round with these coins."""
    draw = Draw(torch.arange(N), chance=double(*coins))
    return method.round(engine(problem), method.init(problem), draw)


def extreme_points(w):
    """Each client's extreme point for its gradient at w."""
    return torch.stack([TASK.set.lmo(gradient(TASK, i, w)) for i in range(N)])


TWO = [0.1, 0.9, 0.3, 0.9, 0.6]  # 0.6 is not less than the share 0.6
PART = {"participation": 0.6, "schedule": ByShare()}


def test_naive_frank_wolfe_takes_the_step_of_all_clients():
    state, _ = round_with(fl.NaiveFW(schedule=ByShare()), TWO)
    step = 1 / 2
    close(state.w, (1 - step) * TASK.w0 + step * extreme_points(TASK.w0).mean(0))


@pytest.mark.parametrize("method", [fl.FedFW(LAM, **PART), fl.FedFWPlus(LAM, **PART)])
def test_those_whose_coin_says_so_take_the_step_of_their_share(method):
    state, info = round_with(method, TWO)
    step = 0.6 / 2  # the first models are equal, so there is no penalty yet
    ends = (1 - step) * TASK.w0 + step * extreme_points(TASK.w0)
    close(state.x[[0, 2]], ends[[0, 2]])
    assert torch.equal(state.x[[1, 3, 4]], TASK.w0.expand(3, -1))
    assert info["bits_up"] == 2 * (3 + 1)  # one of six places, and a sign
    assert info["bits_down"] == 2 * 6 * 32


def test_overwriting_clients_send_models_that_the_server_averages():
    state, info = round_with(fl.FedFWReset(LAM, **PART), TWO)
    step = 0.6 / 2
    ends = (1 - step) * TASK.w0 + step * extreme_points(TASK.w0)
    close(state.w, (ends[0] + ends[2]) / 2)
    assert info["bits_up"] == 2 * 6 * 32


def test_a_round_without_clients_leaves_the_model():
    state, info = round_with(fl.FedFWReset(LAM, participation=0.3), [1.0] * N)
    assert torch.equal(state.w, TASK.w0)
    assert info["bits_up"] == info["bits_down"] == 0


def solution(problem):
    """The clients' centres, and the minimizer over the set, a projection."""
    centres = problem.data[0][problem.rows][:, :, 0].mean(1)  # [N, d]
    return centres, problem.set.project(centres.mean(0))


def value(centres, w):
    """The mean of the clients' objectives."""
    return 0.5 * (w - centres).square().sum(-1).mean()


@every_set
def test_the_gap_is_zero_at_the_minimizer_only_and_bounds_the_excess(convex_set):
    problem = centred(convex_set, noise=0.0)
    centres, best = solution(problem)
    assert abs(float(fw_gap(problem, best))) < 1e-12
    for x in normal(20, 6):
        w = convex_set.project(x)
        gap = fw_gap(problem, w)
        assert gap >= value(centres, w) - value(centres, best) - 1e-12
        one_by_one = replace(problem, sequential_clients=True)
        close(fw_gap(one_by_one, w), gap)


def test_a_problem_without_a_set_has_no_gap():
    words = "fw_gap: problem must have a feasible set"
    refuses(words, fw_gap, objectives(), torch.zeros(5).double())


BOX = fl.Box(0.2)
BALL = fl.Ball(10.0)
SPLIT = fl.PerClient((BALL, BOX), (0, 1, 0, 1, 1))


@pytest.mark.weekly
def test_split_constraints_find_the_minimizer_over_the_intersection():
    """A ball for some, the box for others: w ends in both, near the projection."""
    problem = centred(BOX, noise=0.0)
    _, best = solution(problem)
    method = fl.FedFWPlus(1.0, split=SPLIT)
    trace = fl.run(method, problem, rounds=700, evaluate_every=700)
    assert (trace.state.w[0] - best).norm() < 0.08 * best.norm()


@every_engine
def test_every_client_goes_to_a_point_of_its_own_set(engine):
    problem = centred(BOX, noise=0.0)
    method = fl.FedFW(LAM, participation=0.5, split=SPLIT)
    state, info = round_with(method, [0.9, 0.1, 0.1, 0.1, 0.9], problem, engine)
    for i, convex_set in ((1, BOX), (2, BALL), (3, BOX)):  # the first step has length 1
        close(state.x[i], convex_set.lmo(gradient(problem, i, problem.w0)))
    assert info["bits_up"] == 6 * 32 + 2 * 6


#: (x - 3)^2 and (x + 1)^2 on [-1, 1], with the minimizer 1.
COUNTEREXAMPLE = pareto(
    double([[[3.0]]], [[[-1.0]]]),
    double([2.0]),
).within(fl.Box(1.0))


def ends(methods, rounds, problem=COUNTEREXAMPLE):
    """The models with which runs end."""
    traces = fl.run(methods, problem, rounds=rounds, evaluate_every=rounds)
    return [trace.state.w.item() for trace in traces]


def test_the_naive_scheme_does_not_leave_the_point_between_the_clients():
    assert ends([fl.NaiveFW()], 50) == [0.0]
    beside = replace(COUNTEREXAMPLE, w0=double(0.3))
    assert np.abs(ends([fl.NaiveFW()], 199, beside)).max() < 1e-5
    overwriting = [fl.FedFWReset(lam0, local_steps=5) for lam0 in (0.01, 1.0)]
    assert np.abs(ends(overwriting, 400)).max() < 1e-3


@pytest.mark.parametrize("method", [fl.FedFW, fl.FedFWPlus])
def test_a_schedule_that_leaves_its_range_is_refused_before_a_run(method):
    words = f"{method.__name__}: schedule.eta(1) must lie in [0, 1], got 2.5."
    refuses(words, method(1.0, schedule=ByShare(5.0)).init, TASK)
