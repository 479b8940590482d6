"""Small computations beside FedCMOO's toys: its printed tables, its sketch, its weight rule."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fedlib.compress import LowRank
from fedlib.compress.lowrank import folded_shape, unfold
from fedlib.compress.sketches import Sketch
from fedlib.weights import FindWeights
from fedlib.weights.gram import combine, gram_of, symmetric
from fedlib.weights.rules import minimum_norm

__all__ = [
    "gap_closed",
    "gram_errors",
    "mean_error",
    "related_jacobians",
    "table_3",
    "table_4",
]

ROWS_3 = {
    "sum of client Gram matrices": ((50.95, 11.51, 20.61, 14.56), 24.41),
    "two-way, randomized SVD": ((10.15, 1.38, 2.04, 1.76), 3.83),
    "two-way, random masking": ((51.25, 10.26, 17.40, 12.98), 22.97),
    "two-way, top-k": ((17.15, 0.15, 0.04, 0.15), 4.38),
    "one-way, randomized SVD": ((10.87, 1.68, 1.79, 1.96), 4.08),
    "one-way, random masking": ((76.54, 4.23, 6.29, 5.70), 23.19),
    "one-way, top-k": ((24.13, 0.04, 0.01, 0.10), 6.07),
}
SINGLE = {"MNIST+FMNIST": (97.0, 90.1), "MultiMNIST": (95.4, 93.1), "CIFAR10+MNIST": (64.9, 97.1)}
ROWS_1 = {
    "FSMGDA": ((93.0, 75.4), (92.3, 88.2), (58.2, 96.2)),
    "FedCMOO": ((95.5, 78.8), (94.4, 92.6), (57.4, 96.8)),
    "FedCMOO-Pref": ((94.0, 79.2), (93.8, 91.1), (63.6, 89.1)),
}
ROWS_4 = {
    "FSMGDA": (10.22, 4.26, 5.63),
    "FedCMOO": (7.04, 0.79, 5.93),
    "FedCMOO-Pref": (7.60, 1.91, 5.12),
}


def table_3() -> pd.DataFrame:
    """The paper's Table 3: the mean of the four printed entries beside the printed mean, in %."""
    found = {
        name: {"mean of the entries": float(np.mean(entries)), "printed": printed}
        for name, (entries, printed) in ROWS_3.items()
    }
    return pd.DataFrame.from_dict(found, orient="index")


def table_4() -> pd.DataFrame:
    """The paper's Table 4, in %: recomputed from Table 1 and single-task values, and printed."""
    rows = {}
    for method, accuracies in ROWS_1.items():
        for (data, alone), own, printed in zip(
            SINGLE.items(), accuracies, ROWS_4[method], strict=True
        ):
            lost = np.mean([(b - a) / b for a, b in zip(own, alone, strict=True)])
            rows[f"{method}, {data}"] = {"from Table 1": 100 * float(lost), "printed": printed}
    return pd.DataFrame.from_dict(rows, orient="index")


def related_jacobians(
    rng: torch.Generator, clients: int = 6, tasks: int = 2, dim: int = 800
) -> Tensor:
    """Jacobians `[n, M, d]` of clients that agree in part, with decaying singular values.

    Folded, each is a common matrix with singular values 1, 1/2, 1/3, ... plus one of its own with
    half of them.
    """
    rows, columns = folded_shape(tasks, dim)
    size = min(rows, columns)
    decay = 1 / torch.arange(1, size + 1, dtype=torch.float64)

    def one() -> Tensor:
        left = torch.randn(rows, size, generator=rng, dtype=torch.float64)
        right = torch.randn(columns, size, generator=rng, dtype=torch.float64)
        product = torch.linalg.qr(left).Q * decay @ torch.linalg.qr(right).Q.mT
        return unfold(product, tasks, dim)

    common = one()
    return torch.stack([common + 0.5 * one() for _ in range(clients)])


def gram_errors(jacobians: Tensor, rng: torch.Generator) -> dict[str, float]:
    """Relative Frobenius errors of estimates of the Gram matrix of the mean, `[n, M, d]` given.

    One-way; two-way as in Algorithm 6; and with the authors' code's second term, in which the
    compressed sum takes the place of the sum that the server has.
    """
    n, tasks, dim = jacobians.shape
    sketch = LowRank()
    noise = sketch.draw(n + 1, tasks, dim, rng)
    assert isinstance(noise, Tensor)
    C = torch.stack([sketch(H, z) for H, z in zip(jacobians, noise[:n], strict=True)])
    h = sketch(C.sum(0), noise[n])
    own, rest = gram_of(jacobians), jacobians - C
    cross = rest @ (h - C).mT
    exact = gram_of(jacobians.mean(0))
    between = gram_of(C.sum(0)) - gram_of(C).sum(0)
    changed = (C @ (h - C).mT).sum(0)
    two_way = combine(own, C, cross)
    found = {
        "one-way": gram_of(C.mean(0)),
        "two-way, Algorithm 6": two_way,
        "two-way, second term of the code": two_way + symmetric(changed - between) / n**2,
        "sum of client Gram matrices": own.sum(0) / n**2,
    }
    return {k: float((G - exact).norm() / exact.norm()) for k, G in found.items()}


def mean_error(sketch: Sketch, jacobian: Tensor, draws: int, rng: torch.Generator) -> float:
    """`|mean over draws of the sketch - the Jacobian|`, relative: towards 0 if it is unbiased."""
    tasks, dim = jacobian.shape
    noise = sketch.draw(draws, tasks, dim, rng)
    assert isinstance(noise, Tensor)
    received = torch.stack([sketch(jacobian, z) for z in noise])
    return float((received.mean(0) - jacobian).norm() / jacobian.norm())


def gap_closed(tasks: int, instances: int, rng: np.random.Generator) -> list[float]:
    """What one call of `FindWeights` from uniform weights gains, as a share of what there is.

    Of `w' G w`, for random Jacobians whose gradients have very different lengths.
    """
    found = []
    for _ in range(instances):
        jacobian = rng.standard_normal((tasks, 2 * tasks)) * np.exp(rng.standard_normal((tasks, 1)))
        G = torch.as_tensor(jacobian @ jacobian.T)
        start = torch.full((tasks,), 1 / tasks, dtype=torch.float64)
        best = torch.as_tensor(minimum_norm(G.numpy()))
        values = [float(w @ G @ w) for w in (start, FindWeights()(G, start), best)]
        found.append((values[0] - values[1]) / (values[0] - values[2]))
    return found
