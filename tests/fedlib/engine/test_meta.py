"""The round of every example on the device `meta`, which stands in for a GPU.

Tensors of `meta` have shapes and no values, and torch refuses an operation that joins one of them
with a tensor of the CPU. A round that makes a tensor on the wrong device fails here without a GPU.
"""

import pytest
import torch
from torch.utils import _pytree as pytree

import fedlib as fl
from fedlib.core import federation
from fedlib.core.trees import index_tree
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.start import first_progress
from fedlib.testing.examples import examples

META = torch.device("meta")
every_method = pytest.mark.parametrize("name", sorted(examples()))


def assert_stays(algorithm, problem):
    """The state, the report and the metrics after one round with two seeds lie on the device."""
    runs = BatchedRuns(
        [algorithm],
        problem,
        (0, 1),
        META,
        None,
    )
    progress = first_progress(runs)
    draw = index_tree(runs.draws(progress.rngs, 1), 0)
    state, info = runs.step(progress.state, draw)
    for value in pytree.tree_leaves((state, info, runs.measure(state.w))):
        assert value.device == META


@every_method
def test_a_round_stays_on_its_device(name):
    for algorithm, problem in examples()[name]:
        assert_stays(algorithm, problem)


@every_method
def test_a_round_of_some_clients_at_a_time_stays_on_its_device(name, monkeypatch):
    algorithm, problem = examples()[name][0]
    monkeypatch.setattr(federation, "LARGE_ROUND", 0)
    monkeypatch.setattr(federation, "CACHED", 3 * problem.dim)  # three clients at a time
    assert_stays(algorithm, problem)


class Misplaced(fl.FedAvg):
    """Adds a number that lies on the CPU."""

    def round(self, fed, state, draw):
        next_state, info = super().round(fed, state, draw)
        return next_state._replace(w=next_state.w + torch.ones(1, device="cpu")), info


def test_a_tensor_of_the_cpu_is_noticed():
    with pytest.raises(RuntimeError, match="device"):
        assert_stays(Misplaced(0.1, 1, 3), examples()["FedAvg"][0].problem)
