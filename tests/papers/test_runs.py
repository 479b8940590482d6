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

STUDY = STUDIES["cmoo_sweeps"]


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A study of two groups whose paper has more rounds."""
    own = STUDIES["np_workshop"]

    def few(params):
        specs = own.specs(params)
        return {name: specs[name] for name in ("soft_lr0.1", "soft_lr1", "hard_lr1")}

    brief = {**own.profiles["quick"], "rounds": 4}
    profiles = {"quick": brief, "full": brief}
    changes = {"profiles": profiles, "specs": few, "derive": lambda *_: {}}
    study = replace(own, **changes, at_paper={"rounds": 6})
    monkeypatch.setitem(STUDIES, own.name, study)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path / "results"))
    return study


def compute(study, group):
    """What `Snakefile` gives for a group."""
    words = ("--profile", "paper", "--missing", "--device", "cpu", "--runs-only")
    return main(["reproduce", study.name, *words, "--runs", group["runs"]])


def stored(study):
    names = [*study.specs(study.resolve("paper"))]
    runs = [archive.read(store.run_path(study.name, "paper", name)) for name in names]
    return [{k: v for k, v in r.items() if k not in ("provenance", "digest")} for r in runs]


def test_it_finds_what_is_shorter_than_the_paper_and_its_cost():
    found = {group["name"]: group for group in to_do([STUDY], "paper")}
    name = "multi_mnist_fedcmoo_steps20"
    run = archive.read(store.run_path(STUDY.name, "full", name))
    seconds = found[f"{STUDY.name}.{name}"]["seconds"]
    assert seconds == pytest.approx(500 / 167 * run["provenance"]["wall_s"], abs=1)
    assert not to_do([STUDIES["np_workshop"]], "paper")


def test_groups_of_a_profile_are_listed_until_they_are_stored(toy, capsys):
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


def test_a_run_that_the_paper_and_the_full_profile_share_is_not_computed_twice(toy):
    toy.reproduce("full", device="cpu", recompute=False)
    shared = replace(toy, at_paper={"lr": 0.2}, claims=())  # of no run of these
    assert not to_do([shared], "paper")
    assert shared.load("paper").keys() == toy.load().keys()


def test_killed_while_it_computes_it_ends_as_if_left_alone(toy, tmp_path, monkeypatch):
    groups = to_do([toy], "paper")
    for group in groups:
        compute(toy, group)
    alone = stored(toy)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path / "killed"))
    for group in groups:  # killed between two runs of a group, or before the first is written
        if not (process := os.fork()):
            left = [1]

            def write(path, payload, usual=store.write_json, left=left):
                left[0] -= fnmatch(path.name, "soft*")
                if left[0] < 0:
                    os._exit(0)
                usual(path, payload)
                left[0] -= path.name == "hard_lr1.json"

            store.write_json = write
            compute(toy, group)
            os._exit(0)
        os.waitpid(process, 0)
    for group in to_do([toy], "paper"):
        assert compute(toy, group) == 0
    assert stored(toy) == alone


def test_a_claim_that_is_not_judged_has_its_cost_at_the_papers_scale():
    study = STUDIES["cmoo_many"]
    (claim,) = study.claims
    seconds = {
        name: archive.read(store.run_path(study.name, "full", name))["provenance"]["wall_s"]
        for name in claim.runs
    }
    full, paper = (study.specs(study.resolve(p)) for p in ("full", "paper"))
    times = {n: paper[n].rounds * len(paper[n].seeds) / full[n].rounds for n in claim.runs}
    expected = sum(seconds[n] * times[n] / len(full[n].seeds) for n in claim.runs) / 3600
    assert hours_at_scale(study, claim) == pytest.approx(expected)
    assert hours_at_scale(STUDIES["np_workshop"], STUDIES["np_workshop"].claims[0]) == 0
