"""Classification over a convex set: the experiments of the Federated Frank-Wolfe paper.

Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe Algorithm*, ECML PKDD 2024, section 4:
multinomial logistic regression, a small network and a CNN, on pictures or generated data.
`problem.within(L1Ball(10.0))` makes the set; `Blocks.of_shapes(problem.config["shapes"], ...)` one
for every tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from fedlib import checks, models
from fedlib.checks import Count, FloatType, Number, Positive, Rng
from fedlib.core.problem import Batch, Problem
from fedlib.metrics import fw_gap
from fedlib.models.pictures import picture_cnn
from fedlib.problems.classification import row_losses
from fedlib.sets.vertices import gauge_of

MODELS = ("linear", "mlp", "cnn")
CHUNK = 1000  # rows at a time, for convolutions
LARGE = 2**26  # more numbers than this stay bytes and are converted anew in every round


class Samples(NamedTuple):
    """Rows and their labels."""

    X: Shaped[Tensor, "R *shape"]
    y: Int[Tensor, "R"]


class Model(NamedTuple):
    """A model as functions of one vector.

    `gradient(w, X, error)` is the derivative of `sum(error * apply(w, X))`, `[d]`, in closed form,
    or None.
    """

    w0: Float[Tensor, "d"]
    apply: Callable[..., Float[Tensor, "B classes"]]
    gradient: (
        Callable[
            [Float[Tensor, "d"], Float[Tensor, "B *shape"], Float[Tensor, "B classes"]],
            Float[Tensor, "d"],
        ]
        | None
    )
    shapes: tuple[tuple[int, ...], ...]
    sequential_clients: bool = False


def linear_model(features: Count, classes: Count) -> Model:
    """Multinomial logistic regression: weights `[classes, features]`, then biases; starts at 0."""
    checks.arguments(linear_model, locals())
    count = classes * features

    def apply(w: Tensor, X: Tensor) -> Tensor:
        return torch.addmm(w[count:], X, w[:count].view(classes, features).T)

    def gradient(w: Tensor, X: Tensor, error: Tensor) -> Tensor:  # noqa: ARG001 - linear
        return torch.cat([(error.T @ X).flatten(), error.sum(0)])

    return Model(torch.zeros(count + classes), apply, gradient, ((classes, features), (classes,)))


def mlp_model(features: Count, hidden: Count, classes: Count, rng: Rng) -> Model:
    """One hidden layer of ReLU: 60-20-10 on the paper's synthetic data. Random start."""
    checks.arguments(mlp_model, locals())
    sizes = [hidden * features, hidden, classes * hidden, classes]
    w0, _ = models.ravel(models.mlp((features, hidden, classes), rng=rng))

    def parts(w: Tensor) -> tuple[Tensor, ...]:
        A, a, B, b = torch.split(w, sizes)
        return A.view(hidden, features), a, B.view(classes, hidden), b

    def apply(w: Tensor, X: Tensor) -> Tensor:
        A, a, B, b = parts(w)
        return torch.addmm(b, torch.relu(torch.addmm(a, X, A.T)), B.T)

    def gradient(w: Tensor, X: Tensor, error: Tensor) -> Tensor:
        A, a, B, _ = parts(w)
        h = torch.relu(torch.addmm(a, X, A.T))
        back = (error @ B) * (h > 0)
        grads = (back.T @ X, back.sum(0), error.T @ h, error.sum(0))
        return torch.cat([g.flatten() for g in grads])

    return Model(
        w0, apply, gradient, ((hidden, features), (hidden,), (classes, hidden), (classes,))
    )


def cnn_model(channels: Count, side: Count, classes: Count, rng: Rng) -> Model:
    """`picture_networks.picture_cnn` on pictures `[B, channels, side, side]`. Random start."""
    checks.arguments(cnn_model, locals())
    module = picture_cnn(rng, channels=channels, side=side, classes=classes)
    shapes = tuple(tuple(p.shape) for p in module.parameters())
    return Model(*models.ravel(module), None, shapes, sequential_clients=True)


