"""The study of fair classification: its methods against plain twins, its tuning, its tables."""

import numpy as np
import pytest
import torch

import fedlib as fl
from papers import STUDIES
from papers.fedsgm.curves import tuned
from tests.helpers.expect import refuses
from tests.helpers.people import entropy, gap, outputs, real_rows, task
from tests.helpers.rounds import walk


def plain_direction(problem, u, rows, a, b):
    """Gradient of a * entropy + b * signed gap on some rows, by autograd on the plain formulas."""
    X, y, group, _ = (x[rows] for x in problem.data)
    v = u.clone().requires_grad_()
    p = outputs(v, X)
    return torch.autograd.grad(a * entropy(p, y) + b * gap(p, group), v)[0]


def plain_pooled(problem, w, clients):
    rows = torch.cat([real_rows(problem, int(j)) for j in clients])
    signed = gap(outputs(w, problem.data[0][rows]), problem.data[2][rows])
    return signed.abs(), signed.sign()


@pytest.mark.parametrize("kind", ["hard", "soft", "penalty", "client"])
def test_pooled_switching_equals_its_plain_twin(kind):
    common = {"lr": 0.5, "local_steps": 2, "participants": 3, "tolerance": 0.03, "batch_size": 12}
    problem = task(sign="client" if kind == "client" else "pooled")
    if kind == "penalty":
        method = fl.PenaltyFedAvg(**common, rho=2.0)
    else:
        method = fl.FedSGM(**common, switch=fl.Soft(30.0) if kind == "soft" else fl.Hard())
    w = 4 * problem.w0
    start = method.init(problem)._replace(w=w, **({} if kind == "penalty" else {"x": w}))
    signs, sigmas = set(), set()
    for _, draw, state, info in walk(method, problem, 30, start=start):
        value, sign = plain_pooled(problem, w, draw.participants)
        sigma = (1 + 30 * (value - 0.03)).clamp(0, 1) if kind == "soft" else (value > 0.03).double()
        ends = []
        for i, j in enumerate(draw.participants):
            u = w
            for tau in range(2):
                rows = problem.rows[j, draw.batches[i, tau]]
                X, _, group, _ = (x[rows] for x in problem.data)
                turn = gap(outputs(u, X), group).sign() if kind == "client" else sign
                a, b = (1, 2 * sigma * turn) if kind == "penalty" else (1 - sigma, sigma * turn)
                u = u - 0.5 * plain_direction(problem, u, rows, a, b)
            ends.append(u)
        w = sum(ends) / 3
        signs.add(float(sign))
        sigmas.add(float(sigma))
        torch.testing.assert_close(state.w, w, atol=1e-7, rtol=0)
        assert info["sigma"].item() == pytest.approx(float(sigma))
    assert signs == {-1.0, 1.0}, "a test of the sign must see both"
    assert len(sigmas) > 1


def torch_adam(problem, w, batches, a, b):
    """Where a client ends: torch's own Adam on `a f + b signed gap`, batch after batch."""
    u = w.clone().requires_grad_()
    optimizer = torch.optim.Adam([u], lr=0.1, foreach=False)
    for rows in batches:
        u.grad = plain_direction(problem, u.detach(), rows, a, b)
        optimizer.step()
    return u.detach()


