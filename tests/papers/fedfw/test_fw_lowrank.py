"""The low-rank study: watched messages, the clock, quantities by hand."""

import pytest
import torch
from torch.testing import assert_close

import fedlib as fl
from fedlib.algorithms import FedFW
from papers.fedfw.lowrank.problems import pictures_within, tasks_within
from papers.fedfw.lowrank.watched import Watched, looked_at
from tests.helpers.expect import near


def test_watching_changes_nothing():
    problem = tasks_within(
        0,
        steps=15,
        clients=3,
        rows=20,
        features=6,
        tasks=5,
        rank=2,
    )
    plain = fl.run(FedFW(0.1), problem, rounds=5, progress=False)
    seen = fl.run(Watched(FedFW(0.1)), problem, rounds=5, progress=False)
    assert_close(seen.state.w, plain.state.w)
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
    looks = looked_at(two, fl.L1Ball(10.0))
    assert (looks["most"], looks["fewest"]) == (2, 1)
    assert looks["wire"] == 3  # the format gives (0, -10, 0, 0) back
    beside_a_corner = torch.tensor([[1.0, 0.6]])
    near(looked_at(beside_a_corner, fl.Box(1.0))["off"], 0.4)
    flat = torch.eye(2).flatten().unsqueeze(0)
    assert looked_at(flat, fl.NuclearBall(1.0, 2, 2))["second"] == 1
