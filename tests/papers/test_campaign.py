"""The campaign: what falls short, in which order, and that being killed changes nothing."""

import os
from dataclasses import replace

import pytest

from papers import STUDIES, campaign, jobs
from papers.kit import report, store
from papers.kit.shares import Job
from papers.kit.shortfall import Short, ordered, shortfall

STUDY = STUDIES["cmoo_sweeps"]


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A study of two groups whose paper has more rounds, without processes of their own."""
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
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setattr(campaign, "spread", lambda some, *_, **__: map(jobs.work, some))
    return study


def test_it_finds_what_is_shorter_than_the_paper_and_who_waits():
    found = {short.job.group[0]: short for short in shortfall(STUDY)}
    one = found["multi_mnist_fedcmoo_steps20"]
    assert (one.now["rounds"], one.paper["rounds"]) == (30, 500)
    assert (one.now["seeds"], one.paper["seeds"]) == (1, 3)
    assert "rows" not in one.paper
    assert one.waiting == ("fedcmoo/C6",)
    run = store.read_json(store.run_path(STUDY.name, "full", one.job.group[0]))
    took = run["provenance"]["wall_s"]
    assert one.job.seconds == pytest.approx(50 * took, rel=0.1)
    assert not shortfall(STUDIES["np_workshop"])


def a_short(name, seconds, *waiting, done=False):
    job = Job("study", "paper", (name,), (name,), seconds, 1)
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
    names = [short.job.group[0] for short in ordered(found)]
    assert names == [
        *("a cheap claim", "for two", "half of a dear claim", "the other half", "for nobody")
    ]


def test_it_stores_what_is_missing_and_what_that_took(toy, capsys):
    assert campaign.carry_out([toy], 2, None, "cpu") == 0
    for short in shortfall(toy):
        assert short.done
        assert short.seconds > 0
    held = campaign.history()
    assert {*held} == {"np_workshop/soft_lr0.1", "np_workshop/hard_lr1"}
    assert all(one["seconds"] > 0 and one["core_s"] > 0 for one in held.values())
    assert campaign.carry_out([toy], 2, None, "cpu") == 0
    assert "nothing is left to compute" in capsys.readouterr().out
    listing = "\n".join(campaign.listed([toy]))
    assert "2 of 2 groups are stored" in listing


def test_a_group_that_diverges_is_said_and_not_tried_again(toy, monkeypatch, capsys):
    def steep(params):
        found = toy.specs(params)
        soft = replace(found["soft_lr1"], algorithm=replace(found["soft_lr1"].algorithm, lr=1e300))
        return {**found, "soft_lr1": soft}

    study = replace(toy, specs=steep)
    monkeypatch.setitem(STUDIES, toy.name, study)
    assert campaign.carry_out([study], 1, None, "cpu") == 2
    assert "not done: np_workshop/paper/soft_lr0.1 and 1 more: " in capsys.readouterr().out
    one, other = sorted(shortfall(study), key=lambda short: short.done)
    assert (one.done, other.done, other.diverged) == (False, True, None)
    seed, after = one.diverged
    assert seed in study.resolve("paper")["seeds"]
    assert 0 <= after < 6  # rounds that ended well
    held = campaign.history()[f"np_workshop/{one.job.group[0]}"]
    assert (held["seed"], held["round"]) == (seed, after)
    assert not {"seconds", "core_s"} & held.keys()
    listing = "\n".join(campaign.listed([study]))
    assert f"; diverged after round {after} with seed {seed}" in listing
    assert "1 of them diverged" in listing
    told = report.shortfall_table(study)["stored as the paper has it"]
    assert told.tolist() == [f"1 of 3; diverged after round {after} with seed {seed}"]
    tried = []
    monkeypatch.setattr(campaign, "spread", lambda some, *_, **__: tried.extend(some) or ())
    assert campaign.carry_out([study], 1, None, "cpu") == 0
    assert not tried
    assert campaign.carry_out([toy], 1, None, "cpu") == 0  # other step sizes: another setting
    assert "soft_lr0.1" in [job.group[0] for job in tried]


def test_a_run_that_the_paper_and_the_full_profile_share_is_not_computed_twice(toy):
    toy.reproduce("full", device="cpu", recompute=False)
    shared = replace(toy, at_paper={"lr": 0.2})  # of no run of these
    assert not shortfall(shared)
    assert shared.load("paper").keys() == toy.load().keys()


def test_other_settings_of_the_paper_are_computed_anew(toy):
    campaign.carry_out([toy], 2, None, "cpu")
    assert not any(s.done for s in shortfall(replace(toy, at_paper={"rounds": 7})))


def test_predictions_are_held_against_what_it_took():
    entries = {str(k): {"predicted": 2.0, "core_s": k} for k in (1.0, 4.0, 6.0)}
    (line,) = campaign.accuracy(entries | {"unknown": {"predicted": 0.0, "core_s": 9.0}})
    assert line == "3 groups took 0.5 to 3 times what was predicted, half of them at most 2 times"
    assert not [*campaign.accuracy({"in two goes": {"predicted": 2.0, "seconds": 90.0}})]


def test_memory_is_expected_as_groups_of_the_study_took():
    known = {"study/a": {"peak_gb": 2.0}, "study/b": {"peak_gb": 5.0}, "other/a": {"peak_gb": 9.0}}
    job = a_short("c", 1.0).job
    assert campaign.expected(job, known) == 5.0
    assert campaign.expected(job, {}) == campaign.UNKNOWN


def test_killed_while_it_computes_it_ends_as_if_left_alone(toy, tmp_path, monkeypatch):
    campaign.carry_out([toy], 1, None, "cpu")
    names = [*toy.specs(toy.resolve("paper"))]

    def stored():
        runs = [store.read_json(store.run_path(toy.name, "paper", name)) for name in names]
        return [{k: v for k, v in r.items() if k not in ("provenance", "digest")} for r in runs]

    alone = stored()
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path / "killed"))
    for fatal in (1, 1):  # between two groups, then between two runs of a group
        if not (process := os.fork()):
            left = [fatal]

            def write(path, payload, usual=store.write_json, left=left):
                if path.parent.name == "paper":
                    left[0] -= 1
                if left[0] < 0:
                    os._exit(0)
                usual(path, payload)

            store.write_json = write
            campaign.carry_out([toy], 1, None, "cpu")
            os._exit(1)
        assert os.waitpid(process, 0)[1] == 0
    campaign.carry_out([toy], 1, None, "cpu")
    assert stored() == alone
    assert not [*(tmp_path / "killed").rglob("*.claim")]
