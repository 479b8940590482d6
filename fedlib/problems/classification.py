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
from fedlib.shapes import PerLoss, Rowwise, Scalar, Vector

Inputs = Float[Tensor, "B *shape"]
Labels = Int[Tensor, "B"]
Outputs = Float[Tensor, "B classes"]

MODELS = ("linear", "mlp", "cnn")
CHUNK = 1000  # test rows that convolutions evaluate at a time
PIECE = 500  # rows of a client at a time, in the metrics of convolutions
UNSCALED = (1.0, 0.0, 1.0)  # largest value, mean and deviation that change nothing
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

    w0: Vector
    apply: Callable[..., Outputs]
    gradient: Callable[[Vector, Inputs, Outputs], Vector] | None
    shapes: tuple[tuple[int, ...], ...]
    sequential_clients: bool = False

    def pullback(self, w: Vector, X: Inputs, y: Labels, weight: Rowwise) -> Vector:
        """The derivative of `weight @ row_losses(apply(w, X), y)` by w, in closed form."""
        assert self.gradient is not None
        outputs = self.apply(w, X)
        probabilities = torch.softmax(outputs, 1)
        classes = torch.arange(outputs.shape[1], device=w.device)
        target = y.unsqueeze(1) == classes
        error = probabilities - target.to(w.dtype)
        weighted = error * weight.unsqueeze(1)
        return self.gradient(w, X, weighted)


def linear_model(features: Count, classes: Count) -> Model:
    """Multinomial logistic regression from 0: weights `[classes, features]`, then biases."""
    checks.arguments(linear_model, locals())
    count = classes * features

    def apply(w: Tensor, X: Tensor) -> Tensor:
        A = w[:count].view(classes, features)
        a = w[count:]
        return torch.addmm(a, X, A.T)

    def gradient(w: Tensor, X: Tensor, error: Tensor) -> Tensor:  # noqa: ARG001 - linear
        A_gradient = error.T @ X
        gradients = [A_gradient.flatten(), error.sum(0)]
        return torch.cat(gradients)

    w0 = torch.zeros(count + classes)
    shapes = ((classes, features), (classes,))
    return Model(w0, apply, gradient, shapes)


