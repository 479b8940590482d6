"""Federated Frank-Wolfe and its kin: plain-loop twins, bounds, bits, participation."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Draw
from fedlib.metrics import fw_gap
from fedlib.problems import pareto
from papers.fedfw.theory_fw import Constants, convex_distance, convex_excess, convex_surrogate
from tests.helpers.expect import refuses
from tests.helpers.problems import centred, np_problem, objectives
from tests.helpers.rounds import walk

SETS = {
    "l1": fl.L1Ball(0.5),
    "l2": fl.Ball(0.5),
    "box": fl.Box(0.2),
    "simplex": fl.Simplex(),
    "nuclear": fl.NuclearBall(0.5, 2, 3),
}
LAM = 0.1


def task(convex_set=SETS["l1"], **options):
    return centred(convex_set, **options)


def gradient(problem, i, x, rows=None):
    centres = problem.data[0][problem.rows[i]][:, 0]
    return x - (centres if rows is None else centres[rows]).mean(0)


def plain(problem, method, draws):
    """Algorithm 1 on lists, with its three variants; gives w and the x_i after every round."""
    n = problem.num_clients
    lmo = problem.set.lmo
    method_type = type(method)
    p = method.participation
    lam0 = method.lam0
    x = [problem.w0.clone() for _ in range(n)]
    extra = [torch.zeros_like(problem.w0) for _ in range(n)]
    for t, draw in enumerate(draws, 1):
        w = sum(x) / n
        if method_type is fl.FedFWSto:
            eta = 9 / (t + 8)
            lam = lam0 * math.sqrt(t + 8)
            rho = 4 / (t + 7) ** (2 / 3)
        else:
            eta = 2 / (p * (t - 1) + 2)
            lam = lam0 * math.sqrt(p * (t - 1) + 2)
        for i in range(n):
            if float(draw.chance[i]) >= p:
                continue
            rows = draw.batches[i, 0] if isinstance(draw.batches, torch.Tensor) else None
            g = gradient(problem, i, x[i], rows) / n
            if method_type is fl.FedFWSto:
                extra[i] = (1 - rho) * extra[i] + rho * g
                g = extra[i]
            if method_type is fl.FedFWPlus:
                extra[i] = extra[i] + lam0 * (x[i] - w)
                g = g + extra[i]
            x[i] = (1 - eta) * x[i] + eta * lmo(g + lam * (x[i] - w))
        yield sum(x) / n, x, extra


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
@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Loop])
def test_equals_the_plain_twin(method, engine):
    problem = task()
    path = [*walk(method, problem, 25, engine)]
    twin = plain(problem, method, [draw for _, draw, *_ in path])
    for (w, x, extra), (_, _, state, _) in zip(twin, path, strict=True):
        torch.testing.assert_close(state.w, w, atol=1e-12, rtol=0)
        torch.testing.assert_close(state.x, torch.stack(x), atol=1e-12, rtol=0)
        if type(method) is not fl.FedFW:
            torch.testing.assert_close(state.extra[:, 0], torch.stack(extra), atol=1e-12, rtol=0)
    assert float((state.x - state.w).norm()) > 0.01  # the models differ: the average says something


@pytest.mark.parametrize(
    ("name", "bits"),
    [("l1", 3 + 1), ("l2", 6 * 32), ("box", 6), ("simplex", 3), ("nuclear", 5 * 32)],
)
def test_bits(name, bits):
    problem = task(SETS[name])
    for method in (fl.FedFW(LAM), fl.FedFWPlus(LAM), fl.FedFWSto(LAM, batch_size=2), fl.NaiveFW()):
        ((*_, info),) = walk(method, problem, 1)
        assert info["bits_up"] == 5 * bits
        assert info["bits_down"] == 5 * 6 * 32
    ((*_, info),) = walk(fl.FedFWReset(LAM), problem, 1)
    assert info["bits_up"] == 5 * 6 * 32


def test_a_round_counts_and_moves_those_whose_coin_says_so():
    problem = task()
    method = fl.FedFW(LAM, participation=0.3)
    state = method.init(problem)
    coins = torch.tensor([0.9, 0.1, 0.3, 0.29, 0.5], dtype=torch.float64)
    next_state, info = method.round(
        fl.Vectorized(problem), state, Draw(torch.arange(5), chance=coins)
    )
    moved = (next_state.x != state.x).any(1)
    assert moved.tolist() == [False, True, False, True, False]
    assert info["bits_up"] == 2 * 4
    assert info["bits_down"] == 2 * 6 * 32
    nobody = Draw(torch.arange(5), chance=torch.ones(5, dtype=torch.float64))
    for variant in (method, fl.FedFWPlus(LAM, participation=0.3), fl.FedFWReset(LAM, 0.3)):
        state = variant.init(problem)
        next_state, info = variant.round(fl.Vectorized(problem), state, nobody)
        for field_name in set(state._fields) - {"t"}:
            assert torch.equal(getattr(next_state, field_name), getattr(state, field_name))
        assert next_state.t == 1
        assert info["bits_up"] == info["bits_down"] == 0


def solution(problem):
    """The minimizer over the set (a projection), F*, and the constants of Theorem 1."""
    centres = problem.data[0][problem.rows][:, :, 0].mean(1)  # [N, d]
    best = problem.set.project(centres.mean(0))
    slopes = best - centres
    n = len(centres)
    constants = Constants(
        L=1.0,
        D=problem.set.diameter(problem.dim),
        N=n,
        lam0=LAM,
        dual=float((slopes.mean(0) - slopes).norm()) / n,
        slope=float(slopes.norm()) / n,
    )
    return centres, best, constants


@pytest.mark.parametrize("convex_set", SETS.values(), ids=SETS)
def test_theorem_1_holds(convex_set):
    """(31), (37) and (38) in every round, and the excess does fall."""
    problem = task(convex_set, noise=0.0)
    method = fl.FedFW(LAM)
    centres, best, constants = solution(problem)

    def value(x):
        return 0.5 * ((x - centres) ** 2).sum(-1).mean()

    excess = []
    for t, (_, _, state, _) in enumerate(walk(method, problem, 200), start=1):
        away = (state.x - state.w).norm()
        penalized = value(state.x) + LAM * math.sqrt(t + 1) / 2 * away**2 - value(best)
        assert penalized <= convex_surrogate(constants, t)
        assert away <= convex_distance(constants, t)
        excess.append(float(value(state.w) - value(best)))
        assert -1e-12 <= excess[-1] <= convex_excess(constants, t + 1)
    assert excess[-1] < 0.6 * excess[2]


def test_the_gap_is_zero_at_the_minimizer_only_and_bounds_the_excess():
    for convex_set in SETS.values():
        problem = task(convex_set, noise=0.0)
        centres, best, _ = solution(problem)
        assert abs(float(fw_gap(problem, best))) < 1e-12
        for x in torch.randn(20, 6, generator=torch.Generator().manual_seed(0)).double():
            w = convex_set.project(x)
            excess = 0.5 * ((w - centres) ** 2 - (best - centres) ** 2).sum(-1).mean()
            assert fw_gap(problem, w) >= excess - 1e-12
            sequential_clients = replace(problem, sequential_clients=True)
            torch.testing.assert_close(fw_gap(sequential_clients, w), fw_gap(problem, w))
    with pytest.raises(ValueError, match="fw_gap: problem must have a feasible set"):
        fw_gap(objectives(), torch.zeros(5).double())


BOX = fl.Box(0.2)
BALL = fl.Ball(10.0)
SPLIT = fl.PerClient((BALL, BOX), (0, 1, 0, 1, 1))


@pytest.mark.weekly
def test_split_constraints_find_the_minimizer_over_the_intersection():
    """A ball for some, the box for others: w ends in both, near the projection."""
    problem = task(BOX, noise=0.0)
    _, best, _ = solution(problem)
    method = fl.FedFWPlus(1.0, split=SPLIT)
    trace = fl.run(method, problem, rounds=700, evaluate_every=700, progress=False)
    assert (trace.state.w[0] - best).norm() < 0.08 * best.norm()


def test_a_set_for_all_may_be_split_into_equal_ones():
    problem = task(BOX, noise=0.0)
    split = fl.FedFW(LAM, split=fl.PerClient((BOX, BOX), (0, 1, 0, 1, 0)))
    given = fl.run(split, problem, rounds=20, progress=False)
    expected = fl.run(fl.FedFW(LAM), problem, rounds=20, progress=False)
    torch.testing.assert_close(given.state.w, expected.state.w, atol=1e-12, rtol=0)


@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Loop])
def test_every_client_goes_to_a_point_of_its_own_set(engine):
    problem = task(BOX, noise=0.0)
    coins = torch.tensor([0.9, 0.1, 0.1, 0.1, 0.9], dtype=torch.float64)
    draw = Draw(torch.arange(5), chance=coins)
    method = fl.FedFW(LAM, participation=0.5, split=SPLIT)
    state, info = method.round(engine(problem), method.init(problem), draw)
    assert info["bits_up"] == 6 * 32 + 2 * 6
    in_the_ball_alone = [bool(BALL.contains(x) and not BOX.contains(x)) for x in state.x]
    assert in_the_ball_alone == [False, False, True, False, False]


def test_refusals():
    words = "FedFW: problem must have a feasible set that contains its start, got 'pareto'; build"
    refuses(words, fl.FedFW(1.0).init, objectives(tasks=1))
    outside = replace(task(), w0=torch.ones(6).double())
    refuses("NaiveFW: problem must have a feasible set that contains", fl.NaiveFW().init, outside)
    split = fl.FedFW(1.0, split=fl.PerClient((fl.Ball(1.0),), (0, 0)))
    words = "FedFW: split.of must have an entry for each of 5 clients, got (0, 0)."
    refuses(words, split.init, task())
    limited = np_problem().within(fl.Ball(1.0))
    refuses("FedFWReset: problem must have objectives only", fl.FedFWReset(1.0).init, limited)


CENTRES = torch.tensor([[[[3.0]]], [[[-1.0]]]], dtype=torch.float64)
CURVATURE = torch.full((1, 1), 2.0, dtype=torch.float64)
#: (x - 3)^2 and (x + 1)^2 on [-1, 1], with the minimizer 1.
COUNTEREXAMPLE = pareto(CENTRES, CURVATURE).within(fl.Box(1.0))


def ends(methods, rounds, problem=COUNTEREXAMPLE):
    """The models with which runs end."""
    traces = fl.run(methods, problem, rounds=rounds, evaluate_every=rounds, progress=False)
    return [trace.state.w.item() for trace in traces]


def test_the_naive_scheme_does_not_leave_the_point_between_the_clients():
    assert ends([fl.NaiveFW()], 50) == [0.0]
    beside = replace(COUNTEREXAMPLE, w0=torch.tensor([0.3], dtype=torch.float64))
    assert np.abs(ends([fl.NaiveFW()], 199, beside)).max() < 1e-5
    overwriting = [fl.FedFWReset(lam0, local_steps=5) for lam0 in (0.01, 1.0)]
    assert np.abs(ends(overwriting, 400)).max() < 1e-3


@pytest.mark.weekly
def test_other_methods_leave_it():
    penalties = (0.01, 0.1, 1.0)
    switched = ends([fl.FedFW(x) for x in penalties], 500)
    assert switched == pytest.approx([0.101, 0.529, 0.918], abs=1e-3)
    augmented = ends([fl.FedFWPlus(x) for x in penalties], 500)
    assert augmented == pytest.approx([0.909, 0.997, 0.999], abs=1e-3)


def test_one_overwriting_step_is_the_naive_scheme():
    problem = task()
    a = fl.run(fl.FedFWReset(LAM), problem, rounds=30, progress=False)
    b = fl.run(fl.NaiveFW(), problem, rounds=30, progress=False)
    torch.testing.assert_close(a.state.w, b.state.w, atol=1e-12, rtol=0)
    c = fl.run(fl.FedFW(LAM), problem, rounds=30, progress=False)
    assert (a.state.w - c.state.w).abs().max() > 1e-3


def test_overwriting_steps_equal_their_plain_twin():
    """t counts local steps, the penalty acts within the round, the server averages the models."""
    problem = task()
    steps = 3
    method = fl.FedFWReset(LAM, participation=0.6, local_steps=steps, batch_size=2)
    w = problem.w0
    for t, (_, draw, state, _) in enumerate(walk(method, problem, 10, seed=1)):
        ends = []
        for i in (j for j in range(5) if draw.chance[j] < 0.6):
            x = w
            for e in range(steps):
                clock = 0.6 * (t * steps + e) + 2
                g = gradient(problem, i, x, draw.batches[i, e]) / 5
                g = g + LAM * math.sqrt(clock) * (x - w)
                x = (1 - 2 / clock) * x + 2 / clock * problem.set.lmo(g)
            ends.append(x)
        w = sum(ends) / len(ends) if ends else w
        torch.testing.assert_close(state.w, w, atol=1e-12, rtol=0)


@dataclass(frozen=True)
class OwnSchedule:
    """A schedule whose step and growth are powers of the round times a factor."""

    step: float = 1.0
    growing: float = 1.0

    def eta(self, t, share):  # noqa: ARG002
        return self.step / t

    def growth(self, t, share):  # noqa: ARG002
        return self.growing * t.sqrt()

    def rho(self, t):
        return torch.ones_like(t)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (OwnSchedule(-1.0), "schedule.eta(1) must lie in [0, 1], got -1.0."),
        (OwnSchedule(2.5), "schedule.eta(1) must lie in [0, 1], got 2.5."),
        (OwnSchedule(math.nan), "schedule.eta(1) must lie in [0, 1], got nan."),
        (OwnSchedule(1.0, -1.0), "schedule.growth(1) must be positive, got -1.0."),
        (OwnSchedule(1.0, math.inf), "schedule.growth(1) must be positive and finite, got inf."),
    ],
)
@pytest.mark.parametrize("method", [fl.FedFW, fl.FedFWPlus])
def test_a_schedule_that_leaves_its_range_is_refused_before_a_run(method, schedule, words):
    problem = task()
    refuses(f"{method.__name__}: {words}", method(1.0, schedule=schedule).init, problem)
    method(1.0, schedule=OwnSchedule()).init(problem)
