"""What the low-rank study runs: reference, watched messages, clock, step sizes."""

import pytest
import torch
from expect import refuses
from problems import batches
from torch.func import jacrev

import fedlib as fl
from fedlib.algorithms import FedFW
from papers.fedfw.lowrank import STUDY, methods
from papers.fedfw.lowrank.numbers import TASKS
from papers.fedfw.lowrank.problems import (
    Scales,
    clock_problem,
    one_scale,
    pictures_within,
    scales,
    task_problem,
)
from papers.fedfw.lowrank.watched import Accelerated, Clock, Watched, looked_at

FULL = STUDY.resolve("full")
REGRESSION = {"clients": 3, "rows": 20, "features": 6, "tasks": 5, "rank": 2}
COMPLETION = {"clients": 3, "users": 9, "items": 6, "rank": 2}


def small(task):
    sizes = REGRESSION if task == "regression" else COMPLETION
    return task_problem(0, task=task, steps=15, **sizes)


@pytest.mark.parametrize("task", TASKS)
def test_scales_are_the_largest_eigenvalues(task):
    problem = small(task)
    found = one_scale(problem)

    def hessian(rows):
        return jacrev(jacrev(lambda w: problem.losses(w, rows)[0]))(problem.w0)

    each = [*map(hessian, batches(problem))]
    top = max(float(torch.linalg.eigvalsh(H)[-1]) for H in each)
    mean = float(torch.linalg.eigvalsh(sum(each) / len(each))[-1])
    assert found.client == pytest.approx(top, rel=0.05)
    assert found.mean == pytest.approx(mean, rel=0.05)
    assert found.client <= top * 1.001
    assert scales((problem, problem)).mean == float(f"{found.mean:.2g}")


@pytest.mark.parametrize("task", TASKS)
def test_the_reference_solves_the_problem(task):
    problem = small(task)
    method = Accelerated(1 / scales((problem,)).mean)
    trace = fl.run(method, problem, rounds=600, evaluate_every=300, progress=False)
    loss, gap = trace.metrics["loss"][0], trace.metrics["gap"][0]
    assert gap[-1] < 1e-3 * (loss[0] - loss[-1])
    assert bool(problem.set.contains(trace.state.w[0], 1e-4))
    plain = fl.run(fl.FedAvg(method.lr, 1, 3), problem, rounds=30, progress=False)
    assert plain.metrics["loss"].min() >= loss[-1] - 1e-6


def test_the_first_step_of_the_reference_is_a_projected_gradient_step():
    problem = small("regression")
    one = fl.run(Accelerated(0.1), problem, rounds=1, progress=False)
    same = fl.run(fl.FedAvg(0.1, 1, 3), problem, rounds=1, progress=False)
    torch.testing.assert_close(one.state.w, same.state.w)
    refuses("Accelerated: lr must be positive", Accelerated, 0.0)


def test_watching_changes_nothing():
    problem = small("regression")
    plain = fl.run(FedFW(0.1), problem, rounds=5, progress=False)
    seen = fl.run(Watched(FedFW(0.1)), problem, rounds=5, progress=False)
    torch.testing.assert_close(seen.state.w, plain.state.w)
    assert (seen.info["bits_up"] == plain.info["bits_up"]).all()
    assert seen.info["second"].max() < 1e-5


@pytest.mark.parametrize(
    ("convex_set", "most", "bits"),
    [(fl.L1Ball(10.0), 1, 11), (fl.Simplex(10.0), 1, 10), (fl.Box(1.0), 650, 650)],
    ids=["l1", "simplex", "box"],
)
def test_messages_of_the_picture_problem(convex_set, most, bits):
    problem = pictures_within(0, convex_set=convex_set, rows=100)
    trace = fl.run(Watched(FedFW(0.01)), problem, rounds=2, progress=False)
    assert set(trace.info["most"].flatten()) == set(trace.info["fewest"].flatten()) == {most}
    assert trace.info["bits_up"].mean() == 10 * bits
    assert trace.info["off"].max() == trace.info["wire"].max() == 0


def test_looking_finds_what_is_no_vertex():
    two = torch.tensor([[3.0, -7.0, 0.0, 0.0], [0.0, 10.0, 0.0, 0.0]])
    found = looked_at(two, fl.L1Ball(10.0))
    assert (found["most"], found["fewest"]) == (2, 1)
    assert found["wire"] == 3  # the format gives (0, -10, 0, 0) back
    assert looked_at(torch.tensor([[1.0, 0.6]]), fl.Box(1.0))["off"] == pytest.approx(0.4)
    flat = torch.eye(2).flatten().unsqueeze(0)
    assert looked_at(flat, fl.NuclearBall(1.0, 2, 2))["second"] == 1


def test_the_clock_measures_both_oracles():
    problem = clock_problem(0, rows=30, columns=20, steps=40)
    trace = fl.run(Clock(2), problem, rounds=2, progress=False)
    assert (trace.info["lmo"] > 0).all()
    assert (trace.info["project"] > 0).all()
    assert trace.info["reached"] == pytest.approx(1, abs=1e-4)
    few = fl.run(Clock(), clock_problem(0, rows=30, columns=20, steps=2), rounds=2, progress=False)
    assert (few.info["reached"] < 0.99).all()
    refuses("Clock: repeats must be at least 1", Clock, 0)


def test_step_sizes_are_in_units_of_the_smoothness():
    found = methods(Scales(client=4.0, mean=2.0, penalty=0.5), FULL)
    assert found["fedfw_l0.1"].lam0 == found["plus_l0.1"].lam0 == pytest.approx(0.05)
    assert (found["avg1_a0.3"].lr, found["avg5_a0.3"].lr) == pytest.approx((0.15, 0.075))
    assert (found["avg1_a1"].local_steps, found["avg5_a1"].local_steps) == (1, 5)
    dr = found["dr_e10"]
    assert (dr.eta, dr.lr) == pytest.approx((2.5, 1 / 4.4))
