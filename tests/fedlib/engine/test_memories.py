"""Memories that change in place: the numbers of copied ones, and no work that grows with N."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import fedlib as fl
from fedlib.core.federation import PostponedRows
from fedlib.core.trees import clone_tree, index_tree
from fedlib.engine import batch, loop, memories
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.checkpoint import read_sealed
from fedlib.engine.start import first_progress
from fedlib.problems import pareto, quadratics
from tests.helpers.randoms import normal
from tests.helpers.weekly import further_weekly

CONSTRAINED = quadratics(normal(30, 4), normal(30, 4), level=0.5)
SGM = fl.FedSGM(
    0.1,
    2,
    3,
    0.05,
    uplink=fl.TopK(0.5),
)
START = torch.zeros(4).double()
IN_A_BALL = pareto(normal(400, 2, 1, 4) / 4, w0=START).within(fl.L1Ball(2.0))
CASES = {
    "FedSGM": (SGM, CONSTRAINED),
    "MultiFedSGM": (
        fl.MultiFedSGM(
            0.1,
            2,
            3,
            0.05,
            uplink=fl.TopK(0.5),
        ),
        CONSTRAINED,
    ),
    "FedFWPlus": (fl.FedFWPlus(0.1, participation=0.02, measure_all=False), IN_A_BALL),
}
MODES = {
    "one run": {"seeds": [0]},
    "seeds": {"seeds": [0, 1]},
    "one by one": {"seeds": [0, 1], "engine": fl.Sequential},
}
#: Method, mode and capture: each of the three at least once.
TRIED = [
    ("FedSGM", "one run", False),
    ("FedSGM", "seeds", True),
    ("FedSGM", "one by one", True),
    ("MultiFedSGM", "seeds", True),
    ("FedFWPlus", "seeds", True),
]


@pytest.fixture
def change_from(monkeypatch):
    """A function that sets how many entries a state has that changes in place."""

    def change(entries):
        monkeypatch.setattr(memories, "LARGE_STATE", entries)

    return change


@pytest.fixture
def copied_and_changed(change_from):
    """A function that gives what happens with copied memories, and with those in place."""

    def both(function):
        change_from(10**9)
        expected = function()
        change_from(1)
        return expected, function()

    return both


def go(algorithm=SGM, problem=CONSTRAINED, rounds=12, **options):
    return fl.run(algorithm, problem, rounds=rounds, **options)


def assert_same(trace, expected):
    curves = trace.metrics | trace.info
    for name, curve in (expected.metrics | expected.info).items():
        assert curves[name].tolist() == curve.tolist(), name
    for field, expected_field in zip(trace.state, expected.state, strict=True):
        assert torch.equal(field, expected_field)


@pytest.mark.parametrize(
    ("name", "mode", "captured"),
    further_weekly(product(CASES, MODES, [False, True]), TRIED),
)
def test_numbers_are_those_of_copied_memories(
    copied_and_changed, monkeypatch, name, mode, captured
):
    if captured:
        monkeypatch.setattr(batch, "CAPTURE", 2)
    written = []
    replace_rows = memories.replace_rows

    def noted(*arguments):
        written.append(1)
        return replace_rows(*arguments)

    monkeypatch.setattr(memories, "replace_rows", noted)
    expected, actual = copied_and_changed(lambda: go(*CASES[name], **MODES[mode]))
    assert_same(actual, expected)
    assert len(written) >= 12


def test_points_of_a_grid_have_memories_of_their_own(copied_and_changed):
    grid = [SGM, replace(SGM, lr=0.2)]
    expected, actual = copied_and_changed(lambda: go(grid, seeds=[0, 1]))
    for trace, expected_trace in zip(actual, expected, strict=True):
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
                entries = x.untyped_storage().nbytes() // x.element_size()
                self.largest = max(self.largest, entries)
        return result


def largest_new_tensor(clients, captured):
    """The entries of the largest tensor that a run's third round makes."""
    points = normal(clients, 8)
    problem = quadratics(points, -points, level=0.5)
    runs = BatchedRuns(
        [replace(SGM, participants=5)],
        problem,
        (0,),
        torch.device("cpu"),
        None,
    )
    progress = first_progress(runs)
    if captured:
        rounds = loop.RoundLoop(runs, 10**4, 10**4)
        rounds.prepare(progress.state)
        assert rounds.compiled is None
    draws = runs.draws(progress.rngs, 3)
    for t in range(2):
        progress.state, _ = runs.step(progress.state, index_tree(draws, t))
    with Sizes(progress.state, runs.fixed) as sizes:
        runs.step(progress.state, index_tree(draws, 2))
    return sizes.largest


