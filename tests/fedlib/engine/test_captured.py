"""Rounds as CUDA graphs, as far as a CPU can tell: a stand-in for the graph does it all again."""

import pytest
import torch
from problems import np_problem
from torch.utils import _pytree as pytree

import fedlib as fl
from fedlib.core.trees import clone_tree
from fedlib.engine import captured as module
from fedlib.engine.batch import BatchedRuns, part
from fedlib.engine.captured import Captured, captured

METHOD = fl.FedSGM(0.1, 2, 5, 0.05, uplink=fl.TopK(0.2))


def again(body):
    """In place of a graph: warmed up like one, then the body itself."""
    for _ in range(module.WARM + 1):
        body()
    return body


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(module, "graph_of", again)


def recorded():
    """A recorded round, its state and the draws of six rounds."""
    loop = BatchedRuns([METHOD], np_problem, (0, 1), torch.device("cpu"), None)
    start = loop.start()
    draws = loop.draws(start.rngs, 6)
    loop.step(clone_tree(start.state), part(draws, 0))
    return loop._step, start.state, [part(draws, t) for t in range(6)]


def test_a_captured_round_gives_the_bits_of_the_replay(stand_in):
    step, state, draws = recorded()
    fast = captured(step, state, draws[0])
    assert isinstance(fast, Captured)
    one, other, reports = clone_tree(state), clone_tree(state), []
    for draw in draws:
        one, info = step(one, draw)
        other, told = fast(other, draw)
        reports.append((info, told))
    for x, y in zip(*(pytree.tree_leaves(s) for s in (one, other)), strict=True):
        assert torch.equal(x, y)
    for info, told in reports:  # which the next round does not overwrite
        assert all(torch.equal(info[k], told[k]) for k in info)


def test_a_state_from_elsewhere_is_taken_over(stand_in):
    step, state, draws = recorded()
    fast = captured(step, state, draws[0])
    first = clone_tree(fast(clone_tree(state), draws[1]))
    fast(fast(clone_tree(state), draws[2])[0], draws[3])
    second = fast(clone_tree(state), draws[1])
    for x, y in zip(*map(pytree.tree_leaves, (first, second)), strict=True):
        assert torch.equal(x, y)


def test_what_cannot_be_captured_is_replayed_with_a_word(monkeypatch):
    def refused(body):
        raise RuntimeError("operation not permitted when stream is capturing")

    step, state, draws = recorded()
    monkeypatch.setattr(module, "graph_of", refused)
    with pytest.warns(UserWarning, match="run: rounds are replayed, not captured: operation not"):
        assert captured(step, state, draws[0]) is step


def test_a_graph_that_gives_something_else_is_not_used(monkeypatch):
    step, state, draws = recorded()
    monkeypatch.setattr(module, "graph_of", lambda _: lambda: None)  # does nothing
    with pytest.warns(UserWarning, match="run: rounds are replayed, not captured: "):
        assert captured(step, state, draws[0]) is step


def test_a_looped_round_is_left_alone(stand_in):
    plain = print
    assert captured(plain, None, None) is plain
