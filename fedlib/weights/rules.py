"""Task weights from a Gram matrix: projected gradient, minimum norm, a least weight, preferences.

A rule maps the Gram matrix `G [M, M]` of the M gradients and the previous weights to weights in the
simplex; it uses neither the model nor the losses. For every finite `G` the result lies in the
simplex. NaN or infinity in `G` yields NaN, so the model is not finite and `run` reports the round.

The solvers branch on values, which neither `vmap` nor a capture of the round can follow. They are
therefore custom operators: the problems of all seeds are one batch, solved on the CPU in float64.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025, Algorithms 2, 4 and 8, eqs. (5), (15)-(19); Mahapatra and Rajan, ICML 2020, for the
balancing direction of `Preference`. Its aim is `r_1 F_1 = ... = r_M F_M` along descent directions,
so a larger `r_k` means a smaller `F_k`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Shaped
from numpy.typing import NDArray
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Nonnegative, Positive, Share

Gram = Float[Tensor, "M M"]
Simplex = Float[Tensor, "M"]
Grams = Float[Tensor, "b M M"]
Simplices = Float[Tensor, "b M"]

Array = NDArray[np.float64]

FLOOR = 1e-4  # added to the diagonal before the root, as in the authors' code
PIVOTS = 100  # steps of the active-set method for each objective; it needs about one
SMALLEST = 1e-12  # lower bound of a normalized loss, so that its logarithm is finite
TIE = 1e-12  # relative; losses so close to the largest count as the largest
#: A number in [0, 1).
Rest = Annotated[float, checks.between(0, 1, open_high=True, name="Rest")]
#: One or more positive numbers.
Ratios = Annotated[tuple[Positive, ...], checks.SOME]


@runtime_checkable
class Weights(Protocol):
    """A rule that finds the objectives' weights from the Gram matrix of their gradients."""

    def __call__(self, gram: Gram, before: Simplex) -> Simplex:
        """Weights `[M]` in the simplex, from the Gram matrix and the previous weights."""


def project_simplex(v: Float[Tensor, "*b M"]) -> Float[Tensor, "*b M"]:
    r"""The nearest point of the simplex $\{w \ge 0, \sum_k w_k = 1\}$.

    `w = max(v - theta, 0)`, where theta is the mean excess of the largest `rho` entries, and `rho`
    is the last place (in descending order) at which an entry exceeds its theta.

    >>> project_simplex(torch.tensor([0.9, 0.5, -1.0]))
    tensor([0.7000, 0.3000, 0.0000])
    """
    ordered = v.sort(-1, descending=True).values
    place = torch.arange(1, v.shape[-1] + 1, dtype=v.dtype, device=v.device)
    theta = (ordered.cumsum(-1) - 1) / place
    rho = (ordered > theta).sum(-1, keepdim=True).clamp_min(1)
    return (v - theta.gather(-1, rho - 1)).clamp_min(0)


def normalized(gram: Float[Tensor, "*b M M"]) -> Float[Tensor, "*b M M"]:
    r"""Divide `G` by the squared mean norm, $(\frac1M \sum_k \sqrt{G_{kk} + 10^{-4}})^2$.

    The authors' code does this; a negative diagonal entry of an estimate counts as zero.
    """
    lengths = (gram.diagonal(dim1=-2, dim2=-1).clamp_min(0) + FLOOR).sqrt()
    return gram / lengths.mean(-1)[..., None, None] ** 2


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
    step : beta, the step size; 0 leaves the weights unchanged.
    steps : K, the number of steps.
    normalize : whether `G` is first divided by the square of the gradients' mean norm.
    """

    step: Nonnegative = 1e-3
    steps: Count = 1000
    normalize: bool = True

    def __call__(self, gram: Gram, before: Simplex) -> Simplex:
        """The weights after `steps` steps from `before`."""
        scaled = normalized(gram) if self.normalize else gram
        step = before.new_ones(1) * self.step
        after: Tensor = descend(scaled.unsqueeze(0), before.unsqueeze(0), step, self.steps)[0]
        return after


@dataclass(frozen=True)
class MinNorm:
    r"""The exact minimizer of $w^\top G w$ over the simplex, independent of the previous weights.

    It solves the nonnegative least squares $\min_{v \ge 0} \|A v\|^2 + (\mathbf 1^\top v - 1)^2$
    with $A^\top A = G$ and takes $w = v / \mathbf 1^\top v$: for $v = s w$ with $s \ge 0$ the least
    value is $1 - 1 / (1 + w^\top G w)$, which increases in $w^\top G w$. The negative part of `G`
    (an estimate may be indefinite) is cut off. If there are several minimizers, it returns any.

    >>> G = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    >>> MinNorm()(G, torch.tensor([0.5, 0.5]))
    tensor([0.2000, 0.8000])
    """

    def __call__(self, gram: Gram, before: Simplex) -> Simplex:
        """The minimum-norm weights."""
        weights: Tensor = min_norm(gram.unsqueeze(0))[0]
        return weights


@dataclass(frozen=True)
class FixedWeights(checks.Checked):
    """The same weights in every round, in proportion to `values`, one number for each objective.

    >>> FixedWeights((3.0, 1.0))(torch.eye(2), torch.ones(2))
    tensor([0.7500, 0.2500])
    """

    values: Ratios

    def __call__(self, gram: Gram, before: Simplex) -> Simplex:
        """The values, divided by their sum."""
        n, own = len(before), len(self.values)
        checks.require(
            own == n, "FixedWeights", "values", f"hold a number for each of {n} objectives", own
        )
        weights = torch.tensor(self.values, dtype=gram.dtype, device=gram.device)
        return weights / weights.sum()


@dataclass(frozen=True)
class Least(checks.Checked):
    """Raise all weights to at least `share / M`: mix in uniform weights if `mixture`, else project.

    FedCMOO-Pref's experiments use `share = 0.2`, as a mixture in the authors' code. Their FSMGDA
    clips two weights to [0.001, 0.999], which is `Least(0.002, mixture=False)`.

    >>> Least(0.2)(torch.tensor([1.0, 0.0]))
    tensor([0.9000, 0.1000])
    """

    share: Rest = 0.2
    mixture: bool = True

    def __call__(self, weights: Simplex) -> Simplex:
        """Move the weights into the smaller simplex."""
        least, rest = self.share / weights.shape[-1], 1 - self.share
        inner = weights if self.mixture else project_simplex((weights - least) / rest)
        return least + rest * inner


def batched_operator(schema: str, shape: Callable[[Any], torch.Size]) -> Callable[..., Any]:
    """Decorator that makes a function of numbers on the CPU a torch operator `fedlib::NAME`.

    All its tensors have a leading batch axis, which absorbs the axis mapped by `vmap`. `shape` maps
    the arguments to the result's shape. (A shape checker would hide the annotations from which
    torch makes a schema.)
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
def descend(gram: Grams, before: Simplices, step: Float[Tensor, "b"], steps: int) -> Simplices:
    """Make projected gradient steps from `before` on b quadratic forms at once.

    It stops early if a step changes none of the weights, since the result is then final.
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
def min_norm(gram: Grams) -> Simplices:
    """Minimum-norm weights `[b, M]` of b Gram matrices `[b, M, M]`."""
    return torch.as_tensor(np.stack([minimum_norm(G) for G in on_cpu(gram)])).to(gram)


def minimum_norm(gram: Array) -> Array:
    """Minimum-norm weights `[M]` of the positive part of one symmetric matrix `[M, M]`.

    The weights are NaN for a matrix that is not finite.
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
    """The values as a numpy array in float64."""
    return np.asarray(x.detach().cpu().double().numpy())


