"""Stand-ins of the FedCMOO studies: their form, their rule, and that no claim is judged by them."""

import re
from functools import partial

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from fedlib import data
from fedlib.core import Trace
from fedlib.core.describe import describe
from papers import STUDIES
from papers.fedcmoo.common import ENCODERS, pair_problem
from papers.fedcmoo.data.pairs import NAMES
from papers.fedcmoo.pairs.runs import dropped_problem
from papers.fedcmoo.problems.qm9 import RULE, generated
from papers.fedcmoo.standin import note, source_text, standin_pairs, what
from papers.kit import store
from tests.helpers.expect import refuses

SMALL = {"clients": 4, "alpha": 0.3, "copies": 1, "pictures": 40, "test_pictures": 10}
NEEDED = ("cmoo_pairs", "cmoo_sweeps", "cmoo_probe", "cmoo_qm9", "cmoo_many")
ENDS = np.array([0, 1])


@pytest.mark.parametrize("name", NAMES)
def test_pictures_have_the_form_of_the_set_and_labels_of_both_digits(name):
    train = standin_pairs(name, "train")
    test = standin_pairs(name, "test")
    colour = name == "cifar10_mnist"
    assert train.X.shape == ((1200, 3, 32, 32) if colour else (1200, 1, 28, 28))
    assert train.X.dtype == torch.uint8
    assert len(test.y) == 597
    y = data.digits().y
    assert torch.equal(train.y[:, 0], y[:1200])
    assert torch.equal(test.y[:, 0], y[1200:])
    assert torch.equal(train.y[:, 1].bincount(), train.y[:, 0].bincount())  # a permutation
    assert (train.y[:, 0] != train.y[:, 1]).float().mean() > 0.8
    seven = standin_pairs(name, "train", 7)
    assert len(seven.X) == 7
    assert torch.equal(seven.y, train.y[:7])


def test_the_digits_are_where_they_are_said_to_be():
    for name in ("multi_mnist", "mnist_fashion"):
        X = standin_pairs(name, "train", 20).X[:, 0]
        assert X.max() > 200
        assert (X[:, :4].flatten(1) > 0).any(1).all()  # the first one begins at the top
        assert (X[:, -4:].flatten(1) > 0).any(1).all()  # the second one ends at the bottom
    colour = standin_pairs("cifar10_mnist", "train", 20).X
    digits = data.digits().X[:20] * 15
    assert torch.equal(colour[:, :, ::4, ::4][:, :, 0], digits[:, :1].expand(20, 3, 8))


def test_problems_are_those_of_the_paper_but_for_the_pictures():
    problem = partial(pair_problem, stand_in=True, **SMALL)
    grey = problem(0, data="mnist_fashion")
    assert (grey.num_clients, grey.num_objectives, grey.config["shared"]) == (4, 2, 28515)
    assert ENCODERS["mnist_fashion"] == ENCODERS["multi_mnist"] == grey.config["shared"]
    assert grey.config["stand_in"] == "pairs of scikit-learn's digits"
    assert len(grey.heldout) == 2
    colour = problem(1, data="cifar10_mnist")
    assert colour.config["pictures"] == 32
    assert ENCODERS["cifar10_mnist"] == colour.config["shared"]
    assert colour.config["held"] == 8
    assert not grey.w0.equal(problem(1, data="mnist_fashion").w0)
    mixed = problem(0, data="multi_mnist", kinds=("squared", "nll"))
    assert mixed.config["kinds"] == ["squared", "nll"]
    dropped = dropped_problem(0, data="multi_mnist", stand_in=True, **SMALL)
    assert dropped.config["dropout"] == 0.5


def is_made(problem):
    """Whether a run's problem asks for stand-ins."""
    words = problem.keywords
    return bool(words.get("stand_in")) or "stand-in" in words.values()


