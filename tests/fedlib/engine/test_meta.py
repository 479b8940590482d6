"""The round of every example on the device `meta`, which stands in for a GPU.

Tensors of `meta` have shapes and no values, and torch refuses an operation that joins one of them
with a tensor of the CPU. A round that makes a tensor on the wrong device fails here without a GPU.
"""

import pytest
import torch
from torch.utils import _pytree as pytree

import fedlib as fl
from fedlib.core import federation
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.start import first_progress
from fedlib.testing.examples import examples

META = torch.device("meta")


def round_on_meta(algorithm, problem):
    """The state, the info and the metrics after one round, with two seeds."""
    runs = BatchedRuns([algorithm], problem, (0, 1), META, None)
    progress = first_progress(runs)
    draw = runs.draws(progress.rngs, 1)
    first_draw = pytree.tree_map(lambda x: x[0], draw)
    state, info = runs.step(progress.state, first_draw)
    return state, info, runs.measure(state.w)


@pytest.mark.parametrize("name", sorted(examples()))
def test_a_round_stays_on_its_device(name):
    for algorithm, problem in examples()[name]:
        for value in pytree.tree_leaves(round_on_meta(algorithm, problem)):
            assert value.device == META


@pytest.mark.parametrize("name", sorted(examples()))
def test_a_round_of_some_clients_at_a_time_stays_on_its_device(name, monkeypatch):
    algorithm, problem = examples()[name][0]
    monkeypatch.setattr(federation, "LARGE_ROUND", 0)
    monkeypatch.setattr(federation, "CACHED", 3 * problem.dim)  # three clients at a time
    for value in pytree.tree_leaves(round_on_meta(algorithm, problem)):
        assert value.device == META


def test_a_tensor_of_the_cpu_is_noticed():
    class Misplaced(fl.FedAvg):
        def round(self, fed, state, draw):
            next_state, info = super().round(fed, state, draw)
            return next_state._replace(
                w=next_state.w + torch.ones(next_state.w.shape[-1], device="cpu")
            ), info

    algorithm, problem = examples()["FedAvg"][0]
    faulty = Misplaced(algorithm.lr, algorithm.local_steps, algorithm.participants)
    with pytest.raises(RuntimeError, match="device"):
        round_on_meta(faulty, problem)
