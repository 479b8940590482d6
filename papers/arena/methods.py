"""The methods of the arena: how each takes a problem, what a round of it costs, its grid.

A *pass* is one gradient, of one loss or of a weighted sum of losses, on one batch of every client.
Every grid has as many configurations as any other, and step sizes over the same range, in units of
1 / L; penalties and the like are in units of what the problem shows at its start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch

from fedlib.algorithms.constrained_ssca import ConstrainedSSCA
from fedlib.algorithms.fedavg import FedAvg
from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref
from fedlib.algorithms.feddr import FedDR
from fedlib.algorithms.fedfw import FedFW, FedFWPlus
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.penalty import PenaltyFedAvg
from fedlib.algorithms.scalarized import Scalarized
from fedlib.compress import TopK
from fedlib.core import Problem
from fedlib.steps import Hard, PowerLaw, Soft
from fedlib.weights import Preference
from papers.arena.problems import BATCHES, LEVELS, SETS, arena_problem


class Units(NamedTuple):
    """What the parameters of a problem's grids are multiples of."""

    lr: float  # 1 / L of the least smooth loss of a client
    start: float  # f(w0)
    level: float
    penalty: float  # mean |grad f_i(0)| / (N D), FedFW's
    clients: int
    dim: int
    batch: int | None
    local_steps: int

    def work(self, x: float) -> dict[str, Any]:
        """What most methods have in common, with x / L as step size; everybody takes part."""
        return {
            "lr": x * self.lr,
            "local_steps": self.local_steps,
            "participants": self.clients,
            "batch_size": self.batch,
        }


#: Of the problem on Adult and seed 0, whose files not every machine has that reads the stored runs;
#: a test holds it against the files.
ADULT = {"lr": 0.54, "start": 0.69, "penalty": 0.0, "clients": 8, "dim": 88}


@lru_cache(maxsize=16)
def units(
    name: str,
    seed: int,
    local_steps: int,
    batch: int,
    stand_in: int,
) -> Units:
    """The units of a problem's grids, from one seed, to two significant digits.

    `batch` is the most rows that a minibatch has.
    """
    recorded = name == "np" and not (seed or stand_in)
    measured = ADULT if recorded else of_data(name, seed, stand_in)
    largest = BATCHES[name]
    return Units(
        level=LEVELS[name],
        batch=None if largest is None else min(largest, batch),
        local_steps=local_steps,
        **measured,  # type: ignore[arg-type]
    )


def of_data(name: str, seed: int, stand_in: int) -> dict[str, float]:
    """What of the units is computed from the data."""
    form = "set" if name in SETS else "constraint"
    problem = arena_problem(seed, name=name, form=form, stand_in=stand_in)
    at_start = problem.metrics(problem.w0, problem)
    penalty = oracle_unit(problem) if name in SETS else 0.0
    return {
        "lr": two_digits(1 / smoothness(problem)),
        "start": two_digits(float(at_start["f"])),
        "penalty": two_digits(penalty),
        "clients": problem.num_clients,
        "dim": problem.dim,
    }


def two_digits(value: float) -> float:
    """A value to two significant digits."""
    return float(f"{value:.2g}")


def smoothness(problem: Problem) -> float:
    """L: of the loss of a client that bends most, by the largest eigenvalue of its rows.

    A logistic loss bends by a quarter of a squared error.
    """
    X, *targets = problem.data
    bends = {"arena_np": 0.25, "arena_sparse": 1.0, "arena_pair": 0.25}
    most = 0.0
    for rows in problem.rows:
        count = len(rows)
        shares = targets[1][rows].T if problem.name == "arena_np" else torch.ones(1, count)
        for share in shares:
            factors = (share / count).sqrt()
            scaled = X[rows] * factors.unsqueeze(1)
            largest = float(torch.linalg.matrix_norm(scaled, ord=2))
            most = max(most, largest**2)
    return bends[problem.name] * most


