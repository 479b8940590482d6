"""`papers reproduce`: stored runs computed again and compared; no run changes unless asked."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from fedlib.core.files import write_json
from fedlib.data import cache
from papers import STUDIES
from papers.__main__ import main
from papers.fedcmoo.data import pairs
from papers.fedcmoo.pairs import gallery
from papers.fedcmoo.pairs.runs import DATA
from papers.kit import comparisons, store
from papers.kit.comparisons import Finding
from papers.kit.numbers import significant
from papers.kit.reproduce import compare
from papers.kit.study import Tolerance
from tests.helpers import loose
from tests.helpers.unlabelled import quantities


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A study of two runs, stored in a results folder of its own."""
    study = STUDIES["np_workshop"]

    def two_runs(params):
        specs = study.specs({**params, "rounds": 4, "seeds": (0, 1)})
        return {name: specs[name] for name in ("hard", "soft")}

    shortened = replace(study, specs=two_runs, derive=lambda *_: quantities({}))
    monkeypatch.setitem(STUDIES, study.name, shortened)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    assert main(["reproduce", "np_workshop", "--missing"]) == 0
    return shortened


def files(folder):
    """The digests of what is stored."""
    paths = [p for p in folder.rglob("*") if p.is_file() and p.name != "recheck.json"]
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def spoil(folder, change, run="soft"):
    """Change the curve f of a run's second seed, with a digest that fits."""

    def changed(content):
        curve = content["metrics"]["f"][1]
        curve[-1] = significant(change * curve[-1])

    loose.change(folder / "np_workshop" / "full" / f"{run}.json", changed)


def test_runs_are_computed_again_and_files_left_alone(small, tmp_path, capsys):
    digests = files(tmp_path)
    capsys.readouterr()
    assert main(["reproduce", "np_workshop"]) == 0
    assert files(tmp_path) == digests
    printed = capsys.readouterr().out
    within = printed.partition("np_workshop: 2 of 2 runs equal within ")[2]
    assert float(within.split()[0]) <= 1e-5
    ((entry,),) = comparisons.read().values()
    assert entry["runs"].keys() == {"hard", "soft"}
    for name, values in entry["runs"].items():
        finding = Finding(*values)
        assert finding.mark == small.payload(name)["digest"][:16]
        assert (finding.rounds, finding.of, finding.equal) == (4, 4, True)
        assert finding.difference <= 1e-5
    summary = comparisons.summary("np_workshop")
    assert summary.startswith("2 of 2 runs were recomputed on ")


def test_a_difference_within_the_tolerance_is_told(small, tmp_path, capsys):
    spoil(tmp_path, 1.0001)
    assert main(["reproduce", "np_workshop"]) == 0
    assert "another order of roundings" in capsys.readouterr().out


def test_a_stored_number_that_the_code_does_not_give_is_named(small, tmp_path, capsys):
    spoil(tmp_path, 1.01)
    assert main(["reproduce", "np_workshop"]) == 1
    printed = capsys.readouterr()
    assert "np_workshop: 1 of 2 runs equal within" in printed.out
    assert "np_workshop/soft: f must be what the code gives, it is not at entry" in printed.err
    exceeded = "the study's tolerance is exceeded in 1 of the runs"
    assert exceeded in comparisons.summary("np_workshop")
    assert main(["reproduce", "np_workshop", "--missing"]) == 0  # it is there, right or wrong
    assert main(["reproduce", "np_workshop", "--store"]) == 0
    assert exceeded not in comparisons.summary("np_workshop")  # as it is stored now
    assert main(["reproduce", "np_workshop"]) == 0


def test_as_many_seeds_as_the_study_allows_may_differ(small, tmp_path, monkeypatch):
    def first_seed_too(run):
        run["metrics"]["f"][0][2] = 0.5

    allowing = replace(small, tolerances={"*": Tolerance(strays=1)})
    monkeypatch.setitem(STUDIES, "np_workshop", allowing)
    spoil(tmp_path, 1.01)  # one of two seeds
    assert main(["reproduce", "np_workshop"]) == 0
    loose.change(tmp_path / "np_workshop" / "full" / "soft.json", first_seed_too)
    assert main(["reproduce", "np_workshop"]) == 1


def test_every_stored_part_is_compared(small, tmp_path):
    """Curves, bits and models: a change in each is said."""

    def spoil_all(run):
        run["metrics"]["g"][1][3] = 0.123
        run["info"]["sigma"][1][2] = 0.5
        run["bits"]["bits_up"] += 1.0
        run["final_w"][1][7] = 0.5
        run["output_w"][1][7] = 0.5

    spec = small.specs(small.resolve("full"))["hard"]
    trace = store.compute({"hard": spec}, "cpu", progress=False)["hard"]
    assert compare(small, "hard", spec, trace).wrong == []
    loose.change(tmp_path / "np_workshop" / "full" / "hard.json", spoil_all)
    sentences = compare(small, "hard", spec, trace).wrong
    names = ("g", "sigma", "bits_up", "model", "output")
    assert len(sentences) == len(names)
    for name in names:
        assert f"{name} must" in " ".join(sentences)


