"""The runs of study cartpole, with the labels by which everything else finds them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from fedlib import checks
from fedlib.compress import Identity, Rounding, TopK
from fedlib.compress.compressors import Compressor
from papers.fedsgm.cartpole.method import PolicyFedSGM
from papers.fedsgm.cartpole.simulator import cartpole
from papers.fedsgm.common import switch_of, usual_labels
from papers.kit.quantities import Defaults, Label, Labels, by_name, completed
from papers.kit.store import Spec
from papers.kit.study import Params

KEEP = ("reward", "cost", "g_hat", "sigma")
MODES = ("soft", "hard")
#: Bits of the paper's number formats -> binary digits after the leading one.
FORMATS = {16: 10, 8: 3, 4: 1}
UNCOMPRESSED = 32  # bits
STATES = 100  # of a client, on which it estimates its Fisher matrix
#: The labels of runs at the study's setting; None where there is none.
PAPER: Defaults = {
    "training": "federated",
    "switch": None,
    "fraction": 1.0,
    "bits": UNCOMPRESSED,
    "participants": 7,
    "beta": 0.2,
    "damping": 0.1,
    "states": STATES,
    "constraint": True,
    "splits": "main",
}


def defaults(p: Params) -> Defaults:
    """The labels of runs and quantities, each with its usual value; None where there is none."""
    return {**usual_labels(PAPER, p), "prediction": None}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], defaults(p))


def runs(p: Params) -> Iterator[Spec]:
    """Table 1 under soft switching, Figure 3's other curves, Figure 4, and the open choices."""
    soft: Labels = {"switch": "soft"}
    half = {**soft, "fraction": 0.5}
    for row in table_rows(p):
        yield labelled(p, {**soft, **row})
    yield labelled(p, {**half, "switch": "hard"})
    for mode in MODES:
        for states in (STATES, STATES * p["clients"]):
            yield labelled(p, {"training": "central", "switch": mode, "states": states})
    sweep = partial(labelled, p, seeds=p["sweep_seeds"])
    yield sweep({**soft, "constraint": False}, rounds=p["free_rounds"])
    for participants in p["sweep_participants"]:
        yield sweep({**half, "participants": participants})
    for beta in p["betas"]:
        yield sweep({**soft, "beta": beta})
    for damping in p["dampings"]:
        yield sweep({**soft, "damping": damping})
    for participants in {min(p["sweep_participants"]), max(p["sweep_participants"])}:
        labels = {**half, "participants": participants, "splits": "fresh"}
        yield labelled(p, labels, seeds=p["fresh"])
    for damping in p["calibration"]:
        yield labelled(p, {**soft, "damping": damping})
    for row in table_rows(p):
        if row.get("fraction") in (0.5, 0.25):
            yield labelled(p, {**soft, **row, "damping": p["calibrated"]})


def table_rows(p: Params) -> Iterator[Labels]:
    """The labels of the compressors of Table 1."""
    yield {}
    for bits in p["formats"]:
        checks.one_of("cartpole", "formats", bits, tuple(FORMATS))
        yield {"bits": bits}
    for fraction in dict.fromkeys([0.5, *p["fractions"]]):
        yield {"fraction": fraction}


def labelled(p: Params, labels: Mapping[str, Label], **changes: Any) -> Spec:
    """The run with these labels, others at their defaults; `changes` are other fields of it."""
    central = labels.get("training") == "central"
    without = ["participants"] if central else []
    if labels["switch"] == "hard":
        without.append("beta")
    complete = completed(labels, defaults(p), without)
    clients = 1 if central else p["clients"]
    environments = p["environments"] * p["clients"] // clients
    task = partial(cartpole, clients=clients, environments=environments)
    method = algorithm(p, complete)
    run = Spec(
        method,
        task,
        p["rounds"],
        p["seeds"],
        p["evaluate_every"],
        KEEP,
        labels=complete,
    )
    return replace(run, **changes)


def algorithm(p: Params, labels: Mapping[str, Any]) -> PolicyFedSGM:
    """The algorithm that labels describe."""
    wire = compressor(labels)
    return PolicyFedSGM(
        participants=labels.get("participants", 1),
        tolerance=p["tolerance"] if labels["constraint"] else math.inf,
        switch=switch_of(labels),
        damping=labels["damping"],
        cg_steps=p["cg_steps"],
        curvature_states=labels["states"],
        uplink=wire,
        downlink=wire,
    )


def compressor(labels: Mapping[str, Any]) -> Compressor:
    """The compressor of both directions that labels describe."""
    if labels["fraction"] < 1:
        return TopK(labels["fraction"])
    if labels["bits"] < UNCOMPRESSED:
        return Rounding(FORMATS[labels["bits"]])
    return Identity()
