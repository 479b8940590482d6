"""Many binary attributes of one picture: a task for each attribute, or for each group of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn.functional import softplus

from fedlib import models
from fedlib.core import Problem
from fedlib.core.sampling import seeded
from fedlib.data import split
from fedlib.problems.classification import row_losses
from papers.fedcmoo import networks
from papers.fedcmoo.data.attributes import Labelled
from papers.fedcmoo.problems.tasks import task_problem

CHUNK = 500  # test pictures at a time


def attributes(
    train: Labelled,
    test: Labelled,
    *,
    groups: tuple[tuple[int, ...], ...] | None = None,
    clients: int = 100,
    seed: int = 0,
    alpha: float = 0.3,
    config: Mapping[str, Any] | None = None,
) -> Problem:
    r"""Objectives $f_{jk}$ = mean loss of task k on the pictures of client j, k = 1, ..., M.

    Without groups a task is one attribute, with a decoder of two outputs and their negative
    log-likelihood. With groups a task is all attributes of a group: a decoder of one output for
    each, the mean of their binary cross-entropies. Decoders are single linear maps on the encoder
    of `networks.pair_lenet`.

    `metrics`, on test pictures alone: `loss_k` and `accuracy_k` (with groups the share of right
    attributes), `loss` and `accuracy`, their means over tasks.

    Parameters
    ----------
    train, test : pictures with attributes.
    groups : numbers of the attributes of every task, equally many each.
    clients : N.
    seed : fixes the start and the split.
    alpha : concentration of the split by the pictures' cells.
    config : entries to add to the stored configuration, such as the data set's name.

    Reference: sections 7.1 and D of the paper (CelebA and CelebA-5).
    """
    count, grouped = train.a.shape[1], groups is not None
    taken, of_test = train.a, test.a
    if groups is not None:
        index = torch.tensor(groups)
        taken, of_test = taken[:, index], of_test[:, index]  # [R, M, members]
    tasks, out = taken.shape[1], taken.shape[2] if grouped else 2
    rng = seeded(seed, "split")
    module = networks.pair_lenet(rng, decoders=tasks, out=out, hidden=0)
    w0, apply = models.ravel(module)
    choices = {"clients": clients, "alpha": alpha, "attributes": count, "objectives": tasks}
    sizes = {"pictures": len(taken), "evaluate": len(of_test)}
    own = {**choices, **sizes, "shared": networks.encoder_size(module)}

    def values(w: Tensor, data: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        pictures, target = data
        return attribute_values(apply(w, train.scale(pictures)), target, grouped)

    return task_problem(
        "attributes",
        values,
        CHUNK,
        data=(train.X, taken),
        rows=split.dirichlet(train.cells, clients, alpha, rng),
        heldout=(test.X, of_test),
        w0=w0,
        tasks=tasks,
        config={**own, "split_by": "seed", **(config or {})},
    )


def attribute_values(
    out: Float[Tensor, "B M out"], target: Shaped[Tensor, "B M *members"], grouped: bool
) -> tuple[Float[Tensor, "B M"], Float[Tensor, "B M"]]:
    """What every row adds to the loss and to the accuracy of every task."""
    if not grouped:
        return row_losses(out, target.long()), (out.argmax(-1) == target).to(out.dtype)
    each = softplus(out) - target.to(out.dtype) * out  # cross-entropy of the sigmoid
    return each.mean(-1), ((out > 0) == (target > 0)).to(out.dtype).mean(-1)