class Choice(NamedTuple):
    """The preference rule's weights, the imbalance, and whether the rule used its fallback."""

    weights: Simplex
    mu: Float[Tensor, ""]  # how far the losses are from the preferred ratio; 0 if they have it
    fallback: Float[Tensor, ""]  # 1 if minimum norm replaced a program without solution


def balancing(losses: Simplex, ratios: Simplex) -> tuple[Simplex, Float[Tensor, ""]]:
    r"""The balancing weights `a` and the imbalance `mu`.

    With $u_k = r_k F_k / \sum_j r_j F_j$, the imbalance is $\mu = \sum_k u_k \log(M u_k)$, the
    divergence from equal shares, and $a_k = r_k(\log(M u_k) - \mu)$. Then $\nabla\mu = \nabla
    \mathbf F a / \sum_j r_j F_j$, so $\mu$ falls along $-\nabla\mathbf F a$, for losses $\ge 0$.
    """
    scaled = ratios * losses
    u = scaled / scaled.sum(-1, keepdim=True)
    logs = (u.clamp_min(SMALLEST) * u.shape[-1]).log()
    mu = (u * logs).sum(-1)
    return ratios * (logs - mu.unsqueeze(-1)), mu


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
    ratios : r, a positive number for each objective; None for r = 1.
    epsilon : the tolerated imbalance, which is 0 at the preferred ratio. Above epsilon the program
        balances the losses; else it lowers them all (descent mode).
    star_ratio : no loss in J* may rise; k is in J* if r_k F_k >= star_ratio max_j r_j F_j. The
        ratio 1 is the paper's argmax; the authors' code uses 0.9.
    dominance : whether descent mode requires (G w)_k >= 0 of the weights w for all k, as in the
        authors' code; the paper has the same constraints in both modes.

    For a positive semidefinite `G`, the minimum-norm weights satisfy all constraints, so a feasible
    point exists. For an indefinite estimate, there may be none; then the result is the minimum-norm
    weights of its positive part, and `fallback` is 1. Constraints are scaled by `max |G|`; HiGHS
    satisfies them to 1e-7 of that scale.
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

    def __call__(self, gram: Gram, losses: Simplex) -> Choice:
        """Compute the weights from a Gram matrix and the losses."""
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
def program(gram: Grams, gain: Simplices, bound: Simplices) -> Float[Tensor, "b M+1"]:
    """Maximize `gain' w` over the simplex subject to `gram w >= bound`, for b programs.

    HiGHS solves them one by one on the CPU. `bound` is `-inf` where there is no constraint. Returns
    the weights and a last entry: 0, or 1 for minimum-norm weights if there is no solution. A
    program with a NaN has only NaN in its result.
    """
    parts = zip(on_cpu(gram), on_cpu(gain), on_cpu(bound), strict=True)
    return torch.as_tensor(np.stack([solve(*each) for each in parts])).to(gain)


def solve(gram: Array, gain: Array, bound: Array) -> Array:
    """Solve one program; the result is `[M + 1]`."""
    from scipy.optimize import linprog

    if not np.isfinite([*gram.flat, *gain]).all() or np.isnan(bound).any():
        return np.full(len(gain) + 1, np.nan)
    scale, unit = np.abs(gram).max() or 1.0, np.abs(gain).max() or 1.0
    real = np.isfinite(bound)
    rows = {"A_ub": -gram[real] / scale, "b_ub": -bound[real] / scale} if real.any() else {}
    total = {"A_eq": np.ones((1, len(gain))), "b_eq": [1.0]}
    answer = linprog(-gain / unit, **rows, **total, bounds=(0, None), method="highs")
    if answer.x is None:
        return np.append(minimum_norm(gram), 1.0)
    w = answer.x.clip(0)
    return np.append(w / w.sum(), 0.0)
