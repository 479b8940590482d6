"""Renamed methods, fields and functions lose no stored run."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch

import fedlib as fl
from fedlib.core.describe import renamed_from
from papers.kit import archive, comparisons, store
from papers.kit.comparisons import Finding
from papers.kit.numbers import mean
from papers.kit.store import Spec, compute_or_load, groups, is_stored
from papers.kit.study import Study
from tests.helpers.unlabelled import quantities


@dataclass(frozen=True)
class Walk(fl.FedAvg):
    """Averaging with a field that the next class renames."""

    shrink: float = 1.0


@renamed_from("Walk")
@dataclass(frozen=True)
class Stroll(fl.FedAvg):
    """`Walk` after it and its field were renamed."""

    factor: float = field(default=1.0, metadata={"renamed_from": "shrink"})


def quadratic(seed):
    centres = torch.full((4, 2), float(seed), dtype=torch.float64)
    ones = torch.ones(4, 2, dtype=torch.float64)
    return fl.problems.quadratics(ones, centres, level=2.0)


@renamed_from(f"{__name__}.quadratic")
def bowl(seed):
    return quadratic(seed)


def test_a_stored_run_is_found_under_new_names(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    old = Spec(Walk(0.1, 2, 4, shrink=0.5), quadratic, 3, (0, 1))
    renamed = Spec(Stroll(0.1, 2, 4, factor=0.5), bowl, 3, (0, 1))
    compute_or_load(
        "toy",
        "full",
        {"a": old},
        store=True,
        progress=False,
    )
    assert is_stored("toy", "full", "a", old)
    assert is_stored("toy", "full", "a", renamed)
    different = Spec(Stroll(0.1, 2, 4, factor=0.25), bowl, 3, (0, 1))
    assert not is_stored("toy", "full", "a", different)


def test_a_stored_run_gets_the_name_and_the_labels_that_its_study_gives_it(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    spec = Spec(Walk(0.1, 2, 4, shrink=0.5), quadratic, 3, (0, 1))
    profiles = {"quick": {}, "full": {}}

    def f_at_the_end(traces, p):
        del p
        ends = {name: mean(trace.metrics["f"][:, -1]) for name, trace in traces.items()}
        return quantities(ends)

    def study(**specs):
        return Study(
            "toy",
            "",
            "ours",
            profiles,
            {},
            lambda _: specs,
            f_at_the_end,
        )

    former = study(a=spec)
    former.reproduce("full", device="cpu", recompute=False)
    curve = former.load()["a"].metrics["f"]
    finding = Finding(
        comparisons.mark("toy", "full", "a"),
        3,
        3,
        0.0,
        True,
    )
    comparisons.note("toy", "full", 1, {"a": finding})
    known = comparisons.summary("toy")
    assert known.startswith("1 of 1 runs were recomputed")
    current = study(b=replace(spec, labels={"method": "Walk"}))
    assert current.renamed("full") == {"a": "b"}
    current.settle("full")
    assert archive.names(tmp_path / "toy" / "full") == {"b", "numbers"}
    run_path = store.run_path("toy", "full", "b")
    assert archive.summary(run_path)["labels"] == {"method": "Walk"}
    np.testing.assert_array_equal(current.load()["b"].metrics["f"], curve)
    assert [*store.read_numbers("toy")] == ["b"]
    assert comparisons.summary("toy") == known


def test_two_runs_of_one_configuration_get_a_name_each(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    spec = Spec(Walk(0.1, 2, 4), quadratic, 3, (0, 1))
    compute_or_load(
        "toy",
        "full",
        {"a": spec, "b": spec},
        store=True,
        progress=False,
    )
    profiles = {"quick": {}, "full": {}}
    study = Study(
        "toy",
        "",
        "ours",
        profiles,
        {},
        lambda _: {"c": spec, "d": spec},
        lambda *_: quantities({}),
    )
    assert study.renamed("full") == {"a": "c", "b": "d"}


def test_runs_that_differ_in_a_renamed_float_are_one_group():
    specs = {
        f"f{factor}": Spec(Stroll(0.1, 2, 4, factor=factor), bowl, 3, (0, 1))
        for factor in (0.5, 1.0)
    }
    assert groups(specs) == [specs]
