"""FedSGM and federated averaging with Adam at the clients, one reading of the paper's step size.

F prints a step of 1e-4 for its Figure 7, which is usual for Adam and far too small for plain
gradient steps; it names no local optimizer. Only the local half of a round differs from the
parents. Every client starts its Adam anew in every round, so that no moments are kept or sent.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.algorithms.baselines import FedAvg
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.core.client import Client, Reply
from fedlib.steps.adam import adam


@dataclass(frozen=True)
class AdamFedSGM(FedSGM):
    """`FedSGM` with local steps of Adam in line 5.

    >>> from fedlib import problems, run
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> method = AdamFedSGM(lr=0.05, local_steps=2, participants=4, tolerance=0.05)
    >>> run(method, problem, rounds=30, progress=False).late("g").round(1)
    array([0.1])

    Parameters are those of `FedSGM`; `lr` is Adam's step size.
    """

    def local_update(self, client: Client, sigma: Float[Tensor, ""]) -> Float[Tensor, "d"] | Reply:
        """At the client: E steps of Adam, then what they changed, over the step size."""
        weights = torch.stack([1 - sigma.abs(), sigma])

        def gradient(u: Tensor, step: int) -> Tensor:
            return client.gradient(u, client.batch(step), weights)

        u = adam(client.model, gradient, self.local_steps, self.lr)
        delta = (client.model - u) / self.lr
        if not self.remembers:
            return self.uplink(delta, client.noise)
        v = self.uplink(client.memory + delta, client.noise)
        return Reply(upload=v, memory=client.memory + delta - v)


@dataclass(frozen=True)
class AdamFedAvg(FedAvg):
    """`FedAvg` with local steps of Adam in line 3.

    >>> from fedlib import problems, run
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> method = AdamFedAvg(lr=0.05, local_steps=2, participants=4)
    >>> run(method, problem, rounds=30, progress=False).late("g").round(1)
    array([0.5])

    Parameters are those of `FedAvg`; `lr` is Adam's step size.
    """

    def local_update(self, client: Client, w: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """At the client: E steps of Adam on the mean of its objectives."""
        weights = client.objective_weights(w)

        def gradient(u: Tensor, step: int) -> Tensor:
            return client.gradient(u, client.batch(step), weights)

        return adam(w, gradient, self.local_steps, self.lr)
