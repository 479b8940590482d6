"""The QM9 study: what is compared at equal rounds and uploads, counted bits, and its rules."""

import numpy as np
import pytest

import fedlib as fl
from fedlib import data
from fedlib.core import Trace
from papers.fedcmoo.common import METHODS
from papers.fedcmoo.qm9 import STUDY
from papers.fedcmoo.qm9.quantities import (
    common_round,
    common_upload,
    largest_gap,
    upload_of,
    uploaded,
    within,
)
from papers.fedcmoo.qm9.runs import TASKS, molecule_problem
from papers.kit import store

DIM = 617_675


def trace(losses, up, dim=DIM, participants=4, seeds=1):
    """A run whose target k has k / 6 of the given mean loss after every round."""
    losses = np.tile(np.asarray(losses, float), (seeds, 1))
    metrics = {"loss": losses} | {f"loss_{k}": k / 6 * losses for k in TASKS}
    config = {
        "bits": {"bits_up": 32 * dim * up * participants},
        "algorithm": {"participants": participants, "batch_size": 8},
        "problem": {"dim": dim},
    }
    return Trace(metrics, {}, np.arange(losses.shape[1]), tuple(range(seeds)), config)


def test_losses_are_compared_after_equal_rounds_and_equal_uploads():
    runs = {"fsmgda": trace([1.0] * 9, 11.0), "fedcmoo": trace([1.0] * 23, 1.99609)}
    assert common_round(runs) == 8
    assert common_upload(runs) == pytest.approx(22 * 1.99609)
    assert within(runs["fsmgda"], 22 * 1.99609) == 4  # 44 d is 1 % of 43.9


def test_uploads_are_in_model_sizes_a_client():
    run = trace([1.0] * 9, 11.0)
    assert upload_of(run) == pytest.approx(11)
    np.testing.assert_allclose(uploaded(run), 11 * np.arange(9))
    assert [within(run, upload) for upload in (0, 10.5, 11, 21.9, 1e6)] == [0, 0, 1, 2, 8]


def test_the_largest_gap_is_over_the_rounds_that_both_have():
    ours = trace([1.0, 0.9, 0.8, 0.5, 0.1], 2.0)
    theirs = trace([1.0, 0.95, 0.7, 0.6], 11.0)
    assert largest_gap(ours, theirs) == pytest.approx([0.1])  # after the second round
    assert largest_gap(theirs, ours) == pytest.approx([0.1])  # after the third


def test_the_runs_are_those_of_the_paper_but_for_their_size():
    specs = STUDY.specs(STUDY.resolve("full"))
    kinds = {"fedcmoo": fl.FedCMOO, "pref": fl.FedCMOOPref, "fsmgda": fl.FSMGDA}
    for m, algorithm_type in kinds.items():
        algorithm = specs[m].algorithm
        assert type(algorithm) is algorithm_type
        assert algorithm.local == fl.Adam()
        assert (algorithm.lr, algorithm.server_lr, algorithm.local_steps) == (0.01, 1.0, 14)
        assert (algorithm.participants, algorithm.shared) == (4, 616_960)


def test_counted_uploads_of_a_round_on_quadratics():
    p = STUDY.resolve("quick")
    counted = {k: v for k, v in STUDY.specs(p).items() if k.endswith("_objectives2")}
    assert list(counted) == [f"{m}_objectives2" for m in METHODS]
    runs = store.compute_or_load("cmoo_qm9", "quick", counted, recompute=True, progress=False)
    sketch = 15 * (63 + 2 * 32)  # rank floor(sqrt(2000 / 2) / 2), folded to 63 x 64
    sent = {m: upload_of(runs[f"{m}_objectives2"]) * p["count_dim"] for m in METHODS}
    assert sent["fsmgda"] == pytest.approx(2 * 2000)
    assert sent["fedcmoo"] == pytest.approx(2000 + sketch + 8)
    assert sent["pref"] == pytest.approx(sent["fedcmoo"] + 2)


@pytest.mark.skipif(not data.available("qm9"), reason="QM9 is not in the cache; set FEDLIB_DATA")
def test_the_problem_names_its_size_and_its_split_follows_the_seed():
    size = {"clients": 5, "molecules": 40, "test_molecules": 10}
    problem, reseeded = (molecule_problem(s, **size) for s in (0, 1))
    assert problem.config["dim"] == problem.dim == DIM
    assert problem.config["shared"] == 616_960
    assert (problem.num_clients, problem.num_objectives, problem.sizes[0]) == (5, 11, 8)
    assert not problem.rows.equal(reseeded.rows)
    assert not problem.w0.equal(reseeded.w0)
    assert problem.heldout[-1].equal(reseeded.heldout[-1])
