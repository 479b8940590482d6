"""Task weights from a Gram matrix: projected gradient, minimum norm, and a least weight.

A rule maps the Gram matrix `G [M, M]` of the M gradients, and the weights before, to weights in the
simplex; it sees neither the model nor the losses. Whatever `G` is, finite in gives a point of the
simplex out; NaN or infinity gives NaN, so that the model is not finite and `run` names the round.

The solvers are operations of their own (`torch.library.custom_op`): a thousand projected steps or
an active-set method branch on values, which neither `vmap` nor the recorder can follow. Their rule
under `vmap` puts all problems of all seeds in one batch, which is solved on the CPU in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Shaped
from numpy.typing import NDArray
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Nonnegative

Array = NDArray[np.float64]

FLOOR = 1e-4  # added to the diagonal before the root, as the authors' code does
PIVOTS = 100  # steps of the active-set method an objective; it needs about one
# Schemas are written out: annotations cannot be read where a checker of shapes wraps the function.
DESCEND = "(Tensor gram, Tensor before, Tensor step, int steps) -> Tensor"
MIN_NORM = "(Tensor gram) -> Tensor"
#: In [0, 1).
Rest = Annotated[float, checks.between(0, 1, open_high=True, name="Rest")]


@runtime_checkable
class Weights(Protocol):
    """What FedCMOO asks of a rule."""

    def __call__(
        self, gram: Float[Tensor, "M M"], before: Float[Tensor, "M"]
    ) -> Float[Tensor, "M"]:
        """Weights `[M]` in the simplex, from the Gram matrix and the weights before."""
        ...


def project_simplex(v: Float[Tensor, "*b M"]) -> Float[Tensor, "*b M"]:
    r"""The nearest point of the simplex $\{w \ge 0, \sum_k w_k = 1\}$.

    `w = max(v - theta, 0)`, where theta is the mean excess of the largest `rho` entries and `rho`
    the last place (in descending order) at which an entry exceeds its theta.

    >>> project_simplex(torch.tensor([0.9, 0.5, -1.0]))
    tensor([0.7000, 0.3000, 0.0000])
    """
    ordered = v.sort(-1, descending=True).values
    place = torch.arange(1, v.shape[-1] + 1, dtype=v.dtype, device=v.device)
    theta = (ordered.cumsum(-1) - 1) / place
    rho = (ordered > theta).sum(-1, keepdim=True).clamp_min(1)
    return (v - theta.gather(-1, rho - 1)).clamp_min(0)


def normalized(gram: Float[Tensor, "*b M M"]) -> Float[Tensor, "*b M M"]:
    r"""`G` in units of the squared mean norm, $(\frac1M \sum_k \sqrt{G_{kk} + 10^{-4}})^2$.

    As in the authors' code; a negative diagonal entry of an estimate counts as zero.
    """
    lengths = (gram.diagonal(dim1=-2, dim2=-1).clamp_min(0) + FLOOR).sqrt()
    return gram / lengths.mean(-1)[..., None, None] ** 2


@dataclass(frozen=True)
class FindWeights:
    r"""Projected gradient on $\frac12 w^\top G w$: `steps` times `w <- project(w - step G w)`.

    FedCMOO, Algorithm 2 (eq. 5), started at the weights of the round before. The defaults are those
    of the authors' code: `step * steps = 1`, so that one round goes most of the way to the optimum
    and the weights follow it over the rounds. With `steps=1, normalize=False` it is one step of
    the theory, also for a matrix that is not symmetric.

    >>> G = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    >>> FindWeights(step=0.1)(G, torch.tensor([0.5, 0.5]))
    tensor([0.2000, 0.8000])

    Parameters
    ----------
    step : beta; 0 leaves the weights as they are.
    steps : K.
    normalize : whether `G` is first divided by the squared mean norm of its gradients.
    """

    step: Nonnegative = 1e-3
    steps: Count = 1000
    normalize: bool = True

    def __post_init__(self) -> None:
        checks.fields(self)

    def __call__(
        self, gram: Float[Tensor, "M M"], before: Float[Tensor, "M"]
    ) -> Float[Tensor, "M"]:
        """The weights after `steps` steps from `before`."""
        checks.arguments(FindWeights.__call__, locals())
        if before.shape != gram.shape[:1]:
            rule = f"have an entry for each of the {len(gram)} rows of gram"
            raise ValueError(checks.sentence("FindWeights", "before", rule, list(before.shape)))
        scaled = normalized(gram) if self.normalize else gram
        step = before.new_ones(1) * self.step
        after: Tensor = descend(scaled.unsqueeze(0), before.unsqueeze(0), step, self.steps)[0]
        return after


@dataclass(frozen=True)
class MinNorm:
    r"""The exact minimizer of $w^\top G w$ over the simplex, whatever the weights before.

    Solved as nonnegative least squares, $\min_{v \ge 0} \|A v\|^2 + (\mathbf 1^\top v - 1)^2$ with
    $A^\top A = G$ and $w = v / \mathbf 1^\top v$: for $v = s w$ with $s \ge 0$ the best value is
    $1 - 1 / (1 + w^\top G w)$, increasing in $w^\top G w$. The part of `G` below zero (an estimate
    may be indefinite) is cut off. Of several minimizers any may come.

    >>> G = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    >>> MinNorm()(G, torch.tensor([0.5, 0.5]))
    tensor([0.2000, 0.8000])
    """

    def __call__(
        self, gram: Float[Tensor, "M M"], before: Float[Tensor, "M"]
    ) -> Float[Tensor, "M"]:
        """The minimum-norm weights."""
        checks.arguments(MinNorm.__call__, locals())
        del before
        weights: Tensor = min_norm(gram.unsqueeze(0))[0]
        return weights


@dataclass(frozen=True)
class Least:
    """No weight below `share / M`, by a mixture with uniform weights or by Euclidean projection.

    FedCMOO-Pref's experiments have `share = 0.2`, as a mixture in the authors' code; the ends
    0.001 and 0.999 of their FSMGDA for two objectives are `Least(0.002, mixture=False)`.

    >>> Least(0.2)(torch.tensor([1.0, 0.0]))
    tensor([0.9000, 0.1000])
    """

    share: Rest = 0.2
    mixture: bool = True

    def __post_init__(self) -> None:
        checks.fields(self)

    def __call__(self, weights: Float[Tensor, "M"]) -> Float[Tensor, "M"]:
        """The weights, moved into the smaller simplex."""
        checks.arguments(Least.__call__, locals())
        least, rest = self.share / weights.shape[-1], 1 - self.share
        inner = weights if self.mixture else project_simplex((weights - least) / rest)
        return least + rest * inner


@torch.library.custom_op("fedlib::descend", mutates_args=(), schema=DESCEND)
def descend(
    gram: Float[Tensor, "b M M"], before: Float[Tensor, "b M"], step: Float[Tensor, "b"], steps: int
) -> Float[Tensor, "b M"]:
    """Projected gradient on b quadratic forms at once.

    It stops early where a step changes no weight of any of them, which changes no result.

    Parameters
    ----------
    gram : `[b, M, M]`.
    before : `[b, M]`, the starts.
    step : `[b]`.
    steps : how many.

    Returns
    -------
    `[b, M]`.
    """
    G, w, beta = on_cpu(gram), on_cpu(before), on_cpu(step)[:, None]
    bad = np.logical_not(np.isfinite(G.sum((1, 2)) + w.sum(1)))
    G = np.where(bad.reshape(-1, 1, 1), 0.0, G)
    place = np.arange(1, w.shape[1] + 1)
    for _ in range(steps):
        v = w - beta * (G @ w[..., None])[..., 0]
        ordered = -np.sort(-v, 1)
        theta = (ordered.cumsum(1) - 1) / place
        rho = np.maximum((ordered > theta).sum(1, keepdims=True), 1)
        after = np.maximum(v - np.take_along_axis(theta, rho - 1, 1), 0)
        if np.array_equal(after, w):
            break
        w = after
    return torch.as_tensor(np.where(bad.reshape(-1, 1), np.nan, w)).to(before)


@torch.library.custom_op("fedlib::min_norm", mutates_args=(), schema=MIN_NORM)
def min_norm(gram: Float[Tensor, "b M M"]) -> Float[Tensor, "b M"]:
    """Minimum-norm weights `[b, M]` of b Gram matrices `[b, M, M]`."""
    return torch.as_tensor(np.stack([minimum_norm(G) for G in on_cpu(gram)])).to(gram)


def minimum_norm(gram: Array) -> Array:
    """Minimum-norm weights `[M]` of the positive part of one symmetric matrix `[M, M]`.

    NaN for a matrix that is not finite.
    """
    from scipy.optimize import nnls

    count = len(gram)
    if not np.isfinite(gram).all():
        return np.full(count, np.nan)
    scale = np.abs(gram).max() or 1.0
    values, vectors = np.linalg.eigh((gram + gram.T) / (2 * scale))
    root = np.sqrt(values.clip(0))[:, None] * vectors.T
    target = np.append(np.zeros(count), 1.0)
    v, _ = nnls(np.vstack([root, np.ones(count)]), target, maxiter=PIVOTS * count)
    return np.asarray(v / v.sum())


def on_cpu(x: Shaped[Tensor, "..."]) -> Array:
    """The values in float64, as numpy has them."""
    return np.asarray(x.detach().cpu().double().numpy())


def batch_rule(op: Any) -> Callable[..., tuple[Float[Tensor, "*b"], int]]:
    """The rule under `vmap` of an operation whose tensors all have a leading batch axis."""

    def rule(info: object, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Tensor, int]:
        size = cast(int, getattr(info, "batch_size"))  # noqa: B009
        whole = []
        for x, axis in zip(arguments, in_dims, strict=True):
            if isinstance(x, Tensor):
                many = x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)
                whole.append(many.flatten(0, 1))
            else:
                whole.append(x)
        return op(*whole).unflatten(0, (size, -1)), 0

    return rule


@descend.register_fake
def _(gram: Tensor, before: Tensor, step: Tensor, steps: int) -> Tensor:
    del gram, step, steps
    return before.new_empty(before.shape)


@min_norm.register_fake
def _(gram: Tensor) -> Tensor:
    return gram.new_empty(gram.shape[:-1])


descend.register_vmap(batch_rule(descend))
min_norm.register_vmap(batch_rule(min_norm))
