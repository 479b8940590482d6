"""Study of the low-rank case: nuclear balls, rank-one messages, projections by SVD."""

from __future__ import annotations

from functools import partial
from typing import Any

from fedlib import checks
from fedlib.algorithms.baselines import FedAvg
from fedlib.algorithms.feddr import FedDR
from fedlib.algorithms.fedfw import FedFW, FedFWPlus
from fedlib.core.problem import ConvexSet
from fedlib.sets import Ball, Box, L1Ball, Simplex
from papers.fedfw.lowrank import claims, figures
from papers.fedfw.lowrank.numbers import RADIUS, TASKS, derive
from papers.fedfw.lowrank.problems import (
    Scales,
    clock_problem,
    pictures_within,
    scales,
    task_problem,
)
from papers.fedfw.lowrank.watched import Accelerated, Clock, Watched
from papers.kit.health_checks import HealthCheck, HealthChecks, nothing
from papers.kit.store import Spec
from papers.kit.study import Params, Study, parameters
from papers.kit.tolerance import Tolerance

__all__ = ["STUDY", "specs"]

PARAMETERS = parameters(
    seeds=("seeds; each fixes the generated data", (0, 1, 2, 3, 4), (0, 1)),
    rounds=("communication rounds T", 600, 24),
    evaluate_every=("rounds between two evaluations", 2),
    reference_rounds=("rounds of the accelerated method that finds the smallest loss", 3000, 60),
    clients=("clients N", 10, 5),
    rank=("rank of the true matrix", 3, 2),
    regression=("features and tasks: rows and columns of the matrix", (60, 40), (12, 8)),
    samples=("rows of a client, regression", 60, 20),
    completion=("users and items: rows and columns of the matrix", (100, 80), (20, 12)),
    observed=("share of the entries that is observed, completion", 0.3),
    tasks=("the problems: multi-task regression, matrix completion", TASKS, ("regression",)),
    lanczos=("steps of Lanczos in the oracle", 15),
    penalties=(
        "grid of lambda_0, in units of mean |grad f_i(0)| / (N D)",
        (0.01, 0.1, 1.0, 10.0),
        (0.1, 1.0),
    ),
    rates=("grid of step sizes, in units of 1 / smoothness", (0.1, 0.3, 1.0), (1.0,)),
    proximal=("grid of FedDR's eta, in units of 1 / smoothness", (1.0, 10.0, 100.0), (10.0,)),
    local_steps=("local steps E of FedDR and of the second FedAvg", 5),
    sides=(
        "sides of the square matrices that the oracles are timed on",
        (100, 200, 500, 1000, 2000),
        (50, 100),
    ),
    repetitions=("repetitions of each timing", 5, 2),
    message_rounds=("rounds in which all messages are looked at", 100, 3),
    message_rows=("digits of the problem there", 1000, 100),
)
KEEP = ("loss", "error", "heldout", "rank")
INSTANT = 100  # sides up to this are timed over several calls
CALLS = 20


def specs(p: Params) -> dict[str, Spec]:
    """`TASK_METHOD_GRIDPOINT`, `TASK_reference`, `clock_MxN`, `messages_SET`."""
    found: dict[str, Spec] = {}
    for task in p["tasks"]:
        make = partial(task_problem, task=task, steps=p["lanczos"], **sizes(task, p))
        known = scales(tuple(make(seed) for seed in p["seeds"]))
        seeds, every = tuple(p["seeds"]), p["evaluate_every"]
        for name, method in methods(known, p).items():
            found[f"{task}_{name}"] = Spec(method, make, p["rounds"], seeds, every, KEEP)
        long = p["reference_rounds"]
        reference = Accelerated(1 / known.mean)
        keep = ("loss", "error", "gap", "rank", "heldout")
        found[f"{task}_reference"] = Spec(reference, make, long, seeds, long, keep)
    return found | messages(p) | clocks(p)


def sizes(task: str, p: Params) -> dict[str, Any]:
    if len(p[task]) != 2:
        raise ValueError(checks.sentence("fw_lowrank", task, "be rows and columns", p[task]))
    rows, columns = map(int, p[task])
    if task == "completion":
        shape = {"users": rows, "items": columns, "observed": float(p["observed"])}
        return {"clients": p["clients"], "rank": p["rank"], **shape}
    shape = {"rows": p["samples"], "features": rows, "tasks": columns}
    return {"clients": p["clients"], "rank": p["rank"], **shape}


def methods(known: Scales, p: Params) -> dict[str, Any]:
    n, E = p["clients"], p["local_steps"]
    found: dict[str, Any] = {}
    for x in map(float, p["penalties"]):
        found[f"fedfw_l{x:g}"] = FedFW(x * known.penalty)
        found[f"plus_l{x:g}"] = FedFWPlus(x * known.penalty)
    for x in map(float, p["rates"]):
        found[f"avg1_a{x:g}"] = FedAvg(x / known.mean, 1, n)
        found[f"avg5_a{x:g}"] = FedAvg(x / known.client, E, n)
    for x in map(float, p["proximal"]):
        eta = x / known.client
        found[f"dr_e{x:g}"] = FedDR(1 / (known.client + 1 / eta), E, eta=eta)
    return found


def messages(p: Params) -> dict[str, Spec]:
    sets: dict[str, ConvexSet] = {
        "l1": L1Ball(RADIUS),
        "simplex": Simplex(RADIUS),
        "box": Box(1.0),
        "l2": Ball(RADIUS),
    }
    seen = ("loss", "most", "fewest", "second", "off", "wire")
    seeds, T = tuple(p["seeds"]), p["message_rounds"]
    method = Watched(FedFW(0.01))
    found = {}
    for name, convex_set in sets.items():
        make = partial(pictures_within, convex_set=convex_set, rows=p["message_rows"])
        found[f"messages_{name}"] = Spec(method, make, T, seeds, T, seen)
    low = partial(task_problem, task="regression", steps=p["lanczos"], **sizes("regression", p))
    found["messages_nuclear"] = Spec(method, low, T, seeds, T, seen)
    return found


def clocks(p: Params) -> dict[str, Spec]:
    shapes = [(side, side) for side in map(int, p["sides"])]
    shapes += [(int(p[task][0]), int(p[task][1])) for task in p["tasks"]]
    found = {}
    for m, n in shapes:
        make = partial(clock_problem, rows=m, columns=n, steps=p["lanczos"])
        clock = Clock(CALLS if m <= INSTANT else 1)
        keep = ("lmo", "project", "reached")
        found[f"clock_{m}x{n}"] = Spec(clock, make, p["repetitions"], (0,), p["repetitions"], keep)
    return found


WATCH: HealthChecks = {
    "clock_*": nothing("times of single oracle calls"),
    "messages_*": nothing("messages of a run, which are counted"),
    "*": HealthCheck("loss"),
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
    tolerances={
        "clock_*": Tolerance(timed=("lmo", "project")),
        "messages_*": Tolerance(),
        "*": Tolerance(rounds=12, rtol=0.1, atol=0.05),  # the oracle is a power iteration
    },
    **PARAMETERS,
)
