"""One round of every algorithm, small enough for a page: settings and problems.

The pages about methods record these rounds and print what crossed the line. The first setting of an
algorithm is the one whose messages are listed, the others are there for their bits.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

    from fedlib.core import Problem
    from fedlib.core.types import ConvexSet

CLIENTS = 20
TASKS, TASK_DIM = 3, 300
SIDE = 8  # of the square matrices of the Frank-Wolfe problems


class Example(NamedTuple):
    """An algorithm with its parameters, and what it is run on."""

    algorithm: Any
    problem: Problem


@lru_cache(maxsize=1)
def examples() -> dict[str, tuple[Example, ...]]:
    """The examples of every algorithm, by its name; `fedlib` is imported here, not at the top."""
    groups = (switching(), baselines(), objectives(), frank_wolfe(), successive(), vertical())
    found: dict[str, tuple[Example, ...]] = {}
    for problem, algorithms in (pair for group in groups for pair in group):
        for algorithm in algorithms:
            name = type(algorithm).__name__
            found[name] = (*found.get(name, ()), Example(algorithm, problem))
    return found


Group = list[tuple["Problem", list[Any]]]


def classification(clients: int) -> Problem:
    """Neyman-Pearson classification on the breast cancer data: d = 30, one constraint."""
    from fedlib import data
    from fedlib.problems import neyman_pearson

    table = data.breast_cancer()
    return neyman_pearson(table.X, table.y, clients=clients, seed=0, train_fraction=0.8)


def several(tasks: int, dim: int, convex_set: ConvexSet | None = None) -> Problem:
    """Quadratics of eight clients with three rows each."""
    import torch

    from fedlib.core.sampling import seeded
    from fedlib.problems import pareto

    centres = torch.randn((8, 3, tasks, dim), generator=seeded(0, "split"))
    problem = pareto(centres)
    return problem if convex_set is None else problem.within(convex_set)


def switching() -> Group:
    """FedSGM and its kin, under a constraint."""
    import fedlib as fl
    from fedlib.problems import cartpole

    hard = fl.FedSGM(lr=0.1, local_steps=5, participants=10, tolerance=0.05)
    top = fl.TopK(0.1)
    variants = [
        replace(hard, switch=fl.Soft(40.0), uplink=top, downlink=top),
        hard,
        replace(hard, participants=CLIENTS, uplink=fl.RandK(0.5), error_feedback=False),
        replace(hard, uplink=fl.Rounding(3), downlink=fl.Rounding(3)),
        fl.PenaltyFedAvg(lr=0.1, local_steps=5, participants=10, tolerance=0.05, rho=0.5),
    ]
    policy = fl.PolicyFedSGM(participants=2, tolerance=0.0, switch=fl.Soft(0.2), cg_steps=3)
    return [
        (classification(CLIENTS), variants),
        (cartpole(0, clients=3, environments=2, evaluation=4), [policy]),
    ]


def baselines() -> Group:
    """Averaging, with and without a term that ties clients together; methods for one machine."""
    import fedlib as fl

    averaging = [
        fl.FedAvg(lr=0.1, local_steps=5, participants=10),
        fl.FedProx(lr=0.1, local_steps=5, participants=10),
    ]
    alone = [
        fl.SGM(lr=0.1, tolerance=0.05, steps=5),
        fl.PenaltySGM(lr=0.1, tolerance=0.05, rho=0.5, steps=5),
        fl.ConEx(lr=0.1, dual_lr=0.5, tolerance=0.05, steps=5),
    ]
    splitting = [fl.FedDR(lr=0.1, local_steps=5)]
    return [
        (classification(CLIENTS), averaging),
        (classification(1), alone),
        (several(1, SIDE**2, fl.L1Ball(1.0)), splitting),
    ]


def objectives() -> Group:
    """Three objectives at once."""
    import fedlib as fl

    way = fl.FedCMOO(lr=0.1, local_steps=5, participants=5)
    algorithms = [
        way,
        replace(way, gram=fl.OneWay()),
        replace(way, gram=fl.OneWay(fl.Exact())),
        fl.FedCMOOPref(lr=0.1, local_steps=5, participants=5),
        fl.FedCMOOTheory(
            lr=0.1,
            local_steps=5,
            participants=5,
            step=0.05,
            gram_participants=3,
            compressor=fl.RandK(0.5),
        ),
        fl.FSMGDA(lr=0.1, local_steps=5, participants=5),
        fl.Scalarized(lr=0.1, local_steps=5, participants=5),
        fl.MGDA(lr=0.1),
    ]
    return [(several(TASKS, TASK_DIM), algorithms)]


def frank_wolfe() -> Group:
    """FedFW's family in several sets, of which the first is the l1 ball."""
    import fedlib as fl

    plain = fl.FedFW(lam0=0.1)
    sets = [fl.Simplex(1.0), fl.Box(-1.0, 1.0), fl.NuclearBall(1.0, SIDE, SIDE), fl.Ball(1.0)]
    family = [
        plain,
        fl.FedFWPlus(lam0=0.1),
        fl.FedFWSto(lam0=0.1, batch_size=2),
        fl.FedFWReset(lam0=0.1, local_steps=5),
        fl.NaiveFW(),
    ]
    return [
        (several(1, SIDE**2, fl.L1Ball(1.0)), family),
        *((several(1, SIDE**2, convex_set), [plain]) for convex_set in sets),
    ]


def successive() -> Group:
    """Successive convex approximation and SGD, samples split."""
    import fedlib as fl

    rho, gamma = fl.PowerLaw(0.6, 0.3), fl.PowerLaw(0.9, 0.35)
    algorithms = [
        fl.SSCA(tau=1.0, rho=rho, gamma=gamma, batch_size=10),
        fl.ConstrainedSSCA(tau=1.0, rho=rho, gamma=gamma, penalty=100.0, levels=0.3, batch_size=10),
        fl.MiniBatchSGD(lr=fl.PowerLaw(0.3), local_steps=2, batch_size=10),
    ]
    return [(classification(CLIENTS), algorithms)]


def vertical() -> Group:
    """The same with features split: a small network on scikit-learn's digits, four clients."""
    import fedlib as fl
    from fedlib import data
    from fedlib.problems import swish_network, vertical_network

    digits = data.digits()
    flat = replace(digits, X=flattened(digits.X))
    network = swish_network(flat, flat, clients=4, hidden=8, scale=16.0, evaluate=100)
    rho, gamma = fl.PowerLaw(0.6, 0.3), fl.PowerLaw(0.9, 0.35)
    algorithms = [
        fl.VerticalSSCA(tau=1.0, rho=rho, gamma=gamma, batch_size=10),
        fl.ConstrainedVerticalSSCA(
            tau=1.0, rho=rho, gamma=gamma, penalty=100.0, levels=1.0, objective="norm",
            batch_size=10,
        ),
        fl.VerticalSGD(lr=fl.PowerLaw(0.3), batch_size=10),
    ]  # fmt: skip
    return [(vertical_network(network, clients=4, scale=16.0), algorithms)]


def flattened(pictures: torch.Tensor) -> torch.Tensor:
    """Pictures as rows of pixels."""
    return pictures.flatten(1)
