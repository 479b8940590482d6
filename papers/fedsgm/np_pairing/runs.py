"""The runs of study `np_pairing`: every client's constraint exchanged for another client's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import data
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.fedsgm import State as FedSGMState
from fedlib.compress import TopK
from fedlib.core import Problem
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.problems import neyman_pearson
from fedlib.steps import Hard, Soft
from fedlib.steps.switching import Switch
from papers.kit.store import Spec
from papers.kit.study import Params

CLIENTS = 20
EVERY = 10  # rounds between two evaluations


class State(NamedTuple):
    """The state of FedSGM, and the last change of its model."""

    w: Float[Tensor, "d"]
    inner: FedSGMState
    change: Float[Tensor, "d"]


@dataclass(frozen=True)
class TurningFedSGM(FedSGM):
    """FedSGM that reports by how many degrees its model turns: the angle between two changes.

    The report of a round is the angle between its change of the model and that of the round before;
    90 in the first round.
    """

    def init(self, problem: Problem) -> Any:
        """Start as FedSGM does."""
        inner = super().init(problem)
        return State(inner.w, inner, torch.zeros_like(inner.w))

    def round(self, fed: Federation, state: Any, draw: Draw) -> tuple[Any, Info]:
        """Make a round of FedSGM."""
        inner, info = super().round(fed, state.inner, draw)
        change = inner.w - state.w
        cosine = torch.cosine_similarity(change, state.change, dim=0).clamp(-1, 1)
        turn = torch.rad2deg(torch.arccos(cosine))
        return State(inner.w, inner, change), {**info, "turn": turn}

    def output(self, state: Any) -> Float[Tensor, "d"]:
        """The averaged iterate of FedSGM."""
        return super().output(state.inner)


@lru_cache(maxsize=256)
def paired(seed: int, *, shift: int) -> Problem:
    """Client j has its own objective and the constraint of client j - shift.

    The mean objective and the mean constraint are the same for every shift, since all clients hold
    as many rows of a class. Numbers are doubles, so that equal models are equal to the last digits.
    """
    table = data.breast_cancer()
    made = neyman_pearson(
        table.X,
        table.y,
        clients=CLIENTS,
        seed=seed,
        train_fraction=0.8,
        dtype=torch.float64,
        config={"data": "breast_cancer", "positive": "malignant", "shift": shift},
    )
    labels = made.data[1][made.rows]
    rows = made.rows.gather(1, labels.argsort(dim=1, stable=True))  # class 0 first
    start = int((labels[0] == 0).sum())
    constraints = rows[:, start:].roll(shift, 0)
    return replace(made, rows=torch.cat([rows[:, :start], constraints], 1))


def settings(p: Params) -> dict[str, FedSGM]:
    """All clients and no compression by switch and local steps, then either at `local_steps`."""
    found: dict[str, FedSGM] = {}
    switches: dict[str, Switch] = {"hard": Hard()}
    switches |= {f"soft{beta:g}": Soft(float(beta)) for beta in p["betas"]}
    for name, switch in switches.items():
        for steps in p["local_steps_sweep"]:
            found[f"{name}_E{steps}"] = method(p, switch, steps)
    topk = TopK(float(p["fraction"]))
    both: dict[str, Switch] = {"hard": Hard(), f"soft{p['beta']:g}": Soft(float(p["beta"]))}
    for name, switch in both.items():
        plain = method(p, switch, p["local_steps"])
        found[f"{name}_sampled"] = replace(plain, participants=p["participants"])
        found[f"{name}_topk"] = replace(plain, uplink=topk, downlink=topk)
    return found


def method(p: Params, switch: Switch, steps: int) -> FedSGM:
    """FedSGM with all clients and no compression."""
    return TurningFedSGM(
        lr=float(p["lr"]),
        local_steps=steps,
        participants=CLIENTS,
        tolerance=float(p["tolerance"]),
        switch=switch,
    )


def specs(p: Params) -> dict[str, Spec]:
    """Every setting with every pairing, `SETTING_shift0` as the data are split."""
    found: dict[str, Spec] = {}
    for name, algorithm in settings(p).items():
        for shift in p["shifts"]:
            problem: Any = partial(paired, shift=shift)
            keep = ("f", "g", "turn", "sigma")
            run = Spec(algorithm, problem, p["rounds"], p["seeds"], EVERY, keep)
            found[f"{name}_shift{shift}"] = run
    return found
