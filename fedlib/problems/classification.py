"""Multi-class classification by cross-entropy over a convex set.

`classifier` makes the experiments of Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe
Algorithm*, ECML PKDD 2024, section 4: multinomial logistic regression, a small network and a CNN,
on pictures or generated data. `problem.within(L1Ball(10.0))` makes the set;
`Blocks.of_shapes(problem.config["shapes"], ...)` one for every tensor.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from fedlib import checks, models
from fedlib.checks import Count, FloatType, Number, Positive, Rng
from fedlib.core.problem import Batch, Problem
from fedlib.metrics import fw_gap
from fedlib.sets.vertices import gauge_of

Inputs = Float[Tensor, "B *shape"]

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
            [Float[Tensor, "d"], Inputs, Float[Tensor, "B classes"]],
            Float[Tensor, "d"],
        ]
        | None
    )
    shapes: tuple[tuple[int, ...], ...]
    sequential_clients: bool = False

    def pullback(
        self, w: Float[Tensor, "d"], X: Inputs, y: Int[Tensor, "B"], weight: Float[Tensor, "B"]
    ) -> Float[Tensor, "d"]:
        """The derivative by w of `weight @ row_losses(apply(w, X), y)`, in closed form."""
        out = torch.softmax(self.apply(w, X), 1)
        hit = y.unsqueeze(1) == torch.arange(out.shape[1], device=out.device)
        assert self.gradient is not None
        return self.gradient(w, X, (out - hit.to(out.dtype)) * weight.unsqueeze(1))


def linear_model(features: Count, classes: Count) -> Model:
    """Multinomial logistic regression: weights `[classes, features]`, then biases; starts at 0."""
    checks.arguments(linear_model, locals())
    count = classes * features

    def apply(w: Tensor, X: Tensor) -> Tensor:
        return torch.addmm(w[count:], X, w[:count].view(classes, features).T)

    def gradient(w: Tensor, X: Tensor, error: Tensor) -> Tensor:  # noqa: ARG001 - linear
        return torch.cat([(error.T @ X).flatten(), error.sum(0)])

    return Model(torch.zeros(count + classes), apply, gradient, ((classes, features), (classes,)))


def mlp_model(features: Count, hidden: Count, classes: Count, rng: Rng | None) -> Model:
    """One hidden layer, of ReLU: 60-20-10 on the paper's synthetic data. Random start."""
    checks.arguments(mlp_model, locals())
    shapes = ((hidden, features), (hidden,), (classes, hidden), (classes,))
    sizes = [hidden * features, hidden, classes * hidden, classes]
    w0, _ = models.ravel(models.mlp((features, hidden, classes), rng=rng))

    def layers(w: Tensor, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        A, a, B, b = (part.view(s) for part, s in zip(torch.split(w, sizes), shapes, strict=True))
        return torch.addmm(a, X, A.T), B, b

    def apply(w: Tensor, X: Tensor) -> Tensor:
        z, B, b = layers(w, X)
        return torch.addmm(b, torch.relu(z), B.T)

    def gradient(w: Tensor, X: Tensor, error: Tensor) -> Tensor:
        z, B, _ = layers(w, X)
        back = (error @ B) * (z > 0)
        grads = (back.T @ X, back.sum(0), error.T @ torch.relu(z), error.sum(0))
        return torch.cat([g.flatten() for g in grads])

    return Model(w0, apply, gradient, shapes)


def cnn_model(channels: Count, side: Count, classes: Count, rng: Rng) -> Model:
    """`models.picture_cnn` on pictures `[B, channels, side, side]`. Random start."""
    checks.arguments(cnn_model, locals())
    module = models.picture_cnn(rng, channels=channels, side=side, classes=classes)
    shapes = tuple(tuple(p.shape) for p in module.parameters())
    return Model(*models.ravel(module), None, shapes, sequential_clients=True)


def classifier(
    train: Samples,
    test: Samples,
    rows: Int[Tensor, "N m"],
    model: Model,
    *,
    sizes: Annotated[Sequence[Count], checks.SOME] | None = None,
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

    Raises ValueError for inputs that are not finite, a scale without bytes, or more `measured` rows
    than the smallest client has.
    """
    checks.arguments(classifier, locals())
    sizes = (rows.shape[1],) * len(rows) if sizes is None else tuple(sizes)
    for samples in (train, test):
        checks.labelled("classifier", *samples)
    note = "the rows of the smallest client"
    checks.count("classifier", "measured", measured or 1, 1, min(sizes), note)
    fits = scale is None or train.X.dtype == torch.uint8
    checks.require(fits, "classifier", "scale", "be None for inputs that are no bytes", scale)
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
    """The functions of these problems."""

    model: Model
    dtype: torch.dtype
    scale: tuple[float, float, float] = (1.0, 0.0, 1.0)
    measured: int | None = None

    def prepared(self, X: Tensor) -> Tensor:
        """Inputs in the dtype of the parameters, scaled if they had another."""
        top, mean, deviation = self.scale
        same = X.dtype == self.dtype
        return X if same else (X.to(self.dtype) - top * mean) / (top * deviation)

    def losses(self, w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "K"]:
        X, y = batch.data
        each = row_losses(self.model.apply(w, self.prepared(X)), y)
        return (batch.weight @ each).unsqueeze(0)

    def gradient(self, w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        X, y = batch.data
        return self.model.pullback(w, self.prepared(X), y, batch.weight * weights[0])

    def metrics(self, w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        model, measured = self.model, self.measured
        X, y = problem.heldout
        size = CHUNK if model.sequential_clients else len(y)
        chunks = zip(torch.split(X, size), torch.split(y, size), strict=True)
        right = [(model.apply(w, self.prepared(x)).argmax(1) == t).sum() for x, t in chunks]
        few = problem
        if measured is not None:
            sizes = (measured,) * len(problem.rows)
            few = replace(problem, rows=problem.rows[:, :measured], sizes=sizes, lengths=())
        accuracy = torch.stack(right).sum().to(w.dtype) / len(y)
        values = {"loss": few.mean_losses(w)[0], "accuracy": accuracy}
        if problem.set is not None:
            values |= {"gap": fw_gap(few, w), "size": gauge_of(problem.set, w)}
        return values


def row_losses(out: Float[Tensor, "B classes"], target: Int[Tensor, "B"]) -> Float[Tensor, "B"]:
    """Cross-entropy of every row."""
    return out.logsumexp(-1) - out.gather(-1, target.unsqueeze(-1)).squeeze(-1)
