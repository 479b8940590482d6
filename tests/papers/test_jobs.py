"""Jobs in processes: the numbers of one process, whole groups, one at a time."""

import json
from dataclasses import replace

import pytest

import papers.__main__ as command_line
from fedlib.core import files
from papers import STUDIES, jobs
from papers.kit import store
from papers.kit.shares import jobs_of
from papers.kit.tenure import tenure

STUDY = STUDIES["np_workshop"]
PROFILE = "quick"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    return tmp_path / "results"


@pytest.fixture
def brief(monkeypatch):
    """The study with two short groups."""

    def few(params):
        specs = STUDY.specs({**params, "rounds": 4})
        return {name: specs[name] for name in ("soft_lr0.1", "soft_lr1", "hard_lr1")}

    study = replace(STUDY, specs=few, derive=lambda *_: {})
    monkeypatch.setitem(STUDIES, STUDY.name, study)
    return study


def numbers(name):
    held = files.read_json(store.run_path(STUDY.name, PROFILE, name))
    return {k: v for k, v in held.items() if k not in ("provenance", "digest")}


def command(*words):
    return command_line.main(["reproduce", STUDY.name, "--profile", PROFILE, *words])


def test_a_run_that_is_asked_for_alone_is_computed_in_its_group(brief):
    assert command("--missing") == 0
    whole = numbers("soft_lr1")
    path = store.run_path(STUDY.name, PROFILE, "soft_lr1")
    path.unlink()
    for words in (["--missing"], ["--missing", "--job", "1/1"]):
        assert command(*words, "--runs", "soft_lr1") == 0
        assert numbers("soft_lr1") == whole
        path.unlink()


def test_parts_of_an_array_leave_what_one_process_leaves(brief, folder, monkeypatch):
    assert command("--missing") == 0
    serial = {name: numbers(name) for name in brief.specs(brief.resolve(PROFILE))}
    monkeypatch.setenv("FEDLIB_RESULTS", str(folder.with_name("parts")))
    assert command("--missing", "--job", "1/2") == 0
    assert len([*folder.with_name("parts").rglob("*.json")]) < 1 + len(serial)
    assert command("--missing", "--job", "2/2") == 0
    assert {name: numbers(name) for name in serial} == serial
    left = {p.name for p in folder.with_name("parts").rglob("*") if p.is_file()}
    assert left == {f"{name}.json" for name in (*serial, "numbers")}


def test_what_another_process_works_at_is_left_to_it(brief, folder, capsys):
    held = jobs_of(brief, PROFILE, "soft*")[0]
    with tenure(held.claim):
        assert command("--missing", "--job", "1/1") == 0
    assert "another process works at" in capsys.readouterr().out
    assert {p.stem for p in folder.rglob("*.json")} == {"hard_lr1"}


def test_a_group_that_cannot_be_computed_does_not_stop_the_others(brief, monkeypatch, capsys):
    usual = store.compute

    def refuse(group, *rest):
        if "soft_lr1" in group:
            raise FloatingPointError("FedSGM: the model is not finite after round 2.")
        return usual(group, *rest)

    monkeypatch.setattr(store, "compute", refuse)
    assert command("--missing", "--job", "1/1") == 2
    assert "not done: np_workshop/quick/soft_lr0.1 and 1 more: FedSGM" in capsys.readouterr().out
    assert numbers("hard_lr1")


def test_the_list_says_what_is_stored(brief, capsys):
    assert command("--missing", "--job", "1/1", "--runs", "hard*") == 0
    capsys.readouterr()
    assert command("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("1 of 1 stored" in line and "hard_lr1" in line for line in lines)
    assert any("0 of 2 stored" in line and "soft_lr0.1 and 1 more" in line for line in lines)


def test_processes_leave_what_one_leaves(folder, monkeypatch):
    """The one test that starts processes: two of them, two groups."""
    pattern = "*_K1"
    assert command("--missing", "--runs", pattern) == 0
    names = sorted(p.stem for p in folder.rglob("*.json"))
    serial = {name: numbers(name) for name in names}
    monkeypatch.setenv("FEDLIB_RESULTS", str(folder.with_name("parallel")))
    assert command("--missing", "--runs", pattern, "--jobs", "2") == 0
    assert {name: numbers(name) for name in names} == serial
    assert len(names) == 2


def test_no_group_begins_above_the_memory_that_is_given(monkeypatch):
    """By what groups are expected to take; a single one always may."""
    at_work, most = [0.0], [0.0]

    class Later:
        """A future that is done when it is looked at."""

        def __init__(self, job):
            self.job = job
            at_work[0] += job.size
            most[0] = max(most[0], at_work[0])

        def result(self):
            at_work[0] -= self.job.size
            return jobs.Done(self.job)

    class Started:
        def __enter__(self):
            return lambda _, job, *__: Later(job)

        def __exit__(self, *_):
            return None

    class Waited:
        def __init__(self, futures):
            self.done = [next(iter(futures))]

    monkeypatch.setattr(jobs, "_started", lambda *_, **__: Started())
    monkeypatch.setattr(jobs, "wait", lambda futures, *_: Waited(futures))
    every = jobs_of(STUDIES["arena"], "full")
    limit = 3.0 * sorted(job.size for job in every)[len(every) // 2]
    done = [*jobs.spread(every, 8, memory=lambda job: job.size, limit=limit)]
    assert len(done) == len(every)
    assert most[0] <= max(limit, *(job.size for job in every))


def test_the_most_memory_of_a_process_is_told():
    assert 0.05 < jobs.peak() < 50
    assert json.dumps(jobs.peak())
