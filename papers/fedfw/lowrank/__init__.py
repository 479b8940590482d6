"""Study of what FedFW sends, and of what its oracle costs beside a projection."""

from __future__ import annotations

from functools import partial

from fedlib.algorithms.fedfw import FedFW
from fedlib.core.problem import ConvexSet
from fedlib.sets import Ball, Box, L1Ball, Simplex
from papers.fedfw.lowrank import claims, figures
from papers.fedfw.lowrank.numbers import RADIUS, derive
from papers.fedfw.lowrank.problems import clock_problem, pictures_within, tasks_within
from papers.fedfw.lowrank.watched import Clock, Watched
from papers.kit.health import HealthChecks, nothing
from papers.kit.store import Spec
from papers.kit.study import Params, Study, parameters
from papers.kit.tolerance import Tolerance

__all__ = ["STUDY", "specs"]

PARAMETERS = parameters(
    seeds=("seeds; each fixes the generated data", (0, 1, 2, 3, 4), (0, 1)),
    rounds=("rounds in which all messages are looked at", 100, 3),
    clients=("clients N of the regression", 10, 5),
    rank=("rank of the true matrix", 3, 2),
    rows=("rows of the matrix: features", 60, 12),
    columns=("columns of the matrix: tasks", 40, 8),
    samples=("rows of a client", 60, 20),
    lanczos=("steps of Lanczos in the oracle", 15),
    pictures=("digits in the other sets", 1000, 100),
    sides=(
        "sides of the square matrices that the oracles are timed on",
        (100, 200, 500, 1000, 2000),
        (50, 100),
    ),
    repetitions=("repetitions of each timing", 5, 2),
)
SETS: dict[str, ConvexSet] = {
    "l1": L1Ball(RADIUS),
    "simplex": Simplex(RADIUS),
    "box": Box(1.0),
    "l2": Ball(RADIUS),
}
SEEN = ("loss", "most", "fewest", "second", "off", "wire")
INSTANT = 100  # sides up to this are timed over several calls
CALLS = 20


def specs(p: Params) -> dict[str, Spec]:
    """`messages_SET` and `clock_MxN`."""
    seeds, T, steps = tuple(p["seeds"]), p["rounds"], p["lanczos"]
    matrix = {"clients": p["clients"], "rank": p["rank"], "rows": p["samples"]}
    matrix |= {"features": p["rows"], "tasks": p["columns"]}
    problems = {k: partial(pictures_within, convex_set=x, rows=p["pictures"])
                for k, x in SETS.items()}  # fmt: skip
    problems["nuclear"] = partial(tasks_within, steps=steps, **matrix)
    watched = Watched(FedFW(0.01))
    found = {f"messages_{k}": Spec(watched, x, T, seeds, T, SEEN) for k, x in problems.items()}
    shapes = [(side, side) for side in map(int, p["sides"])]
    for m, n in (*shapes, (p["rows"], p["columns"])):
        clock = Clock(CALLS if m <= INSTANT else 1)
        made = partial(clock_problem, rows=m, columns=n, steps=steps)
        keep, rounds = ("lmo", "project", "reached"), p["repetitions"]
        found[f"clock_{m}x{n}"] = Spec(clock, made, rounds, (0,), rounds, keep)
    return found


WATCH: HealthChecks = {
    "clock_*": nothing("times of single oracle calls"),
    "messages_*": nothing("messages of a run, which are counted"),
}


STUDY = Study(
    name="fw_lowrank",
    title="The low-rank case",
    paper="D",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    figures=figures.FIGURES,
    watch=WATCH,
    tolerances={"clock_*": Tolerance(timed=("lmo", "project")), "messages_*": Tolerance()},
    **PARAMETERS,
)
