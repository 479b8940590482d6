"""Two runs side by side: names, files, differences, final values; and saved traces."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.problems import quadratics
from papers.__main__ import main
from papers.compare import compare
from papers.kit import store
from papers.kit.numbers import mean
from tests.helpers.expect import refuses
from tests.helpers.problems import np_problem

SGM = fl.FedSGM(
    lr=0.3,
    local_steps=2,
    participants=10,
    tolerance=0.05,
    uplink=fl.TopK(0.2),
)


def short_run(algorithm=SGM, problem=np_problem, rounds=4, seeds=(0, 1, 2)):
    return fl.run(algorithm, problem, rounds=rounds, seeds=seeds, progress=False)


@pytest.fixture(scope="module")
def two():
    return short_run(), short_run(replace(SGM, lr=0.1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A results folder with two runs of one study, which its own code stores."""
    folder = tmp_path_factory.mktemp("results")
    hard = store.Spec(SGM, np_problem, 4, (0, 1), keep=("f", "g", "sigma"))
    specs = {"hard": hard, "slow": replace(hard, algorithm=replace(SGM, lr=0.1))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDLIB_RESULTS", str(folder))
        store.compute_or_load("np_workshop", "full", specs, store=True, progress=False)
    return folder


@pytest.fixture
def results(folder, monkeypatch):
    monkeypatch.setenv("FEDLIB_RESULTS", str(folder))
    return folder / "np_workshop" / "full"


def test_what_is_not_finite_comes_back_as_nan(two, tmp_path):
    row = [1.0, np.inf, np.nan, 1.0, 1.0]
    broken = replace(two[0], metrics={"f": np.array([row] * 3)})
    broken.save(tmp_path / "a.json")
    assert "Infinity" not in (tmp_path / "a.json").read_text(encoding="utf-8")
    curve = fl.Trace.load(tmp_path / "a.json").metrics["f"]
    np.testing.assert_array_equal(curve, [[1.0, np.nan, np.nan, 1.0, 1.0]] * 3)


def test_a_changed_digit_in_a_saved_trace_is_noticed(two, tmp_path):
    path = tmp_path / "a.json"
    two[0].save(path)
    text = path.read_text(encoding="utf-8")
    changed = text.replace('"tolerance": 0.05', '"tolerance": 0.06')
    path.write_text(changed, encoding="utf-8")
    refuses("must agree with its digest", compare, path, two[1])


def test_only_what_differs_is_listed(two):
    comparison = compare(*two)
    assert list(comparison.differences.index) == ["algorithm.lr"]
    assert list(comparison.differences.loc["algorithm.lr"]) == ["0.3", "0.1"]


def test_an_entry_of_one_side_alone_and_the_problem(two):
    soft = short_run(replace(SGM, switch=fl.Soft(40.0)), rounds=5, seeds=(4, 5))
    comparison = compare(two[0], soft)
    differences = comparison.differences
    assert list(differences.loc["algorithm.switch.type"]) == ["Hard", "Soft"]
    assert list(differences.loc["algorithm.switch.beta"]) == ["-", "40.0"]
    assert list(differences.loc["seeds"]) == ["[0, 1, 2]", "[4, 5]"]
    assert "seeds apart" in comparison.finals.columns[2]
    assert list(differences.loc["rounds"]) == ["4", "5"]
    bowl = quadratics(*torch.ones(2, 2, 1), level=1.0)
    averaged = short_run(fl.FedAvg(0.1, 1, 2), bowl, rounds=2, seeds=(0,))
    entries = compare(soft, averaged).differences.index
    assert any(entry.startswith("problem.") for entry in entries)


def test_differences_are_paired_by_seed_where_the_seeds_are_equal(two):
    a, b = two
    metrics = {name: curve[::-1] for name, curve in b.metrics.items()}
    info = {name: curve[::-1] for name, curve in b.info.items()}
    turned = replace(b, seeds=b.seeds[::-1], metrics=metrics, info=info)
    change = b.metrics["f"][:, -1] - a.metrics["f"][:, -1]
    for second in (b, turned):
        assert compare(a, second).finals.loc["f"].iloc[2] == mean(change).text()


def test_stored_runs_and_files_are_found_by_name(results, two, tmp_path):
    comparison = compare("np_workshop/hard", "np_workshop/slow@full")
    assert list(comparison.differences.index) == ["algorithm.lr"]
    assert "bits_up a round" in comparison.finals.index
    two[0].save(tmp_path / "mine.json")
    assert compare(two[0], tmp_path / "mine.json").finals.loc["f"].iloc[2] == "0"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("np_workshop/hrad", "must name a stored run of np_workshop, got 'hrad'; nearest: hard."),
        ("np_worksop/hard", r"must name a run, got .*; nearest: np_workshop"),
        ("np_workshop", "name a run as STUDY/RUN"),
        ("np_workshop/hard@quick", "papers reproduce np_workshop --profile quick --missing` makes"),
        ("nothing.json", r"nothing\.json must exist"),
    ],
)
def test_a_run_that_is_not_there(results, name, sentence):
    with pytest.raises(ValueError, match=sentence):
        compare("np_workshop/hard", name)


def test_no_common_metric(two):
    costs = replace(two[0], metrics={"cost": two[0].metrics["f"]})
    refuses(
        "must share a metric, * first has f, g* second has cost.",
        compare,
        two[0],
        costs,
    )


def test_the_command_prints_the_tables(results, capsys):
    assert main(["compare", "np_workshop/hard", "np_workshop/slow"]) == 0
    printed = capsys.readouterr().out
    assert "algorithm.lr" in printed
    assert "paired by seed" in printed
    assert main(["compare", "np_workshop/hard", "np_workshop/slo"]) == 2
    assert capsys.readouterr().err.startswith("compare: second must name a stored run")
