"""The data of Figures 2 to 4 of Federated Frank-Wolfe, and matrices in a nuclear ball."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from fedlib.core import Problem
from fedlib.metrics import fw_gap
from fedlib.sets import NuclearBall
from papers.fedfw.cells import tables
from papers.fedfw.feasible_data import constrained_pictures, constrained_synthetic
from papers.fedfw.matrices import multi_task_regression
from papers.fedfw.rates.problems import SETS


@lru_cache(maxsize=64)
def generated(
    seed: int,
    *,
    model: str,
    norm: str,
    most: int,
) -> Problem:
    """The paper's synthetic data, ten clients with three labels each."""
    problem = constrained_synthetic(model=model, labels=3, seed=seed, most=most)
    return problem.within(SETS[norm])


@lru_cache(maxsize=64)
def photographed(
    seed: int,
    *,
    data: str,
    norm: str,
    pictures: int,
    tested: int,
) -> Problem:
    """Logistic regression on pictures, ten clients with three labels each."""
    train, test = tables(data)
    problem = constrained_pictures(
        train,
        test,
        data=data,
        labels=3,
        seed=seed,
        train_rows=pictures,
        test_rows=tested,
    )
    return problem.within(SETS[norm])


@lru_cache(maxsize=64)
def tasks(seed: int, *, steps: int) -> Problem:
    """`multi_task_regression` with an oracle of so many steps; the metrics have the exact one."""
    regression = multi_task_regression(seed=seed, dtype=torch.float64)
    exact = regression.set
    assert isinstance(exact, NuclearBall)

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        assert isinstance(problem.set, NuclearBall)  # of this seed's radius
        right = replace(problem, set=replace(problem.set, steps=exact.steps))
        return {"loss": problem.mean_losses(w)[0], "fw_gap": fw_gap(right, w)}

    return replace(regression.within(replace(exact, steps=steps)), metrics=metrics)
