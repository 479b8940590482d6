"""Multi-class classification by cross-entropy: one objective, or some classes as a constraint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fedlib import checks, models
from fedlib.checks import Count, Whole
from fedlib.core.problem import Batch, Problem
from fedlib.problems.neyman_pearson import class_shares

Gradient = Callable[[Tensor, Batch, Tensor], Tensor]


def classification(
    X: Float[Tensor, "R *shape"],
    y: Int[Tensor, "R"],
    rows: Int[Tensor, "N m"],
    w0: Float[Tensor, "d"],
    apply: Callable[..., Float[Tensor, "B classes"]],
    *,
    constrained: Sequence[Whole] = (),
    name: str = "classification",
    gradient: Gradient | None = None,
    config: dict[str, Any] | None = None,
) -> Problem:
    """Mean cross-entropy of `apply(w, X) -> [B, classes]`; clients of equal size.

    `metrics` gives `loss` and `accuracy` over all rows of all clients.

    Parameters
    ----------
    X, y : features and class numbers.
    rows : the rows of every client.
    w0, apply : the model, for instance of `models.ravel`.
    constrained : classes whose mean cross-entropy is a constraint; that of the others is the
        objective then, and `metrics` gives `f` and `g` too. None: one objective, all rows.
    name, config : what a stored run records.
    gradient : closed form of the gradient; the third data tensor holds what a row counts in each
        loss, `[R, K]`.

    Raises
    ------
    ValueError
        for features that are not finite, or a client without rows for one of the losses.
    """
    checks.arguments(classification, locals())
    checks.finite("classification", "X", X)
    checks.equally_long("classification", X=X, y=y)
    checks.below("classification", "rows", rows, len(y), "the rows of X")
    shares = _shares(y, rows, constrained, X.dtype)

    def losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "K"]:
        inputs, target, share = batch.data
        return (batch.weight * row_losses(apply(w, inputs), target)) @ share

    def metrics(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        inputs, target, share = (x[problem.rows.flatten()] for x in problem.data)
        return row_metrics(apply(w, inputs), target, share)

    own = {"name": name, "clients": len(rows)}
    return Problem(
        name=name,
        data=(X, y, shares),
        rows=rows,
        sizes=(rows.shape[1],) * len(rows),
        losses=losses,
        gradient=gradient,
        num_objectives=1,
        num_constraints=shares.shape[1] - 1,
        w0=w0,
        metrics=metrics,
        config=own | ({"constrained": list(constrained)} if constrained else {}) | (config or {}),
    )


def _shares(
    y: Tensor, rows: Tensor, constrained: Sequence[int], dtype: torch.dtype
) -> Float[Tensor, "R K"]:
    """What every row counts in each loss."""
    if not constrained:
        return torch.ones(len(y), 1, dtype=dtype)
    groups = torch.isin(y, torch.tensor(constrained)).long()
    return class_shares("classification", groups, rows).to(dtype)


def row_metrics(
    out: Float[Tensor, "B classes"], target: Int[Tensor, "B"], share: Float[Tensor, "B K"]
) -> dict[str, Float[Tensor, ""]]:
    """Mean loss and accuracy; if some of the losses are a constraint, also `f` and `g`."""
    each, right = row_losses(out, target), (out.argmax(1) == target).to(out.dtype)
    several = share.shape[1] > 1
    means = dict(zip("fg", each @ share / len(share), strict=True)) if several else {}
    return {"loss": each.mean(), "accuracy": right.mean(), **means}


def row_losses(out: Float[Tensor, "B classes"], target: Int[Tensor, "B"]) -> Float[Tensor, "B"]:
    """Cross-entropy of every row."""
    return out.logsumexp(-1) - out.gather(-1, target.unsqueeze(-1)).squeeze(-1)


def softmax_regression(
    X: Float[Tensor, "R p"],
    y: Int[Tensor, "R"],
    rows: Int[Tensor, "N m"],
    classes: Count,
    *,
    constrained: Sequence[Whole] = (),
) -> Problem:
    """Multinomial logistic regression without bias, gradient in closed form; `d = classes * p`.

    `constrained` as in `classification`.

    Raises
    ------
    ValueError, TypeError
        as `classification` does, and for labels that are none of the classes.
    """
    checks.arguments(softmax_regression, locals())
    checks.below("softmax_regression", "y", y, classes, "the classes")

    def apply(w: Float[Tensor, "d"], inputs: Float[Tensor, "B p"]) -> Float[Tensor, "B classes"]:
        return _wide(w.view(classes, -1), inputs).T

    def gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        inputs, error = batch.data[0], _error(apply(w, batch.data[0]).T, batch, weights)
        return (error @ inputs).flatten()

    return classification(
        X,
        y,
        rows,
        torch.zeros(classes * X.shape[1], dtype=X.dtype),
        apply,
        constrained=constrained,
        name="softmax_regression",
        gradient=gradient,
    )


def mlp_classification(
    X: Float[Tensor, "R p"],
    y: Int[Tensor, "R"],
    rows: Int[Tensor, "N m"],
    hidden: Count,
    classes: Count,
    *,
    activation: str = "relu",
    constrained: Sequence[Whole] = (),
    rng: torch.Generator | None = None,
) -> Problem:
    """A network with one hidden layer, gradient in closed form.

    Parameters
    ----------
    X, y, rows, constrained : as in `classification`.
    hidden, classes : h and C; d = (p + 1) h + (h + 1) C.
    activation : `"relu"` or `"swish"`, z / (1 + e^-z).
    rng : draws the start, as in `models.mlp`.

    Raises
    ------
    ValueError
        for another activation, and as `classification` does.
    """
    checks.arguments(mlp_classification, locals())
    checks.below("mlp_classification", "y", y, classes, "the classes")
    checks.one_of("mlp_classification", "activation", activation, tuple(ACTIVATIONS))
    act, slope = ACTIVATIONS[activation]
    sizes = [hidden * X.shape[1], hidden, classes * hidden, classes]
    w0, _ = models.ravel(models.mlp((X.shape[1], hidden, classes), rng=rng))

    def apply(w: Float[Tensor, "d"], inputs: Float[Tensor, "B p"]) -> Float[Tensor, "B classes"]:
        return _forward(w, inputs, sizes, act)[-1].T

    def gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        inputs = batch.data[0]
        B, z, h, out = _forward(w, inputs, sizes, act)
        error = _error(out, batch, weights)  # [classes, B]
        back = (error.T @ B) * slope(z)  # [B, h]
        grads = (back.T @ inputs, back.sum(0), error @ h, error.sum(1))
        return torch.cat([g.flatten() for g in grads])

    return classification(
        X,
        y,
        rows,
        w0.to(X.dtype),
        apply,
        constrained=constrained,
        name="mlp_classification",
        gradient=gradient,
        config={"hidden": hidden, "activation": activation},
    )


def _forward(
    w: Float[Tensor, "d"], inputs: Float[Tensor, "B p"], sizes: list[int], act: Elementwise
) -> tuple[Tensor, ...]:
    """The second layer's matrix, the hidden layer before and after, the outputs `[classes, B]`."""
    A, a, B, b = torch.split(w, sizes)
    B = B.view(len(b), len(a))
    z = inputs @ A.view(len(a), -1).T + a  # [B, h]
    h = act(z)
    return B, z, h, _wide(B, h) + b.unsqueeze(-1)


