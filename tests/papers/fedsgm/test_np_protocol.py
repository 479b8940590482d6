"""The compressed penalty is Penalty-FedAvg without compressors; measures and null data by hand."""

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.core import Trace
from fedlib.steps import Hard
from papers.fedsgm.np_protocol import quantities
from papers.fedsgm.np_protocol.runs import CompressedPenalty
from papers.kit import quantities as kit
from papers.kit.quantities import Quantities


def test_without_compressors_it_is_penalty_fedavg():
    settings = {"lr": 0.1, "local_steps": 3, "participants": 4, "tolerance": 0.02}
    ours = CompressedPenalty(**settings, switch=Hard(), rho=2.5)
    library = fl.PenaltyFedAvg(**settings, rho=2.5)
    task = fl.problems.quadratics()
    one, other = (fl.run(m, task, rounds=12, progress=False) for m in (ours, library))
    assert {0.0, 1.0} == {*one.info["sigma"].flatten().tolist()}
    torch.testing.assert_close(one.state.w, other.state.w, rtol=1e-5, atol=1e-6)


def trace(f, g, **labels):
    """A run of as many splits as rows, evaluated after every round."""
    f, g = (np.asarray(x, float) for x in (f, g))
    rounds = np.arange(f.shape[1])
    return Trace({"f": f, "g": g}, {}, rounds, tuple(range(len(f))), {"labels": labels})


def test_null_data_are_disjoint_sets_of_splits_of_equal_size():
    flat = np.arange(11.0)[:, None] * np.ones(6)
    parts = quantities.disjoint(trace(flat, flat))
    assert [part.seeds for part in parts] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    assert [part.late("f").tolist() for part in parts][3] == [6.0, 7.0]


def test_the_share_of_threes_looks_at_all_choices():
    g = np.repeat([[0.04], [0.05], [0.06], [0.07]], 6, axis=1)
    # of the means 0.05, 0.0533, 0.0567, 0.06 only the first is at most 0.0525
    share = quantities.share_of_threes(trace(g, g), 0.05)
    assert share.value == pytest.approx(0.25)


def test_right_is_feasible_and_as_good_but_for_a_share_of_the_fall():
    g = np.full((2, 6), 0.05)
    soft = trace(np.full((2, 6), 0.1), g, switch="soft")
    near = trace(np.repeat([[0.12], [0.14]], 6, axis=1), g, rho=2.0)
    grids = {"beta": {40.0: soft}, "rho": {2.0: near}}
    rows = kit.table(quantities.right(grids, soft, 0.05))
    numbers = Quantities.of([rows], {"switch": None})
    assert numbers["rho2.right"].per_seed == (1.0, 0.0)  # the bound is 0.1297
    assert numbers["rho2.right_level"].per_seed == (1.0, 0.0)  # 0.125
    assert numbers["knob_beta.right"].value == 1
