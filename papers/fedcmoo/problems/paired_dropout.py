"""Two classifications of one picture, trained with dropout as in the FedCMOO authors' code."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from fedlib import models
from fedlib.core import Problem
from fedlib.core.problem import Batch
from papers.fedcmoo import networks
from papers.fedcmoo.data.pairs import Scale
from papers.fedcmoo.problems.paired_digits import kind_losses

WIDTH = 50  # units of the code, and of a decoder's inner layer
FINE = 2.0**40  # how finely the model's numbers enter a coin


class DroppedTasks(networks.Tasks):
    """The network of `networks.pair_lenet` with half of its units switched off, the rest doubled.

    Off are units of the code and of every decoder's inner layer, for each picture by itself.
    """

    def forward(self, *inputs: Float[Tensor, "..."]) -> Float[Tensor, "*B M out"]:
        """`inputs` are the pictures and `keep [B, 1 + M, 50]`, 0 or 1."""
        pictures, keep = inputs
        code = self.encoder(networks.channels_last(pictures)) * (2 * keep[..., 0, :])
        out = []
        for k, decoder in enumerate(self.decoders, start=1):
            assert isinstance(decoder, nn.Sequential)
            out.append(decoder[2](decoder[:2](code) * (2 * keep[..., k, :])))
        return torch.stack(out, dim=-2)


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
    made = networks.pair_lenet(decoders=problem.num_objectives)
    module = DroppedTasks(made.encoder, list(made.decoders))
    _, apply = models.ravel(module)
    kinds = problem.config["kinds"]

    def losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "M"]:
        pictures, labels = batch.data
        keep = coins(w, pictures, 1 + len(kinds), WIDTH).to(w.dtype)
        out = apply(w, scale(pictures), keep)
        each = [kind_losses(out[..., k, :], labels[..., k], kind) for k, kind in enumerate(kinds)]
        return batch.weight @ torch.stack(each, -1)

    return replace(problem, losses=losses, config={**problem.config, "dropout": 0.5})


def coins(
    w: Float[Tensor, "d"], pictures: Shaped[Tensor, "B c h w"], layers: int, width: int
) -> Int[Tensor, "B layers width"]:
    """Fair coins, 0 or 1, for every unit of every picture: a hash of model, picture and place."""
    count = pictures.shape[0]
    model = (w.detach().double().abs().sum() * FINE).long()
    each = pictures.flatten(1).long().sum(1) * 1_000_003
    row = torch.arange(count, device=w.device) * 7_919
    unit = torch.arange(layers * width, device=w.device) * 104_729
    x = models.mixed(model + each + row).unsqueeze(1) + unit
    return (models.mixed(x) >> 17 & 1).view(count, layers, width)
