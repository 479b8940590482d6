"""The runs of study `np_protocol`: tuned steps, on splits that no run has seen."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.algorithms.fedsgm import FedSGM
from fedlib.shapes import PerLoss, Scalar
from fedlib.steps.switching import loss_weights
from papers.fedsgm.np_unified import runs as unified
from papers.fedsgm.np_unified.runs import CLIENTS, MODES, pooled, problem
from papers.kit.parameters import pairs
from papers.kit.quantities import Defaults, Label, Labels, by_name, completed
from papers.kit.store import Spec
from papers.kit.study import Params

LATE_ONLY = 10  # rounds between two evaluations of a run of which only late values are read
PENALTY: Labels = {"method": "penalty"}
TUNING: Labels = {"splits": "tuning"}


@dataclass(frozen=True)
class CompressedPenalty(FedSGM):
    """Penalty-FedAvg with the messages of FedSGM: the same compressors and error feedback.

    It is FedSGM under hard switching, but a round above the threshold steps along
    grad f + rho grad g in place of grad g.

    Parameters
    ----------
    rho : the penalty factor.
    """

    rho: float = 1.0

    def weights(self, share: Scalar, constraint_weights: Float[Tensor, "*s"]) -> PerLoss:
        """Weigh the objective by 1, and the constraint by rho where it is violated."""
        return loss_weights(torch.ones_like(share), self.rho * constraint_weights)


def defaults(p: Params) -> Defaults:
    """The labels of runs, each with its usual value; None where there is none.

    A penalty has no label `lr` on the splits that judge, where each has its own.
    """
    return {**unified.defaults(p), "splits": "judging"}


def specs(p: Params) -> dict[str, Spec]:
    """All runs: FedSGM at its tuned step, each penalty at its own, and what tuned the penalties."""
    return by_name([*runs(p)], defaults(p))


def runs(p: Params) -> Iterator[Spec]:
    """FedSGM with both ways of switching, then the penalties."""
    for mode in MODES:
        yield from of_mode(mode, p)
    yield from penalties(p)


def of_mode(mode: str, p: Params) -> Iterator[Spec]:
    """FedSGM with one way of switching along each sweep, and the same centralized."""
    main: Labels = {"switch": mode}
    everyone = {**main, "participants": CLIENTS}
    for start in (main, everyone):
        yield labelled(p, start)
        for labels in unified.swept(start, p):
            yield labelled(p, labels)
    for participants in p["participations"]:
        yield labelled(p, {**main, "participants": participants})
    yield labelled(p, {**main, "feedback": False}, LATE_ONLY)
    yield labelled(p, {**main, "method": "SGM"}, LATE_ONLY)
    if mode == "soft":
        for beta in p["betas"]:
            yield labelled(p, {**main, "beta": beta}, LATE_ONLY)
        for beta in p["end_betas"]:
            yield labelled(p, {**everyone, "beta": beta}, LATE_ONLY)


def penalties(p: Params) -> Iterator[Spec]:
    """Compressed penalties: all steps on the tuning splits, the best on those that judge."""
    for rho, best in pairs("np_protocol", p, "rhos", "penalty_lrs"):
        labels = {**PENALTY, "rho": rho}
        for lr in p["lrs"]:
            yield labelled(p, {**labels, **TUNING, "lr": lr}, LATE_ONLY)
        yield labelled(p, labels, LATE_ONLY, lr=best)


def labelled(
    p: Params,
    labels: Mapping[str, Label],
    interval: int = 1,
    **hidden: float,
) -> Spec:
    """The run with these labels; `hidden` is what its algorithm has beside them."""
    complete = completed(labels, defaults(p), unified.lacking(labels))
    seeds = p["tuning_seeds"] if complete["splits"] == "tuning" else p["seeds"]
    task = pooled if complete["method"] == "SGM" else problem
    method = algorithm(p, {**complete, **hidden})
    return Spec(
        method,
        task,
        p["rounds"],
        seeds,
        interval,
        labels=complete,
    )


def algorithm(p: Params, labels: dict[str, Any]) -> Any:
    """The algorithm that labels describe."""
    if labels["method"] != PENALTY["method"]:
        return unified.algorithm(p, labels)
    plain = unified.algorithm(p, {**labels, "method": "FedSGM", "switch": "hard"})
    return CompressedPenalty(**vars(plain), rho=labels["rho"])