@pytest.mark.parametrize("kind", ["hard", "soft", "dropped"])
def test_adam_at_the_clients_equals_its_plain_twin(kind):
    common = {"lr": 0.1, "local_steps": 3, "participants": 3, "tolerance": 0.03, "batch_size": 12}
    problem, sigmas = task(), set()
    switch = fl.Soft(30.0) if kind == "soft" else fl.Hard()
    uplink = fl.TopK(0.2) if kind == "dropped" else fl.Identity()
    method = fl.FedSGM(**common, switch=switch, uplink=uplink, local=fl.Adam())
    w = x = 4 * problem.w0
    start = method.init(problem)._replace(w=w, x=x)
    kept = torch.zeros(4, problem.dim, dtype=w.dtype)
    for _, draw, state, info in walk(method, problem, 12, start=start):
        value, sign = plain_pooled(problem, w, draw.participants)
        sigma = (1 + 30 * (value - 0.03)).clamp(0, 1) if kind == "soft" else (value > 0.03).double()
        sent = []
        for i, j in enumerate(draw.participants):
            batches = problem.rows[j, draw.batches[i]]
            end = torch_adam(problem, w, batches, 1 - sigma, sigma * sign)
            whole = kept[j] + (w - end) / 0.1
            sent.append(uplink(whole, ()))
            kept[j] = whole - sent[-1]
        w = w - 0.1 * sum(sent) / 3
        sigmas.add(float(sigma))
        torch.testing.assert_close(state.w, w, atol=1e-7, rtol=0)
        assert info["sigma"].item() == pytest.approx(float(sigma))
    assert len(sigmas) > 1


def test_averaging_with_adam_at_the_clients_equals_its_plain_twin():
    method = fl.FedAvg(lr=0.1, local_steps=3, participants=3, batch_size=12, local=fl.Adam())
    problem = task()
    w = problem.w0
    for _, draw, state, _ in walk(method, problem, 3):
        batches = [problem.rows[j, draw.batches[i]] for i, j in enumerate(draw.participants)]
        w = sum(torch_adam(problem, w, b, 1, 0) for b in batches) / 3
        torch.testing.assert_close(state.w, w, atol=1e-7, rtol=0)


@pytest.mark.parametrize("rho", [None, 3.0])
def test_centralized_steps_take_fresh_batches_for_values_and_gradients(rho):
    problem = task(clients=1)
    work = {"lr": 0.5, "tolerance": 0.05, "steps": 3, "batch_size": 10, "value_batch_size": 40}
    method = fl.SGM(**work) if rho is None else fl.PenaltySGM(rho=rho, **work)
    w = 4 * problem.w0
    start = method.init(problem)._replace(w=w)
    worked = set()
    for _, draw, state, _ in walk(method, problem, 15, start=start):
        for step in range(3):
            rows = problem.rows[0, draw.values[0, 40 * step : 40 * (step + 1)]]
            signed = gap(outputs(w, problem.data[0][rows]), problem.data[2][rows])
            on = (signed.abs() > 0.05).double()
            worked.add(float(on))
            a, b = (1 - on, on) if rho is None else (1.0, rho * on)
            rows = problem.rows[0, draw.batches[0, step]]
            w = w - 0.5 * plain_direction(problem, w, rows, a, b * signed.sign())
        torch.testing.assert_close(state.w, w, atol=1e-8, rtol=0)
    assert worked == {0.0, 1.0}


def test_a_penalty_is_tuned_on_training_curves_alone():
    def trace(f, g):
        curves = {"f": np.full((2, 11), f), "g": np.full((2, 11), g)}
        return fl.Trace(curves, {}, np.arange(11), (0, 1), {})

    traces = {"a": trace(0.3, 0.2), "b": trace(0.36, 0.051), "c": trace(0.38, 0.01)}
    assert tuned(traces, 0.05) == "b"
    assert tuned({name: traces[name] for name in "ac"}, 0.05) == "c"
    infeasible = {name: traces[name] for name in "ab"}
    assert tuned(infeasible, 0.04) == "b"  # the smallest gap


def test_every_study_of_the_stand_in_says_so():
    study = STUDIES["fairness"]
    quick = study.specs(study.resolve("quick"))["hard"].problem(0).config
    assert quick["data"] == "generated stand-in"
    assert study.resolve("full")["stand_in_rows"] == 0


def test_a_grid_of_conex_is_refused_where_its_steps_and_duals_do_not_pair():
    study = STUDIES["fairness"]
    words = "fairness: conex_duals must have an entry for each of conex_steps (2), got (*)."
    refuses(words, study.specs, study.resolve("quick", conex_steps=[0.1, 0.2]))
