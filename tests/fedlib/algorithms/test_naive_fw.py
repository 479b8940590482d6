"""What FedFW is compared with: the naive scheme and steps that overwrite the models."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import centred
from rounds import walk

import fedlib as fl
from fedlib.problems import pareto

LAM = 0.1
L1 = fl.L1Ball(0.5)


def gradient(problem, i, x, rows=None):
    own = problem.data[0][problem.rows[i]][:, 0]
    return x - (own if rows is None else own[rows]).mean(0)


def test_the_counterexample():
    """(x - 3)^2 and (x + 1)^2 on [-1, 1]: the naive scheme stays at 0, the minimizer is 1."""
    centres = torch.tensor([[[[3.0]]], [[[-1.0]]]], dtype=torch.float64)
    problem = pareto(centres, torch.full((1, 1), 2.0, dtype=torch.float64)).within(fl.Box(1.0))

    def end(methods, rounds=2000):
        traces = fl.run(methods, problem, rounds=rounds, evaluate_every=rounds, progress=False)
        return [trace.state.w.item() for trace in traces]

    assert end([fl.NaiveFW()]) == [0.0]
    start = replace(problem, w0=torch.tensor([0.3], dtype=torch.float64))
    later = fl.run(fl.NaiveFW(), start, rounds=500, progress=False).state.w.item()
    assert abs(later) < 1e-5
    overwriting = [fl.FedFWReset(lam0, local_steps=5) for lam0 in (0.01, 1.0)]
    assert np.abs(end(overwriting)).max() < 1e-4
    assert end([fl.FedFW(x) for x in (0.01, 0.1, 1.0)]) == pytest.approx(
        [0.183, 0.691, 0.957], abs=1e-3
    )
    assert end([fl.FedFWPlus(x) for x in (0.01, 0.1, 1.0)]) == pytest.approx(
        [0.987, 0.999, 1.0], abs=1e-3
    )


def test_one_overwriting_step_is_the_naive_scheme():
    problem = centred(L1)
    a = fl.run(fl.FedFWReset(LAM), problem, rounds=30, progress=False)
    b = fl.run(fl.NaiveFW(), problem, rounds=30, progress=False)
    torch.testing.assert_close(a.state.w, b.state.w, atol=1e-12, rtol=0)
    c = fl.run(fl.FedFW(LAM), problem, rounds=30, progress=False)
    assert (a.state.w - c.state.w).abs().max() > 1e-3


def test_overwriting_steps_equal_their_plain_twin():
    """t counts local steps, the penalty acts within the round, the server averages the models."""
    problem, steps = centred(L1), 3
    method = fl.FedFWReset(LAM, participation=0.6, local_steps=steps, batch_size=2)
    w = problem.w0
    for t, (_, draw, state, _) in enumerate(walk(method, problem, 10, seed=1)):
        ends = []
        for i in (j for j in range(5) if draw.chance[j] < 0.6):
            x = w
            for e in range(steps):
                now = 0.6 * (t * steps + e) + 2
                g = gradient(problem, i, x, draw.batches[i, e]) / 5
                g = g + LAM * math.sqrt(now) * (x - w)
                x = (1 - 2 / now) * x + 2 / now * problem.set.lmo(g)
            ends.append(x)
        w = sum(ends) / len(ends) if ends else w
        torch.testing.assert_close(state.w, w, atol=1e-12, rtol=0)
