"""Adam as a local optimizer: some steps from moments that are zero.

Kingma, Ba, *Adam: A Method for Stochastic Optimization*, ICLR 2015, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks

BETAS = (0.9, 0.999)
EPS = 1e-8


def adam(
    u: Float[Tensor, "d"],
    gradient: Callable[[Float[Tensor, "d"], int], Float[Tensor, "d"]],
    steps: int,
    lr: float | Float[Tensor, ""],
    betas: tuple[float, float] = BETAS,
    eps: float | Float[Tensor, ""] = EPS,
) -> Float[Tensor, "d"]:
    r"""Some steps of Adam, from moments that are zero.

        1  g = gradient(u, t)
        2  m <- beta_1 m + (1 - beta_1) g;  v <- beta_2 v + (1 - beta_2) g^2
        3  u <- u - lr m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + eps)

    Parameters
    ----------
    u : where the steps start.
    gradient : (point, number t of the step, 0 the first) -> `[d]`.
    steps : how many.
    lr, betas, eps : as in `torch.optim.Adam`.
    """
    m = v = torch.zeros_like(u)
    for step in range(steps):
        g = gradient(u, step)  # 1
        m = betas[0] * m + (1 - betas[0]) * g  # 2
        v = betas[1] * v + (1 - betas[1]) * g * g  # 2
        first, second = (1 - beta ** (step + 1) for beta in betas)
        u = u - lr * (m / first) / ((v / second).sqrt() + eps)  # 3
    return u


def check_moments(who: str, betas: tuple[float, float], eps: float) -> None:
    """Check Adam's own parameters; raises ValueError or TypeError."""
    if not isinstance(betas, tuple) or len(betas) != 2:
        raise ValueError(checks.sentence(who, "betas", "be two numbers in a tuple", betas))
    for beta in betas:
        checks.at_least(who, "every entry of betas", beta, 0)
        if beta >= 1:
            raise ValueError(checks.sentence(who, "every entry of betas", "be below 1", beta))
    checks.positive(who, "eps", eps)
