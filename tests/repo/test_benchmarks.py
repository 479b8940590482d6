"""The workloads are what they say, and all entries do the same. Nothing is timed."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.func import vmap
from torch.testing import assert_close

import fedlib as fl
from benchmarks import bench, workloads
from benchmarks.workloads import WORKLOADS, softmax_model
from fedlib.core.problem import Batch, pullback
from fedlib.engine import compile as compiled
from fedlib.problems.classification import mlp_model
from tests.helpers.expect import refuses
from tests.helpers.weekly import further_weekly

ROOT = Path(__file__).resolve().parents[2]
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


each_workload = pytest.mark.parametrize("name", further_weekly(SINGLE, ["W1", "W2", "W3", "W4"]))


def small(model, **options):
    """Four clients with rows of five classes."""
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(40, 7, generator=rng, dtype=torch.float64)
    y = torch.arange(40) % 5
    rows = torch.randperm(40, generator=rng).view(4, 10)
    return workloads.by_class(
        model,
        X,
        y,
        rows,
        **options,
    )


@each_workload
def test_two_rounds_and_the_closed_form_equals_the_general_path(name):
    problem = SINGLE[name].problem(constrained=True)
    algorithm = SINGLE[name].algorithm(constrained=True)
    assert (problem.num_clients, problem.dim) == SHAPES[name]
    closed = fl.run(algorithm, problem, rounds=2, progress=False)
    by_autograd = replace(problem, gradient=None)
    general = fl.run(algorithm, by_autograd, rounds=2, progress=False)
    assert not torch.equal(closed.state.w[0], problem.w0)
    assert_close(closed.state.w, general.state.w, rtol=1e-4, atol=1e-6)
    for key, values in closed.metrics.items():
        np.testing.assert_allclose(values, general.metrics[key], rtol=1e-4)


@each_workload
def test_a_torch_loop_and_fedlib_do_the_same(name, monkeypatch):
    monkeypatch.setattr(compiled, "LONG", float("inf"))
    common = workloads.drawn(SINGLE[name], turns=0)
    entries = bench.makers(name, common)
    runs = {}
    models = {}
    for key in (bench.OURS, bench.LOOP):
        runs[key], models[key] = entries[key]()
    bench.take_turns(runs, 0, 2)
    ours = models[bench.OURS]()
    assert not torch.equal(ours[0, 0], common.problem.w0)
    assert_close(ours, models[bench.LOOP](), rtol=1e-3, atol=1e-5)
    losses = {key: common.loss(final()) for key, final in models.items()}
    bench.check_losses(name, losses)
    losses["other"] = 1.1 * losses[bench.OURS]
    refuses("must reach one loss", bench.check_losses, name, losses)


@pytest.mark.parametrize("constrained", [(), (3, 4)], ids=["one loss", "two losses"])
@pytest.mark.parametrize("model", [softmax_model(7, 5), mlp_model(7, 6, 5, None)])
@pytest.mark.parametrize("shared", [False, True], ids=["models of their own", "one model"])
def test_the_closed_gradient_equals_autograd(model, constrained, shared):
    problem = small(model, constrained=constrained)
    rng = torch.Generator().manual_seed(1)
    w = problem.w0 + 0.5 * torch.randn(4, problem.dim, generator=rng, dtype=torch.float64)
    weights = torch.tensor([0.3, 0.7] if constrained else [0.4], dtype=torch.float64)
    data, _ = problem.all_clients()
    batch = Batch(data, torch.rand(4, 10, generator=rng, dtype=torch.float64))

    def both(w, batch):
        autograd = pullback(
            problem.losses,
            None,
            w,
            batch,
            weights,
        )
        return problem.gradient(w, batch, weights), autograd

    if shared:
        closed, autograd = vmap(both, in_dims=(None, 0))(w[0], batch)
    else:
        closed, autograd = vmap(both)(w, batch)
    assert closed.abs().max() > 1e-3
    assert_close(closed, autograd, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("method", bench.METHODS)
def test_every_method_has_a_round_at_scale(method):
    size = bench.Size(N=6, n=3, d=5, rows=8)
    problem = bench.problem_at(method, size)
    assert (problem.num_clients, problem.dim, len(problem.data[0])) == (6, 5, 8)
    ran = fl.run(bench.algorithm_at(method, size), problem, rounds=2, progress=False)
    assert ran.metrics["norm"][0, -1] > 0


def not_measured(page):
    """The lines `* PROCESSOR, PART: CASES are not measured` of a page, by processor and part."""
    lines = {}
    for line in page.splitlines():
        head, _, cases = line.partition(": ")
        if line.startswith("* ") and "not measured" in cases:
            lines[head] = re.findall("`(.*?)`", cases)
    return lines


def begins(case, starts):
    """Whether a case has one of the names, or begins with it; without any, all cases do."""
    return not starts or any(f"{case},".startswith(f"{start},") for start in starts)


def test_a_measurement_goes_to_the_block_of_its_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "ENOUGH", 0.0)
    path = tmp_path / "own.json"
    blocks = {"Another processor": {"scale": {"machine": {}, "results": {}}}}
    path.write_text(json.dumps(blocks))
    bench.main(["scale", "--cases", "FedAvg, seeds, 0", "--json", str(path)])
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["Another processor"] == blocks["Another processor"]
    block = stored[bench.processor()]
    assert block["scale"]["results"]["FedAvg, seeds, 0"]["cpu_ms"] > 0


def test_what_the_book_shows_is_stored_or_named_as_not_measured():
    text = (ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8")
    page = (ROOT / "book" / "speed.md").read_text(encoding="utf-8")
    assert '"/' not in text, "a path of a machine"
    missing = not_measured(page)
    for processor, block in json.loads(text).items():
        for part, (cases, _) in bench.PARTS.items():
            measured = {*block.get(part, {}).get("results", ())}
            starts = missing.get(f"* {processor}, `{part}`")
            named = {case for case in cases if starts is not None and begins(case, starts)}
            assert measured | named == {*cases}, f"{processor}: {part}"
            assert not measured & named, f"{processor}: {part}"
