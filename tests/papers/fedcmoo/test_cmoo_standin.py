"""Stand-ins of the FedCMOO studies: their form, their rule, and that no claim is judged by them."""

import re

import numpy as np
import pytest
import torch

from fedlib import data
from fedlib.core.describe import describe
from papers import STUDIES
from papers.fedcmoo.data.pairs import NAMES
from papers.fedcmoo.problems.qm9 import generated
from papers.fedcmoo.standin import standin_pairs, what
from papers.kit import store
from papers.kit.health import Evidence
from tests.helpers.expect import close

NEEDED = ("cmoo_pairs", "cmoo_sweeps", "cmoo_probe", "cmoo_qm9", "cmoo_many")


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No data set in the cache, and no stored run."""
    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    for name in ("mnist", "fashion_mnist", "cifar10", "qm9"):
        assert not data.available(name)


def test_a_run_with_dropout_needs_no_download(offline):
    study = STUDIES["cmoo_pairs"]
    specs = study.specs(study.resolve("quick"))
    run = "mnist_fashion_pref_dropout"
    traces = store.compute_or_load(
        "cmoo_pairs",
        "quick",
        {run: specs[run]},
        progress=False,
    )
    assert traces[run].config["problem"]["dropout"] == 0.5
    assert np.isfinite(traces[run].metrics["loss"]).all()
    assert what(traces) == "pairs of scikit-learn's digits"


def config_of(spec):
    """What a run of these would be stored with."""
    return {
        "algorithm": describe(spec.algorithm),
        "problem": describe(spec.problem(spec.seeds[0]).config),
        "rounds": spec.rounds,
        "seeds": list(spec.seeds),
        "evaluate_every": spec.evaluate_every,
    }


@pytest.mark.parametrize("name", NEEDED)
def test_no_claim_is_judged_by_stand_ins(name):
    study = STUDIES[name]
    params = study.resolve("quick")
    configs = {name: config_of(spec) for name, spec in study.specs(params).items()}
    for claim in study.claims:
        stored = {name: study.payload(name)["config"] for name in claim.all_runs}
        evidence = Evidence({}, configs, stored, study.changed(params))
        for outcome in claim.verdicts(evidence).values():
            assert outcome.verdict == "not judged"
            reasons = "problem.stand_in|problem.data 'stand-in'|is not among these"
            assert re.search(reasons, outcome.reason)


@pytest.mark.parametrize("name", NAMES)
def test_pictures_have_the_form_of_the_set_and_labels_of_both_digits(name):
    train = standin_pairs(name, "train")
    shape = (3, 32, 32) if name == "cifar10_mnist" else (1, 28, 28)
    assert train.X.shape == (1200, *shape)
    assert train.X.dtype == torch.uint8
    y = data.digits().y[:1200]
    assert torch.equal(train.y[:, 0], y)
    assert torch.equal(train.y[:, 1].bincount(), y.bincount())  # a permutation
    seven = standin_pairs(name, "train", 7)
    assert torch.equal(seven.y, train.y[:7])


def test_targets_of_generated_molecules_are_sums_over_their_atoms():
    train, test = generated(60, 10, seed=3)
    assert train.atoms.shape == (60, 8, 11)
    assert not train.atoms[~train.real].any()
    sums = torch.cat([train.atoms, test.atoms]).sum(1).double()
    y = torch.cat([train.targets, test.targets]).double()
    scaled = (sums - sums.mean(0)) / sums.std(0, correction=0)
    close(y, scaled, 1e-5)
