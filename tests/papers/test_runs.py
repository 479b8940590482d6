"""The groups that are to be computed: what falls short, in which order; a kill changes nothing."""

import json
import os
from dataclasses import replace
from fnmatch import fnmatch

import pytest

from papers import STUDIES
from papers.__main__ import main
from papers.kit import archive, store
from papers.kit.run_groups import hours_at_scale, listed, to_do
from tests.helpers.expect import near
from tests.helpers.process import forked, status_of
from tests.helpers.unlabelled import quantities

STUDY = STUDIES["cmoo_sweeps"]
KILLED = 9  # exit status


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A study of two groups whose paper has more rounds."""
    workshop = STUDIES["np_workshop"]

    def three_runs(params):
        specs = workshop.specs(params)
        return {name: specs[name] for name in ("soft_lr0.1", "soft_lr1", "hard_lr1")}

    brief = {**workshop.profiles["quick"], "rounds": 4}
    study = replace(
        workshop,
        profiles={"quick": brief, "full": brief},
        specs=three_runs,
        derive=lambda *_: quantities({}),
        at_paper={"rounds": 6},
    )
    monkeypatch.setitem(STUDIES, workshop.name, study)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path / "results"))
    return study


def compute(study, group):
    """What `Snakefile` gives for a group."""
    words = ("--profile", "paper", "--missing", "--device", "cpu", "--runs-only")
    return main(["reproduce", study.name, *words, "--runs", group["runs"]])


def stored(study):
    """The runs of the paper's setting without what tells one computation from another."""
    runs = []
    for name in study.specs(study.resolve("paper")):
        run = archive.read(store.run_path(study.name, "paper", name))
        del run["provenance"], run["digest"]
        runs.append(run)
    return runs


def test_it_finds_what_is_shorter_than_the_paper_and_its_cost():
    groups = {group["name"]: group for group in to_do([STUDY], "paper")}
    name = "multi_mnist_fedcmoo_steps20"
    run = archive.read(store.run_path(STUDY.name, "full", name))
    seconds = groups[f"{STUDY.name}.{name}"]["seconds"]
    expected = 500 / 167 * run["provenance"]["wall_s"]
    near(seconds, expected, abs=1)
    assert not to_do([STUDIES["np_workshop"]], "paper")


def test_groups_of_a_profile_are_listed_until_they_are_stored(toy, capsys):
    assert main(["reproduce", toy.name, "--profile", "paper", "--numbers-only"]) == 0
    said = capsys.readouterr().out
    assert "computed nothing; its numbers are derived when all its runs are stored" in said
    groups = to_do([toy], "paper")
    assert {group["runs"] for group in groups} == {"soft_lr0.1,soft_lr1", "hard_lr1"}
    assert [group["study"] for group in groups] == [toy.name] * 2
    assert main(["runs", toy.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == groups
    assert [compute(toy, group) for group in groups] == [0, 0]
    assert to_do([toy], "paper") == []
    assert "0 groups are not stored" in "\n".join(listed([toy], "paper"))
    assert not archive.exists(store.run_path(toy.name, "paper", "numbers"))
    assert main(["reproduce", toy.name, "--profile", "paper", "--numbers-only"]) == 0
    assert archive.exists(store.run_path(toy.name, "paper", "numbers"))
    assert len(to_do([toy], "full")) == 2


def compute_until_killed(study, group):
    """Compute a group and end between two of its runs, or before the first is written."""
    soft_runs = []
    usual = store.write_json

    def write(path, payload):
        soft_runs.append(fnmatch(path.name, "soft*"))
        if sum(soft_runs) > 1:
            os._exit(KILLED)
        usual(path, payload)
        if path.name == "hard_lr1.json":
            os._exit(KILLED)

    store.write_json = write
    compute(study, group)


def test_killed_while_it_computes_it_ends_as_if_left_alone(toy, tmp_path, monkeypatch):
    groups = to_do([toy], "paper")
    for group in groups:
        compute(toy, group)
    undisturbed = stored(toy)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path / "killed"))
    for group in groups:
        assert status_of(forked(compute_until_killed, toy, group)) == KILLED
    remaining = to_do([toy], "paper")
    assert remaining
    for group in remaining:
        assert compute(toy, group) == 0
    assert stored(toy) == undisturbed


def test_a_claim_that_is_not_judged_has_its_cost_at_the_papers_scale():
    study = STUDIES["cmoo_many"]
    (claim,) = study.claims
    full = study.specs(study.resolve("full"))
    paper = study.specs(study.resolve("paper"))
    hours = 0.0
    for name in claim.runs:
        run = archive.read(store.run_path(study.name, "full", name))
        times = client_rounds(paper[name]) / client_rounds(full[name])
        hours += times * run["provenance"]["wall_s"] / 3600
    near(hours_at_scale(study, claim), hours)


def client_rounds(spec):
    """How many times a client trains."""
    return spec.rounds * len(spec.seeds) * spec.algorithm.participants


@pytest.mark.parametrize("seconds", ["-1", "0", "nan"])
def test_recheck_needs_some_time(capsys, seconds):
    assert main(["recheck", "--seconds", seconds]) == 2
    assert "recheck: seconds must be positive" in capsys.readouterr().err
