"""The runs of study F, with the labels by which everything else finds them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.penalty import PenaltyFedAvg
from fedlib.algorithms.sgm import SGM
from fedlib.compress import TopK
from fedlib.core import Problem
from fedlib.core.describe import renamed_from
from fedlib.problems import neyman_pearson
from papers.fedsgm.common import breast_cancer, switch_of, usual_labels
from papers.kit.quantities import Defaults, Label, Labels, by_name, completed, name_of
from papers.kit.store import Spec
from papers.kit.study import Params

CLIENTS = 20
MODES = ("hard", "soft")
LIMIT = 1e9  # a sharpness so large that soft switching is hard switching
PENALTY: Labels = {"method": "Penalty-FedAvg"}
#: Method -> the labels that it does not have.
LACKING: dict[str, tuple[str, ...]] = {
    "FedSGM": (),
    "SGM": ("participants", "fraction", "feedback"),
    "Penalty-FedAvg": ("fraction", "feedback"),
    "penalty": ("lr",),  # with compressed messages, where each penalty has its own
}

#: What the paper leaves open: step size, clients a round, K/d both ways; and what it compares.
OPEN_LRS = (0.1, 0.3, 1.0)
OPEN_MEMBERS = (5, 10, 20)
OPEN_FRACTIONS = (0.1, 1.0)
OPEN_BETAS = (20.0, 40.0)
OPEN_SEEDS = tuple(range(8500, 8520))

#: Clients a round in the runs that judge C8, and their splits.
MEMBERS = (2, 5, 10, 15, 20)
MEMBER_SEEDS = tuple(range(9000, 9100))

#: The labels of runs at the paper's setting; None where there is none.
PAPER: Defaults = {
    "method": "FedSGM",
    "switch": None,
    "participants": 10,
    "local_steps": 5,
    "fraction": 0.1,
    "feedback": True,
    "beta": 40.0,
    "rho": None,
    "lr": 0.3,
    "splits": "first ten",  # of all runs but those that judge a claim alone
}

#: What both studies of these figures vary, as `parameters` takes it.
SWEEPS: dict[str, tuple[Any, ...]] = {
    "participants": ("clients a round", 10),
    "participations": ("clients a round in the sweep", (2, 5, 15), (5,)),
    "local_steps": ("local steps E", 5),
    "local_steps_sweep": ("local steps in the sweep", (1, 2, 10, 20), (1,)),
    "fraction": ("K/d of Top-K, uplink and downlink", 0.1),
    "fractions": ("K/d in the sweep", (0.04, 0.25, 0.5, 1.0), (1.0,)),
}


def defaults(p: Params) -> Defaults:
    """The labels of runs and quantities, each with its usual value; None where there is none."""
    return {**usual_labels(PAPER, p), "setting": None, "knob": None}


@renamed_from("papers.fedsgm.np_unified.problem")
@lru_cache(maxsize=64)
def problem(seed: int, clients: int = CLIENTS) -> Problem:
    """80 % of the 569 samples on equal, stratified clients, the rest held out."""
    return breast_cancer(seed, clients=clients, train_fraction=0.8)


@renamed_from("papers.fedsgm.np_unified.pooled")
@lru_cache(maxsize=64)
def pooled(seed: int) -> Problem:
    """The training rows of all clients in one place, with the same test rows."""
    federated = problem(seed)
    rows = federated.rows.flatten()
    return neyman_pearson(
        federated.data[0][rows],
        federated.data[1][rows].long(),
        clients=1,
        seed=seed,
        standardize=False,
        config={"data": "breast_cancer", "positive": "malignant", "rows": "of all clients"},
    )


def name(p: Params, **labels: Label) -> str:
    """The name of the run with these labels."""
    return name_of(labels, defaults(p))


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], defaults(p))


def runs(p: Params) -> Iterator[Spec]:
    """FedSGM at the paper's setting and along each of its parameters, and its rivals."""
    for mode in MODES:
        yield from of_mode(mode, p)
    yield from penalties(p)
    if p["many"]:
        for start, beta in product(open_starts(), OPEN_BETAS):
            yield labelled(p, {"switch": "soft", **start, "beta": beta}, seeds=OPEN_SEEDS)
        for mode, participants in product(MODES, MEMBERS):
            start = {"switch": mode, "participants": participants, "splits": "later"}
            yield labelled(p, start, seeds=MEMBER_SEEDS)


