"""Small computations beside FedCMOO's toys: its sketch, its weight rule."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedlib.compress import LowRank
from fedlib.compress.lowrank import folded_shape, unfold
from fedlib.compress.sketches import Sketch
from fedlib.solvers.min_norm import minimum_norm
from fedlib.weights import FindWeights
from fedlib.weights.gram import combine, gram_of, symmetric


def related_jacobians(
    rng: torch.Generator,
    clients: int = 6,
    tasks: int = 2,
    dim: int = 800,
) -> Tensor:
    """Jacobians `[n, M, d]` of clients that agree in part, with decaying singular values.

    Folded, each is a common matrix with singular values 1, 1/2, 1/3, ... plus one of its own with
    half of them.
    """
    rows, columns = folded_shape(tasks, dim)
    size = min(rows, columns)
    decay = 1 / torch.arange(1, size + 1, dtype=torch.float64)

    def orthonormal(length: int) -> Tensor:
        matrix = torch.randn(length, size, generator=rng, dtype=torch.float64)
        Q: Tensor = torch.linalg.qr(matrix).Q
        return Q

    def jacobian() -> Tensor:
        left = orthonormal(rows)
        right = orthonormal(columns)
        return unfold(left * decay @ right.mT, tasks, dim)

    common = jacobian()
    return torch.stack([common + 0.5 * jacobian() for _ in range(clients)])


def gram_errors(jacobians: Tensor, rng: torch.Generator) -> dict[str, float]:
    """Relative Frobenius errors of estimates of the Gram matrix of the mean, `[n, M, d]` given.

    One-way; two-way as in Algorithm 6; and with the authors' code's second term, in which the
    compressed sum takes the place of the sum that the server has.
    """
    n, tasks, dim = jacobians.shape
    sketch = LowRank()
    noise = sketch.draw(n + 1, tasks, dim, rng)
    assert isinstance(noise, Tensor)
    messages = [sketch(jacobians[i], noise[i]) for i in range(n)]
    C = torch.stack(messages)
    total = C.sum(0)
    h = sketch(total, noise[n])
    grams = gram_of(jacobians)
    exact = gram_of(jacobians.mean(0))
    cross = (jacobians - C) @ (h - C).mT
    two_way = combine(grams, C, cross)
    second_term = gram_of(total) - gram_of(C).sum(0)
    of_clients = C @ (h - C).mT
    second_term_of_code = of_clients.sum(0)
    difference = symmetric(second_term_of_code - second_term)
    estimates = {
        "one-way": gram_of(C.mean(0)),
        "two-way, Algorithm 6": two_way,
        "two-way, second term of the code": two_way + difference / n**2,
        "sum of client Gram matrices": grams.sum(0) / n**2,
    }
    errors = {}
    for name, gram in estimates.items():
        error = (gram - exact).norm()
        errors[name] = float(error / exact.norm())
    return errors


def mean_error(
    sketch: Sketch,
    jacobian: Tensor,
    draws: int,
    rng: torch.Generator,
) -> float:
    """`|mean over draws of the sketch - the Jacobian|`, relative: towards 0 if it is unbiased."""
    tasks, dim = jacobian.shape
    noise = sketch.draw(draws, tasks, dim, rng)
    assert isinstance(noise, Tensor)
    sketches = torch.stack([sketch(jacobian, z) for z in noise])
    error = sketches.mean(0) - jacobian
    return float(error.norm() / jacobian.norm())


def square(G: Tensor, w: Tensor) -> float:
    """`w' G w`."""
    return float(w @ G @ w)


def gap_closed(tasks: int, instances: int, rng: np.random.Generator) -> list[float]:
    """What one call of `FindWeights` from uniform weights gains, as a share of what there is.

    Of `w' G w`, for random Jacobians whose gradients have very different lengths.
    """
    shares = []
    for _ in range(instances):
        jacobian = rng.standard_normal((tasks, 2 * tasks))
        jacobian *= np.exp(rng.standard_normal((tasks, 1)))
        G = torch.as_tensor(jacobian @ jacobian.T)
        start = torch.full((tasks,), 1 / tasks, dtype=torch.float64)
        reached = FindWeights()(G, start)
        best = torch.as_tensor(minimum_norm(G.numpy()))
        at_start = square(G, start)
        gained = at_start - square(G, reached)
        shares.append(gained / (at_start - square(G, best)))
    return shares
