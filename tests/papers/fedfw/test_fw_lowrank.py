"""The low-rank study: numbers by hand, rules both ways, figures."""

import numpy as np
import pytest
from planted import drawn, fails_alone

from fedlib.core import Trace
from papers.fedfw.lowrank import STUDY
from papers.fedfw.lowrank.claims import C11
from papers.fedfw.lowrank.figures import FIGURES
from papers.fedfw.lowrank.numbers import (
    FRANK_WOLFE,
    PROJECTIONS,
    TASKS,
    best_runs,
    derive,
    excess,
    first_at,
)

FULL = STUDY.resolve("full")


def curve(falls, bits, seeds=2, **more):
    """Loss 1 + excess, from 2 down to 1 + 1 / falls^t."""
    t = np.arange(0, 12, 2)
    loss = 1 + falls ** -t.astype(float)
    metrics = {"loss": np.repeat(loss[None], seeds, 0), **more}
    metrics["error"] = metrics["rank"] = np.ones_like(metrics["loss"])
    problem = {"clients": 10, "rank": 3, "set": {"rows": 60, "columns": 40}}
    config = {"bits": {"bits_up": bits}, "problem": problem}
    return Trace(metrics, {}, t, tuple(range(seeds)), config, {"wall_s": 1.0})


def message_run(name, most, bits, second=0.0, off=0.0, wire=0.0):
    info = {"most": most, "fewest": most, "second": second, "off": off, "wire": wire}
    info = {k: np.full((2, 3), float(v)) for k, v in info.items()}
    problem = {"clients": 10, "shapes": [[10, 64], [10]], "set": {"type": name}}
    if name == "NuclearBall":
        problem = {"clients": 10, "features": 60, "tasks": 40, "set": {"type": name}}
    config = {"bits": {"bits_up": 10 * bits}, "problem": problem}
    return Trace({}, info, np.array([0]), (0, 1), config)


def whole(messages=None):
    """All that the full profile's numbers are made of, with a run for every method."""
    traces = {}
    for task in TASKS:
        floor = curve(2.0, 1.0)
        floor.metrics["loss"][:] = 1.0
        floor.metrics["loss"][:, 0] = 2.0
        floor.metrics["gap"] = np.full((2, 6), 1e-4)
        traces[f"{task}_reference"] = floor
        for m in FRANK_WOLFE:
            traces[f"{task}_{m}_l1"] = curve(4.0 if m == "plus" else 1.01, 1e6)
            traces[f"{task}_{m}_l2"] = curve(1.001, 1e6)
        for m in PROJECTIONS:
            traces[f"{task}_{m}_a1"] = curve(2.0, 24e6)
    for shape in ("60x40", "100x80"):
        info = {"lmo": np.array([[1e-3, 9.0, 1e-3]]), "project": np.array([[2e-2, 2e-2, 2e-2]])}
        info["reached"] = np.ones((1, 3))
        traces[f"clock_{shape}"] = Trace({}, info, np.array([0]), (0,), {})
    sent = {
        "l1": message_run("L1Ball", 1, 11),
        "simplex": message_run("Simplex", 1, 10),
        "box": message_run("Box", 650, 650),
        "l2": message_run("Ball", 650, 32 * 650),
        "nuclear": message_run("NuclearBall", 2400, 3200),
    }
    return traces | {f"messages_{k}": v for k, v in (sent | (messages or {})).items()}


def numbers(**changes):
    return derive(whole(**changes), FULL)


def test_excess_and_levels_by_hand():
    traces = whole()
    x = excess(traces["regression_avg1_a1"], traces["regression_reference"])
    assert x[0] == pytest.approx([100, 25, 6.25, 1.5625, 0.390625, 0.09765625])
    run = traces["regression_avg1_a1"]
    rounds, there = first_at(run, x, 10)
    assert (rounds.tolist(), there.tolist()) == ([4, 4], [True, True])
    rounds, there = first_at(run, x, 0.01)
    assert (rounds.tolist(), there.tolist()) == ([10, 10], [False, False])
    assert first_at(run, np.array([[100.0, np.nan, np.nan]]), 10)[1].tolist() == [False]


def test_numbers_by_hand():
    n = numbers()
    assert best_runs(whole())["regression_plus"] == "regression_plus_l1"
    assert n["regression_plus.grid"].value == 1
    assert n["regression_plus.rounds_10"].value == 2
    assert n["regression_plus.mbit_10"].value == 2
    assert n["regression_avg1.rounds_1"].value == 8
    assert n["regression_avg1.mbit_1"].value == 8 * 24
    assert n["regression_plus.seconds_10"].value == pytest.approx(2 * 10 * 1e-3)
    assert n["regression_dr.seconds_10"].value == pytest.approx(4 * 2e-2)
    assert n["regression_fedfw.reached_10"].value == 0
    assert n["regression_reference.gap"].value == pytest.approx(0.01)
    assert n["messages_l1.bits"].value == 11
    assert n["clock_60x40.shorter"].value == 24


def test_c11_holds_for_vertices():
    done = C11(numbers())
    assert done.verdict == "reproduced"
    assert "l1 11, simplex 10, nuclear 3200, box 650" in done.measured


@pytest.mark.parametrize(
    ("name", "run", "failing"),
    [
        ("l1", message_run("L1Ball", 2, 11), "one entry, l1"),
        ("simplex", message_run("Simplex", 0, 10), "one entry, simplex"),
        ("nuclear", message_run("NuclearBall", 9, 3200, second=1e-3), "rank one, nuclear ball"),
        ("box", message_run("Box", 650, 650, off=0.1), "signs, box"),
    ],
)
def test_each_part_of_c11_can_fail(name, run, failing):
    fails_alone(C11, numbers(messages={name: run}), failing)


def test_what_is_lost_on_the_wire_is_observed():
    done = C11(numbers(messages={"simplex": message_run("Simplex", 1, 10, wire=1.0)}))
    failing = [p.name for p in done.parts if p.state == "fails"]
    assert (done.verdict, failing) == ("reproduced", ["nothing lost on the wire, simplex"])


def test_figures_draw_one_task_or_two():
    traces = whole()
    traces |= {"clock_100x100": traces["clock_60x40"], "clock_50x50": traces["clock_60x40"]}
    one = {k: t for k, t in traces.items() if not k.startswith("completion")}
    for make in FIGURES.values():
        for some in (traces, one):
            assert all(ax.lines for ax in drawn(make, some))


def test_a_matrix_has_rows_and_columns():
    with pytest.raises(ValueError, match="fw_lowrank: regression must be rows and columns, got"):
        STUDY.specs(STUDY.resolve("quick", regression=[13]))
