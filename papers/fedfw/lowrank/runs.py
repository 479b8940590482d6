"""The runs of the low-rank study, with the labels by which everything finds them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fedlib.algorithms.fedfw import FedFW
from fedlib.core.problem import ConvexSet
from fedlib.sets import Ball, Box, L1Ball, Simplex
from papers.fedfw.lowrank.problems import clock_problem, pictures_within, tasks_within
from papers.fedfw.lowrank.watched import Clock, Watched
from papers.kit.quantities import Defaults, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

RADIUS = 10.0  # of the sets whose messages are looked at
SETS: dict[str, ConvexSet] = {
    "l1": L1Ball(RADIUS),
    "simplex": Simplex(RADIUS),
    "box": Box(1.0),
    "l2": Ball(RADIUS),
}
SEEN = ("loss", "most", "fewest", "second", "off", "wire")
INSTANT = 100  # sides up to this are timed over several calls
CALLS = 20

#: The labels of runs: `messages` of a set, or the `clock` of matrices of a shape, such as 60x40.
DEFAULTS: Defaults = {"kind": None, "set": None, "shape": None}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*messages(p), *clocks(p)], DEFAULTS)


def messages(p: Params) -> Iterator[Spec]:
    """FedFW in each set, all messages looked at."""
    problems: dict[str, Any] = {
        name: partial(pictures_within, convex_set=convex_set, rows=p["pictures"])
        for name, convex_set in SETS.items()
    }
    problems["nuclear"] = partial(
        tasks_within,
        steps=p["lanczos"],
        clients=p["clients"],
        rank=p["rank"],
        rows=p["samples"],
        features=p["rows"],
        tasks=p["columns"],
    )
    for name, problem in problems.items():
        yield Spec(
            Watched(FedFW(0.01)),
            problem,
            p["rounds"],
            p["seeds"],
            p["rounds"],
            SEEN,
            labels={"kind": "messages", "set": name},
        )


def clocks(p: Params) -> Iterator[Spec]:
    """Times of both oracles on square matrices, and on the shape of the regression."""
    shapes = [(side, side) for side in map(int, p["sides"])]
    for rows, columns in (*shapes, (p["rows"], p["columns"])):
        yield Spec(
            Clock(CALLS if rows <= INSTANT else 1),
            partial(clock_problem, rows=rows, columns=columns, steps=p["lanczos"]),
            p["repetitions"],
            (0,),
            p["repetitions"],
            ("lmo", "project", "reached"),
            labels={"kind": "clock", "shape": f"{rows}x{columns}"},
        )