def _positive(z: Tensor) -> Tensor:
    return z > 0


def _swish_slope(z: Tensor) -> Tensor:
    s = torch.sigmoid(z)
    return s * (1 + z * (1 - s))


Elementwise = Callable[[Tensor], Tensor]

#: Each activation and its derivative.
ACTIVATIONS: dict[str, tuple[Elementwise, Elementwise]] = {
    "relu": (torch.relu, _positive),
    "swish": (torch.nn.functional.silu, _swish_slope),
}


def _wide(A: Float[Tensor, "h p"], inputs: Float[Tensor, "B p"]) -> Float[Tensor, "h B"]:
    """`A @ inputs.T`, for a small h.

    As a batch of one: otherwise `vmap` folds clients that share A into one tall product, which is
    nearly twice as slow on a CPU.
    """
    return torch.bmm(A.unsqueeze(0), inputs.T.unsqueeze(0)).squeeze(0)


def _error(
    out: Float[Tensor, "classes B"], batch: Batch, weights: Float[Tensor, "K"]
) -> Float[Tensor, "classes B"]:
    """Derivative of `weights @ losses` by the outputs."""
    _, target, share = batch.data
    hit = target == torch.arange(len(out), device=out.device).unsqueeze(-1)
    return (torch.softmax(out, 0) - hit.to(out.dtype)) * (batch.weight * (share @ weights))
