"""The preference rule of FedCMOO-Pref: it balances the losses, or lowers all of them.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025, Algorithm 8, eqs. (16)-(19); Mahapatra and Rajan, ICML 2020, for the balancing
direction. The aim is `r_1 F_1 = ... = r_M F_M` along descent directions, so a larger `r_k` means a
smaller `F_k`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from fedlib import checks
from fedlib.checks import Nonnegative, Share
from fedlib.shapes import Scalar
from fedlib.solvers.linear_program import program
from fedlib.weights.rules import Gram, Ratios, Simplex

SMALLEST = 1e-12  # lower bound of a normalized loss, so that its logarithm is finite
TIE = 1e-12  # relative; losses so close to the largest count as the largest


class Choice(NamedTuple):
    """The preference rule's weights, the imbalance, and whether the rule used its fallback."""

    weights: Simplex
    mu: Scalar  # how far the losses are from the preferred ratio; 0 if they have it
    fallback: Scalar  # 1 if minimum norm replaced a program without solution


def balancing(losses: Simplex, ratios: Simplex) -> tuple[Simplex, Scalar]:
    r"""The balancing weights `a` and the imbalance `mu`.

    With $u_k = r_k F_k / \sum_j r_j F_j$, the imbalance is $\mu = \sum_k u_k \log(M u_k)$, the
    divergence from equal shares, and $a_k = r_k(\log(M u_k) - \mu)$. Then $\nabla\mu = \nabla
    \mathbf F a / \sum_j r_j F_j$, so $\mu$ falls along $-\nabla\mathbf F a$, for losses $\ge 0$.
    """
    scaled = ratios * losses
    u = scaled / scaled.sum()
    objectives = len(u)
    logs = (u.clamp_min(SMALLEST) * objectives).log()
    mu = (u * logs).sum()
    return ratios * (logs - mu), mu


@dataclass(frozen=True)
class Preference(checks.Checked):
    r"""Weights from FedCMOO-Pref's linear program (19), which balances losses or lowers them all.

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
    ratios : tuple of float or None
        r, a positive number for each objective; None for r = 1.
    epsilon : float
        The tolerated imbalance, which is 0 at the preferred ratio. Above epsilon the program
        balances the losses; else it lowers them all (descent mode).
    star_ratio : float
        No loss in J* may rise; k is in J* if r_k F_k >= star_ratio max_j r_j F_j. The ratio 1 is
        the paper's argmax; the authors' code uses 0.9.
    dominance : bool
        Whether descent mode requires (G w)_k >= 0 of the weights w for all k, which the authors'
        code does; the paper has the same constraints in both modes.

    For a positive semidefinite `G`, the minimum-norm weights satisfy all constraints, so a feasible
    point exists. For an indefinite estimate, there may be none; then the result is the minimum-norm
    weights of its positive part, and `fallback` is 1. Constraints are scaled by `max |G|`; HiGHS
    satisfies them to 1e-7 of that scale.
    """

    ratios: Ratios | None = None
    epsilon: Nonnegative = 0.01
    star_ratio: Share = 1.0
    dominance: bool = False

    def check(self, subject: str, objectives: int) -> None:
        """Raise ValueError unless there is one ratio for each of the objectives."""
        fits = self.ratios is None or len(self.ratios) == objectives
        rule = f"be one for each of the {objectives} objectives"
        checks.require(fits, subject, "preference.ratios", rule, self.ratios)

    def __call__(self, gram: Gram, losses: Simplex) -> Choice:
        """Compute the weights from a Gram matrix and the losses."""
        ratios = torch.ones_like(losses)
        if self.ratios is not None:
            ratios = losses.new_tensor(self.ratios)
        a, mu = balancing(losses, ratios)  # 1
        slope = gram @ a  # 2
        scaled = ratios * losses
        star = scaled >= scaled.max() * self.star_ratio * (1 - TIE)  # 2
        balance = mu > self.epsilon
        target = torch.where(balance, a, 1.0)  # 3
        rises = slope > 0
        bound = torch.where(rises, -torch.inf, slope * rises.any())  # 4
        if self.dominance:
            bound = torch.where(balance, bound, 0.0)
        bound = torch.where(star, 0.0, bound)  # 4
        gain = gram @ target
        results = program(
            gram.unsqueeze(0),
            gain.unsqueeze(0),
            bound.unsqueeze(0),
        )
        result = results[0]
        return Choice(weights=result[:-1], mu=mu, fallback=result[-1])
