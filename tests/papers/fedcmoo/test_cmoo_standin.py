"""Stand-ins of the FedCMOO studies: their form, their rule, and that no claim is judged by them."""

import re

import numpy as np
import pytest
import torch
from expect import refuses

from fedlib import data
from fedlib.core import Trace
from fedlib.core.describe import describe
from papers import STUDIES
from papers.fedcmoo.common import ENCODERS, pair_problem
from papers.fedcmoo.data.molecules import ATOMS
from papers.fedcmoo.data.pairs import NAMES
from papers.fedcmoo.pairs import figures as cmoo_pairs_figures
from papers.fedcmoo.problems.generated_molecules import RULE, VALENCE, generated, rule
from papers.fedcmoo.standin import (
    dropped_standin,
    noted,
    source_text,
    standin_pairs,
    standin_problem,
    what,
)
from papers.kit import plot, store

SMALL = {"clients": 4, "alpha": 0.3, "copies": 1, "pictures": 40, "test_pictures": 10}
NEEDED = ("cmoo_pairs", "cmoo_sweeps", "cmoo_probe", "cmoo_qm9")
ENDS = np.array([0, 1])


@pytest.mark.parametrize("name", NAMES)
def test_pictures_have_the_form_of_the_set_and_labels_of_both_digits(name):
    train, test = standin_pairs(name, "train"), standin_pairs(name, "test")
    colour = name == "cifar10_mnist"
    assert train.X.shape == ((1200, 3, 32, 32) if colour else (1200, 1, 28, 28))
    assert train.X.dtype == torch.uint8
    assert len(test.y) == 597
    y = data.digits().y
    assert torch.equal(train.y[:, 0], y[:1200])
    assert torch.equal(test.y[:, 0], y[1200:])
    assert torch.equal(train.y[:, 1].bincount(), train.y[:, 0].bincount())  # a permutation
    assert (train.y[:, 0] != train.y[:, 1]).float().mean() > 0.8
    few = standin_pairs(name, "train", 7)
    assert len(few.X) == 7
    assert torch.equal(few.y, train.y[:7])


def test_the_digits_are_where_they_are_said_to_be():
    some = data.digits().X[:20] * 15
    two, striped = (standin_pairs(n, "train", 20).X[:, 0] for n in ("multi_mnist", "mnist_fashion"))
    for X in (two, striped):
        assert X.max() > 200
        assert (X[:, :4].flatten(1) > 0).any(1).all()  # the first one begins at the top
        assert (X[:, -4:].flatten(1) > 0).any(1).all()  # the second one ends at the bottom
    assert striped[:, -8:].float().mean() < two[:, -8:].float().mean()
    colour = standin_pairs("cifar10_mnist", "train", 20)
    ink = colour.X[:, :, :2].float().amax((1, 2, 3))  # above the pale digit
    assert (ink[some[:, 0].amax(1) > 200] > 100).all()
    assert (colour.X.float().std((2, 3)) > 5).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("mnist", "train", 0), "name must"),
        (("multi_mnist", "held", 0), "split must"),
        (("multi_mnist", "train", 1201), "limit must"),
    ],
)
def test_pictures_that_there_are_not(change, sentence):
    with pytest.raises(ValueError, match=f"standin_pairs: {sentence}"):
        standin_pairs(*change)


def test_problems_are_those_of_the_paper_but_for_the_pictures():
    grey = standin_problem(0, data="mnist_fashion", **SMALL)
    assert (grey.num_clients, grey.num_objectives, grey.config["shared"]) == (4, 2, 28515)
    assert ENCODERS["mnist_fashion"] == ENCODERS["multi_mnist"] == grey.config["shared"]
    assert grey.config["tasks"] == ["digit", "striped digit"]
    assert len(grey.heldout) == 2
    colour = standin_problem(1, data="cifar10_mnist", **SMALL)
    assert colour.config["pictures"] == 32
    assert ENCODERS["cifar10_mnist"] == colour.config["shared"]
    assert colour.config["held"] == 8
    assert not grey.w0.equal(standin_problem(1, data="mnist_fashion", **SMALL).w0)
    mixed = standin_problem(0, data="multi_mnist", kinds=("squared", "nll"), **SMALL)
    assert mixed.config["kinds"] == ["squared", "nll"]
    assert dropped_standin(0, data="multi_mnist", **SMALL).config["dropout"] == 0.5


def maker(problem):
    made = problem.func.__name__
    return f"{made} of stand-ins" if problem.keywords.get("stand_in") else made


@pytest.mark.parametrize("name", NEEDED)
def test_the_source_decides_who_makes_the_problem(name):
    study = STUDIES[name]
    full, quick = (study.specs(study.resolve(profile)) for profile in ("full", "quick"))
    makers = {
        profile: {maker(spec.problem) for spec in specs.values()}
        for profile, specs in (("full", full), ("quick", quick))
    }
    ours = {"standin_problem", "dropped_standin", "valued_standin", "generated_problem"}
    ours |= {"many_problem", "watched_problem of stand-ins"}
    assert not makers["full"] & ours
    assert makers["quick"] <= ours | {"counted_problem"}
    for spec in full.values():
        assert "source" not in spec.problem.keywords
    refuses("source must", study.specs, study.resolve("quick", source=1))


def test_the_paper_s_pictures_are_asked_for_with_the_same_words():
    study = STUDIES["cmoo_pairs"]
    full, made = (study.specs({**study.resolve("full"), "source": s}) for s in (0, 2))
    for run, spec in full.items():
        assert spec.problem.keywords == made[run].problem.keywords
        assert spec.algorithm == made[run].algorithm
    assert full["multi_mnist_fedcmoo"].problem.func is pair_problem


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


