"""The speed workloads are what they say, and no faster path changes a result. Nothing is timed."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from expect import refuses
from torch.func import vmap
from torch.nn.functional import cross_entropy

import fedlib as fl
from fedlib.core.problem import Batch, pullback
from fedlib.engine import compile as compiled
from fedlib.problems import mlp_classification, softmax_regression

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks/ is no part of the package

from benchmarks import bench, multiobjective, peer_torch, peers, scale, ssca, start, tasks  # noqa: E402
from benchmarks.workloads import ALGORITHMS, WORKLOADS  # noqa: E402

ROWS = {"W1": 6400, "W3": 460, "W4": 1000}  # as few as the batches allow
SHAPES = {"W1": (100, 7840), "W3": (20, 30), "W4": (10, 784 * 128 + 128 + 1280 + 10)}
every = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda w: w.name)


def small(kind, **options):
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(40, 7, generator=rng, dtype=torch.float64)
    y, rows = torch.arange(40) % 5, torch.randperm(40, generator=rng).view(4, 10)
    if kind == "softmax":
        return softmax_regression(X, y, rows, 5, **options)
    return mlp_classification(X, y, rows, 6, 5, activation=kind, **options)


@every
@pytest.mark.parametrize("name", ALGORITHMS)
def test_two_rounds_and_the_closed_form_equals_the_general_path(workload, name):
    problem, algorithm = workload.problem(name, ROWS[workload.name]), workload.algorithm(name)
    assert (problem.num_clients, problem.dim) == SHAPES[workload.name]
    closed = fl.run(algorithm, problem, rounds=2, progress=False)
    general = fl.run(algorithm, replace(problem, gradient=None), rounds=2, progress=False)
    assert not torch.equal(closed.state.w[0], problem.w0)
    torch.testing.assert_close(closed.state.w, general.state.w, rtol=1e-4, atol=1e-6)
    for key, values in closed.metrics.items():
        np.testing.assert_allclose(values, general.metrics[key], rtol=1e-4, err_msg=key)


def test_w3_has_clients_of_22_and_33_runs_together():
    assert WORKLOADS["W3"].problem("FedAvg").rows.shape == (20, 22)
    grid = WORKLOADS["W3"].grid("FedAvg")
    assert len({a.lr for a in grid}) == 11
    assert [a.lr for a in grid][5] == pytest.approx(1.1 * WORKLOADS["W3"].lr)


def test_fedsgm_meets_both_branches_on_the_constrained_workloads():
    for name in ("W1", "W4"):
        workload = WORKLOADS[name]
        problem = workload.problem("FedSGM", ROWS[name])
        sigma = fl.run(workload.algorithm("FedSGM"), problem, rounds=40, progress=False)
        assert set(sigma.info["sigma"].flatten()) == {0.0, 1.0}


@pytest.mark.parametrize("constrained", [(), (3, 4)], ids=["one loss", "two losses"])
@pytest.mark.parametrize("kind", ["softmax", "relu", "swish"])
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


@pytest.mark.parametrize("kind", ["softmax", "relu", "swish"])
def test_losses_are_cross_entropies_of_the_classes(kind):
    w = 0.3 * torch.arange(small(kind).dim).double().sin()
    one, two = small(kind), small(kind, constrained=(3, 4))
    X, y, _ = one.data
    layers = torch.nn.Sequential(
        torch.nn.Linear(7, 6), torch.nn.ReLU() if kind == "relu" else torch.nn.SiLU(),
        torch.nn.Linear(6, 5),
    ).double()  # fmt: skip
    if kind == "softmax":
        out = X @ w.view(5, 7).T
    else:
        torch.nn.utils.vector_to_parameters(w, layers.parameters())
        out = layers(X).detach()
    last = y >= 3  # every client has its own share of these, so compare one client
    mine = torch.zeros(40, dtype=torch.bool).index_fill(0, two.rows[0], True)
    batch = Batch(tuple(x[two.rows[0]] for x in two.data), torch.full((10,), 0.1).double())
    f, g = two.losses(w, batch)
    torch.testing.assert_close(f, cross_entropy(out[mine & ~last], y[mine & ~last]))
    torch.testing.assert_close(g, cross_entropy(out[mine & last], y[mine & last]))
    values = one.metrics(w, one)
    torch.testing.assert_close(values["loss"], cross_entropy(out, y))
    assert values["accuracy"] == (out.argmax(1) == y).double().mean()
    both = two.metrics(w, two)
    torch.testing.assert_close(
        torch.stack([both["f"], both["g"]]), two.mean_losses(w), rtol=1e-12, atol=0
    )


def test_an_unknown_activation_is_refused():
    refuses("activation", small, "tanh")


def test_the_command_line_writes_what_it_measures(tmp_path, capsys):
    path = tmp_path / "bench.json"
    options = ["W3", "--variant", "closed form", "--passes", "1", "--json", str(path)]
    bench.main(options)
    report = json.loads(path.read_text(encoding="utf-8"))
    (result,) = report["results"]
    assert (result["workload"], result["variant"], result["runs"]) == ("W3", "closed form", 1)
    assert report["machine"]["torch"] == torch.__version__
    assert f"{result['final_loss']:.6f}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        bench.main(["W9"])


def test_the_stored_measurement_covers_every_workload():
    held = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    found = {(r["workload"], r["algorithm"], r["variant"]) for r in held["results"]}
    expected = {
        (w, a, v)
        for w in WORKLOADS
        for a in ALGORITHMS
        for v in bench.VARIANTS
        if v != "33 runs" or WORKLOADS[w].together
    }
    assert found == expected


def test_the_cartpole_benchmark_writes_what_it_measured(tmp_path, capsys):
    from benchmarks import cartpole

    path = tmp_path / "cartpole.json"
    cartpole.main(["--seeds", "1", "--rounds", "1", "--passes", "1", "--json", str(path)])
    found = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert [r["compression"] for r in found] == list(cartpole.WIRES)
    assert all(r["seeds"] == 1 and r["s_per_round"] > 0 for r in found)
    assert "Top-K 0.5" in capsys.readouterr().out


def test_w2_is_the_small_network_and_every_case_advances(monkeypatch):
    for name, value in {"PARTICIPANTS": 2, "STEPS": 2, "BATCH": 8, "ROWS": 8}.items():
        monkeypatch.setattr(multiobjective, name, value)
    problem = multiobjective.generated(rows=8)
    assert (problem.num_clients, problem.dim, problem.rows.shape[1]) == (100, 34_635, 8)
    rounds = multiobjective.cases(problem, "cpu")
    found = multiobjective.measure(rounds, passes=2)
    assert [r["case"] for r in found] == list(rounds)
    by_name = {r["case"]: r for r in found}
    assert by_name[multiobjective.PLAIN]["to_plain"] == 1
    assert by_name[multiobjective.LOCAL]["to_local_steps"] == 1
    for name in ("FedCMOO", multiobjective.LOCAL):
        assert rounds[name]() != rounds[name]()  # the model moved
    start = [x.clone() for x in rounds[multiobjective.PLAIN]()]
    moved = rounds[multiobjective.PLAIN]()
    assert all(float((a - b).norm()) > 0 for a, b in zip(start, moved, strict=True))


def test_ssca_on_w4_and_every_case_advances(monkeypatch):
    for name, value in {"BATCH": 4, "SEEDS": 2}.items():
        monkeypatch.setattr(ssca, name, value)
    problems = ssca.generated(rows=100)
    assert (problems[0].num_clients, problems[0].dim, len(problems)) == (10, 101_632, 2)
    assert problems[0].data[0].data_ptr() == problems[1].data[0].data_ptr()
    rounds = ssca.cases(problems, "cpu")
    found = {r["case"]: r for r in ssca.measure(rounds, passes=1)}
    assert list(found) == list(rounds)
    assert found[ssca.PLAIN]["to_plain"] == found[ssca.SGD]["to_sgd"] == 1
    assert rounds["SSCA, 2 seeds"][1] == 2
    for one, _ in rounds.values():
        assert one() != one()  # the model moved


@pytest.fixture
def small_w2(monkeypatch):
    for name, value in {"PARTICIPANTS": 2, "STEPS": 2, "BATCH": 8, "ROWS": 8}.items():
        monkeypatch.setattr(multiobjective, name, value)


@pytest.mark.parametrize("name", ["W1", "W2", "W3", "W4"])
def test_a_torch_loop_and_fedlib_do_the_same(name, monkeypatch, small_w2):
    monkeypatch.setitem(tasks.TASKS, name, replace(tasks.TASKS[name], rounds=2))
    monkeypatch.setattr(compiled, "LONG", float("inf"))
    common = tasks.work(name, turns=0, rows=ROWS.get(name, 8))
    entries = peers.makers(name, common)
    assert {peers.OURS, peers.WITH_SWITCH, peers.LOOP} <= {*entries}
    made = {peers.OURS: entries[peers.OURS](), peers.LOOP: peer_torch.loop(common)}
    times = peers.in_turn({key: go for key, (go, _) in made.items()}, 0, 2)
    assert [len(own) for own in times.values()] == [1, 1]
    ours, loop = (models() for _, models in made.values())
    assert not torch.equal(ours[0, 0], common.problem.w0)
    torch.testing.assert_close(ours, loop, rtol=1e-3, atol=1e-5)
    losses = {key: common.loss(models()) for key, (_, models) in made.items()}
    peers.check_losses(name, losses)
    with pytest.raises(ValueError, match="must reach one loss"):
        peers.check_losses(name, losses | {"other": 1.1 * losses[peers.OURS]})


def test_many_runs_together_have_their_own_draws():
    common = tasks.work("W3, 33 runs", turns=0)
    assert (len(common.lr), common.rows.shape) == (11, (3, 200, 10, 1, 22))
    assert not torch.equal(common.rows[0], common.rows[1])
    assert peers.LOOP not in peers.makers("W3, 33 runs", common)


@pytest.mark.parametrize("method", scale.METHODS)
def test_every_method_has_a_round_at_scale(method):
    size = scale.Size(N=6, n=3, d=5, rows=8)
    problem = scale.problem_of(method, size)
    assert (problem.num_clients, problem.dim, len(problem.data[0])) == (6, 5, 8)
    ran = fl.run(scale.algorithm_of(method, size), problem, rounds=2, progress=False)
    assert ran.metrics["norm"][0, -1] > 0


def test_what_is_too_large_is_left_out_with_the_reason(monkeypatch):
    size = scale.Size(d=10)
    for error, why in (
        (TimeoutError(), "more than 60 s"),
        (MemoryError(), "more than 8 GB"),
        (RuntimeError("you tried to allocate 9 bytes"), "more than 8 GB"),
    ):
        monkeypatch.setattr(scale, "apart", Mock(side_effect=error))
        found = scale.tried("FedAvg", "parameters", size, {})
        assert (found["at"], found["skipped"]) == (10, why)
    after = scale.tried("FedAvg", "parameters", scale.Size(d=100), found)
    assert after["skipped"] == "not tried: at 10 more than 8 GB"


def test_a_process_has_caches_of_its_own(tmp_path):
    code = "import os, pathlib; pathlib.Path(os.environ['HOME'], 'kept').touch()"
    seconds, cpu = start.process(("-c", code), tmp_path)
    assert seconds > 0
    assert cpu > 0
    assert (tmp_path / "home" / "kept").exists()


def test_a_measurement_that_was_stopped_goes_on(tmp_path):
    path, asked = tmp_path / "held.json", []

    def one(case):
        asked.append(case)
        if asked == ["a", "b"]:
            raise KeyboardInterrupt
        return len(asked)

    with pytest.raises(KeyboardInterrupt):
        bench.collected(path, {"cores": 1}, ["a", "b"], one)
    assert not json.loads(path.read_text(encoding="utf-8"))["finished"]
    held = bench.collected(path, {"cores": 1}, ["a", "b"], one)
    assert asked == ["a", "b", "b"]
    assert held == json.loads(path.read_text(encoding="utf-8"))
    assert (held["finished"], held["results"]) == (True, {"a": 1, "b": 3})
    assert bench.collected(path, {"cores": 1}, ["a"], one)["results"] == {"a": 4}  # begins anew


@pytest.mark.parametrize(
    ("program", "words", "said"),
    [(peers, ["W9"], "W9"), (scale, ["FedProx"], "FedProx"), (start, ["W1"], "W1")],
)
def test_unknown_names_are_refused(program, words, said, capsys):
    with pytest.raises(SystemExit):
        program.main(words)
    assert said in capsys.readouterr().err


def test_what_the_book_shows_is_stored_whole_and_names_no_place():
    expected = {
        "peers": {peers.RATES, *tasks.TASKS},
        "start": {*start.CASES},
        "scale": {f"{m}, {a}, {i}" for m in scale.METHODS for a in scale.AXES
                  for i in range(len(scale.AXES[a]))},
    }  # fmt: skip
    for name, cases in expected.items():
        text = (ROOT / "benchmarks" / f"{name}.json").read_text(encoding="utf-8")
        held = json.loads(text)
        assert held["finished"]
        assert {*held["results"]} == cases
        assert '"/' not in text