@pytest.mark.parametrize("captured", [False, True])
def test_no_tensor_of_a_round_grows_with_the_clients(change_from, captured):
    change_from(1)
    small, large = (largest_new_tensor(clients, captured) for clients in (50, 5000))
    assert small == large < 5000


def test_copied_memories_do_grow(change_from):
    change_from(10**9)
    assert largest_new_tensor(5000, captured=False) >= 5000 * 8


def test_a_large_state_is_not_copied_between_rounds(change_from, monkeypatch):
    change_from(1)
    monkeypatch.setattr(loop, "clone_tree", None)
    go(rounds=20)


def test_a_trace_that_a_run_continues_stays_as_it_is(change_from):
    change_from(1)
    stopped = go(rounds=5)
    unchanged = clone_tree(stopped.state)
    continued = go(start=stopped)
    assert_same(continued, go())
    assert not torch.equal(continued.state.residual, stopped.state.residual)
    for field, copied in zip(stopped.state, unchanged, strict=True):
        assert torch.equal(field, copied)


def test_states_that_a_callback_keeps_stay_as_they_are(copied_and_changed):
    def residuals():
        states = []
        go(callback=lambda *arguments: states.append(arguments[-1]))
        return [state.residual for state in states]

    expected, actual = copied_and_changed(residuals)
    assert len(actual) == 12
    assert not torch.equal(actual[3], actual[11])
    assert torch.equal(torch.stack(actual), torch.stack(expected))


class Reading(fl.FedSGM):
    """Reads the memories that it has stored."""

    def round(self, fed, state, draw):
        next_state, info = super().round(fed, state, draw)
        return next_state, info | {"largest": next_state.residual.abs().amax()}


def test_a_round_that_reads_what_it_has_stored_copies(copied_and_changed):
    method = Reading(
        SGM.lr,
        2,
        3,
        0.05,
        uplink=SGM.uplink,
    )
    expected, actual = copied_and_changed(lambda: go(method))
    assert_same(actual, expected)
    assert (actual.info["largest"] > 0).any()


def test_memories_that_change_their_field_are_copied():
    x = normal(4, 3)
    y = normal(4, 3)
    rows = PostponedRows(x, torch.tensor([2]), torch.ones(1, 3).double())
    stays, moves = memories.name_changes((x, y), (rows, rows))
    assert isinstance(stays, memories.ChangedRows)
    expected = x.clone()
    expected[2] = 1
    assert torch.equal(moves, expected)


def test_a_diverging_round_leaves_the_memories_of_the_round_before(copied_and_changed):
    def diverged():
        with pytest.raises(fl.Diverged) as caught:
            go(replace(SGM, lr=1e30), rounds=60, seeds=[0, 1])
        return caught.value

    expected, error = copied_and_changed(diverged)
    assert str(error) == str(expected)
    assert error.round == expected.round > 1
    assert error.state.residual.abs().max() > 0
    for field, expected_field in zip(error.state, expected.state, strict=True):
        assert torch.equal(field, expected_field)


@pytest.mark.parametrize("is_written", [False, True])
def test_ctrl_c_beside_the_writing_of_rows_leaves_whole_rounds(
    change_from, tmp_path, monkeypatch, is_written
):
    change_from(1)
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
            go(checkpoint=path)
    assert 0 < read_sealed(path)["round"] < 12
    assert_same(go(checkpoint=path), go())
