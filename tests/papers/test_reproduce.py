"""`papers reproduce`: stored runs computed again and compared; no run changes unless asked."""

import hashlib
import re
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
from papers.kit.reproduce import RunPrefix, compare
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


def spoil(folder, factor):
    """Change a curve of the soft run, with a digest that fits."""

    def scale_last(run):
        curve = run["metrics"]["f"][1]
        curve[-1] = significant(factor * curve[-1])

    loose.change(folder / "np_workshop" / "full" / "soft.json", scale_last)


def test_runs_are_computed_again_and_files_left_alone(small, tmp_path, monkeypatch, capsys):
    digests = files(tmp_path)
    computed = []
    run = store.run

    def counted(*arguments, **options):
        computed.append(1)
        return run(*arguments, **options)

    monkeypatch.setattr(store, "run", counted)
    capsys.readouterr()
    assert main(["reproduce", "np_workshop"]) == 0
    assert computed
    assert files(tmp_path) == digests
    within = capsys.readouterr().out.partition("np_workshop: 2 of 2 runs equal within ")[2]
    assert float(within.split()[0]) <= 1e-5
    ((entry,),) = comparisons.read().values()
    findings = {name: Finding(*values) for name, values in entry["runs"].items()}
    assert findings.keys() == {"hard", "soft"}
    for name, finding in findings.items():
        assert finding.mark == small.payload(name)["digest"][:16]
        assert (finding.rounds, finding.of, finding.equal) == (4, 4, True)
        assert finding.difference <= 1e-5
    assert comparisons.summary("np_workshop").startswith("2 of 2 runs were recomputed on ")


def test_a_difference_within_the_tolerance_is_told(small, tmp_path, capsys):
    spoil(tmp_path, 1.0001)
    assert main(["reproduce", "np_workshop"]) == 0
    assert "another order of roundings" in capsys.readouterr().out


def test_a_stored_number_that_the_code_does_not_give_is_named(small, tmp_path, capsys):
    spoil(tmp_path, 1.01)
    digests = files(tmp_path)
    assert main(["reproduce", "np_workshop"]) == 1
    printed = capsys.readouterr()
    assert "np_workshop: 1 of 2 runs equal within" in printed.out
    assert "np_workshop/soft: f must be what the code gives, it is not at entry" in printed.err
    assert printed.err.endswith(".\n")
    assert files(tmp_path) == digests
    exceeded = "the study's tolerance is exceeded in 1 of the runs"
    assert exceeded in comparisons.summary("np_workshop")
    assert main(["reproduce", "np_workshop", "--missing"]) == 0  # it is there, right or wrong
    assert main(["reproduce", "np_workshop", "--store"]) == 0
    assert exceeded not in comparisons.summary("np_workshop")  # as it is stored now
    assert main(["reproduce", "np_workshop"]) == 0


def test_as_many_seeds_as_the_study_allows_may_differ(small, tmp_path, monkeypatch):
    spoil(tmp_path, 1.01)  # one of two seeds
    allowing = replace(small, tolerances={"*": Tolerance(strays=1)})
    monkeypatch.setitem(STUDIES, "np_workshop", allowing)
    assert main(["reproduce", "np_workshop"]) == 0
    loose.change(
        tmp_path / "np_workshop" / "full" / "soft.json",
        lambda run: run["metrics"]["f"][0].__setitem__(2, 0.5),
    )
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
    prefix = RunPrefix("np_workshop", "hard", 4, 4)
    assert compare(small, spec, prefix, trace).wrong == []
    loose.change(tmp_path / "np_workshop" / "full" / "hard.json", spoil_all)
    sentences = compare(small, spec, prefix, trace).wrong
    expected = (
        "g must be .* 3 of",
        "sigma must .* 2 of",
        r"bits_up must be (\d+), got",
        "model must",
        "output must",
    )
    assert len(sentences) == len(expected)
    for pattern in expected:
        assert re.search(pattern, " ".join(sentences))


def test_a_run_that_is_not_stored_is_no_success(small, tmp_path, capsys):
    loose.spread("np_workshop")
    (tmp_path / "np_workshop" / "full" / "hard.json").unlink()
    assert main(["reproduce", "np_workshop"]) == 1
    assert (
        "np_workshop: hard not stored as declared; --missing stores them" in capsys.readouterr().out
    )
    assert main(["reproduce", "np_workshop", "--runs", "soft"]) == 0