def classifier(
    train: Samples,
    test: Samples,
    rows: Int[Tensor, "N m"],
    model: Model,
    *,
    sizes: Sequence[Count] | None = None,
    scale: tuple[Positive, Number, Positive] | None = None,
    measured: Count | None = None,
    dtype: FloatType = torch.float32,
    name: str = "classifier",
    config: Mapping[str, Any] | None = None,
) -> Problem:
    r"""Objective $f_j$ = mean cross-entropy of `model` on the rows of client j; no constraint yet.

    `metrics` gives `loss`, the mean of all $f_j$, and `accuracy` on the test rows; with a feasible
    set also `gap`, the Frank-Wolfe gap (11), and `size`, the norm of w over the set's radius.

    Parameters
    ----------
    train, test : samples; pictures may stay bytes.
    rows : the rows of every client, in random order.
    model : what is fitted.
    sizes : how many of a client's rows are real; None: all of them.
    scale : (top, mean, deviation): bytes x become inputs `(x / top - mean) / deviation`; None for
        inputs that are no bytes.
    measured : only so many rows of each client, the first, count in `loss` and `gap`.
    dtype : of the parameters and of the arithmetic.
    name, config : what a stored run records.

    Raises
    ------
    ValueError
        for inputs that are not finite, a scale without bytes, or more `measured` rows than the
        smallest client has.
    """
    checks.arguments(classifier, locals())
    sizes = (rows.shape[1],) * len(rows) if sizes is None else tuple(sizes)
    _check(train, test, rows, sizes, scale, measured)
    made = _Classifier(model, dtype, scale or (1.0, 0.0, 1.0), measured)
    train, test = (
        samples if samples.X.numel() > LARGE else Samples(made.prepared(samples.X), samples.y)
        for samples in (train, test)
    )
    shapes = [list(shape) for shape in model.shapes]
    own = {"name": name, "clients": len(rows), "rows": sum(sizes), "test": len(test.y)}
    own |= {"shapes": shapes, "measured": measured}
    return Problem(
        name=name,
        data=tuple(train),
        rows=rows,
        sizes=sizes,
        losses=made.losses,
        gradient=None if model.gradient is None else made.gradient,
        num_objectives=1,
        num_constraints=0,
        w0=model.w0.to(dtype),
        metrics=made.metrics,
        heldout=tuple(test),
        sequential_clients=model.sequential_clients,
        config=own | dict(config or {}),
    )


@dataclass(frozen=True)
class _Classifier:
    """The functions of a `classifier`."""

    model: Model
    dtype: torch.dtype
    scale: tuple[float, float, float]
    measured: int | None

    def prepared(self, X: Tensor) -> Tensor:
        """Inputs in the dtype of the parameters, scaled if they had another."""
        top, mean, deviation = self.scale
        same = X.dtype == self.dtype
        return X if same else (X.to(self.dtype) - top * mean) / (top * deviation)

    def losses(self, w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "1"]:
        X, y = batch.data
        out = self.model.apply(w, self.prepared(X))
        return (batch.weight @ row_losses(out, y)).unsqueeze(0)

    def gradient(self, w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        X, y = batch.data
        inputs = self.prepared(X)
        out = torch.softmax(self.model.apply(w, inputs), 1)
        hit = y.unsqueeze(1) == torch.arange(out.shape[1], device=out.device)
        error = (out - hit.to(out.dtype)) * (batch.weight * weights[0]).unsqueeze(1)
        assert self.model.gradient is not None
        return self.model.gradient(w, inputs, error)

    def metrics(self, w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        model, measured = self.model, self.measured
        X, y = problem.heldout
        size = CHUNK if model.sequential_clients else len(y)
        chunks = zip(torch.split(X, size), torch.split(y, size), strict=True)
        right = [(model.apply(w, self.prepared(x)).argmax(1) == t).sum() for x, t in chunks]
        seen = problem if measured is None else first_rows(problem, measured)
        found = {
            "loss": mean_loss(seen, w),
            "accuracy": torch.stack(right).sum().to(w.dtype) / len(y),
        }
        if problem.set is not None:
            found |= {"gap": fw_gap(seen, w), "size": gauge_of(problem.set, w)}
        return found


def _check(
    train: Samples,
    test: Samples,
    rows: Tensor,
    sizes: Sequence[int],
    scale: tuple[float, float, float] | None,
    measured: int | None,
) -> None:
    """What the annotations of `classifier` do not say of its arguments."""
    checks.value("classifier", "train.X", train.X, Shaped[Tensor, "R *shape"])
    checks.value("classifier", "train.y", train.y, Int[Tensor, "R"])
    checks.value("classifier", "test.X", test.X, Shaped[Tensor, "R *shape"])
    checks.value("classifier", "test.y", test.y, Int[Tensor, "R"])
    checks.equally_long("classifier", **{"train.X": train.X, "train.y": train.y})
    checks.equally_long("classifier", **{"test.X": test.X, "test.y": test.y})
    checks.below("classifier", "rows", rows, len(train.y), "the rows of train")
    if train.X.is_floating_point():
        checks.finite("classifier", "X", train.X)
    if measured is not None:
        note = "the rows of the smallest client"
        checks.count("classifier", "measured", measured, 1, min(sizes), note)
    if scale is not None and train.X.dtype != torch.uint8:
        rule = "be None for inputs that are no bytes"
        raise ValueError(checks.sentence("classifier", "scale", rule, scale))


def first_rows(problem: Problem, count: int) -> Problem:
    """The same problem with the first `count` rows of every client, which all clients have."""
    return replace(
        problem, rows=problem.rows[:, :count], sizes=(count,) * problem.num_clients, lengths=()
    )


def mean_loss(problem: Problem, w: Float[Tensor, "d"]) -> Float[Tensor, ""]:
    """The mean of the clients' losses, one client after another where the problem asks for it."""
    if not problem.sequential_clients:
        return problem.mean_losses(w)[0]
    clients = problem.all_clients()
    each = [
        problem.losses(w, Batch(tuple(x[j] for x in clients.data), clients.weight[j]))
        for j in range(problem.num_clients)
    ]
    return torch.stack(each).mean()