def mlp_model(features: Count, hidden: Count, classes: Count, rng: Rng | None) -> Model:
    """One hidden ReLU layer (60-20-10 on the paper's synthetic data) with a random start."""
    checks.arguments(mlp_model, locals())
    shapes = ((hidden, features), (hidden,), (classes, hidden), (classes,))
    sizes = [hidden * features, hidden, classes * hidden, classes]
    module = models.mlp((features, hidden, classes), rng=rng)
    w0, _ = models.ravel(module)

    def layers(w: Tensor, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        A, a, B, b = torch.split(w, sizes)
        A = A.view(hidden, features)
        B = B.view(classes, hidden)
        z = torch.addmm(a, X, A.T)
        return z, B, b

    def apply(w: Tensor, X: Tensor) -> Tensor:
        z, B, b = layers(w, X)
        h = torch.relu(z)
        return torch.addmm(b, h, B.T)

    def gradient(w: Tensor, X: Tensor, error: Tensor) -> Tensor:
        z, B, _ = layers(w, X)
        h = torch.relu(z)
        is_active = z > 0
        z_error = (error @ B) * is_active
        A_gradient = z_error.T @ X
        B_gradient = error.T @ h
        gradients = [
            A_gradient.flatten(),
            z_error.sum(0),
            B_gradient.flatten(),
            error.sum(0),
        ]
        return torch.cat(gradients)

    return Model(w0, apply, gradient, shapes)


def cnn_model(channels: Count, side: Count, classes: Count, rng: Rng) -> Model:
    """The network `models.picture_cnn` for pictures `[B, channels, side, side]`; random start."""
    checks.arguments(cnn_model, locals())
    module = models.picture_cnn(rng, channels=channels, side=side, classes=classes)
    w0, apply = models.ravel(module)
    shapes = tuple(tuple(parameter.shape) for parameter in module.parameters())
    return Model(w0, apply, None, shapes, sequential_clients=True)


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
    feasible set it also returns `gap`, the Frank-Wolfe gap max over v of the set of
    <gradient, w - v>, and `size`, the norm of w divided by the set's radius.

    Parameters
    ----------
    train : Samples
        Training inputs `X [R, ...]` and labels `y [R]`; pictures may stay bytes.
    test : Samples
        Test inputs and labels in the same form.
    rows : Tensor
        `[N, m]`, the indices of every client's rows in `train`, in random order.
    model : Model
        The model to train.
    sizes : sequence of int or None
        Number of each client's rows without padding; None if there is no padding.
    scale : tuple of float or None
        (top, mean, deviation): bytes x become inputs `(x / top - mean) / deviation`. Inputs
        that are not bytes require None, which leaves the numbers as they are.
    measured : int or None
        How many of each client's first rows enter the metrics `loss` and `gap`; None for all.
    dtype : torch.dtype
        The dtype of parameters and computations.
    name : str
        The problem's name in stored runs.
    config : mapping or None
        Entries to add to the configuration in stored runs.

    Raises ValueError for inputs that are not finite or that the model does not take, labels that
    are no class of it, test inputs of another kind than the training inputs, a scale for inputs
    that are not bytes, or `measured` above the number of rows of the smallest client.
    """
    checks.arguments(classifier, locals())
    checks.require(rows.numel(), "classifier", "rows", "give each client a row", rows)
    if sizes is None:
        clients, size = rows.shape
        sizes = (size,) * clients
    check_samples("train", train)
    check_samples("test", test)
    shape = train.X.shape[1:]
    rule = f"have rows of shape {list(shape)}, as train.X has"
    checks.require(test.X.shape[1:] == shape, "classifier", "test.X", rule, test.X)
    rule = f"be bytes where train.X is, and only there ({train.X.dtype})"
    same_kind = is_bytes(test.X) == is_bytes(train.X)
    checks.require(same_kind, "classifier", "test.X", rule, test.X)
    note = "the rows of the smallest client"
    checks.count("classifier", "measured", measured or 1, 1, min(sizes), note)
    fits = scale is None or is_bytes(train.X)
    checks.require(fits, "classifier", "scale", "be None for inputs that are not bytes", scale)
    functions = _Classifier(model, dtype, scale or UNSCALED, measured)
    train = functions.prepared_samples(train)
    test = functions.prepared_samples(test)
    functions.check_labels("train", train)
    functions.check_labels("test", test)
    full_config = {
        "name": name,
        "clients": len(rows),
        "rows": sum(sizes),
        "test": len(test.y),
        "shapes": [list(shape) for shape in model.shapes],
        "measured": measured,
    }
    full_config.update(config or {})
    return Problem(
        name=name,
        data=tuple(train),
        rows=rows,
        sizes=tuple(sizes),
        losses=functions.losses,
        gradient=None if model.gradient is None else functions.gradient,
        num_objectives=1,
        num_constraints=0,
        w0=model.w0.to(dtype),
        metrics=functions.metrics,
        heldout=tuple(test),
        sequential_clients=model.sequential_clients,
        config=full_config,
    )


def check_samples(name: str, samples: Samples) -> None:
    """Raise ValueError unless inputs are plain finite numbers, with whole numbers as labels."""
    checks.plain("classifier", f"{name}.X", samples.X)
    checks.plain("classifier", f"{name}.y", samples.y)
    whole = samples.y.dtype in (torch.int64, torch.int32) and samples.y.ndim == 1
    rule = "be one whole number (int64 or int32) a row"
    checks.require(whole, "classifier", f"{name}.y", rule, samples.y, "use y.long()")
    checks.labelled("classifier", *samples)


def is_bytes(X: Shaped[Tensor, "R *shape"]) -> bool:
    """Whether inputs are bytes, as of pictures."""
    return X.dtype == torch.uint8


@dataclass(frozen=True)
class _Classifier:
    """The losses, gradient and metrics of a `classifier` problem."""

    model: Model
    dtype: torch.dtype
    scale: tuple[float, float, float]
    measured: int | None

    def prepared(self, X: Tensor) -> Tensor:
        """Convert the inputs to the parameters' dtype; scale them if they were bytes."""
        if X.dtype == self.dtype:
            return X
        top, mean, deviation = self.scale
        centred = X.to(self.dtype) - top * mean
        return centred / (top * deviation)

    def prepared_samples(self, samples: Samples) -> Samples:
        """Convert the inputs of samples, unless they are so large that they stay bytes."""
        X, y = samples
        if X.numel() > LARGE:
            return samples
        return Samples(self.prepared(X), y)

    def check_labels(self, name: str, samples: Samples) -> None:
        """Raise ValueError unless the model takes the inputs, and every label is a class."""
        try:
            outputs = self.model.apply(self.model.w0.to(self.dtype), self.prepared(samples.X[:1]))
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
            shape = list(samples.X.shape[1:])
            rule = f"have rows that the model takes ({reason})"
            given = f"rows of shape {shape}"
            message = checks.sentence("classifier", f"{name}.X", rule, given)
            raise ValueError(message) from None
        classes = outputs.shape[1]
        low = int(samples.y.min())
        high = int(samples.y.max())
        rule = f"lie in 0..{classes - 1} (the model has {classes} classes)"
        inside = low >= 0 and high < classes
        checks.require(inside, "classifier", f"{name}.y", rule, [low, high])

    def losses(self, w: Vector, batch: Batch) -> PerLoss:
        X, y = batch.data
        outputs = self.model.apply(w, self.prepared(X))
        loss = batch.weight @ row_losses(outputs, y)
        return loss.unsqueeze(0)

    def gradient(self, w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        X, y = batch.data
        X = self.prepared(X)
        row_weights = batch.weight * weights[0]
        return self.model.pullback(w, X, y, row_weights)

    def metrics(self, w: Vector, problem: Problem) -> dict[str, Tensor]:
        accuracy = self.accuracy(w, *problem.heldout)
        trained = problem
        if self.measured is not None:
            rows = problem.rows[:, : self.measured]
            sizes = (self.measured,) * len(rows)
            trained = replace(problem, rows=rows, sizes=sizes, lengths=())
        if self.model.sequential_clients:
            trained = in_pieces(trained, PIECE)
        loss = trained.mean_losses(w)[0]
        values = {"loss": loss, "accuracy": accuracy}
        if problem.set is not None:
            values["gap"] = fw_gap(trained, w)
            values["size"] = gauge_of(problem.set, w)
        return values

    def accuracy(self, w: Vector, X: Inputs, y: Labels) -> Scalar:
        """The share of rows whose class is predicted; convolutions take few rows at a time."""
        size = len(y)
        if self.model.sequential_clients:
            size = CHUNK
        predictions = []
        for inputs in torch.split(X, size):
            outputs = self.model.apply(w, self.prepared(inputs))
            predictions.append(outputs.argmax(1))
        correct = torch.cat(predictions) == y
        return correct.sum().to(w.dtype) / len(y)


def in_pieces(problem: Problem, most: int) -> Problem:
    """A problem with the same means of the losses, in which no client has more than `most` rows.

    Each piece of a client's rows is a client of its own, weighted by its share of them. A problem
    whose clients are smaller, or whose seeds have clients of different sizes, stays as it is.
    """
    if max(problem.sizes) <= most or isinstance(problem.lengths, Tensor):
        return problem
    rows: list[Tensor] = []
    weights: list[float] = []
    equal = (1.0,) * problem.num_clients
    client_weights = problem.client_weights or equal
    for client, weight in enumerate(client_weights):
        client_rows = problem.own_rows(client)
        for piece in torch.split(client_rows, most):
            rows.append(piece)
            piece_weight = weight * len(piece)
            weights.append(piece_weight / len(client_rows))
    return replace(
        problem,
        rows=torch.cat(rows),
        sizes=tuple(map(len, rows)),
        client_weights=tuple(weights),
    )


def row_losses(outputs: Outputs, target: Labels) -> Rowwise:
    """The cross-entropy of every row."""
    position = target.unsqueeze(-1)
    target_outputs = outputs.gather(-1, position)
    normalizer = outputs.logsumexp(-1)
    return normalizer - target_outputs.squeeze(-1)
