"""Weights that steer towards a ratio of the losses: FedCMOO's FindWeights-Pref.

The aim is `r_1 F_1 = ... = r_M F_M`, reached along descent directions. `G` is the Gram matrix of
the gradients; a larger `r_k` asks for a smaller `F_k`.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025, Algorithms 4 and 8, eqs. (15)-(19); Mahapatra and Rajan, ICML 2020, for the balancing
direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from fedlib import checks
from fedlib.checks import Nonnegative, Positive, Share
from fedlib.weights.rules import batched_operator, minimum_norm, on_cpu

Array = NDArray[np.float64]

SMALLEST = 1e-12  # of a normalized loss, so that its logarithm is finite
TIE = 1e-12  # relative: losses so close to the largest are the largest

#: Positive numbers, one or more.
Ratios = Annotated[tuple[Positive, ...], checks.SOME]


class Choice(NamedTuple):
    """Weights found by the preference rule, and how they came about."""

    weights: Float[Tensor, "M"]
    mu: Float[Tensor, ""]  # how far the losses are from the preference; 0 if it is met
    fallback: Float[Tensor, ""]  # 1 if minimum norm took the place of a programme without solution


def balancing(
    losses: Float[Tensor, "M"], ratios: Float[Tensor, "M"]
) -> tuple[Float[Tensor, "M"], Float[Tensor, ""]]:
    r"""The balancing weights `a` and the imbalance `mu`.

    With $u_k = r_k F_k / \sum_j r_j F_j$ it is $\mu = \sum_k u_k \log(M u_k)$, the divergence from
    equal shares, and $a_k = r_k(\log(M u_k) - \mu)$. Then $\nabla\mu = \nabla\mathbf F a / \sum_j
    r_j F_j$, so that $\mu$ falls along $-\nabla\mathbf F a$. The losses must not be negative.
    """
    scaled = ratios * losses
    u = scaled / scaled.sum(-1, keepdim=True)
    logs = (u.clamp_min(SMALLEST) * u.shape[-1]).log()
    mu = (u * logs).sum(-1)
    return ratios * (logs - mu.unsqueeze(-1)), mu


@dataclass(frozen=True)
class Preference(checks.Checked):
    r"""Weights by the linear programme (19), which trades balance against descent.

        1  u_k = r_k F_k / sum_j r_j F_j;  mu = sum_k u_k log(M u_k);  a_k = r_k (log(M u_k) - mu)
        2  J = {k : (G a)_k > 0};  Jbar = the others;  J* = argmax_k r_k F_k
        3  t = a if mu > epsilon (balance) else (1, ..., 1) (descent)
        4  maximize (G t)' w over w in the simplex subject to
           (G w)_k >= 0 for k in J*;  (G w)_k >= (G a)_k 1{J not empty} for k in Jbar, not in J*

    >>> G = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    >>> Preference()(G, torch.tensor([1.0, 3.0])).weights
    tensor([0., 1.])
    >>> Preference(ratios=(3.0, 1.0))(G, torch.tensor([1.0, 3.0])).mu
    tensor(0.)

    Parameters
    ----------
    ratios : r, positive, or None for r = 1 (the uniform preference).
    epsilon : the imbalance that is tolerated; the losses settle at its edge.
    star_ratio : J* = {k : r_k F_k >= star_ratio max_j r_j F_j}; the paper's argmax is 1, the
        authors' code has 0.9.
    dominance : in the descent mode ask (G w)_k >= 0 of all k, as the authors' code does, in place
        of line 4's constraints, which are the paper's for both modes.

    For a positive semidefinite `G` the minimum-norm weights satisfy all constraints: a feasible
    point exists. An indefinite estimate may leave none; then the answer is the minimum-norm weights
    of its positive part, and `fallback` is 1. Constraints are scaled by `max |G|`; HiGHS satisfies
    them to 1e-7 of that.
    """

    ratios: Ratios | None = None
    epsilon: Nonnegative = 0.01
    star_ratio: Share = 1.0
    dominance: bool = False

    def check(self, who: str, objectives: int) -> None:
        """Raise ValueError unless there is one ratio for each of the objectives."""
        fits = self.ratios is None or len(self.ratios) == objectives
        rule = f"be one for each of the {objectives} objectives"
        checks.require(fits, who, "preference.ratios", rule, self.ratios)

    def __call__(self, gram: Float[Tensor, "M M"], losses: Float[Tensor, "M"]) -> Choice:
        """The weights for a Gram matrix and the losses."""
        r = torch.ones_like(losses)
        if self.ratios is not None:
            r = torch.tensor(self.ratios, dtype=losses.dtype, device=losses.device)
        a, mu = balancing(losses, r)  # 1
        slope = gram @ a  # 2
        scaled = r * losses
        star = scaled >= scaled.max() * self.star_ratio * (1 - TIE)  # 2
        balance = mu > self.epsilon
        target = torch.where(balance, a, torch.ones_like(a))  # 3
        free = torch.full_like(slope, -torch.inf)
        bound = torch.where(slope > 0, free, slope * (slope > 0).any())  # 4
        if self.dominance:
            bound = torch.where(balance, bound, torch.zeros_like(bound))
        bound = torch.where(star, torch.zeros_like(bound), bound)  # 4
        one = program(gram.unsqueeze(0), (gram @ target).unsqueeze(0), bound.unsqueeze(0))[0]
        return Choice(one[:-1], mu, one[-1])


@batched_operator(
    "(Tensor gram, Tensor gain, Tensor bound) -> Tensor",
    lambda given: torch.Size((len(given[0]), len(given[0][0]) + 1)),
)
def program(
    gram: Float[Tensor, "b M M"], gain: Float[Tensor, "b M"], bound: Float[Tensor, "b M"]
) -> Float[Tensor, "b M+1"]:
    """Maximize `gain' w` over the simplex subject to `gram w >= bound`, for b programmes.

    A loop over the batch on the CPU (HiGHS). `bound` is `-inf` where there is no constraint.
    Returns the weights, and last 1 if there is no solution (minimum-norm weights then), else 0;
    NaN throughout for a programme with a NaN in it.
    """
    parts = zip(on_cpu(gram), on_cpu(gain), on_cpu(bound), strict=True)
    return torch.as_tensor(np.stack([solve(*each) for each in parts])).to(gain)


def solve(gram: Array, gain: Array, bound: Array) -> Array:
    """One programme, `[M + 1]`."""
    from scipy.optimize import linprog

    if not (np.isfinite(gram).all() and np.isfinite(gain).all()) or np.isnan(bound).any():
        return np.full(len(gain) + 1, np.nan)
    scale, unit = np.abs(gram).max() or 1.0, np.abs(gain).max() or 1.0
    real = np.isfinite(bound)
    rows = {"A_ub": -gram[real] / scale, "b_ub": -bound[real] / scale} if real.any() else {}
    answer = linprog(
        -gain / unit,
        **rows,
        A_eq=np.ones((1, len(gain))),
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    if answer.x is None:
        return np.append(minimum_norm(gram), 1.0)
    w = answer.x.clip(0)
    return np.append(w / w.sum(), 0.0)
