"""Memories that change in place: the numbers of copied ones, and no work that grows with N."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import fedlib as fl
from fedlib.core.trees import clone_tree, index_tree
from fedlib.engine import batch, loop, memories
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.checkpoint import read_sealed
from fedlib.engine.start import first_progress
from fedlib.problems import pareto, quadratics
from tests.helpers.randoms import normal
from tests.helpers.weekly import further_weekly

CLIENTS = 30
DIM = 4
CONSTRAINED = quadratics(normal(CLIENTS, DIM), normal(CLIENTS, DIM), level=0.5)
SGM = fl.FedSGM(0.1, 2, 3, 0.05, uplink=fl.TopK(0.5))
CENTRES = normal(400, 2, 1, DIM) / 4
IN_A_BALL = pareto(CENTRES, w0=torch.zeros(DIM, dtype=torch.float64)).within(fl.L1Ball(2.0))
CASES = {
    "FedSGM": (SGM, CONSTRAINED),
    "MultiFedSGM": (fl.MultiFedSGM(0.1, 2, 3, 0.05, uplink=fl.TopK(0.5)), CONSTRAINED),
    "FedFWPlus": (fl.FedFWPlus(0.1, participation=0.02, measure_all=False), IN_A_BALL),
}
MODES = {
    "one run": {"seeds": [0]},
    "seeds": {"seeds": [0, 1]},
    "one by one": {"seeds": [0, 1], "engine": fl.Sequential},
}


@pytest.fixture
def in_place(monkeypatch):
    """Memories of any size change in place."""
    monkeypatch.setattr(memories, "LARGE_STATE", 1)


def quiet(algorithm, problem=CONSTRAINED, **options):
    return fl.run(algorithm, problem, progress=False, **{"rounds": 12, **options})


def assert_same(trace, expected):
    for name, curve in [*expected.metrics.items(), *expected.info.items()]:
        curves = {**trace.metrics, **trace.info}
        assert torch.equal(torch.as_tensor(curves[name]), torch.as_tensor(curve)), name
    for field, expected_field in zip(trace.state, expected.state, strict=True):
        assert torch.equal(field, expected_field)


#: Method, mode and capture: each of the three at least once.
TRIED = [
    *(("FedSGM", "one run", False), ("FedSGM", "seeds", True), ("FedSGM", "one by one", True)),
    *(("MultiFedSGM", "seeds", True), ("FedFWPlus", "seeds", True)),
]


@pytest.mark.parametrize(
    ("name", "mode", "captured"), further_weekly(product(CASES, MODES, [False, True]), TRIED)
)
def test_numbers_are_those_of_copied_memories(monkeypatch, name, mode, captured):
    if captured:
        monkeypatch.setattr(batch, "CAPTURE", 2)
    algorithm, problem = CASES[name]
    expected = quiet(algorithm, problem, **MODES[mode])
    monkeypatch.setattr(memories, "LARGE_STATE", 1)
    written = []
    replace_rows = memories.replace_rows
    monkeypatch.setattr(
        memories, "replace_rows", lambda *arguments: (written.append(1), replace_rows(*arguments))
    )
    assert_same(quiet(algorithm, problem, **MODES[mode]), expected)
    assert len(written) >= 12


def test_points_of_a_grid_have_memories_of_their_own(monkeypatch):
    grid = [SGM, replace(SGM, lr=0.2)]
    expected = quiet(grid, seeds=[0, 1])
    monkeypatch.setattr(memories, "LARGE_STATE", 1)
    for trace, expected_trace in zip(quiet(grid, seeds=[0, 1]), expected, strict=True):
        assert_same(trace, expected_trace)


class Sizes(TorchDispatchMode):
    """Notes the entries of the largest tensor that is no view of those that were there before."""

    def __init__(self, *trees):
        super().__init__()
        self.known = {x.untyped_storage().data_ptr() for x in pytree.tree_leaves(trees)}
        self.largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for x in pytree.tree_leaves(result):
            if isinstance(x, torch.Tensor) and x.untyped_storage().data_ptr() not in self.known:
                self.largest = max(self.largest, x.untyped_storage().nbytes() // x.element_size())
        return result


def largest_new_tensor(algorithm, problem, captured):
    """The entries of the largest tensor that the run's third round makes."""
    runs = BatchedRuns([algorithm], problem, (0,), torch.device("cpu"), None)
    progress = first_progress(runs)
    rounds = loop.RoundLoop(runs, 10**4, 10**4)
    if captured:
        rounds.prepare(progress.state)
        assert rounds.compiled is None
    draws = runs.draws(progress.rngs, 3)
    for t in range(2):
        progress.state, _ = runs.step(progress.state, index_tree(draws, t))
    with Sizes(progress.state, runs.fixed) as sizes:
        runs.step(progress.state, index_tree(draws, 2))
    return sizes.largest