def open_starts() -> Iterator[dict[str, Any]]:
    """The labels of all settings that the paper leaves open, on splits that no other run has."""
    for lr, participants, fraction in product(OPEN_LRS, OPEN_MEMBERS, OPEN_FRACTIONS):
        yield {"participants": participants, "fraction": fraction, "lr": lr, "splits": "further"}


def of_mode(mode: str, p: Params) -> Iterator[Spec]:
    """FedSGM with one way of switching, and the same centralized."""
    main: Labels = {"switch": mode}
    for participants in (p["participants"], CLIENTS):
        start = {**main, "participants": participants}
        yield labelled(p, start, keep=("f", "g", "g_max"))
        for labels in swept(start, p):
            yield labelled(p, labels)
        if mode == "soft":
            for beta in (*p["betas"], LIMIT):
                yield labelled(p, {**start, "beta": beta})
    for participants in p["participations"]:
        yield labelled(p, {**main, "participants": participants})
    for lr in p["lrs"]:
        if lr != p["lr"]:
            yield labelled(p, {**main, "lr": lr}, evaluate_every=5)
    yield labelled(p, {**main, "feedback": False})
    central = {**main, "method": "SGM"}
    yield labelled(p, central)
    fresh: dict[str, Any] = {"seeds": p["fresh"], "evaluate_every": 10}
    yield labelled(p, {**main, "participants": CLIENTS, "splits": "fresh"}, **fresh)
    yield labelled(p, {**central, "splits": "fresh"}, **fresh)


def swept(start: Mapping[str, Label], p: Params) -> Iterator[Labels]:
    """Labels with other local steps, then with other compression."""
    for steps in p["local_steps_sweep"]:
        yield {**start, "local_steps": steps}
    for fraction in p["fractions"]:
        yield {**start, "fraction": fraction}


def penalties(p: Params) -> Iterator[Spec]:
    """Penalty-FedAvg: every penalty at every step size, and with all clients at one."""
    for rho in p["rhos"]:
        start = {**PENALTY, "rho": rho}
        for lr in sorted({p["lr"], *p["lrs"]}):
            yield labelled(p, {**start, "lr": lr}, evaluate_every=5)
        yield labelled(p, {**start, "participants": CLIENTS}, evaluate_every=5)


def labelled(p: Params, labels: Mapping[str, Label], **changes: Any) -> Spec:
    """The run with these labels, others at their defaults; `changes` are other fields of it."""
    complete = completed(labels, defaults(p), lacking(labels))
    task = pooled if complete["method"] == "SGM" else problem
    run = Spec(
        algorithm(p, complete),
        task,
        p["rounds"],
        p["seeds"],
        labels=complete,
    )
    return replace(run, **changes)


def lacking(labels: Mapping[str, Label]) -> tuple[str, ...]:
    """The labels that a run does not have, if they are not among those that are given."""
    of_method = LACKING[str(labels.get("method", "FedSGM"))]
    return of_method if labels.get("switch") == "soft" else (*of_method, "beta")


def algorithm(p: Params, labels: Mapping[str, Any]) -> Any:
    """The algorithm that labels describe."""
    start = {"lr": labels["lr"], "tolerance": p["tolerance"]}
    if labels["method"] == "SGM":
        return SGM(**start, steps=labels["local_steps"], switch=switch_of(labels))
    start["local_steps"] = labels["local_steps"]
    start["participants"] = labels["participants"]
    if labels["method"] == "Penalty-FedAvg":
        return PenaltyFedAvg(**start, rho=labels["rho"])
    topk = TopK(labels["fraction"])
    return FedSGM(
        **start,
        switch=switch_of(labels),
        uplink=topk,
        downlink=topk,
        error_feedback=labels["feedback"],
    )
