"""Multi-class classification: one objective, the mean cross-entropy, for any model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedlib import checks
from fedlib.types import Batch, Problem

__all__ = ["classification", "softmax_regression"]


def classification(
    X: Float[Tensor, "R *shape"],
    y: Int[Tensor, "R"],
    rows: Int[Tensor, "N m"],
    w0: Float[Tensor, "d"],
    apply: Callable[..., Tensor],
    *,
    name: str = "classification",
    gradient: Callable[[Tensor, Batch, Tensor], Tensor] | None = None,
    config: dict[str, Any] | None = None,
) -> Problem:
    """Mean cross-entropy of `apply(w, X) -> [B, classes]`; clients of equal size.

    `metrics` gives `loss` and `accuracy` over all rows of all clients.

    Raises
    ------
    ValueError
        for features that are not finite.
    """
    checks.finite("classification", "X", X)

    def losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "1"]:
        inputs, target = batch.data
        each = cross_entropy(apply(w, inputs), target, reduction="none")
        return (batch.weight @ each).unsqueeze(0)

    def metrics(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        inputs, target = (x[problem.rows.flatten()] for x in problem.data)
        out = apply(w, inputs)
        right = (out.argmax(1) == target).to(out.dtype)
        return {"loss": cross_entropy(out, target), "accuracy": right.mean()}

    return Problem(
        name=name,
        data=(X, y),
        rows=rows,
        sizes=(rows.shape[1],) * len(rows),
        losses=losses,
        gradient=gradient,
        num_objectives=1,
        num_constraints=0,
        w0=w0,
        metrics=metrics,
        config={"name": name, "clients": len(rows), **(config or {})},
    )


def softmax_regression(
    X: Float[Tensor, "R p"], y: Int[Tensor, "R"], rows: Int[Tensor, "N m"], classes: int
) -> Problem:
    """Multinomial logistic regression without bias, gradient in closed form; `d = classes * p`."""

    def apply(w: Float[Tensor, "d"], inputs: Float[Tensor, "B p"]) -> Float[Tensor, "B classes"]:
        return inputs @ w.view(classes, -1).T

    def gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        inputs, target = batch.data
        share = torch.softmax(apply(w, inputs), -1)
        one_hot = (target.unsqueeze(-1) == torch.arange(classes, device=w.device)).to(w.dtype)
        return (((share - one_hot) * (batch.weight * weights).unsqueeze(-1)).T @ inputs).flatten()

    w0 = torch.zeros(classes * X.shape[1], dtype=X.dtype)
    return classification(X, y, rows, w0, apply, name="softmax_regression", gradient=gradient)