@pytest.mark.parametrize("name", [*NEEDED, "cmoo_many"])
def test_no_claim_is_judged_by_stand_ins(name):
    study = STUDIES[name]
    params = study.resolve("quick")
    configs = {name: config_of(spec) for name, spec in study.specs(params).items()}
    for claim in study.claims:
        stored = {name: study.payload(name)["config"] for name in claim.all_runs}
        for found in claim.verdicts({}, configs, stored, study.changed(params)).values():
            assert found.verdict == "not judged"
            assert re.search("problem.(stand_in|data 'stand-in')", found.reason)


def trace(**problem):
    return Trace({}, {}, ENDS, (0,), {"problem": problem})


def test_stand_ins_are_named_on_the_page_and_on_the_picture():
    own, made = {"a": trace()}, {"a": trace(), "b": trace(stand_in="coarse digits")}
    assert source_text(own, "MNIST") == "data: MNIST"
    assert source_text(made, "MNIST") == "data: coarse digits, a stand-in for MNIST"
    figures = noted({"empty": lambda _: lambda fig: fig.subplots()})
    for traces, there in ((own, False), (made, True)):
        picture = plot.export(figures["empty"](traces))[0].decode()
        assert ("stand-in: coarse digits" in picture) is there


def test_the_gallery_shows_stand_ins_without_data(offline):
    first = {"tasks": ["digit", "striped digit"], "stand_in": "coarse digits"}
    traces = {"mnist_fashion_fedcmoo": trace(**first)}
    y = standin_pairs("mnist_fashion", "test").y[0].tolist()
    picture = plot.export(cmoo_pairs_figures.gallery(traces))[0].decode()
    assert "{} and {}".format(*y) in picture
    assert "stripes" in cmoo_pairs_figures.gallery_text(traces)
    assert "clothing" in cmoo_pairs_figures.gallery_text({"a": trace()})


def test_generated_molecules_obey_their_valences_and_hang_together():
    train, test = generated(60, 10, seed=3)
    assert (train.atoms.shape, test.atoms.shape) == ((60, 14, 11), (10, 14, 11))
    assert train.real.shape[1] <= ATOMS
    z, bonds = train.atoms[..., 5].long(), train.bonds.long()
    assert torch.equal(bonds, bonds.mT)
    valence = torch.zeros(10, dtype=torch.long)
    valence[1] = 1
    for number, most in VALENCE.items():
        valence[number] = most
    assert torch.equal(bonds.sum(2), valence[z] * train.real)  # hydrogens fill what is left
    ties = (bonds > 0).sum((1, 2)) // 2
    assert torch.equal(ties, train.real.sum(1) - 1)  # a tree
    apart = torch.cdist(train.positions, train.positions)[bonds > 0]
    nearest = torch.minimum((apart - 1.1).abs(), (apart - 1.5).abs())
    assert nearest.max() < 1e-3
    again, _ = generated(60, 10, seed=3)
    assert all(torch.equal(a, b) for a, b in zip(train, again, strict=True))
    other, _ = generated(60, 10, seed=4)
    assert not torch.equal(train.positions, other.positions)


def test_their_targets_are_counts_and_distances():
    train, test = generated(300, 100)
    whole = [torch.cat(x) for x in zip(train, test, strict=True)]
    torch.testing.assert_close(whole[-1].mean(0), torch.zeros(11), atol=1e-5, rtol=0)
    torch.testing.assert_close(whole[-1].std(0, correction=0), torch.ones(11))
    values = rule(train)
    i = int(train.real.sum(1).argmax())
    n = int(train.real[i].sum())
    z, bonds, x = train.atoms[i, :n, 5], train.bonds[i, :n, :n], train.positions[i, :n]
    expected = [float((z == number).sum()) for number in (1, 6, 7, 8, 9)]
    expected += [float((bonds == order).sum()) / 2 for order in (1, 2, 3)]
    apart = [float((x[a] - x[b]).norm()) for a in range(n) for b in range(a)]
    expected += [np.mean(apart), max(apart)]
    expected += [float((x - x.mean(0)).square().sum(1).mean())]
    assert values[i].tolist() == pytest.approx(expected, rel=1e-4)
    assert len(RULE) == 11


@pytest.mark.parametrize("change", [{"train": 0}, {"test": 0}, {"heavy": 0}])
def test_no_molecules(change):
    (name,) = change
    with pytest.raises(ValueError, match=f"generated: {name} must"):
        generated(**{"train": 2, "test": 2, **change})


def test_the_problem_of_generated_molecules_names_its_targets():
    study = STUDIES["cmoo_qm9"]
    p = study.resolve("quick", molecules=20, test_molecules=4, clients=5)
    problem = study.specs(p)["qm9_fedcmoo"].problem(0)
    assert problem.config["tasks"] == list(RULE)
    assert "known rule" in problem.config["stand_in"]
    assert problem.config["dim"] == problem.dim
    assert (problem.num_clients, problem.num_objectives, problem.sizes[0]) == (5, 11, 4)


def test_zero_is_refused_only_where_no_profile_has_it():
    assert STUDIES["cmoo_pairs"].resolve("quick", source=0)["source"] == 0
    with pytest.raises(ValueError, match=r"cmoo_pairs: clients must be at least 1, got 0"):
        STUDIES["cmoo_pairs"].resolve("quick", clients=0)
