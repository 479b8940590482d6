"""The study on bounds: instances fit their theorems, runs are as prescribed, numbers as defined."""

import numpy as np
import pytest
import torch

from fedlib import run
from papers import STUDIES
from papers.fedsgm.bounds.methods import CLIENTS, DIM, instance
from papers.fedsgm.bounds.quantities import Reached, reached, reached_slopes
from papers.fedsgm.bounds.runs import DEFAULTS, again, plans, stairs
from papers.fedsgm.problems.staircase import staircase
from papers.fedsgm.problems.weakly_convex import value_spread
from papers.kit import store
from papers.kit.quantities import name_of

STUDY = STUDIES["bounds"]
TINY = {
    "seeds": (0, 1, 2),
    "rounds": 20,
    "horizons": (10, 20),
    "threshold_factors": (0.0, 1.0),
    "step_factors": (1.0,),
    "stairs": (4, 12),
    "stairs_local_steps": (3,),
}


@pytest.fixture(scope="module")
def params():
    return STUDY.resolve("quick", **TINY)


@pytest.fixture(scope="module")
def traces(params):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDLIB_RESULTS", "no-such-folder")
        return store.compute_or_load(
            "bounds",
            "quick",
            STUDY.specs(params),
            progress=False,
        )


def test_sigma_bounds_how_far_two_clients_differ_on_the_constraint():
    for rows in (1, 4):
        problem = instance(3, "ball", rows)
        losses = torch.func.vmap(problem.losses, in_dims=(None, 0))
        rng = torch.Generator().manual_seed(0)
        for w in torch.randn(20, DIM, generator=rng, dtype=torch.float64):
            g = losses(w, problem.all_clients())[:, 1]
            assert g.max() - g.min() <= 2 * value_spread(problem)
    assert problem.sizes == (4,) * CLIENTS


def test_a_plan_is_found_again_from_the_run(params, traces):
    for planned in plans(params):
        name = name_of(planned.spec.labels, DEFAULTS)
        from_run = again(traces[name])
        assert from_run.rate == planned.rate, name
        assert from_run.spec.rounds == planned.spec.rounds


def test_reached_is_measured_at_the_averaged_iterate(traces):
    trace = traces["hard_printed_T20"]
    r = reached(trace)
    problem = instance(1)
    values = problem.metrics(torch.from_numpy(trace.output[1]), problem)
    assert r.gap[1] == pytest.approx(float(values["f_gap"]))
    assert r.g[1] == pytest.approx(float(values["g"]))
    assert (r.worst == np.maximum(r.gap, r.g)).all()
    assert r.bound == pytest.approx(again(trace).rate.accuracy)


def test_slopes_of_made_up_values():
    runs = {}
    for T in (10, 100, 1000):
        g = np.array([T**-0.5, 3 * T**-1.0])
        runs[T] = Reached(np.array([-1.0, -1.0]), g, 2 * T**-0.25, 2 * T**-0.25)
    assert reached_slopes(runs) == pytest.approx(np.array([-0.5, -1.0]))


@pytest.mark.parametrize("local_steps", [1, 3])
def test_the_staircase_ends_at_the_gap_of_its_lemma(local_steps):
    for version, gamma in (("printed", 2 * local_steps**2), ("ours", 1.5 * local_steps - 1)):
        planned = stairs({"method": "stairs", "version": version}, 12, local_steps)
        problem = planned.spec.problem(0)
        trace = run(planned.spec.algorithm, problem, rounds=12, progress=False)
        output = torch.from_numpy(trace.output[0])
        gap = float(problem.metrics(output, problem)["f_gap"])
        expected = 1 / np.sqrt(12 * local_steps)
        assert gap == pytest.approx(expected)
        expected = 1 / np.sqrt(2 * gamma)
        assert gap / planned.rate.accuracy == pytest.approx(expected)


def test_the_staircase_is_what_it_says():
    problem = staircase(4, distance=2.0)
    w = problem.heldout[0]
    assert w.norm().item() == pytest.approx(2)
    best = float(problem.mean_losses(w)[0])
    assert best == pytest.approx(-1)
    rng = torch.Generator().manual_seed(0)
    for scale in (0.1, 1.0, 10.0):
        for u in scale * torch.randn(50, 4, generator=rng, dtype=torch.float64):
            f, _ = problem.mean_losses(u).tolist()
            assert f >= best - 1e-12


def test_numbers_of_all_runs_are_there_and_promises_kept(traces, params):
    numbers = STUDY.derive(traces, params)
    for name in traces:
        assert numbers[f"{name}.top"].value <= 1 + 1e-6, name
        assert numbers[f"{name}.bound"].value > 0
    assert numbers["stairs_ours_T12.share"].value == pytest.approx(1.0)
    assert {"hard_printed.slope", "weak_printed.slope_bound"} <= {*numbers}
