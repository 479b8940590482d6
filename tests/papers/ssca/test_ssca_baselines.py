"""Momentum SGD of the baselines, round by round, and the points that tuning picks."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from fedlib.steps import PowerLaw
from papers.kit.quantities import Query
from papers.ssca import common
from papers.ssca.baselines import STUDY
from papers.ssca.baselines.methods import MomentumSGD, VerticalMomentumSGD
from papers.ssca.baselines.runs import CHOSEN, cells
from tests.helpers.rounds import final_model

TASK = {"data": "digits", "clients": 4, "hidden": 6, "evaluate": 50}


@pytest.mark.parametrize(
    ("problem", "method", "plain"),
    [
        (common.digits_problem, MomentumSGD, "samples"),
        (common.vertical_problem, VerticalMomentumSGD, "features"),
    ],
)
def test_momentum_adds_the_last_change(problem, method, plain):
    """With full batches a round of SGD is a function of the model, which gives the recursion."""
    task = problem(0, **TASK)
    lr = PowerLaw(0.3, 0.0)
    step = replace(common.sgd(plain, 10, 1, lr, clients=4), batch_size=None)
    w = task.w0
    v = torch.zeros_like(task.w0)
    for _ in range(3):
        stepped = final_model(step, replace(task, w0=w), 1)
        v = 0.6 * v + (w - stepped)
        w = w - v
    ours = method(lr=lr, batch_size=None, ridge=common.RIDGE, beta=0.6)
    model = final_model(ours, task, 3)
    assert_close(model, w, rtol=1e-4, atol=1e-6)


def test_what_is_chosen_is_the_best_point_of_its_grid():
    page = STUDY.open()
    numbers = STUDY.numbers(page.run(), "full")
    assert len(CHOSEN) == len([*cells(page.params)])
    for (start, split, batch), point in CHOSEN.items():
        cell = {"draw": "tuning", "start": start, "split": split, "B": batch}
        best = (numbers[Query.of("best_a", **cell)], numbers[Query.of("best_beta", **cell)])
        assert point == tuple(number.value for number in best)
