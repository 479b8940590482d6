"""Renamed methods, fields and functions lose no stored run."""

from dataclasses import dataclass, field

import torch

import fedlib as fl
from fedlib.core.describe import renamed_from
from papers.kit.store import Spec, compute_or_load, groups, is_stored


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
    before = Spec(Walk(0.1, 2, 4, shrink=0.5), quadratic, 3, (0, 1))
    after = Spec(Stroll(0.1, 2, 4, factor=0.5), bowl, 3, (0, 1))
    compute_or_load("toy", "full", {"a": before}, store=True, progress=False)
    assert is_stored("toy", "full", "a", before)
    assert is_stored("toy", "full", "a", after)
    other = Spec(Stroll(0.1, 2, 4, factor=0.25), bowl, 3, (0, 1))
    assert not is_stored("toy", "full", "a", other)


def test_runs_that_differ_in_a_renamed_float_are_one_group():
    specs = {
        f"f{factor}": Spec(Stroll(0.1, 2, 4, factor=factor), bowl, 3, (0, 1))
        for factor in (0.5, 1.0)
    }
    assert groups(specs) == [specs]
