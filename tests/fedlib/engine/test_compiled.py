"""Compiled rounds: when there are any, that they give what replayed ones give, and resume."""

import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from problems import np_problem
from torch.utils._python_dispatch import TorchDispatchMode

import fedlib as fl
from fedlib.compress import TopK
from fedlib.core.schedule import Schedule
from fedlib.engine import compile as compiled
from fedlib.engine import loop as walk
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.compile import WAYS, agree, cost, near, rounds_of_a_call
from fedlib.engine.launches import Launches, launches
from fedlib.engine.operations import operations
from fedlib.engine.record import record
from fedlib.testing.examples import examples

METHOD = fl.FedAvg(lr=0.2, local_steps=2, participants=5)
compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler"
)


@pytest.fixture
def long(monkeypatch):
    """Every run counts as a long one."""
    monkeypatch.setattr(compiled, "LONG", 0.0)


def ran(rounds=21, **settings):
    return fl.run(METHOD, np_problem, rounds=rounds, seeds=(0, 1), progress=False, **settings)


def test_a_replay_costs_by_number_size_and_products_of_its_operations():
    x = torch.ones(100, 50)
    seconds, largest = cost(record(lambda y: y @ y.T + 1, x).graph)
    entries, flops = 50 * 100 + 2 * 100 * 100, 2 * 100 * 50 * 100  # a view, a product, a sum
    expected = 3 * compiled.PER_OPERATION + entries * compiled.PER_ENTRY + flops * compiled.PER_FLOP
    assert seconds == pytest.approx(expected)
    assert largest == 100 * 100


@pytest.mark.parametrize(
    ("every", "call"),
    [(1, 8), (3, 6), (8, 8), (10, 5), (11, 1), (50, 5), (64, 8), (10**6, 8), ("geometric", 8)],
)
def test_a_call_is_in_step_with_the_evaluations(every, call, long):
    step, measure = record(lambda x: x + 1, torch.ones(2)), record(lambda x: x.sum(), torch.ones(2))
    assert rounds_of_a_call(step, measure, 100, Schedule(every)) == call


def test_short_large_and_looped_runs_are_not_compiled(monkeypatch):
    step = record(lambda x: x + 1, torch.ones(2))
    few = math.floor(compiled.LONG / cost(step.graph)[0] / 2)
    assert rounds_of_a_call(step, step, few - 1, Schedule(1)) == 0
    assert rounds_of_a_call(step, step, few + 1, Schedule(1)) == compiled.MOST
    assert rounds_of_a_call(lambda x: x, step, 10**9, Schedule(1)) == 0
    monkeypatch.setattr(compiled, "LARGEST", 1)
    assert rounds_of_a_call(step, step, 10**9, Schedule(1)) == 0


def test_a_round_that_is_long_is_a_call_of_its_own(long, monkeypatch):
    step = record(lambda x: x + 1, torch.ones(2))
    monkeypatch.setattr(compiled, "SMALL", 0.0)
    assert {rounds_of_a_call(step, step, 100, Schedule(k)) for k in (1, 10, "geometric")} == {1}


def test_an_ordinary_run_is_replayed():
    assert ran().provenance["compiled"] == 0


