"""Two runs side by side: names, files, differences and final values."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.problems import quadratics
from papers.compare import compare
from papers.kit.numbers import mean
from tests.helpers.expect import refuses
from tests.helpers.problems import np_problem

SGM = fl.FedSGM(lr=0.3, local_steps=2, participants=10, tolerance=0.05)


def short_run(algorithm, problem=np_problem, rounds=4, seeds=(0, 1, 2)):
    return fl.run(
        algorithm,
        problem,
        rounds=rounds,
        seeds=seeds,
        progress=False,
    )


@pytest.fixture(scope="module")
def two():
    return short_run(SGM), short_run(replace(SGM, lr=0.1))


def test_only_what_differs_is_listed(two):
    differences = compare(*two).differences
    assert [*differences.index] == ["algorithm.lr"]
    assert [*differences.loc["algorithm.lr"]] == ["0.3", "0.1"]


def test_an_entry_of_one_side_alone(two):
    soft = replace(SGM, switch=fl.Soft(40.0))
    comparison = compare(two[0], short_run(soft, rounds=5, seeds=(4, 5)))
    differences = comparison.differences
    assert [*differences.loc["algorithm.switch.type"]] == ["Hard", "Soft"]
    assert [*differences.loc["algorithm.switch.beta"]] == ["-", "40.0"]
    assert [*differences.loc["seeds"]] == ["[0, 1, 2]", "[4, 5]"]
    assert [*differences.loc["rounds"]] == ["4", "5"]
    assert "seeds apart" in comparison.finals.columns[2]


def test_another_problem(two):
    centres = torch.ones(2, 1)
    bowl = quadratics(centres, centres, level=1.0)
    averaged = short_run(fl.FedAvg(0.1, 1, 2), bowl)
    entries = compare(two[0], averaged).differences.index
    assert any(entry.startswith("problem.") for entry in entries)


def test_differences_are_paired_by_seed(two):
    a, b = two
    turned = replace(
        b,
        seeds=b.seeds[::-1],
        metrics={name: curve[::-1] for name, curve in b.metrics.items()},
        info={name: curve[::-1] for name, curve in b.info.items()},
    )
    change = b.metrics["f"][:, -1] - a.metrics["f"][:, -1]
    for second in (b, turned):
        finals = compare(a, second).finals
        assert finals.loc["f"].iloc[2] == mean(change).text()


def test_stored_runs_and_files_are_found_by_name(two, tmp_path):
    comparison = compare("np_workshop/hard", "np_workshop/soft@full")
    assert "algorithm.switch.type" in comparison.differences.index
    assert "bits_up a round" in comparison.finals.index
    file = tmp_path / "mine.json"
    two[0].save(file)
    assert compare(two[0], file).finals.loc["f"].iloc[2] == "0"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("np_workshop/hrad", "must name a stored run of np_workshop, got 'hrad'; nearest: hard"),
        ("np_worksop/hard", r"must name a run, got .*; nearest: np_workshop"),
        ("np_workshop", "name a run as STUDY/RUN"),
        ("np_workshop/hard@quick", "papers reproduce np_workshop --profile quick --missing` makes"),
        ("np_workshop/hard@quik", "profile must be one of 'quick', 'full', got 'quik'"),
        ("nothing.json", r"nothing\.json must exist"),
    ],
)
def test_a_run_that_is_not_there(name, sentence):
    with pytest.raises(ValueError, match=sentence):
        compare("np_workshop/hard", name)


def test_no_common_metric(two):
    costs = replace(two[0], metrics={"cost": two[0].metrics["f"]})
    words = "must share a metric, * first has f, g* second has cost."
    refuses(words, compare, two[0], costs)
