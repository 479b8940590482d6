"""Task weights from a Gram matrix: projected gradient, minimum norm, and a least weight.

A rule maps the Gram matrix `G [M, M]` of the M gradients, and the weights before, to weights in the
simplex; it sees neither the model nor the losses. Whatever `G` is, finite in gives a point of the
simplex out; NaN or infinity gives NaN, so that the model is not finite and `run` names the round.

The solvers are custom operators: a thousand projected steps or an active-set method branch on
values, which neither `vmap` nor a capture of the round can follow. Their rule under `vmap` puts all
problems of all seeds in one batch, which is solved on the CPU in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, runtime_checkable

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
#: In [0, 1).
Rest = Annotated[float, checks.between(0, 1, open_high=True, name="Rest")]


@runtime_checkable
class Weights(Protocol):
    """Rule that finds the objectives' weights from the Gram matrix of their gradients."""

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
class FindWeights(checks.Checked):
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

    def __call__(
        self, gram: Float[Tensor, "M M"], before: Float[Tensor, "M"]
    ) -> Float[Tensor, "M"]:
        """The weights after `steps` steps from `before`."""
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
        weights: Tensor = min_norm(gram.unsqueeze(0))[0]
        return weights


@dataclass(frozen=True)
class Least(checks.Checked):
    """No weight below `share / M`, by a mixture with uniform weights or by Euclidean projection.

    FedCMOO-Pref's experiments have `share = 0.2`, as a mixture in the authors' code; the ends
    0.001 and 0.999 of their FSMGDA for two objectives are `Least(0.002, mixture=False)`.

    >>> Least(0.2)(torch.tensor([1.0, 0.0]))
    tensor([0.9000, 0.1000])
    """

    share: Rest = 0.2
    mixture: bool = True

    def __call__(self, weights: Float[Tensor, "M"]) -> Float[Tensor, "M"]:
        """The weights, moved into the smaller simplex."""
        least, rest = self.share / weights.shape[-1], 1 - self.share
        inner = weights if self.mixture else project_simplex((weights - least) / rest)
        return least + rest * inner


def batched_operator(schema: str, shape: Callable[[Any], torch.Size]) -> Callable[..., Any]:
    """Decorator: a function of numbers on the CPU as an operator `fedlib::NAME` of torch.

    All tensors that it takes have a leading batch axis, into which its rule under `vmap` puts the
    mapped axis; `shape` of all arguments gives the result's. (The schema is written out: a checker
    of shapes that wraps the function hides its annotations.)
    """

    def decorate(function: Callable[..., Tensor]) -> Any:
        name = f"fedlib::{function.__name__}"
        op = torch.library.custom_op(name, function, mutates_args=(), schema=schema)

        @op.register_fake
        def _(*given: Any) -> Tensor:
            empty: Tensor = given[0].new_empty(shape(given))
            return empty

        @op.register_vmap
        def _(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Tensor, int]:
            def flat(x: Any, axis: int | None) -> Any:
                if not isinstance(x, Tensor):
                    return x
                many = x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
                return many.flatten(0, 1)

            return op(*map(flat, given, in_dims)).unflatten(0, (info.batch_size, -1)), 0

        return op

    return decorate


@batched_operator(
    "(Tensor gram, Tensor before, Tensor step, int steps) -> Tensor",
    lambda given: given[1].shape,
)
def descend(
    gram: Float[Tensor, "b M M"], before: Float[Tensor, "b M"], step: Float[Tensor, "b"], steps: int
) -> Float[Tensor, "b M"]:
    """Projected gradient from `before` on b quadratic forms at once.

    It stops early where a step changes no weight of any of them, which changes no result.
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


@batched_operator("(Tensor gram) -> Tensor", lambda given: given[0].shape[:-1])
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
