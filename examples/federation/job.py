"""What all ends agree on: six methods, and for each the problem as one client has it.

The data ship with scikit-learn or are drawn from a seed, so that a client can make its own rows
here. With data of your own, return `with_rows(problem, rows, client, sizes)`.
"""

from dataclasses import replace
from functools import partial

import torch

from fedlib import SSCA, FedAvg, FedCMOO, FedFW, FedSGM, L1Ball, PowerLaw, Soft, TopK
from fedlib.flower.job import Job, client_problem
from fedlib.problems import pareto
from fedlib.testing.examples import classification
from papers.fedsgm.cartpole.method import PolicyFedSGM
from papers.fedsgm.cartpole.simulator import CartPole, cartpole

CLIENTS = 4
LAW = PowerLaw(0.6, 0.3)
TENTH = TopK(0.1)


def quadratics(tasks, dim):
    """Objectives `|w - a|^2 / 2`, their points a drawn around a common one, two rows a client."""
    rng = torch.Generator().manual_seed(0)
    middle = torch.randn(tasks, dim, generator=rng, dtype=torch.float64)
    spread = torch.randn(CLIENTS, 2, tasks, dim, generator=rng, dtype=torch.float64)
    return pareto(0.3 * middle + 0.1 * spread)


class Double(CartPole):
    """Carts and poles in float64, which what an episode starts from and acts by decides."""

    def chance(self, clients, rng):
        """As drawn in float32."""
        return super().chance(clients, rng).double()


def balancing():
    """The constrained cartpole in float64: the end of an episode enlarges what rounding drops."""
    single = cartpole(0, clients=CLIENTS)
    tensors = {
        name: tuple(x.double() for x in getattr(single, name)) for name in ("data", "heldout")
    }
    return replace(single, w0=single.w0.double(), simulator=Double(), **tensors)


METHODS = {
    "FedSGM": (
        FedSGM(0.1, 5, participants=2, tolerance=0.05, uplink=TENTH, downlink=TENTH),
        partial(classification, CLIENTS),
    ),
    "FedCMOO": (FedCMOO(0.1, 5, participants=3), partial(quadratics, 3, 300)),
    "SSCA": (SSCA(1.0, LAW, LAW, batch_size=10), partial(classification, CLIENTS)),
    "FedFW": (FedFW(0.1), lambda: quadratics(1, 64).within(L1Ball(4.0))),
    "FedAvg": (FedAvg(0.1, 5, participants=CLIENTS), partial(classification, CLIENTS)),
    "cartpole": (
        # small moves, and no more steps of conjugate gradient than its rounding errors allow
        PolicyFedSGM(2, tolerance=0.0, switch=Soft(0.2), kl_limit=3e-4, cg_steps=5),
        balancing,
    ),
}


def job(settings):
    """The job that a run's configuration names."""
    method, make_problem = METHODS[settings["method"]]
    return Job(
        method, lambda client: client_problem(make_problem(), client), rounds=settings["rounds"]
    )
