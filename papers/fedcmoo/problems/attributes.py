"""Many binary attributes of one picture: a task for each attribute, or for each group of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import softplus

from fedlib import checks, models
from fedlib.checks import Count, Positive, Seed
from fedlib.core import Problem
from fedlib.core.problem import Batch
from fedlib.core.sampling import seeded
from fedlib.data import split
from fedlib.problems.classification import row_losses
from papers.fedcmoo import networks
from papers.fedcmoo.data.attributes import Labelled
from papers.fedcmoo.data.pairs import Scale
from papers.fedcmoo.problems.tasks import task_metrics, task_problem

CHUNK = 500  # test pictures at a time


def attributes(
    train: Labelled,
    test: Labelled,
    *,
    groups: Sequence[Sequence[int]] | None = None,
    clients: Count = 100,
    seed: Seed = 0,
    alpha: Positive = 0.3,
    evaluate: Count | None = None,
    config: Mapping[str, Any] | None = None,
) -> Problem:
    r"""Objectives $f_{jk}$ = mean loss of task k on the pictures of client j, k = 1, ..., M.

    Without groups a task is one attribute, with a decoder of two outputs and their negative
    log-likelihood. With groups a task is all attributes of a group: a decoder of one output for
    each, the mean of their binary cross-entropies. Decoders are single linear maps on the encoder
    of `networks.pair_lenet` (pictures of one channel) or `networks.resnet` (three).

    `metrics`, on test pictures alone: `loss_k` and `accuracy_k` (with groups the share of right
    attributes), `loss` and `accuracy`, their means over tasks.

    Parameters
    ----------
    train, test : pictures with attributes.
    groups : numbers of the attributes of every task, equally many each.
    clients : N.
    seed : fixes the start and the split.
    alpha : concentration of the split by the pictures' cells.
    evaluate : only the first so many test pictures; all by default.
    config : entries to add to the stored configuration, such as the data set's name.

    Raises
    ------
    ValueError
        for groups of different or no length, attributes that there are not, and parameters out of
        range.

    Reference: sections 7.1 and D of the paper (CelebA and CelebA-5).
    """
    checks.arguments(attributes, locals())
    count = train.a.shape[1]
    taken, of_test = train.a, test.a
    if groups is not None:
        index = group_index(groups, count)
        taken, of_test = taken[:, index], of_test[:, index]  # [R, M, members]
    tasks, out = taken.shape[1], 2 if groups is None else taken.shape[2]
    rng = seeded(seed, "split")
    module = _network(rng, train.X.shape[1], decoders=tasks, out=out)
    w0, apply = models.ravel(module)
    rows = split.dirichlet(train.cells, clients, alpha, rng)
    if evaluate is not None:
        checks.count("attributes", "evaluate", evaluate, high=len(test.a), note="the test pictures")
    of_rows = _Rows(apply, train.scale, groups is not None)
    held = test.X[:evaluate], of_test[:evaluate]
    choices = {"clients": clients, "alpha": alpha, "attributes": count, "objectives": tasks}
    sizes = {"pictures": len(taken), "evaluate": len(held[0])}
    own = {**choices, **sizes, "shared": networks.encoder_size(module)}
    return task_problem(
        "attributes",
        of_rows.losses,
        of_rows.metrics,
        data=(train.X, taken),
        rows=rows,
        heldout=held,
        w0=w0,
        tasks=tasks,
        config={**own, "split_by": "seed", **(config or {})},
    )


def _network(rng: torch.Generator, channels: int, *, decoders: int, out: int) -> networks.Tasks:
    if channels == 1:
        return networks.pair_lenet(rng, decoders=decoders, out=out, hidden=0)
    return networks.resnet(rng, decoders=decoders, out=out)


@dataclass(frozen=True)
class _Rows:
    """What pictures add to losses and metrics, by the network `apply` of the scaled pictures."""

    apply: Callable[..., Tensor]
    scale: Scale
    grouped: bool

    def values(self, w: Tensor, data: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        pictures, target = data
        return attribute_values(self.apply(w, self.scale(pictures)), target, self.grouped)

    def losses(self, w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "M"]:
        return batch.weight @ self.values(w, batch.data)[0]

    def metrics(self, w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        return task_metrics(w, problem.heldout, self.values, CHUNK)


def group_index(groups: Sequence[Sequence[int]], count: int) -> Int[Tensor, "M members"]:
    """The groups as a tensor `[M, members]`, after checks."""
    lengths = {len(group) for group in groups}
    if len(lengths) != 1 or 0 in lengths:
        rule = "hold groups of equal length, one attribute at least"
        raise ValueError(checks.sentence("attributes", "groups", rule, [list(g) for g in groups]))
    for group in groups:
        for k in group:
            checks.count("attributes", "groups", k, 0, count - 1, "the attributes")
    return torch.tensor([list(group) for group in groups])


def attribute_values(
    out: Float[Tensor, "B M out"], target: Shaped[Tensor, "B M *members"], grouped: bool
) -> tuple[Float[Tensor, "B M"], Float[Tensor, "B M"]]:
    """What every row adds to the loss and to the accuracy of every task."""
    if not grouped:
        return row_losses(out, target.long()), (out.argmax(-1) == target).to(out.dtype)
    each = softplus(out) - target.to(out.dtype) * out  # cross-entropy of the sigmoid
    return each.mean(-1), ((out > 0) == (target > 0)).to(out.dtype).mean(-1)