def two_sided(clients):
    points = normal(clients, 8)
    return quadratics(points, -points, level=0.5)


@pytest.mark.parametrize("captured", [False, True])
def test_no_tensor_of_a_round_grows_with_the_clients(in_place, captured):
    wide = replace(SGM, participants=5)
    small, large = (largest_new_tensor(wide, two_sided(n), captured) for n in (50, 5000))
    assert small == large < 5000


def test_copied_memories_do_grow(monkeypatch):
    monkeypatch.setattr(memories, "LARGE_STATE", 10**9)
    assert largest_new_tensor(SGM, two_sided(5000), captured=False) >= 5000 * 8


def test_a_large_state_is_not_copied_between_rounds(in_place, monkeypatch):
    copied = []
    monkeypatch.setattr(loop, "clone_tree", lambda tree: copied.append(1) or clone_tree(tree))
    quiet(SGM, rounds=20)
    assert not copied


def test_a_trace_that_a_run_continues_stays_as_it_is(in_place):
    stopped = quiet(SGM, rounds=5)
    kept = clone_tree(stopped.state)
    assert stopped.state.residual.abs().max() > 0
    continued = quiet(SGM, start=stopped)
    assert_same(continued, quiet(SGM))
    assert not torch.equal(continued.state.residual, stopped.state.residual)
    for field, copied in zip(stopped.state, kept, strict=True):
        assert torch.equal(field, copied)


def test_states_that_a_callback_keeps_stay_as_they_are(in_place, monkeypatch):
    def states():
        kept = []
        quiet(SGM, callback=lambda *arguments: kept.append(arguments[-1]))
        return kept

    kept = states()
    monkeypatch.setattr(memories, "LARGE_STATE", 10**9)
    expected = states()
    assert len(kept) == len(expected) == 12
    assert not torch.equal(kept[3].residual, kept[11].residual)
    for state, copied in zip(kept, expected, strict=True):
        assert torch.equal(state.residual, copied.residual)


class Reading(fl.FedSGM):
    """Reads the memories that it has stored."""

    def round(self, fed, state, draw):
        next_state, info = super().round(fed, state, draw)
        return next_state, info | {"largest": next_state.residual.abs().amax()}


def test_a_round_that_reads_what_it_has_stored_copies(in_place, monkeypatch):
    method = Reading(SGM.lr, 2, 3, 0.05, uplink=SGM.uplink)
    trace = quiet(method)
    monkeypatch.setattr(memories, "LARGE_STATE", 10**9)
    assert_same(trace, quiet(method))
    assert (trace.info["largest"] > 0).any()


def test_memories_that_change_their_field_are_copied():
    rows_of_first = normal(4, 3)
    second = normal(4, 3)
    rows = fl.core.federation.PostponedRows(
        rows_of_first, torch.tensor([2]), torch.ones(1, 3).double()
    )
    stays, moves = memories.name_changes((rows_of_first, second), (rows, rows))
    assert isinstance(stays, memories.ChangedRows)
    expected = rows_of_first.clone()
    expected[2] = 1
    assert torch.equal(moves, expected)


def test_a_diverging_round_leaves_the_memories_of_the_round_before(monkeypatch):
    wild = replace(SGM, lr=1e30)

    def diverged():
        with pytest.raises(fl.Diverged) as caught:
            quiet(wild, rounds=60, seeds=[0, 1])
        return caught.value

    expected = diverged()
    monkeypatch.setattr(memories, "LARGE_STATE", 1)
    error = diverged()
    assert (str(error), error.round, error.seed) == (
        str(expected),
        expected.round,
        expected.seed,
    )
    assert error.round > 1
    assert error.state.residual.abs().max() > 0
    for field, expected_field in zip(error.state, expected.state, strict=True):
        assert torch.equal(field, expected_field)


@pytest.mark.parametrize("is_written", [False, True])
def test_ctrl_c_beside_the_writing_of_rows_leaves_whole_rounds(
    in_place, tmp_path, monkeypatch, is_written
):
    calls = []

    def interrupted(state):
        calls.append(1)
        if len(calls) == 7:
            if is_written:
                memories.write_rows(state)
            raise KeyboardInterrupt
        return memories.write_rows(state)

    path = tmp_path / "run.pt"
    with monkeypatch.context() as patch:
        patch.setattr(loop, "write_rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quiet(SGM, checkpoint=path)
    assert 0 < read_sealed(path)["round"] < 12
    assert_same(quiet(SGM, checkpoint=path), quiet(SGM))
