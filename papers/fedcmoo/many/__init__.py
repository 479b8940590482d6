"""Study of FedCMOO's Figures 1, 8, 9 with many objectives: 2, 5 and 40 tasks of one picture.

The paper's forty attributes are those of CelebA's faces, which may not be passed on. Here stand
forty attributes of a digit and an item (`papers.fedcmoo.problems.attributes`), in the quick profile
the same attributes of scikit-learn's digits, which need no download.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch

from fedlib.algorithms.fedcmoo import FedCMOO
from fedlib.algorithms.fsmgda import FSMGDA
from fedlib.core import Problem, Trace
from fedlib.core.trace import Array
from papers.fedcmoo.common import CLIPPED, COLOR, ENCODERS, TWO, cmoo, final, task, work
from papers.fedcmoo.data import pairs
from papers.fedcmoo.problems.attributes import GROUPS, NAMES, Labelled, attributes, labelled
from papers.fedcmoo.standin import DIGITS, noted, standin_pairs, stands_in
from papers.kit import plot
from papers.kit.health import HealthCheck, Needs
from papers.kit.numbers import Number, exact, mean
from papers.kit.panels import columns, row
from papers.kit.parameters import parameters
from papers.kit.rules import EXCHANGED, Rule, of, stat
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Tolerance, Traces

#: Sets of tasks -> M: two halves and five groups of the attributes, and each by itself.
SETS = {"halves": 2, "groups": 5, "attributes": 40}
LAST = 0.2  # share of the rounds that a final value averages


def megabytes(trace: Trace) -> float:
    """What a participant uploads in a round, in units of 10^6 bytes."""
    participants = int(trace.config["algorithm"]["participants"])
    return float(trace.config["bits"]["bits_up"]) / participants / 8e6


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        numbers[f"{name}.accuracy"] = mean(100 * final(trace, "accuracy", LAST), "%")
        numbers[f"{name}.upload"] = exact(megabytes(trace), "MB")
    leads = {}
    for tasks in SETS:
        ours, theirs = traces[f"{tasks}_fedcmoo"], traces[f"{tasks}_fsmgda"]
        leads[tasks] = 100 * (final(ours, "accuracy", LAST) - final(theirs, "accuracy", LAST))
        numbers[f"{tasks}.gap"] = mean(leads[tasks], "points")
        numbers[f"{tasks}.gap_upload"] = mean(gap_at_equal_upload(ours, theirs), "points")
        numbers[f"{tasks}.upload_ratio"] = exact(megabytes(theirs) / megabytes(ours))
    for tasks in ("groups", "attributes"):
        numbers[f"{tasks}_vs_halves.gap"] = mean(leads[tasks] - leads["halves"], "points")
    majority = traces["halves_fedcmoo"].config["problem"]["majority"]
    numbers["majority"] = exact(100 * majority, "%")
    numbers["rounds"] = exact(p["rounds"], "rounds")
    return numbers


def gap_at_equal_upload(ours: Trace, theirs: Trace) -> Array:
    """Per seed FedCMOO minus FSMGDA in accuracy, in points, after equal uploads.

    FSMGDA stops where it has sent what all rounds of FedCMOO send, or at its last round if that
    comes first; between two evaluations its curve is taken as straight.
    """
    total = float(ours.rounds[-1])
    stop = min(total, total * megabytes(ours) / megabytes(theirs))
    there = [np.interp(stop, theirs.rounds, x) for x in theirs.metrics["accuracy"]]
    return np.asarray(100 * (ours.metrics["accuracy"][:, -1] - there))


def progress(traces: Traces) -> plot.Drawing:
    """Mean test accuracy over the rounds, a panel for every number of tasks."""
    majority = 100 * float(traces["halves_fedcmoo"].config["problem"]["majority"])

    def fill(ax: plot.Axes, tasks: str) -> None:
        for name, label in TWO.items():
            trace, color = traces[f"{tasks}_{name}"], COLOR[label]
            plot.band(ax, trace.rounds, 100 * trace.metrics["accuracy"], color=color, label=label)
        ax.axhline(majority, color="#7d6bb0", linestyle="--", lw=1, label="always the majority")

    titles = {tasks: f"{count} tasks" for tasks, count in SETS.items()}
    label = "mean test accuracy (%)"
    return row(*columns(fill, titles, ylabel=label, xlabel="round", legend=True), sharey=True)


#: What the paper's runs have: its data, and the rounds that its authors' code has by default.
NEEDS = Needs(paper={"rounds": 200, "problem.data": "celeba", "algorithm.participants": 10})


C2 = Rule(
    {
        "FedCMOO's final accuracy exceeds FSMGDA's with 40 tasks": of("attributes.gap") > 0,
        "FedCMOO's lead is larger with 40 tasks than with 2": of("attributes_vs_halves.gap") > 0,
    },
    "FedCMOO minus FSMGDA in final accuracy, "
    + "; ".join(f"M = {count}: {stat(f'{tasks}.gap', '.2g')}" for tasks, count in SETS.items()),
    control=EXCHANGED,
)
CLAIMS = (
    cmoo(
        id="fedcmoo/C2",
        place="Figures 1, 8 and 9",
        wording="The advantage of FedCMOO over FSMGDA grows with the number of objectives (40 "
        "tasks of CelebA against two tasks).",
        rule=C2,
        runs=tuple(f"{tasks}_{name}" for tasks in SETS for name in ("fedcmoo", "fsmgda")),
        figure="progress",
        needs=NEEDS,
    ),
)


STAND_IN = "stand-in"  # in place of the name of a set of pictures

#: Server and client step size, the same for both methods: CelebA-5's of the paper, and CelebA's.
RATES = {"halves": (1.6, 0.3), "groups": (1.6, 0.3), "attributes": (1.0, 0.2)}

#: The attributes of every task, by their numbers; None: each is a task.
MEMBERS = {
    "halves": (tuple(range(len(NAMES) // 2)), tuple(range(len(NAMES) // 2, len(NAMES)))),
    "groups": GROUPS,
    "attributes": None,
}

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split, participants and batches", (0,)),
    rounds=("communication rounds T", 25, 2),
    source=("0: a digit and an item, 2: pairs of scikit-learn's digits", 0, 2),
    clients=("clients N", 100, 6),
    participants=("clients a round", 5, 1),
    local_steps=("local steps E, a minibatch each", 10, 2),
    batch=("rows of a client's minibatch", 128, 8),
    alpha=("concentration of the Dirichlet split", 0.3),
    pictures=("0: all training pictures; else the first so many", 0, 600),
    test_pictures=("0: all test pictures; else the first so many", 5000, 100),
)


@lru_cache(maxsize=3)
def many_problem(
    seed: int,
    *,
    source: str,
    tasks: str,
    clients: int,
    alpha: float,
    pictures: int,
    test_pictures: int,
) -> Problem:
    test = own_pictures(source, "test", test_pictures)
    share = test.a.float().mean(0)
    majority = round(float(torch.maximum(share, 1 - share).mean()), 6)
    told = {"data": source, "tasks": tasks, "majority": majority}
    return attributes(
        own_pictures(source, "train", pictures),
        test,
        groups=MEMBERS[tasks],
        clients=clients,
        seed=seed,
        alpha=alpha,
        config=told | ({"stand_in": DIGITS} if source == STAND_IN else {}),
    )


@lru_cache(maxsize=4)
def own_pictures(source: str, split: str, limit: int) -> Labelled:
    if source == STAND_IN:
        return labelled(standin_pairs("mnist_fashion", split, limit))
    return labelled(pairs.load(source, split, limit))


def specs(p: Params) -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    source = STAND_IN if stands_in("cmoo_many", p) else "mnist_fashion"
    for tasks, count in SETS.items():
        each = [f"{what}_{k}" for k in range(1, count + 1) for what in ("loss", "accuracy")]
        keep = ("loss", "accuracy", *each, "direction")
        problem = partial(many_problem, source=source, tasks=tasks, **task(p))
        common = {**work(p, RATES[tasks]), "shared": ENCODERS["mnist_fashion"]}
        least = CLIPPED if tasks == "halves" else None
        both: dict[str, Any] = {
            "fedcmoo": FedCMOO(**common),
            "fsmgda": FSMGDA(**common, least=least),
        }
        for name, made in both.items():
            found[f"{tasks}_{name}"] = Spec(
                made, problem, p["rounds"], tuple(p["seeds"]), keep=keep
            )
    return found


STUDY = Study(
    name="cmoo_many",
    title="Many objectives",
    paper="C",
    data=("mnist", "fashion_mnist"),
    specs=specs,
    derive=derive,
    claims=CLAIMS,
    figures=noted({"progress": progress}),
    watch={
        "*": (
            HealthCheck("loss"),
            HealthCheck("loss_*"),
            HealthCheck("accuracy", chance=lambda c: c["problem"]["majority"]),
        ),
    },
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={"rounds": 200, "participants": 10, "seeds": (0, 1, 2)},
    **PARAMETERS,
)
