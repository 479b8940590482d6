"""Stacking of the seeds' problems, and distinct positions of a batch."""

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.core.sampling import seeded
from fedlib.data import digits
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.stack import partition_leaves, same_memory
from fedlib.work.samples import distinct
from papers.ssca.network import swish_network, vertical_network

STEPS = {"tau": 0.1, "rho": fl.PowerLaw(0.6, 0.3), "gamma": fl.PowerLaw(0.9, 0.35)}
TABLE = digits()
SSCA = fl.SSCA(**STEPS, batch_size=5)


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


def test_what_lies_at_one_place_is_kept_once_and_the_rest_is_stacked():
    common = torch.arange(6)
    equal = torch.ones(2)
    trees = [
        {"a": (common.view(2, 3), torch.tensor([float(i)])), "b": equal.clone(), "none": ()}
        for i in range(3)
    ]
    stacked, common_leaves, together = partition_leaves(trees)
    assert [x.shape for x in stacked] == [(3, 1), (3, 2)]  # equal numbers elsewhere are stacked
    assert [x.data_ptr() for x in common_leaves] == [common.data_ptr()]
    again = together([x[1] for x in stacked], common_leaves)
    assert again.keys() == trees[1].keys()
    assert torch.equal(again["a"][0], common.view(2, 3))
    assert torch.equal(again["a"][1], torch.ones(1))
    assert again["none"] == ()


@pytest.mark.parametrize("split", [network, lambda seed: vertical_network(network(seed), scale=16)])
def test_seeds_share_the_pictures_and_a_run_is_as_with_copies(split):
    problems = [split(seed) for seed in range(3)]
    method = SSCA if split is network else fl.algorithms.VerticalSSCA(**STEPS, batch_size=15)
    loop = BatchedRuns([method], lambda seed: problems[seed], (0, 1, 2), torch.device("cpu"), None)
    assert any(same_memory(x, TABLE.X.flatten(1)) for x in loop.stacked.common)
    assert not any(x.dtype == torch.uint8 for x in loop.stacked.own)
    copies = [replace(p, data=tuple(x.clone() for x in p.data)) for p in problems]
    options = {"rounds": 4, "seeds": [0, 1, 2], "progress": False}
    a, b = (fl.run(method, ps.__getitem__, **options) for ps in (problems, copies))
    np.testing.assert_allclose(a.metrics["cost"], b.metrics["cost"], rtol=1e-5)
    torch.testing.assert_close(a.state.w, b.state.w, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("size", "count"), [(8, 2), (4, 3), (4, 4), (1, 1)])
def test_all_ordered_choices_are_equally_likely(size, count):
    rng = seeded(0, "rounds")
    times = Counter()
    repeats = 300
    choices = list(permutations(range(size), count))
    rows = distinct(size, (repeats * len(choices), count), rng)
    times.update(map(tuple, rows.tolist()))
    assert times.keys() == set(choices)
    square = sum((n - repeats) ** 2 / repeats for n in times.values())  # chi squared
    freedom = len(choices) - 1
    assert square <= freedom + 4 * (2 * freedom) ** 0.5
