"""The runs of study `np_protocol`: tuned steps, on splits that no run has seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.sgm import SGM
from fedlib.compress import TopK
from fedlib.shapes import Scalar
from fedlib.steps import Hard, Soft
from fedlib.steps.switching import Switch, loss_weights
from papers.fedsgm.np_unified.runs import CLIENTS, pooled, problem
from papers.kit.store import Spec
from papers.kit.study import Params

LATE_ONLY = 10  # rounds between two evaluations of a run of which only late values are read


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

    def weights(self, share: Scalar, constraint_weights: Float[Tensor, "*s"]) -> Float[Tensor, "K"]:
        """Weigh the objective by 1, and the constraint by rho where it is violated."""
        return loss_weights(torch.ones_like(share), self.rho * constraint_weights)


def specs(p: Params) -> dict[str, Spec]:
    """All runs: FedSGM at its tuned step, each penalty at its own, and what tuned the penalties."""
    found: dict[str, Spec] = {}
    modes: dict[str, Switch] = {"hard": Hard(), "soft": Soft(float(p["beta"]))}
    for mode, switch in modes.items():
        sampled = method(p, switch)
        groups = {"": sampled, "_all": replace(sampled, participants=CLIENTS)}
        for group, start in groups.items():
            found[f"{mode}{group}"] = run(start, p)
            found |= sweeps(f"{mode}{group}", start, p)
        for m in p["participations"]:
            found[f"{mode}_m{m}"] = run(replace(sampled, participants=m), p)
        without = replace(sampled, error_feedback=False)
        found[f"{mode}_nofeedback"] = run(without, p, every=LATE_ONLY)
        central = SGM(
            lr=sampled.lr,
            tolerance=sampled.tolerance,
            steps=sampled.local_steps,
            switch=switch,
        )
        found[f"{mode}_central"] = replace(run(central, p, every=LATE_ONLY), problem=pooled)
    for b in p["betas"]:
        found[f"soft_beta{b:g}"] = run(method(p, Soft(float(b))), p, every=LATE_ONLY)
    for b in p["end_betas"]:
        everyone = replace(method(p, Soft(float(b))), participants=CLIENTS)
        found[f"soft_all_beta{b:g}"] = run(everyone, p, every=LATE_ONLY)
    return found | penalties(p)


def method(p: Params, switch: Switch) -> FedSGM:
    """FedSGM with the paper's compression, at the step that the tuning picked."""
    topk = TopK(float(p["fraction"]))
    return FedSGM(
        lr=float(p["lr"]),
        local_steps=p["local_steps"],
        participants=p["participants"],
        tolerance=float(p["tolerance"]),
        switch=switch,
        uplink=topk,
        downlink=topk,
    )


def run(algorithm: Any, p: Params, every: int = 1) -> Spec:
    """A run on the fresh splits."""
    return Spec(algorithm, problem, p["rounds"], p["seeds"], every, ("f", "g"))


def sweeps(name: str, start: FedSGM, p: Params) -> dict[str, Spec]:
    """Local steps and compression."""
    found: dict[str, Spec] = {}
    for e in p["local_steps_sweep"]:
        found[f"{name}_E{e}"] = run(replace(start, local_steps=e), p)
    for x in p["fractions"]:
        topk = TopK(float(x))
        found[f"{name}_K{x:g}"] = run(replace(start, uplink=topk, downlink=topk), p)
    return found


def penalties(p: Params) -> dict[str, Spec]:
    """Compressed penalties: all steps on the tuning splits, the best on those that judge."""
    start = CompressedPenalty(**vars(method(p, Hard())))
    found: dict[str, Spec] = {}
    for rho, lr in zip(p["rhos"], p["penalty_lrs"], strict=True):
        own = replace(start, rho=float(rho))
        found[f"penalty_rho{rho:g}"] = run(replace(own, lr=float(lr)), p, every=LATE_ONLY)
        for x in p["lrs"]:
            tried = run(replace(own, lr=float(x)), p, every=LATE_ONLY)
            found[f"tuning_rho{rho:g}_lr{x:g}"] = replace(tried, seeds=p["tuning_seeds"])
    return found
