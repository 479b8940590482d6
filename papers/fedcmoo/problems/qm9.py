"""Eleven properties of molecules from one message-passing network: regression on QM9."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks, models
from fedlib.checks import Count, Nonnegative, Seed
from fedlib.core import Problem
from fedlib.core.problem import Batch
from fedlib.core.sampling import seeded
from papers.fedcmoo import networks
from papers.fedcmoo.data.molecules import TARGETS, Graphs, edges
from papers.fedcmoo.problems.tasks import task_metrics, task_problem

CHUNK = 250  # test molecules at a time


def qm9(
    train: Graphs,
    test: Graphs,
    *,
    clients: Count = 20,
    seed: Seed = 0,
    evaluate: Count | None = None,
    slope: Nonnegative = 0.0,
    watched: bool = False,
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
    evaluate : only the first so many test molecules; all by default.
    slope : of the code's activation below zero; 0 is the paper's relu.
    watched : whether `metrics` also say what becomes of the code: `alive`, how many of its units
        are above zero for one of the test molecules at least, and `spread`, the standard deviation
        of a unit over them, in the mean over the units.
    config : entries to add to the stored configuration.

    Raises
    ------
    ValueError
        for parameters out of range.

    Reference: sections 7.1 and D of the FedCMOO paper.
    """
    checks.arguments(qm9, locals())
    count = len(train.targets)
    checks.count("qm9", "clients", clients, high=count, note="the training molecules")
    if evaluate is not None:
        note = "the test molecules"
        checks.count("qm9", "evaluate", evaluate, high=len(test.targets), note=note)
    rng = seeded(seed, "split")
    module = networks.molecule_network(rng, decoders=train.targets.shape[1], slope=slope)
    w0, apply = models.ravel(module)
    shared = networks.encoder_size(module)
    network = _Network(apply, models.ravel(module.encoder)[1], shared, watched)
    own = count // clients
    rows = torch.randperm(count, generator=rng)[: clients * own].view(clients, own)
    held = tuple(x[:evaluate] for x in test)
    sizes = {"molecules": count, "evaluate": len(held[-1]), "clients": clients}
    told = {"shared": shared, "tasks": list(TARGETS)}
    return task_problem(
        "qm9",
        network.losses,
        network.metrics,
        data=tuple(train),
        rows=rows,
        heldout=held,
        w0=w0,
        tasks=train.targets.shape[1],
        config={**sizes, **told, "split_by": "seed", **(config or {})},
    )


@dataclass(frozen=True)
class _Network:
    """The network, whose encoder has the first `shared` parameters, and what is asked of it."""

    apply: Callable[..., Tensor]
    encode: Callable[..., Tensor]
    shared: int
    watched: bool

    def values(self, w: Tensor, data: tuple[Tensor, ...]) -> tuple[Tensor, None]:
        atoms, bonds, positions, real, target = data
        out = self.apply(w, atoms.to(w.dtype), edges(bonds, positions.to(w.dtype)), real)
        return (out.squeeze(-1) - target).square(), None

    def losses(self, w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "M"]:
        return batch.weight @ self.values(w, batch.data)[0]

    def metrics(self, w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        found = task_metrics(w, problem.heldout, self.values, CHUNK)
        return found | self.code_metrics(w, problem) if self.watched else found

    def code_metrics(self, w: Tensor, problem: Problem) -> dict[str, Tensor]:
        parts = zip(*(torch.split(x, CHUNK) for x in problem.heldout[:-1]), strict=True)
        code = torch.cat([self.code(w, *some) for some in parts])
        alive = (code > 0).any(0).sum().to(w.dtype)
        return {"alive": alive, "spread": code.std(0, correction=0).mean()}

    def code(
        self, w: Tensor, atoms: Tensor, bonds: Tensor, positions: Tensor, real: Tensor
    ) -> Tensor:
        places = positions.to(w.dtype)
        return self.encode(w[: self.shared], atoms.to(w.dtype), edges(bonds, places), real)
