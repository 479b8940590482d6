"""Multi-class classification by cross-entropy: over a convex set, or some classes a constraint.

`classifier` makes the experiments of Dadras, Banerjee, Prakhya, Yurtsever, *Federated Frank-Wolfe
Algorithm*, ECML PKDD 2024, section 4: multinomial logistic regression, a small network and a CNN,
on pictures or generated data. `problem.within(L1Ball(10.0))` makes the set;
`Blocks.of_shapes(problem.config["shapes"], ...)` one for every tensor.

`softmax_regression` and `mlp_classification` may keep the loss of some classes as a constraint.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from fedlib import checks, models
from fedlib.checks import Count, FloatType, Number, Positive, Rng, Whole
from fedlib.core.problem import Batch, Problem
from fedlib.metrics import fw_gap
from fedlib.problems.neyman_pearson import class_shares
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


def mlp_model(
    features: Count, hidden: Count, classes: Count, rng: Rng | None, activation: str = "relu"
) -> Model:
    """One hidden layer, of ReLU: 60-20-10 on the paper's synthetic data. Random start."""
    checks.arguments(mlp_model, locals())
    checks.one_of("mlp_model", "activation", activation, tuple(ACTIVATIONS))
    act, slope = ACTIVATIONS[activation]
    shapes = ((hidden, features), (hidden,), (classes, hidden), (classes,))
    sizes = [hidden * features, hidden, classes * hidden, classes]
    w0, _ = models.ravel(models.mlp((features, hidden, classes), rng=rng))

    def layers(w: Tensor, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        A, a, B, b = (part.view(s) for part, s in zip(torch.split(w, sizes), shapes, strict=True))
        return torch.addmm(a, X, A.T), B, b

    def apply(w: Tensor, X: Tensor) -> Tensor:
        z, B, b = layers(w, X)
        return torch.addmm(b, act(z), B.T)

    def gradient(w: Tensor, X: Tensor, error: Tensor) -> Tensor:
        z, B, _ = layers(w, X)
        back = (error @ B) * slope(z)
        grads = (back.T @ X, back.sum(0), error.T @ act(z), error.sum(0))
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

    Raises ValueError for inputs that are not finite, a scale without bytes, or more `measured` rows
    than the smallest client has.
    """
    checks.arguments(classifier, locals())
    sizes = (rows.shape[1],) * len(rows) if sizes is None else tuple(sizes)
    for samples in (train, test):
        _check_labels("classifier", samples.X, samples.y)
    if measured is not None:
        note = "the rows of the smallest client"
        checks.count("classifier", "measured", measured, 1, min(sizes), note)
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
    """The functions of these problems; a third data tensor says what a row counts in each loss."""

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
        X, y, *share = batch.data
        each = row_losses(self.model.apply(w, self.prepared(X)), y)
        return (batch.weight * each) @ share[0] if share else (batch.weight @ each).unsqueeze(0)

    def gradient(self, w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        X, y, *share = batch.data
        count = share[0] @ weights if share else weights[0]
        return self.model.pullback(w, self.prepared(X), y, batch.weight * count)

    def pooled_metrics(self, w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        inputs, target, share = (x[problem.rows.flatten()] for x in problem.data)
        out = self.model.apply(w, inputs)
        each, right = row_losses(out, target), (out.argmax(1) == target).to(out.dtype)
        means = {"loss": each.mean(), "accuracy": right.mean()}
        if problem.num_constraints:
            means |= zip("fg", each @ share / len(share), strict=True)
        return means

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


def softmax_regression(
    X: Float[Tensor, "R p"],
    y: Int[Tensor, "R"],
    rows: Int[Tensor, "N m"],
    classes: Count,
    *,
    constrained: Sequence[Whole] = (),
) -> Problem:
    """Multinomial logistic regression without bias, gradient in closed form; `d = classes * p`.

    Clients of equal size. `metrics` gives `loss` and `accuracy` over all rows of all clients.

    Parameters
    ----------
    X, y : features and class numbers.
    rows : the rows of every client.
    classes : their number C.
    constrained : classes whose mean cross-entropy is a constraint; that of the others is the
        objective then, and `metrics` gives `f` and `g` too. None: one objective, all rows.

    Raises ValueError or TypeError for features that are not finite, labels that are none of the
    classes, or a client without rows for one of the losses.
    """
    checks.arguments(softmax_regression, locals())

    def apply(w: Tensor, inputs: Tensor) -> Tensor:
        # as a batch of one: else `vmap` folds clients that share w into one tall product, which is
        # nearly twice as slow on a CPU
        return torch.bmm(w.view(1, classes, -1), inputs.T.unsqueeze(0)).squeeze(0).T

    def gradient(w: Tensor, inputs: Tensor, error: Tensor) -> Tensor:  # noqa: ARG001 - linear
        return (error.T @ inputs).flatten()

    shapes = ((classes, X.shape[1]),)
    model = Model(torch.zeros(classes * X.shape[1]), apply, gradient, shapes)
    return _by_class("softmax_regression", X, y, rows, model, constrained, {})


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
    X, y, rows, constrained : as in `softmax_regression`.
    hidden, classes : h and C; d = (p + 1) h + (h + 1) C.
    activation : `"relu"` or `"swish"`, z / (1 + e^-z).
    rng : draws the start, as in `models.mlp`.

    Raises ValueError or TypeError for another activation, and as `softmax_regression` does.
    """
    checks.arguments(mlp_classification, locals())
    model = mlp_model(X.shape[1], hidden, classes, rng, activation)
    config = {"hidden": hidden, "activation": activation}
    return _by_class("mlp_classification", X, y, rows, model, constrained, config)


def _by_class(
    name: str,
    X: Tensor,
    y: Tensor,
    rows: Tensor,
    model: Model,
    constrained: Sequence[int],
    config: Mapping[str, Any],
) -> Problem:
    """The problem of a model, some classes' loss a constraint if they are `constrained`."""
    _check_labels(name, X, y, model.shapes[-1][0])
    shares = torch.ones(len(y), 1, dtype=X.dtype)
    if constrained:
        groups = torch.isin(y, torch.tensor(constrained)).long()
        shares = class_shares(name, groups, rows).to(X.dtype)

    made = _Classifier(model, X.dtype)
    own = {"name": name, "clients": len(rows)}
    own |= {"constrained": list(constrained)} if constrained else {}
    return Problem(
        name=name,
        data=(X, y, shares),
        rows=rows,
        sizes=(rows.shape[1],) * len(rows),
        losses=made.losses,
        gradient=made.gradient,
        num_objectives=1,
        num_constraints=shares.shape[1] - 1,
        w0=model.w0.to(X.dtype),
        metrics=made.pooled_metrics,
        config={**own, **config},
    )


def row_losses(out: Float[Tensor, "B classes"], target: Int[Tensor, "B"]) -> Float[Tensor, "B"]:
    """Cross-entropy of every row."""
    return out.logsumexp(-1) - out.gather(-1, target.unsqueeze(-1)).squeeze(-1)


def _swish_slope(z: Tensor) -> Tensor:
    s = torch.sigmoid(z)
    return s * (1 + z * (1 - s))


Elementwise = Callable[[Tensor], Tensor]

#: Each activation and its derivative.
ACTIVATIONS: dict[str, tuple[Elementwise, Elementwise]] = {
    "relu": (torch.relu, lambda z: z > 0),
    "swish": (torch.nn.functional.silu, _swish_slope),
}


def _check_labels(who: str, X: Tensor, y: Tensor, classes: int | None = None) -> None:
    """Raise ValueError unless X is finite and y has a label for each of its rows, a class."""
    if X.is_floating_point():
        checks.finite(who, "X", X)
    rule = f"have a label for each of the {len(X)} rows of X"
    checks.require(len(X) == len(y), who, "y", rule, len(y))
    if classes is not None and len(y):
        ends = [int(end) for end in y.aminmax()]
        fits = ends[0] >= 0 and ends[1] < classes
        checks.require(fits, who, "y", f"lie in 0..{classes - 1} (the classes)", ends)