def test_a_comparison_renews_what_it_compared_and_nothing_else(small, monkeypatch):
    name = small.name
    finding = Finding("", 4, 4, 0.0, equal=True)
    marks = {run: comparisons.mark(name, "full", run) for run in ("hard", "soft")}
    days = iter(["2026-01-01", "2026-02-02", "2026-03-03", "2026-03-03", "2026-04-04"])
    today = {"commit": "abc", "dirty": False}
    monkeypatch.setattr(comparisons, "versions", lambda: {**today, "date": next(days)})

    def note(**differences):
        findings = {}
        for run, difference in differences.items():
            findings[run] = finding._replace(mark=marks[run], difference=difference)
        comparisons.note(name, "full", 2, findings)
        return comparisons.summary(name)

    assert note(hard=1e-6).endswith("The other 1 were never recomputed.")
    assert note(hard=1e-6, soft=1e-3).count("recomputed on") == 1
    both = note(soft=1e-4)
    assert "1 of 2 runs were recomputed on 2026-03-03 at commit abc. Recomputed and stored" in both
    assert "by at most 0.0001 of" in both
    assert "1 of 2 runs were recomputed on 2026-02-02 at commit abc." in both
    assert "by at most 1e-06 of" in both
    same_day = note(hard=1e-7)
    assert same_day.startswith("2 of 2 runs were recomputed on 2026-03-03")
    marks["soft"] = "stored anew"
    comparisons.note(
        name,
        "full",
        2,
        {"soft": finding._replace(mark="of another run")},
    )
    assert comparisons.summary(name).startswith("1 of 2 runs")


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


def test_runs_that_need_no_data_are_compared_without_the_data_of_others(
    tmp_path, monkeypatch, capsys
):
    study = STUDIES["fw_rates"]
    names = ("pair_fedfw_L0.1", "penalty_mclr_l1_L1", "penalty_mclr_l1_L0.1")
    specs = study.specs(study.resolve("full"))
    shortened = replace(
        study,
        specs=lambda _: {name: specs[name] for name in names},
        tolerances={"*": Tolerance(rounds=40)},
    )
    monkeypatch.setitem(STUDIES, "fw_rates", shortened)
    loose.copy("fw_rates", tmp_path)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    monkeypatch.setattr(cache, "_stream", unreachable)
    assert main(["reproduce", "fw_rates"]) == 1
    printed = capsys.readouterr().out
    assert "fw_rates: 1 of 3 runs equal within" in printed
    assert re.search(r"fw_rates: penalty_mclr_l1_L.* not compared, without data", printed)
    assert comparisons.summary("fw_rates").startswith("1 of 3 runs were recomputed on ")


def unreachable(*_):
    raise OSError("there is no network")


def test_a_run_is_followed_as_far_as_it_can_be_compared(small, monkeypatch, capsys):
    tolerances = {"hard": Tolerance(rounds=2), "*": Tolerance()}
    monkeypatch.setitem(STUDIES, "np_workshop", replace(small, tolerances=tolerances))
    assert main(["reproduce", "np_workshop"]) == 0
    assert "1 of them over their first rounds alone" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["cmoo_pairs", "cmoo_qm9", "fairness", "ssca_long"])
def test_a_page_can_be_read_without_its_data(name, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    monkeypatch.setattr(cache, "_stream", lambda *_: pytest.fail("something was fetched"))
    pairs.load.cache_clear()
    monkeypatch.setattr(store, "run", lambda *_, **__: pytest.fail("something was computed"))
    traces = STUDIES[name].open().run()
    assert STUDIES[name].numbers(traces, "full")


@pytest.mark.parametrize("data", DATA)
def test_the_pictures_of_the_gallery_are_those_of_the_data(data):
    try:
        composites = pairs.load(data, "test")
    except cache.DataError:
        pytest.skip("the data are not here")
    kept, shown = gallery.first_pictures(data)
    np.testing.assert_array_equal(kept, composites.X[: gallery.SHOWN].numpy())
    assert shown == [gallery.labels(gallery.KINDS[data], y) for y in composites.y[:6].tolist()]
