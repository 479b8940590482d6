"""The generated rows of FedFW's authors, draw by draw, and the problem that they make.

The generator of Dadras et al. (FedFW, ECML PKDD 2024) and its seed are in their public code; both
of its columns, "IID" and "non-IID", use the branch with one labelling rule for all users.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.sampling import seeded
from fedlib.data.split import holdout, padded
from fedlib.problems import classifier
from fedlib.problems.classification import Samples, linear_model, mlp_model, row_losses
from fedlib.sets import Ball
from fedlib.shapes import Vector
from papers.fedfw.feasible_data import (
    DECAY,
    FEATURES,
    HIDDEN,
    LEAST,
    LOG_DEVIATION,
    LOG_MEAN,
    SPREAD,
    TEST_SHARE,
    TIMES,
    Generated,
    constrained_synthetic,
)

AUTHORS_SEED = 0
OUTPUTS = 10  # of every model, on three classes too
NETS = ("mclr", "dnn")


@lru_cache(maxsize=4)
def authors_rows(users: int, classes: int) -> Generated:
    """The rows of all users, as numpy's legacy generator with seed 0 gives them.

    Args:
        users: 10 in the paper's Tables 1 and 2, 100 in Table 3.
        classes: of the generator: 10, and 3 in the columns that the paper calls non-IID.
    """
    rng = np.random.RandomState(AUTHORS_SEED)
    drawn = rng.lognormal(LOG_MEAN, LOG_DEVIATION, users).astype(int)
    sizes = tuple(int(n) for n in TIMES * (drawn + LEAST))
    means = rng.normal(0, SPREAD, users)
    centres = rng.normal(0, SPREAD, users)
    W = rng.normal(0, 1, (FEATURES, classes))
    b = rng.normal(0, 1, classes)
    covariance = np.diag(np.arange(1, FEATURES + 1) ** -DECAY)
    X = []
    y = []
    for mean, centre, size in zip(means, centres, sizes, strict=True):
        rng.normal(mean, 1, (FEATURES, classes))  # a map of the user's own, which is thrown away
        rng.normal(mean, 1, classes)
        X.append(rng.multivariate_normal(np.full(FEATURES, centre), covariance, size))
        y.append((X[-1] @ W + b).argmax(1))
    inputs = torch.from_numpy(np.concatenate(X))
    return Generated(inputs.float(), torch.from_numpy(np.concatenate(y)), sizes)


@dataclass(frozen=True)
class _Measured:
    """Loss on training rows and accuracy on test rows; see `authors_problem`."""

    model: Any

    def __call__(self, w: Vector, problem: Problem) -> dict[str, Tensor]:
        X, y, train_inputs, labels = problem.heldout
        losses = row_losses(self.model.apply(w, train_inputs), labels)
        right = self.model.apply(w, X).argmax(1) == y
        return {"loss": losses.mean(), "accuracy": right.to(w.dtype).mean()}


def authors_problem(
    seed: int,
    *,
    net: str,
    classes: int,
    users: int = 10,
    measured: int = 150,
    ball: float | None = None,
) -> Problem:
    """A model with ten outputs on the authors' rows; a quarter of each user's rows is for testing.

    Which quarter, their code leaves to a generator without a seed: here the seed decides.

    Args:
        seed: fixes the test rows and the network's start.
        net: `"mclr"`, one linear layer, or `"dnn"`, 60-20-10.
        classes, users: as in `authors_rows`.
        measured: rows of each user, the first, whose mean loss is reported.
        ball: radius of an l2 ball around the whole vector, for methods that ask for a set.
    """
    X, y, counts = authors_rows(users, classes)
    rng = seeded(seed, "split")
    rows, sizes = padded(torch.split(torch.arange(len(y)), list(counts)))
    rows, sizes, tested = holdout(rows, sizes, TEST_SHARE, rng)
    measured_rows = rows[:, :measured].flatten()
    model = (
        linear_model(FEATURES, OUTPUTS)
        if net == "mclr"
        else mlp_model(FEATURES, HIDDEN, OUTPUTS, rng)
    )
    problem = classifier(
        Samples(X, y),
        Samples(X[tested], y[tested]),
        rows,
        model,
        sizes=sizes,
        name="authors_problem",
        config={
            "net": net,
            "classes": classes,
            "measured": measured,
            "split_by": "seed",
        },
    )
    problem = replace(
        problem,
        heldout=(*problem.heldout, X[measured_rows], y[measured_rows]),
        metrics=_Measured(model),
        sequential_clients=True,
    )
    return problem if ball is None else problem.within(Ball(ball))


def our_problem(seed: int, *, most: int, ball: float | None = None) -> Problem:
    """Logistic regression on the rows of the study of the tables, IID, one client after another.

    Args:
        seed: as there.
        most: rows of a client.
        ball: as in `authors_problem`.
    """
    problem = replace(constrained_synthetic(seed=seed, most=most), sequential_clients=True)
    return problem if ball is None else problem.within(Ball(ball))