@pytest.mark.parametrize("name", NEEDED)
def test_the_source_decides_who_makes_the_problem(name):
    study = STUDIES[name]
    full, quick = (study.specs(study.resolve(profile)) for profile in ("full", "quick"))
    assert not any(is_made(spec.problem) for spec in full.values())
    for spec in quick.values():
        assert is_made(spec.problem) or spec.problem.func.__name__ == "counted_problem"
    for spec in full.values():
        assert "source" not in spec.problem.keywords or name == "cmoo_many"
    refuses("source must", study.specs, study.resolve("quick", source=1))


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
    traces = store.compute_or_load("cmoo_pairs", "quick", {run: specs[run]}, progress=False)
    assert traces[run].config["problem"]["dropout"] == 0.5
    assert np.isfinite(traces[run].metrics["loss"]).all()
    assert what(traces) == "pairs of scikit-learn's digits"


def config_of(spec):
    """What a run of these would be stored with."""
    how = {"rounds": spec.rounds, "seeds": list(spec.seeds), "evaluate_every": spec.evaluate_every}
    problem = describe(spec.problem(spec.seeds[0]).config)
    return {"algorithm": describe(spec.algorithm), "problem": problem, **how}


@pytest.mark.parametrize("name", NEEDED)
def test_no_claim_is_judged_by_stand_ins(name):
    study = STUDIES[name]
    params = study.resolve("quick")
    configs = {name: config_of(spec) for name, spec in study.specs(params).items()}
    for claim in study.claims:
        stored = {name: study.payload(name)["config"] for name in claim.all_runs}
        for outcome in claim.verdicts({}, configs, stored, study.changed(params)).values():
            assert outcome.verdict == "not judged"
            assert re.search("problem.stand_in|problem.data 'stand-in'", outcome.reason)


def trace(**problem):
    return Trace({}, {}, ENDS, (0,), {"problem": problem})


def test_stand_ins_are_named_on_the_page_and_on_the_picture():
    papers = {"a": trace()}
    stood_in = {"a": trace(), "b": trace(stand_in="coarse digits")}
    assert source_text(papers, "MNIST") == "data: MNIST"
    assert source_text(stood_in, "MNIST") == "data: coarse digits, a stand-in for MNIST"
    for traces, expected in ((papers, False), (stood_in, True)):
        figure = Figure()
        note(figure, traces)
        assert ("stand-in: coarse digits" in figure.get_suptitle()) is expected


def test_generated_molecules_are_chains_and_their_targets_sums():
    train, test = generated(60, 10, seed=3)
    assert (train.atoms.shape, test.atoms.shape) == ((60, 8, 11), (10, 8, 11))
    bonds = train.bonds.long()
    assert torch.equal(bonds, bonds.mT)
    assert torch.equal((bonds > 0).sum((1, 2)) // 2, train.real.sum(1) - 1)
    assert not train.atoms[~train.real].any()
    sums = torch.cat([train.atoms, test.atoms]).sum(1).double()
    y = torch.cat([train.targets, test.targets]).double()
    expected = (sums - sums.mean(0)) / sums.std(0, correction=0)
    torch.testing.assert_close(y, expected, atol=1e-5, rtol=0)
    again, _ = generated(60, 10, seed=3)
    assert all(torch.equal(a, b) for a, b in zip(train, again, strict=True))
    reseeded, _ = generated(60, 10, seed=4)
    assert not torch.equal(train.positions, reseeded.positions)


def test_the_problem_of_generated_molecules_names_its_targets():
    study = STUDIES["cmoo_qm9"]
    p = study.resolve("quick", molecules=20, test_molecules=4, clients=5)
    problem = study.specs(p)["fedcmoo"].problem(0)
    assert problem.config["tasks"] == list(RULE)
    assert "known rule" in problem.config["stand_in"]
    assert problem.config["dim"] == problem.dim
    assert (problem.num_clients, problem.num_objectives, problem.sizes[0]) == (5, 11, 4)
