"""FedCMOO, FedCMOO-Pref and FSMGDA with Adam at the clients, as the FedCMOO paper trains on QM9.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025, section D; Kingma, Ba, *Adam: A Method for Stochastic Optimization*, ICLR 2015,
Algorithm 1. Only the local half of a round differs from the parents. Every client starts its Adam
anew in every round (for every objective by itself in FSMGDA), so that no moments are kept or sent.
The server's step is unchanged: `Delta_j = (w - u) / (E lr)` makes it
`w <- w + server_lr mean_j (u_j - w)`, whatever the local optimizer is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.algorithms._multi import step_range, task_batch
from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref
from fedlib.algorithms.multiobjective import FSMGDA
from fedlib.checks import Positive
from fedlib.core.client import Client
from fedlib.core.types import Batch
from fedlib.steps.adam import BETAS, EPS, adam, check_moments


def weighted_update(
    method: AdamFedCMOO | AdamFedCMOOPref, client: Client, lam: Float[Tensor, "M"]
) -> Float[Tensor, "d"]:
    """At the client: E steps of Adam on its weighted objectives, the first with what it remembers.

    The gradients that it has sent for the Gram matrix are those of the first step.
    """
    later, _ = step_range(method.local_steps, len(lam), method.shared_batch)

    def gradient(u: Tensor, step: int) -> Tensor:
        if step == 0:
            return lam @ client.memory
        return client.gradient(u, client.batch(later + step - 1), lam)

    u = adam(client.model, gradient, method.local_steps, method.lr, method.betas, method.eps)
    return (client.model - u) / (method.local_steps * method.lr)


@dataclass(frozen=True)
class AdamFedCMOO(FedCMOO):
    """`FedCMOO` with local steps of Adam in lines 5 and 6.

    >>> from fedlib import problems, run
    >>> problem = problems.pareto(torch.eye(4).view(2, 1, 2, 4))
    >>> method = AdamFedCMOO(lr=0.05, local_steps=2, participants=2)
    >>> run(method, problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    betas, eps : of Adam, its usual ones by default.

    All others are those of `FedCMOO`; `lr` is Adam's step size.

    Raises
    ------
    ValueError, TypeError
        as `FedCMOO`, and for betas outside of [0, 1) or an eps that is not positive.
    """

    betas: tuple[float, float] = BETAS
    eps: Positive = EPS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_moments("AdamFedCMOO", self.betas, self.eps)

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Float[Tensor, "d"]:
        """At the client: E steps of Adam on the weighted objectives."""
        return weighted_update(self, client, lam)


@dataclass(frozen=True)
class AdamFedCMOOPref(FedCMOOPref):
    """`FedCMOOPref` with local steps of Adam in lines 6 and 7.

    >>> from fedlib import problems, run
    >>> problem = problems.pareto(torch.eye(4).view(2, 1, 2, 4))
    >>> method = AdamFedCMOOPref(lr=0.05, local_steps=2, participants=2)
    >>> run(method, problem, rounds=20, progress=False).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    betas, eps : of Adam, its usual ones by default.

    All others are those of `FedCMOOPref`; `lr` is Adam's step size.

    Raises
    ------
    ValueError, TypeError
        as `FedCMOOPref`, and for betas outside of [0, 1) or an eps that is not positive.
    """

    betas: tuple[float, float] = BETAS
    eps: Positive = EPS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_moments("AdamFedCMOOPref", self.betas, self.eps)

    def local_update(self, client: Client, lam: Float[Tensor, "M"]) -> Float[Tensor, "d"]:
        """At the client: E steps of Adam on the weighted objectives."""
        return weighted_update(self, client, lam)


@dataclass(frozen=True)
class AdamFSMGDA(FSMGDA):
    """`FSMGDA` with local steps of Adam in line 3, every objective with moments of its own.

    >>> from fedlib import problems, run
    >>> problem = problems.pareto(torch.eye(4).view(2, 1, 2, 4))
    >>> method = AdamFSMGDA(lr=0.05, local_steps=2, participants=2)
    >>> run(method, problem, rounds=20, progress=False).late("f").round(2)
    array([0.48])

    Parameters
    ----------
    betas, eps : of Adam, its usual ones by default.

    All others are those of `FSMGDA`; `lr` is Adam's step size.

    Raises
    ------
    ValueError, TypeError
        as `FSMGDA`, and for betas outside of [0, 1) or an eps that is not positive.
    """

    betas: tuple[float, float] = BETAS
    eps: Positive = EPS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_moments("AdamFSMGDA", self.betas, self.eps)

    def local_updates(self, client: Client) -> Float[Tensor, "Md"]:
        """At the client: the M updates, one after another `[M d]`."""
        tasks, steps = client.num_objectives, self.local_steps
        own, axis = task_batch(client, 0, tasks * steps)
        if axis is not None:  # [M, E, ...]
            data = tuple(x.reshape(tasks, steps, *x.shape[1:]) for x in own.data)
            own = Batch(data, own.weight.reshape(tasks, steps, -1))

        def alone(batches: Batch, task: Tensor) -> Tensor:
            def gradient(u: Tensor, step: int) -> Tensor:
                batch = batches
                if axis is not None:
                    batch = Batch(tuple(x[step] for x in batches.data), batches.weight[step])
                return client.gradient(u, batch, task)

            u = adam(client.model, gradient, steps, self.lr, self.betas, self.eps)
            return (client.model - u) / (steps * self.lr)

        each = torch.eye(tasks, dtype=client.model.dtype, device=client.model.device)
        updates: Tensor = client.each(alone, (axis, 0))(own, each)
        return updates.flatten()
