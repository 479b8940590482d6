"""Capture, passes and compilation: the same numbers as plain operations, with less work."""

import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Batch
from fedlib.core.trees import index_tree
from fedlib.engine import batch
from fedlib.engine import compile as module
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.capture import CapturedGradient, capture, merge_equal_nodes
from fedlib.engine.start import first_progress
from fedlib.problems import quadratics
from fedlib.testing.examples import examples
from papers.fedsgm.cartpole.method import PolicyFedSGM
from papers.fedsgm.cartpole.simulator import cartpole
from tests.helpers.randoms import normal
from tests.helpers.weekly import further_weekly

SGM = fl.FedSGM(0.1, 2, 3, 0.05)
CONSTRAINED = quadratics(normal(6, 4), normal(6, 4), level=0.5)


def prepared(algorithm, problem):
    """Runs, their first state, and the draw of the first round."""
    runs = BatchedRuns(
        [algorithm],
        problem,
        (0,),
        torch.device("cpu"),
        None,
    )
    progress = first_progress(runs)
    draw = index_tree(runs.draws(progress.rngs, 1), 0)
    return runs, progress.state, draw


def operations(captured):
    return [node.target for node in captured.graph.graph.nodes if node.op == "call_function"]


#: A method of each family.
FAMILIES = [
    "FedAvg",
    "FedSGM",
    "MultiFedSGM",
    "FedCMOO",
    "FSMGDA",
    "FedFWPlus",
    "FedDR",
    "ConstrainedSSCA",
    "VerticalSSCA",
    "ConEx",
]


@pytest.mark.parametrize("name", further_weekly(examples(), FAMILIES))
def test_a_captured_round_gives_the_numbers_of_the_mapped_one_with_fewer_operations(name):
    runs, state, draw = prepared(*examples()[name][0])
    short = capture(runs._step, *runs.fixed, state, draw)
    recorded = len(operations(short))
    short.apply((merge_equal_nodes,))
    assert len(operations(short)) < recorded
    mapped_state, mapped_info = runs.step(state, draw)
    captured_state, captured_info = short(*runs.fixed, state, draw)
    torch.testing.assert_close(tuple(captured_state), tuple(mapped_state), equal_nan=True)
    torch.testing.assert_close(captured_info, mapped_info, equal_nan=True)


def test_dead_code_is_dropped_and_equal_operations_are_merged():
    def work(x):
        x.sin()  # nobody reads it
        return x.exp().view(6) + x.exp().view(6)

    x = normal(2, 3)
    once = capture(work, x, passes=(merge_equal_nodes,))
    targets = operations(once)
    assert torch.ops.aten.sin.default not in targets
    assert targets.count(torch.ops.aten.exp.default) == 1
    assert torch.equal(once(x), work(x))


def test_a_gradient_is_captured_once_a_shape():
    calls = []

    def losses(w, batch):
        calls.append(1)
        return (batch.weight @ (batch.data[0] @ w - 1).square())[None]

    gradient = CapturedGradient(losses)
    w = normal(3)
    weights = torch.ones(1).double()
    for rows in (4, 4, 5, 4):
        x = normal(rows, 3)
        batch = Batch((x,), torch.full((rows,), 1 / rows).double())
        expected = 2 / rows * (x @ w - 1) @ x
        torch.testing.assert_close(gradient(w, batch, weights), expected)
    assert len(calls) == 4  # two shapes, each captured and compared


CAPTURE = 20  # rounds of a run that is captured here


def take_as_captured(graph, example, on_gpu):
    """In place of torch's compiler: the captured operations, as they are."""
    return graph


def add_an_error(graph, example, on_gpu):
    """In place of torch's compiler: operations whose results are wrong in the third digit."""
    return lambda *leaves: [x + 1e-3 if x.is_floating_point() else x for x in graph(*leaves)]


@pytest.fixture
def both_runs(monkeypatch):
    """A function that gives a run whose rounds some compiler compiles, and the run without."""
    monkeypatch.setattr(batch, "CAPTURE", CAPTURE)

    def runs(compiler, *arguments, **options):
        plain = fl.run(*arguments, **options)
        monkeypatch.setattr(module, "LONG", 0.0)
        monkeypatch.setattr(module, "compile_graph", compiler)
        return fl.run(*arguments, **options), plain

    return runs


@pytest.mark.parametrize(
    "compiler",
    [take_as_captured, pytest.param(module.compile_graph, marks=pytest.mark.weekly)],
    ids=["as captured", "by torch's compiler"],
)
def test_compiled_rounds_agree_with_captured_ones(both_runs, compiler):
    # ten rounds are two calls of the compiled function: the second must leave the first's results
    options = {"rounds": CAPTURE + 3, "evaluate_every": 10, "seeds": [0, 1]}
    fast, plain = both_runs(compiler, SGM, CONSTRAINED, **options)
    assert fast.provenance["compiled"] > CAPTURE / 2
    assert plain.provenance["compiled"] == 0
    curves = fast.metrics | fast.info
    for name, curve in (plain.metrics | plain.info).items():
        torch.testing.assert_close(torch.as_tensor(curves[name]), torch.as_tensor(curve))
    torch.testing.assert_close(tuple(fast.state), tuple(plain.state))


def test_a_compiler_that_makes_other_numbers_is_not_used(both_runs):
    with pytest.warns(UserWarning, match="captured, not compiled: torch's compiler makes other"):
        fast, plain = both_runs(add_an_error, fl.FedAvg(0.1, 1, 3), quadratics(), rounds=CAPTURE)
    assert fast.provenance["compiled"] == 0
    assert torch.equal(fast.state.w, plain.state.w)


def test_a_simulator_is_mapped_as_it_is():
    method = PolicyFedSGM(participants=2, tolerance=0.0, cg_steps=3)
    problem = cartpole(0, clients=3, environments=1, evaluation=2)
    runs, state, _ = prepared(method, problem)
    mapped = runs._step
    assert runs.speed_up(state, 10**9, 1) is None
    assert runs._step is mapped
