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

#: Whose sign multiplies the gap's gradient: that of all participants, or each client's own.
Sign = Literal["pooled", "client"]


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
    train, test : features `[R, p]`, labels and groups in {0, 1}.
    clients : N, the number of clients; with 1 the problem is centralized.
    seed : determines the start and the partition.
    alpha : the concentration of the Dirichlet split over the four (label, group) cells; clients
        get unequal numbers of rows.
    hidden : the widths of the hidden layers.
    sign : the sign that multiplies the gap's gradient: that of the pooled gap, which the server
        sends back (`"pooled"`), or that of a client's own gap on the step's batch (`"client"`).
        The pooled gap alone decides whether the constraint is violated.
    config : entries to add to the stored configuration, such as the data set's name.

    Raises ValueError for features that are not finite, labels or groups outside {0, 1}, training
    rows of one group only, a client without rows, and parameters out of range.
    """
    checks.arguments(fairness, locals())
    for name, part in (("train", train), ("test", test)):
        shape = f"{len(part.y)} {train.X.shape[-1]}"
        checks.value("fairness", f"{name}.X", part.X, Float[Tensor, shape])
        checks.value("fairness", f"{name}.group", part.group, Float[Tensor, f"{len(part.y)}"])
        checks.finite("fairness", f"{name}.X", part.X, "drop or impute these rows")
        checks.labels01("fairness", f"{name}.y", part.y)
        checks.labels01("fairness", f"{name}.group", part.group)
    groups = sorted(set(train.group.tolist()))
    checks.require(len(groups) == 2, "fairness", "train.group", "hold both groups", groups)
    sizes = (train.X.shape[1], *hidden, 1)
    rng = seeded(seed, "split")
    w0, _ = models.ravel(models.mlp(sizes, rng=rng))
    cells = (2 * train.y + train.group).long()
    rows, counts = split.dirichlet_cells(cells, clients, alpha, rng)
    size = torch.zeros_like(train.y)
    for own_rows, count in zip(rows, counts, strict=True):
        size[own_rows] = count
    made = _Fair(sizes, own=sign == "client")
    choices = {"clients": clients, "alpha": alpha, "hidden": list(hidden), "sign": sign}
    return Problem(
        name="fairness",
        data=(*train, size),
        rows=rows,
        sizes=counts,
        losses=made.losses,
        gradient=made.gradient,
        num_objectives=1,
        num_constraints=1,
        w0=w0.to(train.X.dtype),
        metrics=made.metrics,
        heldout=tuple(test),
        pooled=Pooled(made.statistics, made.combine),
        config={"name": "fairness", **choices, "split_by": "seed", **(config or {})},
    )


@dataclass(frozen=True)
class _Fair:
    """The functions of a `fairness` problem, whose network has layers of the widths `sizes`."""

    sizes: tuple[int, ...]
    own: bool  # whether each client uses the sign of its own gap

    def losses(self, w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "2"]:
        """Cross-entropy and signed gap of a batch (absolute gap if `own`)."""
        X, y, group, _ = batch.data
        z = network(w, X, self.sizes)
        gap = group_gap(sums(torch.sigmoid(z), batch.weight, group))
        return torch.stack([batch.weight @ (softplus(z) - y * z), gap.abs() if self.own else gap])

    def gradient(self, w: Tensor, batch: Batch, weights: Float[Tensor, "2"]) -> Float[Tensor, "d"]:
        """The gradient of `weights @ losses` in closed form, by backpropagation."""
        X, y, group, _ = batch.data
        parameters = layers(w, self.sizes)
        *inputs, last = forward(parameters, X)
        p = torch.sigmoid(last.squeeze(-1))
        four = sums(p, batch.weight, group)
        tiny = torch.finfo(p.dtype).tiny
        share = group / four[1].clamp(min=tiny) - (1 - group) / four[3].clamp(min=tiny)
        share = torch.where((four[1] > 0) & (four[3] > 0), share, torch.zeros_like(share))
        slope = weights[1] * (group_gap(four).sign() if self.own else 1)
        error = batch.weight * (weights[0] * (p - y) + slope * share * p * (1 - p))
        back, parts = error.unsqueeze(-1), []
        for (A, _), h in zip(reversed(parameters), reversed(inputs), strict=True):
            parts += [back.sum(0), (back.T @ h).flatten()]
            back = (back @ A) * (h > 0)  # the value for the first layer is not used
        return torch.cat(parts[::-1])

    def statistics(self, w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "4"]:
        """Sum of outputs and number of rows, for group 1, then for group 0, without padding.

        On a minibatch they estimate the values for all rows of the client: each row counts
        (rows) / B times.
        """
        X, _, group, size = batch.data
        return sums(torch.sigmoid(network(w, X, self.sizes)), batch.weight * size, group)

    def combine(self, answers: Float[Tensor, "n 4"]) -> tuple[Tensor, Tensor]:
        value, slope = combine_gaps(answers)
        return value, torch.ones_like(slope) if self.own else slope

    def metrics(self, w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        X, y, group, _ = problem.data
        z = network(w, X, self.sizes)
        each = softplus(z) - y * z
        clients = problem.with_tensors({"data": (each,)}).all_clients()
        held_X, held_y, held_group = problem.heldout
        held = network(w, held_X, self.sizes)
        positive = (held > 0).to(z.dtype)
        return {
            "f": each.mean(),
            "f_clients": (clients.weight * clients.data[0]).sum(-1).mean(),
            "g": absolute_gap(torch.sigmoid(z), group),
            "test_loss": (softplus(held) - held_y * held).mean(),
            "test_accuracy": (positive == held_y).to(z.dtype).mean(),
            "test_gap": absolute_gap(torch.sigmoid(held), held_group),
            "test_decision_gap": absolute_gap(positive, held_group),
        }


def network(
    w: Float[Tensor, "d"], X: Float[Tensor, "R p"], sizes: Sequence[int]
) -> Float[Tensor, "R"]:
    """The outputs before the sigmoid; w has the order of `models.ravel(models.mlp(sizes))`.

    `sizes` are the widths of the input, hidden and output (1) layers.
    """
    return forward(layers(w, sizes), X)[-1].squeeze(-1)


Layer = tuple[Float[Tensor, "_ _"], Float[Tensor, "_"]]


def layers(w: Float[Tensor, "d"], sizes: Sequence[int]) -> list[Layer]:
    """The matrix `[out, in]` and the bias of every layer."""
    flat = torch.split(w, [n for a, b in pairwise(sizes) for n in (a * b, b)])
    return [(flat[2 * i].view(b, a), flat[2 * i + 1]) for i, (a, b) in enumerate(pairwise(sizes))]


def forward(parameters: Sequence[Layer], X: Float[Tensor, "R p"]) -> list[Float[Tensor, "R _"]]:
    """The inputs of every layer, and the output of the last."""
    inputs = [X]
    for i, (A, a) in enumerate(parameters):
        z = inputs[-1] @ A.T + a
        inputs.append(torch.relu(z) if i + 1 < len(parameters) else z)
    return inputs


def sums(
    p: Float[Tensor, "B"], weight: Float[Tensor, "B"], group: Float[Tensor, "B"]
) -> Float[Tensor, "4"]:
    """The weighted sums of p and of ones over group 1, then over group 0."""
    inside, outside = weight * group, weight * (1 - group)
    return torch.stack([inside @ p, inside.sum(), outside @ p, outside.sum()])


def group_gap(four: Float[Tensor, "4"]) -> Float[Tensor, ""]:
    """Mean of group 1 minus mean of group 0, from sums and counts; 0 if a group is missing."""
    tiny = torch.finfo(four.dtype).tiny
    both = (four[1] > 0) & (four[3] > 0)
    gap = four[0] / four[1].clamp(min=tiny) - four[2] / four[3].clamp(min=tiny)
    return torch.where(both, gap, torch.zeros_like(gap))


def combine_gaps(answers: Float[Tensor, "n 4"]) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The absolute gap of the pooled groups and its sign, from the clients' four numbers."""
    gap = group_gap(answers.sum(0))
    return gap.abs(), gap.sign()


def absolute_gap(p: Float[Tensor, "R"], group: Float[Tensor, "R"]) -> Float[Tensor, ""]:
    """|mean of p over group 1 - mean over group 0|."""
    return group_gap(sums(p, torch.ones_like(p), group)).abs()
