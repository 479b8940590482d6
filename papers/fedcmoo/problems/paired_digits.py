"""Two classifications of one composite picture: the two-task problems of the FedCMOO paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from fedlib import models
from fedlib.core import Problem
from fedlib.core.problem import Batch
from fedlib.core.sampling import seeded
from fedlib.data import split
from fedlib.problems.classification import row_losses
from fedlib.shapes import PerObjective, Rowwise, Vector
from papers.fedcmoo import networks
from papers.fedcmoo.data.pairs import Pairs, Scale, augmented
from papers.fedcmoo.problems.tasks import task_problem

#: Losses of a task: negative log-likelihood; of the difference between softmax outputs and the
#: class as a vector, the mean square of its entries, or its length.
LOSSES = ("nll", "squared", "norm")

CHUNK = 1000  # test pictures at a time


def paired_digits(
    train: Pairs,
    test: Pairs,
    *,
    clients: int = 100,
    seed: int = 0,
    alpha: float = 0.3,
    copies: int = 0,
    kinds: tuple[str, str] = ("nll", "nll"),
    evaluate: int | None = None,
    held: Pairs | None = None,
    config: Mapping[str, Any] | None = None,
) -> Problem:
    r"""Objectives $f_{jk}$ = mean loss of task k on the pictures of client j, k = 1, 2.

    One network, an encoder and a decoder for each task: `networks.pair_lenet` for pictures of one
    channel, `networks.pair_cnn` for three. Clients hold equally many pictures, split by
    Dirichlet(alpha) over the 100 composite labels. `config["shared"]` is the number of parameters
    that both tasks share, the first ones.

    `metrics`, on test pictures alone: `loss_1`, `loss_2`, `accuracy_1`, `accuracy_2` of the tasks,
    `loss` and `accuracy`, their means; on further pictures the same with `held_` before it.

    Parameters
    ----------
    train, test : `pairs.load(name, "train")` and `pairs.load(name, "test")`.
    clients : N.
    seed : fixes the start, the split and the angles.
    alpha : concentration of the split.
    copies : turned copies of every training picture (`pairs.augmented`); 0: the pictures as they
        are. A client has `copies` times as many rows, which its full losses count as well.
    kinds : each task's loss, one of `LOSSES`.
    evaluate : only the first so many test pictures; by default all of them, but of CIFAR-10 those
        alone whose pixels are the canonical ones.
    held : further pictures to evaluate on, such as some of a training set that no client has.
    config : entries to add to the stored configuration, such as the data set's name.

    Reference: sections 7.1 and D of the paper; "squared" for Table 2.
    """
    rng = seeded(seed, "split")
    is_grey = train.X.shape[1] == 1
    module = networks.pair_lenet(rng) if is_grey else networks.pair_cnn(rng)
    w0, apply = models.ravel(module)
    rows = split.dirichlet(train.cells(), clients, alpha, rng)
    data = train.X, train.y
    count = len(train.y)
    if copies:
        data = augmented(train, copies, rng), train.y.repeat(copies, 1)
        of_copies = [rows + k * count for k in range(copies)]
        rows = torch.cat(of_copies, dim=1)
    heldout = judged(test, evaluate)
    settings: dict[str, Any] = {
        "clients": clients,
        "alpha": alpha,
        "copies": copies,
        "kinds": list(kinds),
        "pictures": count,
        "evaluate": len(heldout[0]),
    }
    if held is not None:
        settings["held"] = len(held.y)
        heldout = (*heldout, held.X, held.y)
    settings["shared"] = networks.encoder_size(module)
    settings["tasks"] = list(train.names)

    def values(w: Tensor, data: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        pictures, labels = data
        outputs = apply(w, train.scale(pictures))
        hits = outputs.argmax(-1) == labels
        return losses_of(outputs, labels, kinds), hits.to(outputs.dtype)

    return task_problem(
        "paired_digits",
        values,
        CHUNK,
        data=data,
        rows=rows,
        heldout=heldout,
        w0=w0,
        tasks=2,
        config={**settings, "split_by": "seed", **(config or {})},
    )


def judged(test: Pairs, evaluate: int | None) -> tuple[Tensor, ...]:
    """The test pictures and labels that metrics are computed on."""
    if evaluate is None and test.exact is not None:
        return test.X[test.exact], test.y[test.exact]
    return test.X[:evaluate], test.y[:evaluate]


def losses_of(
    outputs: Float[Tensor, "*B M classes"],
    labels: Int[Tensor, "*B M"],
    kinds: Sequence[str],
) -> Float[Tensor, "*B M"]:
    """The loss of every row in every task."""
    losses = []
    for task, loss in enumerate(kinds):
        of_task = kind_losses(outputs[..., task, :], labels[..., task], loss)
        losses.append(of_task)
    return torch.stack(losses, -1)


def kind_losses(
    outputs: Float[Tensor, "B classes"],
    target: Int[Tensor, "B"],
    loss: str,
) -> Rowwise:
    """A loss of `LOSSES` of every row."""
    if loss == "nll":
        return row_losses(outputs, target)
    classes = torch.arange(outputs.shape[-1], device=outputs.device)
    hit = target.unsqueeze(-1) == classes
    apart = torch.softmax(outputs, -1) - hit.to(outputs.dtype)
    if loss == "squared":
        return apart.square().mean(-1)
    lengths: Tensor = torch.linalg.vector_norm(apart, dim=-1)
    return lengths


WIDTH = 50  # units of the code, and of a decoder's inner layer
FINE = 2.0**40  # how finely the model's numbers enter a coin


class DroppedTasks(networks.Tasks):
    """The network of `networks.pair_lenet` with half of its units switched off, the rest doubled.

    Off are units of the code and of every decoder's inner layer, for each picture by itself.
    """

    def forward(self, *inputs: Float[Tensor, "..."]) -> Float[Tensor, "*B M out"]:
        """`inputs` are the pictures and `keep [B, 1 + M, 50]`, 0 or 1."""
        pictures, keep = inputs
        factors = 2 * keep
        code = self.encoder(networks.channels_last(pictures))
        code = code * factors[..., 0, :]
        outputs = []
        for k, decoder in enumerate(self.decoders, start=1):
            assert isinstance(decoder, nn.Sequential)
            inner = decoder[:2](code)
            outputs.append(decoder[2](inner * factors[..., k, :]))
        return torch.stack(outputs, dim=-2)


def dropped(problem: Problem, scale: Scale) -> Problem:
    """The problem of `paired_digits` for grey pictures, its losses with dropout of one half.

    A loss here is a function of the model and the rows, so the coins are too: `coins` derives them
    from both, and they fall anew at every step because the model has moved. Metrics are without
    dropout; losses that clients send as values are with it (the authors' code evaluates them
    without, which matters to FedCMOO-Pref alone).

    Parameters
    ----------
    problem : of `paired_digits`, pictures of one channel.
    scale : how its bytes become numbers.
    """
    plain = networks.pair_lenet()
    module = DroppedTasks(plain.encoder, list(plain.decoders))
    _, apply = models.ravel(module)
    kinds = problem.config["kinds"]

    def losses(w: Vector, batch: Batch) -> PerObjective:
        pictures, labels = batch.data
        keep = coins(w, pictures, 1 + len(kinds), WIDTH)
        outputs = apply(w, scale(pictures), keep.to(w.dtype))
        return batch.weight @ losses_of(outputs, labels, kinds)

    return replace(problem, losses=losses, config={**problem.config, "dropout": 0.5})


def coins(
    w: Vector,
    pictures: Shaped[Tensor, "B c h w"],
    layers: int,
    width: int,
) -> Int[Tensor, "B layers width"]:
    """Fair coins, 0 or 1, for every unit of every picture: a hash of model, picture and place."""
    count = pictures.shape[0]
    size = w.detach().double().abs().sum()
    model = (size * FINE).long()
    brightness = pictures.flatten(1).long().sum(1) * 1_000_003
    row = torch.arange(count, device=w.device) * 7_919
    unit = torch.arange(layers * width, device=w.device) * 104_729
    of_row = models.mixed(model + brightness + row)
    of_unit = models.mixed(of_row.unsqueeze(1) + unit)
    coin = of_unit >> 17 & 1
    return coin.view(count, layers, width)
