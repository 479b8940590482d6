"""Stacking of the seeds' problems, and distinct positions of a batch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.data import digits
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.stack import partition_leaves, same_memory
from papers.ssca.network import swish_network, vertical_network
from tests.helpers.networks import STEPS

TABLE = digits()


def network(seed):
    return swish_network(
        TABLE,
        TABLE,
        clients=3,
        hidden=4,
        seed=seed,
        scale=16.0,
        evaluate=50,
    )


def vertically_split(seed):
    return vertical_network(network(seed), scale=16)


def test_what_lies_at_one_place_is_kept_once_and_the_rest_is_stacked():
    common = torch.arange(6)
    trees = []
    for seed in range(3):
        leaves = (common.view(2, 3), torch.tensor([float(seed)]))
        trees.append({"a": leaves, "b": torch.ones(2), "none": ()})
    stacked, common_leaves, together = partition_leaves(trees)
    assert [x.shape for x in stacked] == [(3, 1), (3, 2)]  # equal numbers elsewhere are stacked
    assert [x.data_ptr() for x in common_leaves] == [common.data_ptr()]
    tree = together([x[1] for x in stacked], common_leaves)
    assert tree.keys() == trees[1].keys()
    for leaf, expected in zip(tree["a"], trees[1]["a"], strict=True):
        assert torch.equal(leaf, expected)
    assert tree["none"] == ()


@pytest.mark.parametrize(
    ("split", "method"),
    [
        (network, fl.SSCA(**STEPS, batch_size=5)),
        (vertically_split, fl.VerticalSSCA(**STEPS, batch_size=15)),
    ],
)
def test_seeds_share_the_pictures_and_a_run_is_as_with_copies(split, method):
    problems = [split(seed) for seed in range(3)]
    seeds = (0, 1, 2)
    runs = BatchedRuns(
        [method],
        problems.__getitem__,
        seeds,
        torch.device("cpu"),
        None,
    )
    assert any(same_memory(x, TABLE.X.flatten(1)) for x in runs.stacked.common)
    assert not any(x.dtype == torch.uint8 for x in runs.stacked.own)
    copies = [replace(p, data=tuple(x.clone() for x in p.data)) for p in problems]
    shared = fl.run(method, problems.__getitem__, rounds=4, seeds=seeds)
    copied = fl.run(method, copies.__getitem__, rounds=4, seeds=seeds)
    np.testing.assert_allclose(shared.metrics["cost"], copied.metrics["cost"], rtol=1e-5)
    torch.testing.assert_close(shared.state.w, copied.state.w, atol=1e-5, rtol=0)
