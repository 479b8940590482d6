"""`papers reproduce`: stored runs computed again and compared; no run changes unless asked."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from fedlib.data import cache
from papers import STUDIES
from papers.__main__ import main
from papers.fedcmoo.data import pairs
from papers.fedcmoo.pairs import figures
from papers.kit import reproduce, store
from papers.kit.numbers import significant
from papers.kit.study import Tolerance
from tests.helpers import loose


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A study of two runs, stored in a results folder of its own."""
    study = STUDIES["np_workshop"]

    def two(params):
        whole = study.specs({**params, "rounds": 4, "seeds": (0, 1)})
        return {name: whole[name] for name in ("hard", "soft")}

    made = replace(study, specs=two, derive=lambda *_: {})
    monkeypatch.setitem(STUDIES, study.name, made)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    assert main(["reproduce", "np_workshop", "--missing"]) == 0
    return made


def files(folder):
    """The digests of what is stored."""
    paths = [p for p in folder.rglob("*") if p.is_file() and p.name != "recheck.json"]
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def spoil(path, by):
    """Change a stored curve, with a digest that fits."""

    def other(held):
        held["metrics"]["f"][1][-1] = significant(by * held["metrics"]["f"][1][-1])

    loose.change(path, other)


def test_runs_are_computed_again_and_files_left_alone(small, tmp_path, monkeypatch, capsys):
    before, ran = files(tmp_path), []
    run = store.run
    monkeypatch.setattr(store, "run", lambda *a, **o: ran.append(1) or run(*a, **o))
    capsys.readouterr()
    assert main(["reproduce", "np_workshop"]) == 0
    assert ran
    assert files(tmp_path) == before
    within = capsys.readouterr().out.partition("np_workshop: 2 of 2 runs equal within ")[2]
    assert float(within.split()[0]) <= 1e-5
    (note,) = reproduce.notes().values()
    assert (note["runs"], note["of"], note["beyond"]) == (2, 2, 0)
    assert note["difference"] <= 1e-5
    assert reproduce.summary("np_workshop").startswith("2 of 2 runs were recomputed on ")


def test_a_difference_within_the_tolerance_is_told(small, tmp_path, capsys):
    spoil(tmp_path / "np_workshop" / "full" / "soft.json", 1.0001)
    assert main(["reproduce", "np_workshop"]) == 0
    assert "another order of roundings" in capsys.readouterr().out


def test_a_stored_number_that_the_code_does_not_give_is_named(small, tmp_path, capsys):
    spoil(tmp_path / "np_workshop" / "full" / "soft.json", 1.01)
    before = files(tmp_path)
    assert main(["reproduce", "np_workshop"]) == 1
    told = capsys.readouterr()
    assert "np_workshop: 1 of 2 runs equal within" in told.out
    assert "np_workshop/soft: f must be what the code gives, it is not at entry" in told.err
    assert told.err.endswith(".\n")
    assert files(tmp_path) == before
    assert "the study's tolerance is exceeded in 1 of the runs" in reproduce.summary("np_workshop")
    assert main(["reproduce", "np_workshop", "--missing"]) == 0  # it is there, right or wrong
    assert main(["reproduce", "np_workshop", "--store"]) == 0
    assert reproduce.summary("np_workshop") == "never recomputed"  # as it is stored now
    assert main(["reproduce", "np_workshop"]) == 0


def test_a_run_that_is_not_stored_is_no_success(small, tmp_path, capsys):
    loose.spread("np_workshop")
    (tmp_path / "np_workshop" / "full" / "hard.json").unlink()
    assert main(["reproduce", "np_workshop"]) == 1
    assert (
        "np_workshop: hard not stored as declared; --missing stores them" in capsys.readouterr().out
    )
    assert main(["reproduce", "np_workshop", "--runs", "soft"]) == 0


def test_a_run_is_followed_as_far_as_it_can_be_compared(small, monkeypatch, capsys):
    monkeypatch.setitem(
        STUDIES,
        "np_workshop",
        replace(small, tolerances={"hard": Tolerance(rounds=2), "*": Tolerance()}),
    )
    assert main(["reproduce", "np_workshop"]) == 0
    assert "1 of them over their first rounds alone" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["cmoo_pairs", "cmoo_qm9", "fairness", "ssca_long", "fw_leakage"])
def test_a_page_can_be_read_without_its_data(name, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    monkeypatch.setattr(cache, "_stream", lambda *_: pytest.fail("something was fetched"))
    pairs.load.cache_clear()
    monkeypatch.setattr(store, "run", lambda *_, **__: pytest.fail("something was computed"))
    traces = STUDIES[name].open().run()
    assert STUDIES[name].numbers(traces, "full")
    if name == "cmoo_pairs":
        figures.gallery(traces)


@pytest.mark.parametrize("data", figures.DATA)
def test_the_pictures_of_the_gallery_are_those_of_the_data(data):
    try:
        whole = pairs.load(data, "test")
    except cache.DataError:
        pytest.skip("the data are not here")
    kept, shown = figures.first_pictures(data)
    np.testing.assert_array_equal(kept, whole.X[: figures.SHOWN].numpy())
    assert shown == [figures.labels(figures.KINDS[data], y) for y in whole.y[:6].tolist()]
