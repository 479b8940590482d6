"""The runs of study F, with the labels by which everything else finds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from fedlib import data
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.penalty import PenaltyFedAvg
from fedlib.algorithms.sgm import SGM
from fedlib.compress import TopK
from fedlib.core import Problem
from fedlib.core.describe import renamed_from
from fedlib.problems import neyman_pearson
from fedlib.steps import Hard, Soft
from papers.kit.quantities import Label, by_name, name_of
from papers.kit.store import Spec
from papers.kit.study import Params

CLIENTS = 20
MODES = ("hard", "soft")
LIMIT = 1e9  # a sharpness so large that soft switching is hard switching

#: What the paper leaves open: step size, clients a round, K/d both ways; and what it compares.
OPEN_LRS = (0.1, 0.3, 1.0)
OPEN_MEMBERS = (5, 10, 20)
OPEN_FRACTIONS = (0.1, 1.0)
OPEN_BETAS = (20.0, 40.0)
OPEN_SEEDS = tuple(range(8500, 8520))

#: Clients a round in the runs that judge C8, and their splits.
MEMBERS = (2, 5, 10, 15, 20)
MEMBER_SEEDS = tuple(range(9000, 9100))

FIRST_SPLITS = "first ten"  # of all runs but those that judge a claim alone


def defaults(p: Params) -> dict[str, Label | None]:
    """The labels of runs, each with its usual value; None where there is none."""
    return {
        "method": "FedSGM",
        "switch": None,
        "participants": p["participants"],
        "local_steps": p["local_steps"],
        "fraction": float(p["fraction"]),
        "feedback": True,
        "beta": float(p["beta"]),
        "rho": None,
        "lr": float(p["lr"]),
        "splits": FIRST_SPLITS,
        "setting": None,
        "knob": None,
    }


@renamed_from("papers.fedsgm.np_unified.problem")
@lru_cache(maxsize=64)
def problem(seed: int, clients: int = CLIENTS) -> Problem:
    """80 % of the 569 samples on equal, stratified clients, the rest held out."""
    table = data.breast_cancer()
    return neyman_pearson(
        table.X,
        table.y,
        clients=clients,
        seed=seed,
        train_fraction=0.8,
        config={"data": "breast_cancer", "positive": "malignant"},
    )


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
            labels = {**fedsgm("soft", p), **start, "beta": beta}
            yield labelled(p, labels, seeds=OPEN_SEEDS)
        for mode, participants in product(MODES, MEMBERS):
            labels = {**fedsgm(mode, p), "participants": participants, "splits": "later"}
            yield labelled(p, labels, seeds=MEMBER_SEEDS)


def open_starts() -> Iterator[dict[str, Any]]:
    """The labels of all settings that the paper leaves open, on splits that no other run has."""
    for lr, participants, fraction in product(OPEN_LRS, OPEN_MEMBERS, OPEN_FRACTIONS):
        yield {"participants": participants, "fraction": fraction, "lr": lr, "splits": "further"}


def of_mode(mode: str, p: Params) -> Iterator[Spec]:
    """FedSGM with one way of switching, and the same centralized."""
    main = fedsgm(mode, p)
    for participants in (main["participants"], CLIENTS):
        start = {**main, "participants": participants}
        yield labelled(p, start, keep=("f", "g", "g_max"))
        for steps in p["local_steps_sweep"]:
            yield labelled(p, {**start, "local_steps": steps})
        for fraction in p["fractions"]:
            yield labelled(p, {**start, "fraction": float(fraction)})
        if mode == "soft":
            for beta in (*p["betas"], LIMIT):
                yield labelled(p, {**start, "beta": float(beta)})
    for participants in p["participations"]:
        yield labelled(p, {**main, "participants": participants})
    for lr in p["lrs"]:
        if lr != p["lr"]:
            yield labelled(p, {**main, "lr": float(lr)}, evaluate_every=5)
    yield labelled(p, {**main, "feedback": False})
    central = centralized(mode, p)
    yield labelled(p, central)
    fresh: dict[str, Any] = {"seeds": p["fresh"], "evaluate_every": 10}
    yield labelled(p, {**main, "participants": CLIENTS, "splits": "fresh"}, **fresh)
    yield labelled(p, {**central, "splits": "fresh"}, **fresh)


def penalties(p: Params) -> Iterator[Spec]:
    """Penalty-FedAvg: every penalty at every step size, and with all clients at one."""
    for rho in p["rhos"]:
        start = {
            "method": "Penalty-FedAvg",
            "participants": p["participants"],
            "local_steps": p["local_steps"],
            "rho": float(rho),
        }
        for lr in sorted({p["lr"], *p["lrs"]}):
            yield labelled(p, {**start, "lr": float(lr)}, evaluate_every=5)
        everyone = {**start, "participants": CLIENTS, "lr": float(p["lr"])}
        yield labelled(p, everyone, evaluate_every=5)


def fedsgm(mode: str, p: Params) -> dict[str, Any]:
    """The labels of FedSGM at the study's parameters."""
    labels: dict[str, Any] = {
        "method": "FedSGM",
        "switch": mode,
        "participants": p["participants"],
        "local_steps": p["local_steps"],
        "fraction": float(p["fraction"]),
        "feedback": True,
        "lr": float(p["lr"]),
    }
    if mode == "soft":
        labels["beta"] = float(p["beta"])
    return labels


def centralized(mode: str, p: Params) -> dict[str, Any]:
    """The labels of the method on the pooled rows."""
    labels = {**fedsgm(mode, p), "method": "SGM"}
    for label in ("participants", "fraction", "feedback"):
        del labels[label]
    return labels


def labelled(p: Params, labels: dict[str, Any], **changes: Any) -> Spec:
    """The run with these labels; `changes` are other fields of it."""
    labels = {"splits": FIRST_SPLITS, **labels}
    labels = {label: labels[label] for label in defaults(p) if label in labels}
    task = pooled if labels["method"] == "SGM" else problem
    run = Spec(algorithm(p, labels), task, p["rounds"], p["seeds"], labels=labels)
    return replace(run, **changes)


def algorithm(p: Params, labels: dict[str, Any]) -> Any:
    """The algorithm that labels describe."""
    tolerance = float(p["tolerance"])
    if labels["method"] == "Penalty-FedAvg":
        return PenaltyFedAvg(
            lr=labels["lr"],
            local_steps=labels["local_steps"],
            participants=labels["participants"],
            tolerance=tolerance,
            rho=labels["rho"],
        )
    switch = Soft(labels["beta"]) if labels["switch"] == "soft" else Hard()
    if labels["method"] == "SGM":
        return SGM(lr=labels["lr"], tolerance=tolerance, steps=labels["local_steps"], switch=switch)
    topk = TopK(labels["fraction"])
    return FedSGM(
        lr=labels["lr"],
        local_steps=labels["local_steps"],
        participants=labels["participants"],
        tolerance=tolerance,
        switch=switch,
        uplink=topk,
        downlink=topk,
        error_feedback=labels["feedback"],
    )