def oracle_unit(problem: Problem) -> float:
    """FedFW's unit of lambda where there is a set: mean |grad f_i(0)| / (N D)."""
    clients = problem.all_clients()
    slope = problem.gradient
    ball = problem.set
    assert slope is not None
    weight = torch.ones(1)
    slopes = torch.func.vmap(lambda b: slope(problem.w0, b, weight))(clients)
    mean_length = float(slopes.norm(dim=1).mean())
    wide: float = ball.diameter(problem.dim)  # type: ignore[union-attr]
    return mean_length / (problem.num_clients * wide)


#: Step sizes in units of 1 / L, those that a short grid keeps first; the second for the methods
#: that are never told the level and have five values of a weight or a ratio in its place.
STEPS = {3: (1.0, 0.3, 3.0, 0.1, 10.0), 5: (1.0, 0.1, 10.0)}
SPAN = (0.1, 10.0)  # between which methods with the step size alone have all their values
PENALTIES = (1e-3, 10.0)  # between which Frank-Wolfe methods have their lambda_0
COUNT = 15  # configurations of a method

KEPT = 0.1  # the share of the entries that Top-K keeps
LARGEST = 10.0  # the exact penalty of SSCA, in units of f(w0) / level
RHO = PowerLaw(0.9, 0.3)  # how SSCA averages its surrogates; its iterates fall with FALL
FALL = 0.35


def soft(u: Units, x: float, y: float, **options: Any) -> FedSGM:
    """Soft switching, the sharpness in units of 1 / level."""
    return FedSGM(
        **u.work(x),
        level=u.level,
        tolerance=0.0,
        switch=Soft(y / u.level),
        **options,
    )


def penalty(u: Units, x: float, y: float) -> PenaltyFedAvg:
    """Penalty-FedAvg, the penalty in units of f(w0) / level."""
    rho = y * u.start / u.level
    return PenaltyFedAvg(**u.work(x), tolerance=0.0, rho=rho, level=u.level)


def ssca(u: Units, x: float, y: float) -> ConstrainedSSCA:
    """Surrogates whose own step is x / L, averaged with y / t^0.35."""
    convexity = 1 / (2 * x * u.lr)
    return ConstrainedSSCA(
        convexity,
        RHO,
        PowerLaw(y, FALL),
        penalty=LARGEST * u.start / u.level,
        batch_size=u.batch,
        levels=u.level,
        growth=1,  # whole, so that no grid takes it for one of its numbers
    )


def splitting(u: Units, x: float, y: float) -> FedDR:
    """FedDR, eta in units of 1 / L, and its relaxation."""
    eta = u.lr * x
    bend = 1 / u.lr + 1 / eta
    return FedDR(
        1 / bend,
        u.local_steps,
        eta=eta,
        relaxation=y,
        batch_size=u.batch,
    )


def preferring(u: Units, x: float, y: float) -> FedCMOOPref:
    """Losses in the ratio (y f(w0)) : level, the optimum's if y f(w0) is the optimal value."""
    preference = Preference(ratios=(1 / (y * u.start), 1 / u.level))
    return FedCMOOPref(**u.work(x), preference=preference)


@dataclass(frozen=True)
class Entry:
    """A method of the arena; `make` is given the two parameters of a configuration.

    `second` has name and values of the parameter beside the step size, the middle one first;
    without values the step size (or the parameter named) is the only one. `ratio` says that the
    second is the weight of g over that of f, which is the problem's matter, in units of
    f(w0) / level.
    """

    label: str
    form: str  # of the problem, one of `problems.FORMS`
    make: Callable[[Units, float, float], Any]
    second: tuple[str, tuple[float, ...]] = ("", ())
    passes: Callable[[int], int] = lambda steps: steps  # E -> gradients of a round
    #: E, d -> numbers to and from a client, about; a model and a number both ways.
    sent: Callable[[int, int], float] = lambda _, d: 2 * d + 2
    ratio: bool = False


