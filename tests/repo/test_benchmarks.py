"""The workloads are what they say, and all entries do the same. Nothing is timed."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.func import vmap
from torch.nn.functional import cross_entropy

import fedlib as fl
from fedlib.core.problem import Batch, pullback
from fedlib.engine import compile as compiled
from fedlib.problems.classification import mlp_model

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks/ is no part of the package

from benchmarks import bench, workloads  # noqa: E402
from benchmarks.workloads import WORKLOADS  # noqa: E402

ROWS = {"W1": 6400, "W2": 800, "W3": 460, "W4": 1000, "W5": 3200}  # as few as the batches allow
SHAPES = {
    "W1": (100, 7840),
    "W2": (100, 34_635),
    "W3": (20, 30),
    "W4": (10, 101_770),
    "W5": (100, 998_530),
}
SINGLE = {name: replace(WORKLOADS[name], rows=rows, rounds=2) for name, rows in ROWS.items()}
WORK = {"participants": 2, "local_steps": 2, "batch_size": 8}
SINGLE["W2"] = replace(SINGLE["W2"], work=WORK)
WEEKLY = pytest.param("W5", marks=pytest.mark.weekly)  # W4, wider
single = pytest.mark.parametrize("name", [*(name for name in SINGLE if name != "W5"), WEEKLY])


def small(kind, **options):
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(40, 7, generator=rng, dtype=torch.float64)
    y, rows = torch.arange(40) % 5, torch.randperm(40, generator=rng).view(4, 10)
    model = workloads.softmax_model(7, 5) if kind == "softmax" else mlp_model(7, 6, 5, None)
    return workloads.by_class(model, X, y, rows, **options)


@pytest.mark.parametrize(
    ("name", "constrained"),
    [
        *((name, True) for name in SINGLE if name != "W5"),
        pytest.param("W5", True, marks=pytest.mark.weekly),  # W4, wider
        *(("W1", False), ("W3", False)),
    ],
)
def test_two_rounds_and_the_closed_form_equals_the_general_path(name, constrained):
    problem = SINGLE[name].problem(constrained=constrained)
    algorithm = SINGLE[name].algorithm(constrained=constrained)
    assert (problem.num_clients, problem.dim) == SHAPES[name]
    closed = fl.run(algorithm, problem, rounds=2, progress=False)
    general = fl.run(algorithm, replace(problem, gradient=None), rounds=2, progress=False)
    assert not torch.equal(closed.state.w[0], problem.w0)
    torch.testing.assert_close(closed.state.w, general.state.w, rtol=1e-4, atol=1e-6)
    for key, values in closed.metrics.items():
        np.testing.assert_allclose(values, general.metrics[key], rtol=1e-4, err_msg=key)


@single
def test_a_torch_loop_and_fedlib_do_the_same(name, monkeypatch):
    monkeypatch.setattr(compiled, "LONG", float("inf"))
    common = workloads.drawn(SINGLE[name], turns=0)
    entries = bench.makers(name, common)
    made = {key: entries[key]() for key in (bench.OURS, bench.LOOP)}
    times = bench.take_turns({key: go for key, (go, _) in made.items()}, 0, 2)
    assert [len(own) for own in times.values()] == [1, 1]
    ours, loop = (models() for _, models in made.values())
    assert not torch.equal(ours[0, 0], common.problem.w0)
    torch.testing.assert_close(ours, loop, rtol=1e-3, atol=1e-5)
    losses = {key: common.loss(models()) for key, (_, models) in made.items()}
    bench.check_losses(name, losses)
    with pytest.raises(ValueError, match="must reach one loss"):
        bench.check_losses(name, losses | {"other": 1.1 * losses[bench.OURS]})


def test_many_runs_together_have_their_own_draws():
    common = workloads.drawn(WORKLOADS["W3, 33 runs"], turns=0)
    assert (len({*common.lr}), common.rows.shape) == (11, (3, 200, 10, 1, 22))
    assert common.lr[5] == pytest.approx(1.1 * WORKLOADS["W3"].lr)
    assert not torch.equal(common.rows[0], common.rows[1])
    assert bench.LOOP not in bench.makers("W3, 33 runs", common)


@pytest.mark.parametrize("name", ["W1", "W4"])
def test_fedsgm_meets_both_branches(name):
    problem, method = (
        make(constrained=True) for make in (SINGLE[name].problem, SINGLE[name].algorithm)
    )
    sigma = fl.run(method, problem, rounds=40, evaluate_every=40, progress=False).info["sigma"]
    assert set(sigma.flatten()) == {0.0, 1.0}


@pytest.mark.parametrize("constrained", [(), (3, 4)], ids=["one loss", "two losses"])
@pytest.mark.parametrize("kind", ["softmax", "relu"])
def test_the_closed_gradient_equals_autograd(kind, constrained):
    problem = small(kind, constrained=constrained)
    rng = torch.Generator().manual_seed(1)
    w = problem.w0 + 0.5 * torch.randn(4, problem.dim, generator=rng, dtype=torch.float64)
    weights = torch.tensor([0.3, 0.7] if constrained else [0.4], dtype=torch.float64)
    data, _ = problem.all_clients()
    batch = Batch(data, torch.rand(4, 10, generator=rng, dtype=torch.float64))

    def both(w, batch):
        autograd = pullback(problem.losses, None, w, batch, weights)
        return problem.gradient(w, batch, weights), autograd

    for shared in (False, True):  # clients with models of their own, and with the same one
        given = (w[0], batch) if shared else (w, batch)
        closed, autograd = vmap(both, in_dims=(None if shared else 0, 0))(*given)
        assert closed.abs().max() > 1e-3
        torch.testing.assert_close(closed, autograd, rtol=1e-12, atol=1e-13)


def test_losses_are_cross_entropies_of_the_classes():
    one, two = small("softmax"), small("softmax", constrained=(3, 4))
    w = 0.3 * torch.arange(one.dim).double().sin()
    X, y, _ = one.data
    out, last = X @ w.view(5, 7).T, y >= 3
    mine = torch.zeros(40, dtype=torch.bool).index_fill(0, two.rows[0], True)
    batch = Batch(tuple(x[two.rows[0]] for x in two.data), torch.full((10,), 0.1).double())
    f, g = two.losses(w, batch)
    torch.testing.assert_close(f, cross_entropy(out[mine & ~last], y[mine & ~last]))
    torch.testing.assert_close(g, cross_entropy(out[mine & last], y[mine & last]))


@pytest.mark.parametrize("method", bench.METHODS)
def test_every_method_has_a_round_at_scale(method):
    size = bench.Size(N=6, n=3, d=5, rows=8)
    problem = bench.problem_at(method, size)
    assert (problem.num_clients, problem.dim, len(problem.data[0])) == (6, 5, 8)
    ran = fl.run(bench.algorithm_at(method, size), problem, rounds=2, progress=False)
    assert ran.metrics["norm"][0, -1] > 0


def miscounted_cases(stored, page):
    """The cases of every processor that are neither stored nor named on the page, or both."""
    for processor, block in stored.items():
        for part, (cases, _) in bench.PARTS.items():
            measured = block.get(part, {}).get("results", {})
            unknown = set(measured) - set(cases)
            assert not unknown, f"{processor} holds {unknown} that `{part}` does not measure"
            for case in cases:
                if (case in measured) == is_named(page, processor, part, case):
                    yield f"{processor}: {part}, {case}"


def is_named(page, processor, part, case):
    """Whether a list item `* PROCESSOR, PART: CASES are not measured` names a case.

    Cases are given by their names or the beginning of their names, each in backquotes; without any
    the item names all cases of the part.
    """
    for line in page.splitlines():
        head, _, rest = line.partition(": ")
        if head != f"* {processor}, `{part}`" or "not measured" not in rest:
            continue
        named = re.findall("`(.*?)`", rest)
        if not named or any(case == name or case.startswith(f"{name},") for name in named):
            return True
    return False


def test_what_the_book_shows_is_stored_whole_and_names_no_place():
    text = (ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8")
    page = (ROOT / "book" / "speed.md").read_text(encoding="utf-8")
    assert [*miscounted_cases(json.loads(text), page)] == []
    assert '"/' not in text


def test_a_case_that_is_neither_stored_nor_named_or_both_is_found():
    cases, _ = bench.PARTS["start"]
    results = dict.fromkeys(cases[1:])
    block = {part: {"results": dict.fromkeys(names)} for part, (names, _) in bench.PARTS.items()}
    stored = {"P": {**block, "start": {"results": results}}}
    assert [*miscounted_cases(stored, "")] == [f"P: start, {cases[0]}"]
    assert [*miscounted_cases(stored, f"* P, `start`: `{cases[0]}` is not measured.")] == []
    both = [f"P: start, {case}" for case in cases[:2]]
    assert [*miscounted_cases(stored, f"* P, `start`: `{cases[1]}` is not measured.")] == both
    assert [*miscounted_cases({"P": {**block, "start": {}}}, "* P, `start`: not measured.")] == []
    with pytest.raises(AssertionError, match="does not measure"):
        [*miscounted_cases({"P": {"start": {"results": {"other": None}}}}, "")]


def test_a_measurement_goes_to_the_block_of_its_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "ENOUGH", 0.0)
    path = tmp_path / "own.json"
    other = {"Another processor": {"scale": {"machine": {}, "results": {}}}}
    path.write_text(json.dumps(other))
    bench.main(["scale", "--cases", "FedAvg, seeds, 0", "--json", str(path)])
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["Another processor"] == other["Another processor"]
    block = stored[bench.processor()]
    assert block["scale"]["results"]["FedAvg, seeds, 0"]["cpu_ms"] > 0