def test_a_run_that_is_not_stored_is_no_success(small, tmp_path, capsys):
    loose.spread("np_workshop")
    (tmp_path / "np_workshop" / "full" / "hard.json").unlink()
    assert main(["reproduce", "np_workshop"]) == 1
    sentence = "np_workshop: hard not stored as declared; --missing stores them"
    assert sentence in capsys.readouterr().out
    assert main(["reproduce", "np_workshop", "--runs", "soft"]) == 0


@pytest.fixture
def noted(small, monkeypatch):
    """Notes a comparison of some runs on a day; gives the summary of the notes."""
    monkeypatch.setattr(comparisons, "mark", lambda _study, _profile, run: f"of {run}")

    def note(day, **differences):
        today = {"commit": "abc", "dirty": False, "date": day}
        monkeypatch.setattr(comparisons, "versions", lambda: today)
        findings = {}
        for run, difference in differences.items():
            findings[run] = Finding(
                f"of {run}",
                4,
                4,
                difference,
                equal=True,
            )
        comparisons.note(small.name, "full", 2, findings)
        return comparisons.summary(small.name)

    return note


def test_a_comparison_renews_what_it_compared_and_nothing_else(noted):
    summary = noted("2026-01-01", hard=1e-6)
    assert summary.endswith("The other 1 were never recomputed.")
    summary = noted("2026-02-02", hard=1e-6, soft=1e-3)
    assert summary.count("recomputed on") == 1
    summary = noted("2026-03-03", soft=1e-4)
    assert "1 of 2 runs were recomputed on 2026-03-03 at commit abc." in summary
    assert "by at most 0.0001 of" in summary
    assert "1 of 2 runs were recomputed on 2026-02-02 at commit abc." in summary
    assert "by at most 1e-06 of" in summary
    summary = noted("2026-03-03", hard=1e-7)
    assert summary.startswith("2 of 2 runs were recomputed on 2026-03-03")


def test_older_notes_that_only_count_runs_stay_until_all_are_compared(small, tmp_path):
    counts = {"runs": 1, "of": 2, "cut": 1, "difference": 0.001, "beyond": 0}
    marks = {run: comparisons.mark("np_workshop", "full", run) for run in ("hard", "soft")}
    entry = {"date": "2026-01-01", "commit": "abc", "counts": counts, "stored": marks}
    changed = {**entry, "stored": {**marks, "soft": "of another run"}}

    def write(entry):
        content = {"studies": {"np_workshop": [entry]}}
        write_json(tmp_path / "recheck.json", comparisons.NOTES.sealed(content))

    write(changed)
    assert comparisons.summary("np_workshop") == "never recomputed"
    write(entry)
    older = "1 of 2 runs were recomputed on 2026-01-01 at commit abc, 1 of them over their first "
    assert comparisons.summary("np_workshop").startswith(older)
    assert main(["reproduce", "np_workshop", "--runs", "hard"]) == 0
    assert older in comparisons.summary("np_workshop")
    assert main(["reproduce", "np_workshop"]) == 0
    assert older not in comparisons.summary("np_workshop")


def test_a_run_is_followed_as_far_as_it_can_be_compared(small, monkeypatch, capsys):
    tolerances = {"hard": Tolerance(rounds=2), "*": Tolerance()}
    monkeypatch.setitem(STUDIES, "np_workshop", replace(small, tolerances=tolerances))
    assert main(["reproduce", "np_workshop"]) == 0
    assert "1 of them over their first rounds alone" in capsys.readouterr().out


@pytest.mark.parametrize("data", DATA)
def test_the_pictures_of_the_gallery_are_those_of_the_data(data):
    try:
        composites = pairs.load(data, "test")
    except cache.DataError:
        pytest.skip("the data are not here")
    kept, shown = gallery.first_pictures(data)
    np.testing.assert_array_equal(kept, composites.X[: gallery.SHOWN].numpy())
    assert shown == [gallery.labels(gallery.KINDS[data], y) for y in composites.y[:6].tolist()]


def test_a_run_that_is_stored_anew_was_never_recomputed(noted, monkeypatch):
    noted("2026-01-01", hard=1e-6, soft=1e-6)
    monkeypatch.setattr(comparisons, "mark", lambda _study, _profile, run: f"new {run}")
    assert comparisons.summary("np_workshop") == "never recomputed"
