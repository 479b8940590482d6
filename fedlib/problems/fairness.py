"""Fair classification: a low loss, with mean outputs of two groups that are nearly equal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from fedlib import checks, models
from fedlib.checks import Count, Positive, Seed
from fedlib.core.problem import Batch, Pooled, Problem
from fedlib.core.sampling import seeded
from fedlib.data import split
from fedlib.shapes import Flag, Rowwise, Scalar, Vector

#: Whose sign multiplies the gap's gradient: that of all participants, or each client's own.
Sign = Literal["pooled", "client"]


#: The weighted sums of outputs and of ones over group 1, then over group 0.
Totals = Float[Tensor, "4"]


class Rows(NamedTuple):
    """Features, labels and protected groups of people."""

    X: Float[Tensor, "R p"]
    y: Float[Tensor, "R"]  # 0 or 1
    group: Float[Tensor, "R"]  # 0 or 1


def fairness(
    train: Rows,
    test: Rows,
    *,
    clients: Count,
    seed: Seed = 0,
    alpha: Positive = 2.0,
    hidden: Sequence[Count] = (64, 32),
    sign: Sign = "pooled",
    config: Mapping[str, Any] | None = None,
) -> Problem:
    r"""Federated binary classification under demographic parity with a ReLU network.

    The objective is the cross-entropy of the outputs $\pi(x; w)$ in (0, 1). The constraint is the
    absolute difference of the two groups' mean outputs (full FedSGM paper, appendix F.3). Gaps of
    clients may cancel, so the server does not average them but pools sums and counts (`Pooled`). A
    client sends four numbers, and the value is a count-weighted gap over the participants.

    A client's constraint function is the *signed* gap of a batch (0 if a group is missing). The
    gradient of the absolute value is the gradient of the signed gap times a sign.

    `metrics` are exact, over all training rows and all test rows. `f` is the mean loss over the
    rows. `f_clients`, the paper's f, is the mean of the clients' mean losses, which federated
    methods minimize. `g` is the absolute gap of mean outputs, and `test_gap` the same on test rows.
    `test_decision_gap` is the gap of the rates of outputs above one half. The other metrics are
    `test_loss` and `test_accuracy`.

    Parameters
    ----------
    train : Rows
        Training features `[R, p]`, labels and groups in {0, 1}, all float32 or all float64, which
        the model is then too.
    test : Rows
        Test features, labels and groups in the same form.
    clients : int
        N, the number of clients; with 1 the problem is centralized.
    seed : int
        Determines the start and the partition.
    alpha : float
        The concentration of the Dirichlet split over the four (label, group) cells; clients
        get unequal numbers of rows.
    hidden : sequence of int
        The widths of the hidden layers.
    sign : str
        The sign that multiplies the gap's gradient: that of the pooled gap, which the server
        sends back (`"pooled"`), or that of a client's own gap on the step's batch (`"client"`).
        The pooled gap alone decides whether the constraint is violated.
    config : mapping or None
        Entries to add to the stored configuration, such as the data set's name.

    Raises ValueError for features that are not finite, labels or groups outside {0, 1}, rows of
    one group only, a client without rows, and parameters out of range.
    """
    checks.arguments(fairness, locals())
    for name, people in (("train", train), ("test", test)):
        check_people(name, people, train.X.shape[-1], train.X.dtype)
        groups = sorted(set(people.group.tolist()))
        both = len(groups) == 2
        checks.require(both, "fairness", f"{name}.group", "hold both groups", groups)
    sizes = (train.X.shape[1], *hidden, 1)
    rng = seeded(seed, "split")
    module = models.mlp(sizes, rng=rng)
    w0, _ = models.ravel(module)
    cells = (2 * train.y + train.group).long()
    rows, counts = split.dirichlet_cells(cells, clients, alpha, rng)
    size = torch.zeros_like(train.y)
    for client_rows, count in zip(rows, counts, strict=True):
        size[client_rows] = count
    functions = _Fair(sizes, client_sign=sign == "client")
    full_config = {
        "name": "fairness",
        "clients": clients,
        "alpha": alpha,
        "hidden": list(hidden),
        "sign": sign,
        "split_by": "seed",
    }
    full_config.update(config or {})
    return Problem(
        name="fairness",
        data=(*train, size),
        rows=rows,
        sizes=counts,
        losses=functions.losses,
        gradient=functions.gradient,
        num_objectives=1,
        num_constraints=1,
        w0=w0.to(train.X.dtype),
        metrics=functions.metrics,
        heldout=tuple(test),
        pooled=Pooled(functions.statistics, functions.combine),
        config=full_config,
    )


def check_people(name: str, people: Rows, features: int, dtype: torch.dtype) -> None:
    """Raise ValueError unless rows have finite features, and labels and groups in {0, 1}.

    All numbers must have one dtype.
    """
    count = len(people.X)
    checks.require(count, "fairness", f"{name}.X", "not be empty", people.X)
    checks.value("fairness", f"{name}.X", people.X, Float[Tensor, f"{count} {features}"])
    checks.value("fairness", f"{name}.y", people.y, Float[Tensor, f"{count}"])
    checks.value("fairness", f"{name}.group", people.group, Float[Tensor, f"{count}"])
    for field, tensor in people._asdict().items():
        checks.plain("fairness", f"{name}.{field}", tensor)
        rule = f"be {dtype}, as train.X, which may be float32 or float64"
        fits = tensor.dtype == dtype and dtype in (torch.float32, torch.float64)
        checks.require(fits, "fairness", f"{name}.{field}", rule, tensor)
    checks.finite("fairness", f"{name}.X", people.X, "drop or impute these rows")
    checks.labels01("fairness", f"{name}.y", people.y)
    checks.labels01("fairness", f"{name}.group", people.group)


@dataclass(frozen=True)
class _Fair:
    """The functions of a `fairness` problem, whose network has layers of the widths `sizes`."""

    sizes: tuple[int, ...]
    client_sign: bool  # whether each client uses the sign of its own gap

    def losses(self, w: Vector, batch: Batch) -> Float[Tensor, "2"]:
        """Cross-entropy and signed gap of a batch (absolute gap if `client_sign`)."""
        X, y, group, _ = batch.data
        z = network(w, X, self.sizes)
        loss = batch.weight @ cross_entropy(z, y)
        p = torch.sigmoid(z)
        totals = sums(p, batch.weight, group)
        gap = group_gap(totals)
        if self.client_sign:
            gap = gap.abs()
        return torch.stack([loss, gap])

    def gradient(self, w: Vector, batch: Batch, weights: Float[Tensor, "2"]) -> Vector:
        """The gradient of `weights @ losses` in closed form, by backpropagation."""
        X, y, group, _ = batch.data
        parameters = layers(w, self.sizes)
        *inputs, z = forward(parameters, X)
        p = torch.sigmoid(z.squeeze(-1))
        totals = sums(p, batch.weight, group)
        loss_weight, slope = weights
        if self.client_sign:
            gap = group_gap(totals)
            slope = slope * gap.sign()
        loss_error = loss_weight * (p - y)
        output_slopes = slope * gap_gradient(totals, group)
        gap_error = output_slopes * p * (1 - p)
        row_error = loss_error + gap_error
        error = batch.weight * row_error
        error = error.unsqueeze(-1)
        gradients = []  # of the last bias, the last matrix, and so on to the first
        backwards = zip(reversed(parameters), reversed(inputs), strict=True)
        for layer, h in backwards:
            A, _ = layer
            A_gradient = error.T @ h
            gradients.append(error.sum(0))
            gradients.append(A_gradient.flatten())
            is_active = h > 0
            error = (error @ A) * is_active  # the value for the first layer is not used
        gradients.reverse()
        return torch.cat(gradients)

    def statistics(self, w: Vector, batch: Batch) -> Totals:
        """Sum of outputs and number of rows, for group 1, then for group 0, without padding.

        On a minibatch they estimate the values for all rows of the client: each row counts
        (rows) / B times.
        """
        X, _, group, size = batch.data
        z = network(w, X, self.sizes)
        p = torch.sigmoid(z)
        weight = batch.weight * size
        return sums(p, weight, group)

    def combine(self, answers: Float[Tensor, "n 4"]) -> tuple[Tensor, Tensor]:
        value, slope = combine_gaps(answers)
        if self.client_sign:
            slope = torch.ones_like(slope)
        return value, slope

    def metrics(self, w: Vector, problem: Problem) -> dict[str, Tensor]:
        X, y, group, _ = problem.data
        z = network(w, X, self.sizes)
        losses = cross_entropy(z, y)
        with_losses = problem.with_tensors({"data": (losses,)})
        clients = with_losses.all_clients()
        weighted = clients.weight * clients.data[0]
        client_losses = weighted.sum(-1)
        p = torch.sigmoid(z)
        test_X, test_y, test_group = problem.heldout
        test_z = network(w, test_X, self.sizes)
        test_losses = cross_entropy(test_z, test_y)
        test_p = torch.sigmoid(test_z)
        positive = (test_z > 0).to(z.dtype)
        correct = (positive == test_y).to(z.dtype)
        return {
            "f": losses.mean(),
            "f_clients": client_losses.mean(),
            "g": absolute_gap(p, group),
            "test_loss": test_losses.mean(),
            "test_accuracy": correct.mean(),
            "test_gap": absolute_gap(test_p, test_group),
            "test_decision_gap": absolute_gap(positive, test_group),
        }


def network(w: Vector, X: Float[Tensor, "R p"], sizes: Sequence[int]) -> Float[Tensor, "R"]:
    """The outputs before the sigmoid; w has the order of `models.ravel(models.mlp(sizes))`.

    `sizes` are the widths of the input, hidden and output (1) layers.
    """
    parameters = layers(w, sizes)
    outputs = forward(parameters, X)
    return outputs[-1].squeeze(-1)


def cross_entropy(z: Rowwise, y: Rowwise) -> Rowwise:
    """The loss of every row, from outputs before the sigmoid."""
    return softplus(z) - y * z


Layer = tuple[Float[Tensor, "_ _"], Float[Tensor, "_"]]


def layers(w: Vector, sizes: Sequence[int]) -> list[Layer]:
    """The matrix `[out, in]` and the bias of every layer."""
    result = []
    start = 0
    for width, next_width in pairwise(sizes):
        middle = start + width * next_width
        end = middle + next_width
        A = w[start:middle].view(next_width, width)
        a = w[middle:end]
        result.append((A, a))
        start = end
    return result


def forward(parameters: Sequence[Layer], X: Float[Tensor, "R p"]) -> list[Float[Tensor, "R _"]]:
    """The inputs of every layer, and the output of the last."""
    *hidden, (B, b) = parameters
    h = X
    results = [h]
    for A, a in hidden:
        z = h @ A.T + a
        h = torch.relu(z)
        results.append(h)
    results.append(h @ B.T + b)
    return results


def sums(p: Rowwise, weight: Rowwise, group: Rowwise) -> Totals:
    """The weighted sums of p and of ones over group 1, then over group 0."""
    inside = weight * group
    outside = weight * (1 - group)
    totals = [
        inside @ p,
        inside.sum(),
        outside @ p,
        outside.sum(),
    ]
    return torch.stack(totals)


def group_gap(totals: Totals) -> Scalar:
    """Mean of group 1 minus mean of group 0, from sums and counts; 0 if a group is missing."""
    counts = divisors(totals)
    inside = totals[0] / counts[0]
    outside = totals[2] / counts[1]
    gap = inside - outside
    return torch.where(has_both_groups(totals), gap, 0)


def gap_gradient(totals: Totals, group: Rowwise) -> Rowwise:
    """The gradient of `group_gap` by every row's output, divided by the row's weight."""
    counts = divisors(totals)
    inside = group / counts[0]
    outside = (1 - group) / counts[1]
    gradient = inside - outside
    return torch.where(has_both_groups(totals), gradient, 0)


def divisors(totals: Totals) -> Float[Tensor, "2"]:
    """The counts of group 1 and group 0, positive."""
    counts = totals[1::2]
    tiny = torch.finfo(totals.dtype).tiny
    return counts.clamp(min=tiny)


def has_both_groups(totals: Totals) -> Flag:
    """Whether both groups have rows, from sums and counts."""
    counts = totals[1::2]
    return (counts > 0).all()


def combine_gaps(answers: Float[Tensor, "n 4"]) -> tuple[Scalar, Scalar]:
    """The absolute gap of the pooled groups and its sign, from the clients' totals."""
    gap = group_gap(answers.sum(0))
    return gap.abs(), gap.sign()


def absolute_gap(p: Rowwise, group: Rowwise) -> Scalar:
    """|mean of p over group 1 - mean over group 0|."""
    weight = torch.ones_like(p)
    totals = sums(p, weight, group)
    return group_gap(totals).abs()
