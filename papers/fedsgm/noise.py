"""Random material for the tail bounds: samples of clients, noise of a given level, worst laws.

F is the FedSGM paper. Its assumption F-A5 (1) on the noise x of a gradient is
E exp(|x|^2 / sigma_xi^2) <= e; here sigma_xi = 1.
"""

import math
from itertools import combinations
from math import log, sqrt

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.optimize import brentq, linprog
from torch import Tensor

FAMILIES = ("gaussian", "sphere", "sign", "skewed", "rare", "exponential")


def sample_means(
    values: Float[Tensor, "N ..."],
    n: int,
    count: int,
    rng: torch.Generator,
) -> Float[Tensor, "count ..."]:
    """Means of `values` over `count` independent samples of n distinct clients."""
    order = torch.rand(count, len(values), generator=rng).argsort(dim=1)
    return values[order[:, :n]].mean(1)


def noise(
    family: str,
    shape: tuple[int, ...],
    dim: int,
    rng: torch.Generator,
) -> Float[Tensor, "*shape d"]:
    """Centred random vectors `[*shape, dim]` with E exp(|x|^2) = e: F-A5 (1) with sigma_xi = 1.

    Gaussian; uniform on the unit sphere; a unit vector with a random sign; the same vector, long
    with probability 1/10 and short the other way otherwise; zero but for one time in a hundred;
    radius^2 exponential, the heaviest tail that the assumption allows.
    """
    normal: Tensor = torch.randn(*shape, dim, generator=rng, dtype=torch.float64)
    if family == "gaussian":
        variance = (1 - math.exp(-2 / dim)) / 2
        return normal * sqrt(variance)
    chance = torch.rand(*shape, 1, generator=rng, dtype=torch.float64)
    unit: Tensor = normal / normal.norm(dim=-1, keepdim=True)
    axis = torch.zeros(dim, dtype=torch.float64)
    axis[0] = 1.0
    if family == "sphere":
        return unit
    if family == "sign":
        return torch.where(chance < 0.5, axis, -axis)
    if family == "skewed":
        return torch.where(chance < 0.1, 9 * SKEWED * axis, -SKEWED * axis)
    if family == "rare":
        length = sqrt(log((math.e - 0.99) / 0.01))
        return torch.where(chance < 0.01, length * unit, 0 * unit)
    if family == "exponential":
        square = -(1 - 1 / math.e) * torch.log1p(-chance)
        return square.sqrt() * unit
    raise ValueError(f"noise: family must be one of {', '.join(FAMILIES)}, got {family!r}.")


#: The size s with 0.1 exp(81 s^2) + 0.9 exp(s^2) = e.
SKEWED = brentq(lambda s: 0.1 * math.exp(81 * s**2) + 0.9 * math.exp(s**2) - math.e, 0, 1)


def batch_noise(radius: float, batch: int) -> float:
    """A sigma_xi of F-A5 (1) for a mean of `batch` independent centred vectors of length <= radius.

    min(radius, radius sqrt(2 k / batch)), k = (e+1)/(e-1): by Pinelis' inequality the mean exceeds
    r with probability at most 2 exp(-r^2 batch / (2 radius^2)); integrate that tail.
    """
    of_tail = sqrt(2 * (math.e + 1) / (math.e - 1) / batch)
    return radius * min(1.0, of_tail)


def largest_proxy(
    x: float, vector: bool = False, points: int = 1601
) -> tuple[float, NDArray[np.float64]]:
    """The worst proxy at one x among all laws with E exp(X^2) <= e, and where that law lives.

    Scalar: 2 log E exp(xX) / x^2 over mean-zero laws on a grid of [-4, 4], a linear
    program. Vector: 2 log E[exp(xR) - xR] / x^2 over laws of a length R >= 0, the number that
    Pinelis' inequality needs.
    """
    # The unknowns are mass times exp(grid^2), so that the program is well scaled, and the values
    # are divided by exp(x^2 / 2).
    grid = np.linspace(0.0 if vector else -4.0, 4.0, points)
    mass = np.exp(-(grid**2))
    value = np.exp(x * grid - x * x / 2)
    equations = [mass]
    right_sides = [1.0]
    if vector:
        value = value - x * grid * math.exp(-x * x / 2)
    else:
        equations.append(mass * grid)
        right_sides.append(0.0)
    answer = linprog(
        -value * mass,
        A_ub=[np.ones_like(grid)],
        b_ub=[math.e],
        A_eq=equations,
        b_eq=right_sides,
        method="highs",
    )
    proxy = 2 * (log(-answer.fun) + x * x / 2) / x**2
    return proxy, grid[answer.x > 1e-9]


def value_exponent(
    values: Float[Tensor, "N m"],
    n: int,
    batch: int,
    x: float,
) -> float:
    """Exactly log E exp(x (G - g)) for the minibatch estimate G of a constraint value g.

    Row i of client j has the value `values[j, i]`; n distinct clients are drawn, and each reports
    the mean of `batch` of its rows, drawn with replacement. All samples of clients are listed.
    """
    y = x / n
    exponents = batch * (values * (y / batch)).exp().mean(1).log()  # [N], of each client's report
    samples = combinations(range(len(values)), n)
    sums = [float(exponents[list(clients)].sum()) for clients in samples]
    exponent_of_estimate = float(torch.tensor(sums).double().exp().mean().log())
    return exponent_of_estimate - x * float(values.mean())