@compiler
def test_compiled_rounds_give_what_replayed_ones_give_and_a_resumed_run_its_own_bits(
    long, monkeypatch, tmp_path
):
    monkeypatch.setattr(compiled, "MOST", 2)  # compiles sooner
    calls = []
    noted = lambda *given: calls.append(launches(*given)) or calls[-1]  # noqa: E731
    monkeypatch.setattr(compiled, "launches", noted)
    path, settings = tmp_path / "run.pt", {"rounds": 5, "evaluate_every": 2}
    whole = ran(**settings)
    assert whole.provenance["compiled"] == 4  # two calls; the last of 5 rounds fills none
    assert all(isinstance(call, Launches) for call in calls)
    monkeypatch.setattr(walk, "SHORT", 0.0)  # a call at a time
    with monkeypatch.context() as patch:
        patch.setattr(walk.Walk, "_replay", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ran(checkpoint=path, checkpoint_seconds=0, **settings)
    again = ran(checkpoint=path, checkpoint_seconds=0, **settings)
    monkeypatch.setattr(compiled, "LONG", math.inf)
    replayed = ran(**settings)
    assert (again.provenance["compiled"], replayed.provenance["compiled"]) == (4, 0)
    for part in ("metrics", "info"):
        for name, values in getattr(whole, part).items():
            np.testing.assert_array_equal(getattr(again, part)[name], values)
            near = getattr(replayed, part)[name]
            assert near.shape == values.shape
            np.testing.assert_allclose(values, near, rtol=1e-6, atol=1e-9)
    assert torch.equal(again.state.w, whole.state.w)
    torch.testing.assert_close(whole.state.w, replayed.state.w, rtol=1e-6, atol=1e-9)


def interrupted(*_):
    raise KeyboardInterrupt


def test_without_a_compiler_a_long_run_is_replayed_and_says_so(long, monkeypatch):
    monkeypatch.setattr(compiled, "Kernels", SimpleNamespace)  # takes no such arguments
    with pytest.warns(UserWarning, match="run: rounds are replayed, not compiled: "):
        one = ran(rounds=9)
    monkeypatch.setattr(compiled, "LONG", math.inf)
    assert one.provenance["compiled"] == 0
    assert torch.equal(one.state.w, ran(rounds=9).state.w)


def spoiled(monkeypatch, ways, by):
    """The compiler makes what the operations do, but for the first number when asked some ways."""
    asked = []

    def stand_in(graph, inputs, way):
        asked.append(way)
        wrong = by if way in ways else 0.0
        return lambda *given: [x + wrong * (i == 0) for i, x in enumerate(graph(*given))], []

    monkeypatch.setattr(compiled, "compiled_once", stand_in)
    return asked


@pytest.mark.parametrize(("by", "count"), [(0.0, 1), (1e-12, 1), (1e-6, 2)])
def test_what_the_compiler_makes_wrong_is_made_another_way(by, count, long, monkeypatch):
    asked = spoiled(monkeypatch, WAYS[:1], by)
    one = ran(rounds=9)
    assert asked == [*WAYS[:count]]
    assert one.provenance["compiled"] == 8
    monkeypatch.setattr(compiled, "LONG", math.inf)
    torch.testing.assert_close(one.state.w, ran(rounds=9).state.w, rtol=0, atol=1e-10)


def test_a_run_whose_every_compilation_is_wrong_is_replayed_and_says_so(long, monkeypatch):
    asked = spoiled(monkeypatch, WAYS, 1e-6)
    with pytest.warns(UserWarning, match="replayed, not compiled: .*makes other numbers"):
        one = ran(rounds=9)
    assert asked == [*WAYS]
    monkeypatch.setattr(compiled, "LONG", math.inf)
    assert torch.equal(one.state.w, ran(rounds=9).state.w)


@compiler
def test_memories_compressed_both_ways_are_compiled_right(long, monkeypatch):
    """A graph that inductor of torch 2.13 orders wrongly if it keeps what several steps read."""
    monkeypatch.setattr(compiled, "MOST", 1)
    method = examples()["FedSGM"][0].algorithm
    assert isinstance(method.downlink, TopK)
    settings = {"rounds": 4, "seeds": (0, 1), "progress": False}
    one = fl.run(method, examples()["FedSGM"][0].problem, **settings)
    assert one.provenance["compiled"] == 4
    monkeypatch.setattr(compiled, "LONG", math.inf)
    other = fl.run(method, examples()["FedSGM"][0].problem, **settings)
    for x, y in zip(one.state, other.state, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-12)


def test_tall_products_are_wide_ones_turned_back_and_what_follows_is_the_same():
    whole = torch.arange(-60.0, 60.0)
    x, w = whole.view(2, 10, 6), whole[:24].view(2, 6, 2)

    def function(x, w):
        tall = torch.bmm(x, w)
        return tall.view(4, 10), tall.sum(1), torch.bmm(tall.mT, x)

    recorded = operations(function, (x, w))
    compiled.turn_tall_products(recorded)
    shapes = []

    class Shapes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found = func(*args, **(kwargs or {}))
            if func is torch.ops.aten.bmm.default:
                shapes.append(tuple(found.shape))
            return found

    with Shapes():
        found = recorded(x, w)
    assert shapes == [(2, 2, 10), (2, 2, 6)]  # the second is wide as it is
    for own, its in zip(found, function(x, w), strict=True):
        assert torch.equal(own, its)


def test_the_second_of_two_calls_begins_where_the_first_one_ended():
    start, draw = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    right = lambda w, x: (w + x, x.sum())  # noqa: E731
    wrong = lambda w, x: (1.1 * w + x, x.sum())  # right at a start of zeros  # noqa: E731
    assert agree(right, right, [start, draw], slice(0, 1))
    assert not agree(wrong, right, [start, draw], slice(0, 1))


def test_what_is_near_is_told_by_the_largest_entry():
    x = torch.tensor([1e-9, math.nan, math.inf, 2.0])
    assert near(x, x)
    assert near(x + 1e-5, x)
    assert not near(x + 1e-2, x)
    assert not near(x.nan_to_num(), x)
    assert not near(x.double() + 1e-6, x.double())
    assert near(torch.empty(0), torch.empty(0))
    assert near(torch.zeros(2), torch.zeros(2))
    assert not near(torch.ones(2), torch.zeros(2))
    assert not near(torch.tensor([10**9 + 1]), torch.tensor([10**9]))


def test_evaluations_between_calls_are_where_they_belong(long, monkeypatch):
    """Calls stand in for themselves: `Unrolled` without its compiler."""

    class Plain(compiled.Recording):
        def __init__(self, function, example, fixed):
            super().__init__(function, example, fixed)
            self.again = self.graph

    monkeypatch.setattr(compiled, "Kernels", Plain)
    for every, rounds in ((3, 20), (10, 32), ("geometric", 700)):
        with_calls = ran(rounds=rounds, evaluate_every=every)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BatchedRuns, "compiled", lambda *_: None)
            without = ran(rounds=rounds, evaluate_every=every)
        assert with_calls.provenance["compiled"] >= (100 if every == "geometric" else rounds - 6)
        for name, values in without.metrics.items():
            np.testing.assert_array_equal(with_calls.metrics[name], values)
        assert list(with_calls.rounds) == list(without.rounds)
