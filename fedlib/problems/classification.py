"""Multi-class classification by cross-entropy over a convex set.

`classifier` makes the experiments of Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe
Algorithm*, ECML PKDD 2024, section 4: multinomial logistic regression, a small network and a CNN,
on pictures or generated data. `problem.within(L1Ball(10.0))` adds a feasible set, and
`Blocks.of_shapes(problem.config["shapes"], ...)` is a set for each tensor.
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
CHUNK = 1000  # test rows that convolutions evaluate at a time
PIECE = 500  # rows of a client at a time, in the metrics of convolutions
LARGE = 2**26  # larger inputs stay bytes and are converted in every round


class Samples(NamedTuple):
    """Rows and their labels."""

    X: Shaped[Tensor, "R *shape"]
    y: Int[Tensor, "R"]


class Model(NamedTuple):
    """A model as functions of one parameter vector.

    `gradient(w, X, error)` is the derivative `[d]` of `sum(error * apply(w, X))` in closed form; it
    may be None.
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
        """The derivative of `weight @ row_losses(apply(w, X), y)` by w, in closed form."""
        out = torch.softmax(self.apply(w, X), 1)
        hit = y.unsqueeze(1) == torch.arange(out.shape[1], device=out.device)
        assert self.gradient is not None
        return self.gradient(w, X, (out - hit.to(out.dtype)) * weight.unsqueeze(1))


def linear_model(features: Count, classes: Count) -> Model:
    """Multinomial logistic regression from 0: weights `[classes, features]`, then biases."""
    checks.arguments(linear_model, locals())
    count = classes * features

    def apply(w: Tensor, X: Tensor) -> Tensor:
        return torch.addmm(w[count:], X, w[:count].view(classes, features).T)

    def gradient(w: Tensor, X: Tensor, error: Tensor) -> Tensor:  # noqa: ARG001 - linear
        return torch.cat([(error.T @ X).flatten(), error.sum(0)])

    return Model(torch.zeros(count + classes), apply, gradient, ((classes, features), (classes,)))


def mlp_model(features: Count, hidden: Count, classes: Count, rng: Rng | None) -> Model:
    """One hidden ReLU layer (60-20-10 on the paper's synthetic data) with a random start."""
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
    """The network `models.picture_cnn` for pictures `[B, channels, side, side]`; random start."""
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
    r"""Classification: the objective $f_j$ is the mean cross-entropy on client j's rows.

    `metrics` returns `loss`, the mean of all $f_j$, and `accuracy` on the test rows. With a
    feasible set it also returns `gap`, the Frank-Wolfe gap (11), and `size`, the norm of w divided
    by the set's radius.

    Parameters
    ----------
    train, test : samples with inputs `X [R, ...]` and labels `y [R]`; pictures may stay bytes.
    rows : `[N, m]`, the indices of every client's rows in `train`, in random order.
    model : the model to train.
    sizes : the number of each client's rows without padding; None if there is no padding.
    scale : (top, mean, deviation): bytes x become inputs `(x / top - mean) / deviation`. Inputs
        that are not bytes require None, which leaves the numbers as they are.
    measured : how many of each client's first rows enter the metrics `loss` and `gap`; None for
        all.
    dtype : the dtype of parameters and computations.
    name, config : the name and the configuration in stored runs.

    Raises ValueError for inputs that are not finite, a scale for inputs that are not bytes, or
    `measured` above the number of rows of the smallest client.
    """
    checks.arguments(classifier, locals())
    sizes = (rows.shape[1],) * len(rows) if sizes is None else tuple(sizes)
    for samples in (train, test):
        checks.labelled("classifier", *samples)
    note = "the rows of the smallest client"
    checks.count("classifier", "measured", measured or 1, 1, min(sizes), note)
    fits = scale is None or train.X.dtype == torch.uint8
    checks.require(fits, "classifier", "scale", "be None for inputs that are not bytes", scale)
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
    """The losses, gradient and metrics of a `classifier` problem."""

    model: Model
    dtype: torch.dtype
    scale: tuple[float, float, float] = (1.0, 0.0, 1.0)
    measured: int | None = None

    def prepared(self, X: Tensor) -> Tensor:
        """Convert the inputs to the parameters' dtype; scale them if they were bytes."""
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
        if model.sequential_clients:
            few = in_pieces(few, PIECE)
        accuracy = torch.stack(right).sum().to(w.dtype) / len(y)
        values = {"loss": few.mean_losses(w)[0], "accuracy": accuracy}
        if problem.set is not None:
            values |= {"gap": fw_gap(few, w), "size": gauge_of(problem.set, w)}
        return values


def in_pieces(problem: Problem, most: int) -> Problem:
    """A problem with the same means of the losses, in which no client has more than `most` rows.

    Each piece of a client's rows is a client of its own, weighted by its share of them. A problem
    whose clients are smaller, or whose seeds have clients of different sizes, stays as it is.
    """
    if max(problem.sizes) <= most or isinstance(problem.lengths, Tensor):
        return problem
    rows: list[Tensor] = []
    weights: list[float] = []
    client_weights = problem.client_weights or (1.0,) * problem.num_clients
    for client, weight in enumerate(client_weights):
        for piece in torch.split(problem.own_rows(client), most):
            rows.append(piece)
            weights.append(weight * len(piece) / problem.sizes[client])
    return replace(
        problem,
        rows=torch.cat(rows),
        sizes=tuple(map(len, rows)),
        client_weights=tuple(weights),
    )


def row_losses(out: Float[Tensor, "B classes"], target: Int[Tensor, "B"]) -> Float[Tensor, "B"]:
    """The cross-entropy of every row."""
    return out.logsumexp(-1) - out.gather(-1, target.unsqueeze(-1)).squeeze(-1)
