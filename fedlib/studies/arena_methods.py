"""The methods of the arena: how each takes a problem, what a round of it costs, its grid.

A *pass* is one gradient, of one loss or of a weighted sum of losses, on one batch of every client.
Every grid has as many configurations as any other: two parameters with `grid` values each, or one
with the square of that. Step sizes are in units of 1 / L, penalties and the like in units of what
the problem shows at its start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlib.algorithms.fedcmoo import FedCMOO
from fedlib.algorithms.fedfw import FedFW, FedFWPlus
from fedlib.algorithms.multiobjective import Scalarized
from fedlib.studies.arena_makers import (
    KEPT,
    averaging,
    compressed,
    conex,
    penalty,
    preferring,
    several,
    soft,
    splitting,
    ssca,
    switching,
)
from fedlib.studies.arena_units import Units
from fedlib.switching import Hard

__all__ = ["FAMILIES", "METHODS", "Entry", "applies", "family_of", "form_of", "grid", "label_of"]

STEPS = (1.0, 0.3, 0.1)  # step sizes, in units of 1 / L
RANGE = 0.01  # the smallest step size of methods that have no other parameter

#: What the methods were made for; the colour of a method in all figures.
FAMILIES = {
    "functional": "constraint as a function",
    "set": "constraint as a set",
    "objectives": "constraint as an objective",
    "none": "no constraint",
}


Maker = Callable[[Units, float, float], Any]


@dataclass(frozen=True)
class Entry:
    """A method of the arena.

    Attributes
    ----------
    label, family : its name, and what it was made for (a key of `FAMILIES`).
    form : of the problem, one of `arena_problems.FORMS`.
    make : units and the two parameters of a configuration -> the algorithm.
    second : name and values of the second parameter beside the step size; no values: the step size
        (or the parameter named) is the only one.
    passes : E -> gradients of a round.
    sent : E and d -> numbers that a client sends in a round, about.
    """

    label: str
    family: str
    form: str
    make: Maker
    second: tuple[str, tuple[float, ...]]
    passes: Callable[[int], int]
    sent: Callable[[int, int], float]


def dense(_: int, d: int) -> float:
    """A model and a number."""
    return d + 1


FACTORS = (0.1, 1.0, 10.0)
SHARP = (2.0, 8.0, 32.0)
METHODS: dict[str, Entry] = {
    "hard": Entry(
        "FedSGM hard",
        "functional",
        "constraint",
        lambda u, x, y: switching(u, x, tolerance=0 - y * u.level, switch=Hard()),
        ("margin below the level", (0.0, 0.02, 0.1)),
        lambda E: E,
        dense,
    ),
    "soft": Entry(
        "FedSGM soft",
        "functional",
        "constraint",
        soft,
        ("sharpness", SHARP),
        lambda E: E,
        dense,
    ),
    "topk": Entry(
        "FedSGM soft, Top-K",
        "functional",
        "constraint",
        compressed,
        ("sharpness", SHARP),
        lambda E: E,
        lambda _, d: 1.5 * KEPT * d + 1,
    ),
    "penalty": Entry(
        "Penalty-FedAvg",
        "functional",
        "constraint",
        penalty,
        ("penalty", FACTORS),
        lambda E: E,
        dense,
    ),
    "conex": Entry(
        "IPP ConEx",
        "functional",
        "pooled",
        conex,
        ("dual step", (0.01, 0.001, 0.1)),
        lambda E: 2 * E,
        lambda E, d: E * (2 * d + 1),
    ),
    "ssca": Entry(
        "Constrained SSCA",
        "functional",
        "constraint",
        ssca,
        ("averaging", (0.9, 0.3, 0.1)),
        lambda _: 2,
        lambda _, d: 2 * d + 1,
    ),
    "fedfw": Entry(
        "FedFW",
        "set",
        "set",
        lambda u, x, _: FedFW(x * u.penalty, batch_size=u.batch),
        ("lambda", ()),
        lambda _: 1,
        lambda _, d: np.log2(d) / 32,
    ),
    "plus": Entry(
        "FedFW+",
        "set",
        "set",
        lambda u, x, _: FedFWPlus(x * u.penalty, batch_size=u.batch),
        ("lambda", ()),
        lambda _: 1,
        lambda _, d: np.log2(d) / 32,
    ),
    "dr": Entry(
        "FedDR",
        "set",
        "set",
        splitting,
        ("relaxation", (1.0, 0.5, 1.5)),
        lambda E: E,
        dense,
    ),
    "fedavg": Entry("FedAvg", "none", "constraint", averaging, ("", ()), lambda E: E, dense),
    "fedcmoo": Entry(
        "FedCMOO",
        "objectives",
        "objectives",
        lambda u, x, y: FedCMOO(**several(u, x, server_lr=y)),
        ("server step", (1.0, 0.5, 2.0)),
        lambda E: E + 1,
        lambda _, d: 2 * d + 8,
    ),
    "pref": Entry(
        "FedCMOO-Pref",
        "objectives",
        "objectives",
        preferring,
        ("f aimed at", (0.3, 0.9, 0.1)),
        lambda E: E + 1,
        lambda _, d: 2 * d + 10,
    ),
    "scalar": Entry(
        "Scalarized",
        "objectives",
        "objectives",
        lambda u, x, _: Scalarized(**several(u, x)),
        ("", ()),
        lambda E: E,
        dense,
    ),
}


def grid(entry: Entry, side: int) -> list[tuple[float, float]]:
    """The configurations, `side` squared of them: pairs, or one parameter's values and 0.

    Step sizes between `RANGE` and 1, FedFW's lambda between 0.001 and 10, both evenly on a
    logarithmic scale.
    """
    name, values = entry.second
    if values:
        return [(x, y) for x in STEPS[:side] for y in values[:side]]
    ends = (1e-3, 10.0) if name == "lambda" else (RANGE, 1.0)
    return [(float(f"{x:.3g}"), 0.0) for x in np.geomspace(*ends, side * side)]


def applies(method: str, problem: str) -> str:
    """Why a method cannot take part in a problem; an empty text if it can."""
    entry = METHODS[method]
    if entry.form == "set" and problem != "sparse":
        return "needs a set with a projection or a linear oracle; g is a function of data"
    if method == "pref" and problem == "fair":
        return "balances losses that are not negative; the gap of two groups may be"
    return ""


def form_of(method: str, problem: str) -> str:
    """The form in which a method takes a problem: FedAvg projects where it can."""
    return "set" if (method, problem) == ("fedavg", "sparse") else METHODS[method].form


def family_of(method: str, problem: str) -> str:
    """What a method works with on a problem: FedAvg with the set, where there is one."""
    return "set" if form_of(method, problem) == "set" else METHODS[method].family


def label_of(method: str, problem: str) -> str:
    """A method's name on a problem."""
    label = METHODS[method].label
    return f"projected {label}" if (method, problem) == ("fedavg", "sparse") else label
