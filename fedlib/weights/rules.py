"""Rules for the objectives' weights, from the Gram matrix of the objectives' gradients.

A rule maps the Gram matrix `G [M, M]` of the M gradients and the previous weights to weights in the
simplex; it uses neither the model nor the losses. For every finite `G` the result lies in the
simplex. NaN or infinity in `G` yields NaN, so the model is not finite and `run` reports the round.
The problems of all seeds are solved as one batch by `fedlib.solvers`.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025, Algorithm 2, eqs. (5), (15).
"""

from dataclasses import dataclass
from typing import Annotated, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Nonnegative, Positive
from fedlib.solvers.min_norm import min_norm
from fedlib.solvers.simplex import descend, project_simplex

Gram = Float[Tensor, "M M"]
Simplex = Float[Tensor, "M"]

FLOOR = 1e-4  # added to the diagonal before the root, as in the authors' code
#: A number in [0, 1).
Rest = Annotated[float, checks.between(0, 1, open_high=True, name="Rest")]
#: One or more positive numbers.
Ratios = Annotated[tuple[Positive, ...], checks.SOME]


@runtime_checkable
class Weights(Protocol):
    """A rule that finds the objectives' weights from the Gram matrix of their gradients."""

    def __call__(self, gram: Gram, before: Simplex) -> Simplex:
        """Weights `[M]` in the simplex, from the Gram matrix and the previous weights."""


def normalized(gram: Gram) -> Gram:
    r"""Divide `G` by the squared mean norm, $(\frac1M \sum_k \sqrt{G_{kk} + 10^{-4}})^2$.

    The authors' code does this; a negative diagonal entry of an estimate counts as zero.
    """
    squares = gram.diagonal().clamp_min(0)
    lengths = (squares + FLOOR).sqrt()
    return gram / lengths.mean() ** 2


@dataclass(frozen=True)
class FindWeights(checks.Checked):
    r"""Projected gradient on $\frac12 w^\top G w$: `steps` times `w <- project(w - step G w)`.

    This is FedCMOO's Algorithm 2 (eq. 5) from the weights of the previous round; the defaults are
    those of the authors' code. With `steps=1, normalize=False` it is one step of the theory, also
    for a matrix that is not symmetric.

    >>> G = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    >>> FindWeights(step=0.1)(G, torch.tensor([0.5, 0.5]))
    tensor([0.2000, 0.8000])

    Parameters
    ----------
    step : float
        beta, the step size; 0 leaves the weights unchanged.
    steps : int
        K, the number of steps.
    normalize : bool
        Whether `G` is first divided by the square of the gradients' mean norm.
    """

    step: Nonnegative = 1e-3
    steps: Count = 1000
    normalize: bool = True

    def __call__(self, gram: Gram, before: Simplex) -> Simplex:
        """The weights after `steps` steps from `before`."""
        if self.normalize:
            gram = normalized(gram)
        step = before.new_ones(1) * self.step
        weights: Tensor = descend(
            gram.unsqueeze(0),
            before.unsqueeze(0),
            step,
            self.steps,
        )
        return weights[0]


@dataclass(frozen=True)
class MinNorm:
    r"""The exact minimizer of $w^\top G w$ over the simplex, independent of the previous weights.

    The negative part of `G` (an estimate may be indefinite) is cut off. If there are several
    minimizers, it returns any of them.

    >>> G = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    >>> MinNorm()(G, torch.tensor([0.5, 0.5]))
    tensor([0.2000, 0.8000])
    """

    def __call__(self, gram: Gram, before: Simplex) -> Simplex:
        """The minimum-norm weights."""
        weights: Tensor = min_norm(gram.unsqueeze(0))
        return weights[0]


@dataclass(frozen=True)
class FixedWeights(checks.Checked):
    """The same weights in every round, in proportion to `values`, one number for each objective.

    >>> FixedWeights((3.0, 1.0))(torch.eye(2), torch.ones(2))
    tensor([0.7500, 0.2500])

    Parameters
    ----------
    values : tuple of float
        A positive number for each objective.
    """

    values: Ratios

    def __call__(self, gram: Gram, before: Simplex) -> Simplex:
        """The values, divided by their sum."""
        count = len(self.values)
        objectives = len(before)
        rule = f"hold a number for each of {objectives} objectives"
        checks.require(count == objectives, "FixedWeights", "values", rule, count)
        weights = torch.tensor(self.values, dtype=gram.dtype, device=gram.device)
        return weights / weights.sum()


@dataclass(frozen=True)
class Least(checks.Checked):
    """Raise all weights to at least `share / M`: mix in uniform weights if `mixture`, else project.

    FedCMOO-Pref's experiments use `share = 0.2`, as a mixture in the authors' code. Their FSMGDA
    clips two weights to [0.001, 0.999], which is `Least(0.002, mixture=False)`.

    >>> Least(0.2)(torch.tensor([1.0, 0.0]))
    tensor([0.9000, 0.1000])

    Parameters
    ----------
    share : float
        M times the least weight, in [0, 1).
    mixture : bool
        Whether uniform weights are mixed in; else the weights are projected.
    """

    share: Rest = 0.2
    mixture: bool = True

    def __call__(self, weights: Simplex) -> Simplex:
        """Move the weights into the smaller simplex."""
        least = self.share / weights.shape[-1]
        scale = 1 - self.share
        inner = weights
        if not self.mixture:
            scaled = (weights - least) / scale
            inner = project_simplex(scaled)
        return least + scale * inner
