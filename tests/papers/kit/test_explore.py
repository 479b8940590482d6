"""Stored curves as one table, and thinned for a browser."""

import numpy as np
import pytest

from fedlib.core import Trace
from papers import STUDIES
from papers.kit import explore

STUDY = STUDIES["np_workshop"]


def long_trace(rounds=1000, seeds=(3, 4)):
    f = np.stack([np.linspace(1, 0, rounds + 1) + seed for seed in seeds])
    return Trace(
        metrics={"f": f},
        info={"sigma": f[:, :-1] > 0.5},
        rounds=np.arange(rounds + 1),
        seeds=seeds,
        config={
            "algorithm": {"type": "Around", "method": {"type": "FedAvg", "local_steps": 5}},
            "bits": {"bits_up": 10.0, "bits_down": 20.0},
        },
    )


def test_the_table_has_what_is_stored():
    trace = STUDY.load()["hard"]
    made = explore.table(STUDY, ["hard", "hard_K1"], "g", "bits_up")
    assert list(made.columns) == ["run", "seed", "bits_up", "g"]
    hard = made[made["run"] == "hard"]
    assert np.array_equal(hard["g"].to_numpy().reshape(len(trace.seeds), -1), trace.metrics["g"])
    last = hard["bits_up"].max()
    assert last == trace.rounds[-1] * trace.config["bits"]["bits_up"]
    whole = made[made["run"] == "hard_K1"]["bits_up"].max()
    assert whole > last  # nothing is left out of what it sends


@pytest.mark.parametrize(("metric", "axis"), [("loss", "round"), ("g", "seconds")])
def test_what_is_not_there_is_refused(metric, axis):
    with pytest.raises(ValueError, match=r"^table: "):
        explore.table(STUDY, ["hard"], metric, axis)


@pytest.mark.parametrize(
    ("axis", "wanted"),
    [("round", 1), ("steps", 5), ("bits_up", 10), ("bits_down", 20), ("bits", 30)],
)
def test_a_round_in_units_of_an_axis(axis, wanted):
    assert explore.unit(long_trace(), axis) == wanted


def test_a_long_curve_is_thinned_and_keeps_its_ends():
    made = explore.thinned(long_trace())
    row, mean, std = made["y"]["f"]
    assert len(mean) == len(std) == len(made["x"][row]) == explore.MOST
    assert (made["x"][row][0], made["x"][row][-1]) == (0, 1000)
    assert (mean[0], mean[-1]) == (4.5, 3.5)
    assert std[0] == 0.71  # of two seeds, as seaborn's band has it
    assert made["x"][made["y"]["sigma"][0]][-1] == 999  # reported by rounds, not after the last


def test_a_single_seed_has_no_band():
    assert explore.thinned(long_trace(seeds=(3,)))["y"]["f"][2] == []
