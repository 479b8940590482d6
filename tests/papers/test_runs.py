"""The groups that are to be computed: what falls short, in which order; a kill changes nothing."""

import json
import os
from dataclasses import replace
from fnmatch import fnmatch

import pytest

from papers import STUDIES, runs
from papers.__main__ import main
from papers.kit import archive, report, store
from papers.kit.shortfall import Job, Short, jobs_of, ordered, shortfall

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


def test_it_finds_what_is_shorter_than_the_paper_and_who_waits():
    found = {short.job.group[0]: short for short in shortfall(STUDY)}
    one = found["multi_mnist_fedcmoo_steps20"]
    assert (one.now["rounds"], one.paper["rounds"]) == (30, 500)
    assert (one.now["seeds"], one.paper["seeds"]) == (1, 3)
    assert "rows" not in one.paper
    assert one.waiting == ("fedcmoo/C6",)
    run = archive.read(store.run_path(STUDY.name, "full", one.job.group[0]))
    assert one.job.seconds == pytest.approx(50 * run["provenance"]["wall_s"], rel=0.1)
    assert not shortfall(STUDIES["np_workshop"])


def a_short(name, seconds, *waiting, done=False):
    job = Job("study", "paper", (name,), (name,), seconds)
    return Short(job, {}, {}, done, 0.0, waiting)


def test_what_decides_most_for_its_cost_comes_first():
    found = [
        a_short("for nobody", 1.0),
        a_short("half of a dear claim", 5.0, "C1"),
        a_short("done", 1.0, "C3", done=True),
        a_short("the other half", 50.0, "C1"),
        a_short("a cheap claim", 10.0, "C2"),
        a_short("for two", 20.0, "C1", "C3"),
    ]
    assert [short.job.group[0] for short in ordered(found)] == [
        *("a cheap claim", "for two", "half of a dear claim", "the other half", "for nobody")
    ]


def test_groups_of_a_profile_are_listed_until_they_are_stored(toy, capsys):
    groups = runs.for_snakemake([toy], "paper")
    assert {group["runs"] for group in groups} == {"soft_lr0.1,soft_lr1", "hard_lr1"}
    assert [group["study"] for group in groups] == [toy.name] * 2
    assert main(["runs", toy.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == groups
    assert [compute(toy, group) for group in groups] == [0, 0]
    assert runs.for_snakemake([toy], "paper") == []
    assert all(short.done and short.seconds > 0 for short in shortfall(toy))
    assert "2 of 2 groups are stored" in "\n".join(runs.listed([toy]))
    assert not archive.exists(store.run_path(toy.name, "paper", "numbers"))
    assert main(["reproduce", toy.name, "--profile", "paper", "--numbers-only"]) == 0
    assert archive.exists(store.run_path(toy.name, "paper", "numbers"))
    assert len(runs.to_do([toy], "full")) == 2


def test_a_group_that_diverges_is_said_and_not_tried_again(toy, monkeypatch, capsys):
    def steep(params):
        found = toy.specs(params)
        soft = replace(found["soft_lr1"], algorithm=replace(found["soft_lr1"].algorithm, lr=1e300))
        return {**found, "soft_lr1": soft}

    study = replace(toy, specs=steep)
    monkeypatch.setitem(STUDIES, toy.name, study)
    ended = {group["runs"]: compute(study, group) for group in runs.for_snakemake([study], "paper")}
    assert ended == {"soft_lr0.1,soft_lr1": 2, "hard_lr1": 0}
    assert "the model is not finite" in capsys.readouterr().err
    one, other = sorted(shortfall(study), key=lambda short: short.done)
    assert (one.done, other.done, other.diverged) == (False, True, None)
    seed, after = one.diverged
    assert seed in study.resolve("paper")["seeds"]
    assert 0 <= after < 6  # rounds that ended well
    listing = "\n".join(runs.listed([study]))
    assert f"; diverged after round {after} with seed {seed}" in listing
    assert "1 of them diverged" in listing
    told = report.shortfall_table(study)["stored as the paper has it"]
    assert told.tolist() == [f"1 of 3; diverged after round {after} with seed {seed}"]
    assert runs.to_do([study], "paper") == []
    assert len(runs.to_do([toy], "paper")) == 1  # other step sizes: another setting


def test_a_run_that_the_paper_and_the_full_profile_share_is_not_computed_twice(toy):
    toy.reproduce("full", device="cpu", recompute=False)
    shared = replace(toy, at_paper={"lr": 0.2}, claims=())  # of no run of these
    assert not shortfall(shared)
    assert shared.load("paper").keys() == toy.load().keys()


def test_killed_while_it_computes_it_ends_as_if_left_alone(toy, tmp_path, monkeypatch):
    groups = runs.for_snakemake([toy], "paper")
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
    for group in runs.for_snakemake([toy], "paper"):
        assert compute(toy, group) == 0
    assert stored(toy) == alone


def test_a_listing_names_whole_groups():
    (job,) = [j for j in jobs_of(STUDIES["np_workshop"], "quick") if "soft_lr0.1" in j.group]
    assert {"soft_lr0.1", "soft_lr1"} <= {*job.names}
