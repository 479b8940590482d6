"""The low-rank study: watched messages, the clock, numbers by hand, a rule both ways."""

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.algorithms import FedFW
from fedlib.core import Trace
from papers.fedfw.lowrank import C11, STUDY, derive
from papers.fedfw.lowrank.problems import clock_problem, pictures_within, tasks_within
from papers.fedfw.lowrank.watched import Clock, Watched, looked_at
from tests.helpers.planted import drawn, fails_alone

FULL = STUDY.resolve("full")


def message_run(name, most, bits, second=0.0, off=0.0, wire=0.0):
    info = {"most": most, "fewest": most, "second": second, "off": off, "wire": wire}
    info = {k: np.full((2, 3), float(v)) for k, v in info.items()}
    problem = {"clients": 10, "shapes": [[10, 64], [10]], "set": {"type": name}}
    if name == "NuclearBall":
        problem = {"clients": 10, "features": 60, "tasks": 40, "set": {"type": name}}
    config = {"bits": {"bits_up": 10 * bits}, "problem": problem}
    return Trace({}, info, np.array([0]), (0, 1), config)


def whole(messages=None):
    """All that the full profile's numbers are made of."""
    info = {"lmo": np.array([[1e-3, 9.0, 1e-3]]), "project": np.array([[2e-2, 2e-2, 2e-2]])}
    info["reached"] = np.ones((1, 3))
    clock = Trace({}, info, np.array([0]), (0,), {})
    traces = {f"clock_{shape}": clock for shape in ("60x40", "50x50", "100x100")}
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


def test_numbers_by_hand():
    n = numbers()
    assert n["messages_l1.bits"].value == 11
    assert n["messages_nuclear.entries"].value == 2400
    assert n["clock_60x40.shorter"].value == 24
    assert n["clock_60x40.project"].value == pytest.approx(20)


def test_c11_holds_for_vertices():
    done = C11(numbers())
    assert done.verdict == "reproduced"
    assert "l1 11, simplex 10, nuclear 3200, box 650" in done.measured


@pytest.mark.parametrize(
    ("name", "run", "failing"),
    [
        ("l1", message_run("L1Ball", 2, 11), "every message has exactly one nonzero entry (l1)"),
        (
            "simplex",
            message_run("Simplex", 0, 10),
            "every message has exactly one nonzero entry (simplex)",
        ),
        (
            "nuclear",
            message_run("NuclearBall", 9, 3200, second=1e-3),
            "every message for the nuclear ball has rank one, up to 1e-5",
        ),
        (
            "box",
            message_run("Box", 650, 650, off=0.1),
            "every message for the box consists of signs, up to 1e-5",
        ),
    ],
)
def test_each_part_of_c11_can_fail(name, run, failing):
    fails_alone(C11, numbers(messages={name: run}), failing)


def test_the_figure_draws_the_square_matrices():
    assert all(len(ax.lines[0].get_xdata()) == 2 for ax in drawn(STUDY.figures["clock"], whole()))


def test_watching_changes_nothing():
    problem = tasks_within(0, steps=15, clients=3, rows=20, features=6, tasks=5, rank=2)
    plain = fl.run(FedFW(0.1), problem, rounds=5, progress=False)
    seen = fl.run(Watched(FedFW(0.1)), problem, rounds=5, progress=False)
    torch.testing.assert_close(seen.state.w, plain.state.w)
    assert (seen.info["bits_up"] == plain.info["bits_up"]).all()
    assert seen.info["second"].max() < 1e-5


@pytest.mark.parametrize(
    ("convex_set", "most", "bits"),
    [(fl.L1Ball(10.0), 1, 11), (fl.Simplex(10.0), 1, 10), (fl.Box(1.0), 650, 650)],
    ids=["l1", "simplex", "box"],
)
def test_messages_of_the_picture_problem(convex_set, most, bits):
    problem = pictures_within(0, convex_set=convex_set, rows=100)
    trace = fl.run(Watched(FedFW(0.01)), problem, rounds=2, progress=False)
    assert set(trace.info["most"].flatten()) == set(trace.info["fewest"].flatten()) == {most}
    assert trace.info["bits_up"].mean() == 10 * bits
    assert trace.info["off"].max() == trace.info["wire"].max() == 0


def test_looking_finds_what_is_no_vertex():
    two = torch.tensor([[3.0, -7.0, 0.0, 0.0], [0.0, 10.0, 0.0, 0.0]])
    found = looked_at(two, fl.L1Ball(10.0))
    assert (found["most"], found["fewest"]) == (2, 1)
    assert found["wire"] == 3  # the format gives (0, -10, 0, 0) back
    assert looked_at(torch.tensor([[1.0, 0.6]]), fl.Box(1.0))["off"] == pytest.approx(0.4)
    flat = torch.eye(2).flatten().unsqueeze(0)
    assert looked_at(flat, fl.NuclearBall(1.0, 2, 2))["second"] == 1


def test_the_clock_measures_both_oracles():
    problem = clock_problem(0, rows=30, columns=20, steps=40)
    trace = fl.run(Clock(2), problem, rounds=2, progress=False)
    assert (trace.info["lmo"] > 0).all()
    assert (trace.info["project"] > 0).all()
    assert trace.info["reached"] == pytest.approx(1, abs=1e-4)
    few = fl.run(Clock(), clock_problem(0, rows=30, columns=20, steps=2), rounds=2, progress=False)
    assert (few.info["reached"] < 0.99).all()
