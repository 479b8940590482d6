"""What all ends agree on: six methods, and for each the problem as one client has it.

The data ship with scikit-learn or are drawn from a seed, so that a client can make its own rows
here. With data of your own, return `placed(problem, rows_of_this_client, client, sizes)`.
"""

from functools import partial

import torch

from fedlib import SSCA, FedAvg, FedCMOO, FedFW, FedSGM, L1Ball, PolicyFedSGM, PowerLaw, Soft, TopK
from fedlib.federated import Job, part
from fedlib.problems import cartpole, pareto
from fedlib.testing.examples import classification

CLIENTS = 4
LAW = PowerLaw(0.6, 0.3)
TENTH = TopK(0.1)


def quadratics(tasks, dim):
    """Objectives `|w - a|^2 / 2`, their points a drawn around a common one, two rows a client."""
    rng = torch.Generator().manual_seed(0)
    middle = torch.randn(tasks, dim, generator=rng, dtype=torch.float64)
    spread = torch.randn(CLIENTS, 2, tasks, dim, generator=rng, dtype=torch.float64)
    return pareto(0.3 * middle + 0.1 * spread)


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
        PolicyFedSGM(participants=2, tolerance=0.0, switch=Soft(0.2)),
        partial(cartpole, 0, clients=CLIENTS),
    ),
}


def job(settings):
    """The job that a run's configuration names."""
    method, whole = METHODS[settings["method"]]
    return Job(method, lambda client: part(whole(), client), rounds=settings["rounds"])
