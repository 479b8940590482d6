"""Eleven properties of molecules from one message-passing network: regression on QM9."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from fedlib import models
from fedlib.core import Problem
from fedlib.core.sampling import seeded
from papers.fedcmoo import networks
from papers.fedcmoo.data.molecules import TARGETS, Graphs, edges
from papers.fedcmoo.networks import ATOM
from papers.fedcmoo.problems.tasks import task_problem

#: The targets: the sum over the atoms of each of their numbers.
RULE = tuple(f"sum of number {k}" for k in range(1, ATOM + 1))
SIZE = 8  # atoms of a generated graph, at most


def generated(train: int, test: int, *, seed: int = 0) -> tuple[Graphs, Graphs]:
    """Training and test graphs: chains of at most eight atoms, random numbers, random places.

    Targets (`RULE`) have mean 0 and deviation 1 over all graphs together; `seed` fixes them all.
    """
    rng = torch.Generator().manual_seed(seed)
    count = train + test
    lengths = torch.randint(1, SIZE + 1, (count, 1), generator=rng)
    real = torch.arange(SIZE) < lengths
    numbers = torch.randint(3, (count, SIZE, ATOM), generator=rng)
    atoms = numbers * real.unsqueeze(-1)
    orders = torch.randint(1, 5, (count, SIZE - 1), generator=rng)
    bonds = torch.diag_embed(orders * real[:, 1:], 1)
    places = torch.randn(count, SIZE, 3, generator=rng)
    positions = places * real.unsqueeze(-1)
    y = atoms.sum(1).float()
    spread = y.std(0, correction=0)
    y = (y - y.mean(0)) / torch.where(spread > 0, spread, 1.0)
    graphs = Graphs(
        atoms=atoms.to(torch.uint8),
        bonds=(bonds + bonds.mT).to(torch.uint8),
        positions=positions,
        real=real,
        targets=y,
    )
    train_graphs = Graphs(*(x[:train] for x in graphs))
    test_graphs = Graphs(*(x[train:] for x in graphs))
    return train_graphs, test_graphs


CHUNK = 250  # test molecules at a time


def qm9(
    train: Graphs,
    test: Graphs,
    *,
    clients: int = 20,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
) -> Problem:
    r"""Objectives $f_{jk}$ = mean squared error of target k on the molecules of client j, M = 11.

    The network is `networks.molecule_network`. Clients hold equally many molecules, at random.
    `metrics`, on test molecules alone: `loss_1`, ..., `loss_11`, and `loss`, their mean.

    Parameters
    ----------
    train, test : `molecules.sets()`.
    clients : N.
    seed : fixes the start and the split.
    config : entries to add to the stored configuration.

    Reference: sections 7.1 and D of the FedCMOO paper.
    """
    count = len(train.targets)
    rng = seeded(seed, "split")
    module = networks.molecule_network(rng)
    w0, apply = models.ravel(module)
    rows_each = count // clients

    def values(w: Tensor, data: tuple[Tensor, ...]) -> tuple[Tensor, None]:
        atoms, bonds, positions, real, target = data
        pairs = edges(bonds, positions.to(w.dtype))
        outputs = apply(w, atoms.to(w.dtype), pairs, real)
        errors = outputs.squeeze(-1) - target
        return errors.square(), None

    order = torch.randperm(count, generator=rng)
    taken = order[: clients * rows_each]
    settings = {
        "molecules": count,
        "evaluate": len(test.targets),
        "clients": clients,
        "shared": networks.encoder_size(module),
        "tasks": list(TARGETS),
    }
    return task_problem(
        "qm9",
        values,
        CHUNK,
        data=tuple(train),
        rows=taken.view(clients, rows_each),
        heldout=tuple(test),
        w0=w0,
        tasks=len(TARGETS),
        config={**settings, "split_by": "seed", **(config or {})},
    )