functional = partial(Entry, form="constraint")
with_set = partial(Entry, form="set")
frank_wolfe = partial(
    with_set,
    second=("lambda", ()),
    passes=lambda _: 1,
    sent=lambda _, d: float(d + np.log2(d) / 32),  # a model down, a place up
)
several = partial(Entry, form="objectives")
SHARPNESS = ("sharpness", (10.0, 1.0, 100.0))

METHODS: dict[str, Entry] = {
    "hard": functional(
        "FedSGM hard",
        make=lambda u, x, y: FedSGM(
            **u.work(x),
            level=u.level,
            tolerance=0 - y * u.level,
            switch=Hard(),
        ),
        second=("margin below the level", (0.02, 0.0, 0.1)),
    ),
    "soft": functional("FedSGM soft", make=soft, second=SHARPNESS),
    "topk": functional(
        "FedSGM soft, Top-K",
        make=partial(soft, uplink=TopK(KEPT), downlink=TopK(KEPT)),
        second=SHARPNESS,
        sent=lambda _, d: 3 * KEPT * d + 2,
    ),
    "penalty": functional("Penalty-FedAvg", make=penalty, second=("penalty", (1.0, 0.1, 10.0))),
    "ssca": functional(
        "Constrained SSCA",
        make=ssca,
        second=("averaging", (0.3, 0.9, 0.1)),
        passes=lambda _: 2,
        sent=lambda _, d: 3 * d + 1,
    ),
    "fedfw": frank_wolfe("FedFW", make=lambda u, x, _: FedFW(x * u.penalty, batch_size=u.batch)),
    "plus": frank_wolfe(
        "FedFW+", make=lambda u, x, _: FedFWPlus(x * u.penalty, batch_size=u.batch)
    ),
    "dr": with_set("FedDR", make=splitting, second=("relaxation", (1.0, 0.5, 1.5))),
    "fedavg": Entry("FedAvg", "constraint", lambda u, x, _: FedAvg(**u.work(x))),
    "fedcmoo": several(
        "FedCMOO",
        make=lambda u, x, _: FedCMOO(**u.work(x)),
        second=("scale of g", (1.0, 0.3, 3.0, 0.1, 10.0)),
        passes=lambda E: E + 1,
        sent=lambda _, d: 4 * d + 8,
        ratio=True,
    ),
    "pref": several(
        "FedCMOO-Pref",
        make=preferring,
        second=("f aimed at", (0.2, 0.1, 0.45, 0.05, 0.9)),
        passes=lambda E: E + 1,
        sent=lambda _, d: 4 * d + 10,
    ),
    "scalar": several(
        "Scalarized",
        make=lambda u, x, _: Scalarized(**u.work(x)),
        second=("weight of g", (0.1, 0.03, 0.3, 0.01, 1.0)),
        sent=lambda _, d: 2 * d,
        ratio=True,
    ),
}


def grid(entry: Entry, count: int) -> list[tuple[float, float]]:
    """The first `count` of a method's configurations, from the middle of the ranges on.

    Pairs of a step size and the second parameter; or values of the only parameter and 0, evenly on
    a logarithmic scale.
    """
    name, values = entry.second
    if values:
        pairs = [(x, y) for y in values for x in STEPS[len(values)]]
        return pairs[:count]
    low, high = PENALTIES if name == "lambda" else SPAN
    middle = (low * high) ** 0.5
    steps = [float(f"{x:.3g}") for x in np.geomspace(low, high, COUNT)]
    steps.sort(key=lambda x: abs(np.log(x / middle)))
    return [(x, 0.0) for x in steps[:count]]


def applies(method: str, problem: str) -> bool:
    """Whether a method can take part: some need a set with a projection or a linear oracle."""
    return METHODS[method].form != "set" or problem in SETS


def form_of(method: str, problem: str) -> str:
    """The form in which a method takes a problem: FedAvg projects where it can."""
    return "set" if method == "fedavg" and problem in SETS else METHODS[method].form


def label_of(method: str, problem: str) -> str:
    label = METHODS[method].label
    return f"projected {label}" if method == "fedavg" and problem in SETS else label
