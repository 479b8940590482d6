"""The runs of study `np_pairing`: every client's constraint exchanged for another client's."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch

from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.fedsgm import State as FedSGMState
from fedlib.compress import Identity, TopK
from fedlib.core import Problem
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.shapes import Vector
from papers.fedsgm.common import breast_cancer, switch_of
from papers.kit.quantities import Defaults, Labels, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

CLIENTS = 20
EVERY = 10  # rounds between two evaluations
KEEP = ("f", "g", "turn", "sigma")

#: The labels of runs, each with its usual value; None where there is none.
DEFAULTS: Defaults = {
    "switch": None,
    "beta": 40.0,
    "local_steps": 5,
    "participants": CLIENTS,
    "fraction": 1.0,
    "shift": 0,
}


class State(NamedTuple):
    """The state of FedSGM, and the last change of its model."""

    w: Vector
    inner: FedSGMState
    change: Vector


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

    def round(
        self,
        fed: Federation,
        state: Any,
        draw: Draw,
    ) -> tuple[Any, Info]:
        """Make a round of FedSGM."""
        inner, info = super().round(fed, state.inner, draw)
        change = inner.w - state.w
        cosine = torch.cosine_similarity(change, state.change, dim=0).clamp(-1, 1)
        turn = torch.rad2deg(torch.arccos(cosine))
        return State(inner.w, inner, change), {**info, "turn": turn}

    def output(self, state: Any) -> Vector:
        """The averaged iterate of FedSGM."""
        return super().output(state.inner)


@lru_cache(maxsize=256)
def paired(seed: int, *, shift: int) -> Problem:
    """Client j has its own objective and the constraint of client j - shift.

    The mean objective and the mean constraint are the same for every shift, since all clients hold
    as many rows of a class. Numbers are doubles, so that equal models are equal to the last digits.
    """
    task = breast_cancer(
        seed,
        clients=CLIENTS,
        train_fraction=0.8,
        dtype=torch.float64,
        config={"shift": shift},
    )
    labels = task.data[1][task.rows]
    rows = task.rows.gather(1, labels.argsort(dim=1, stable=True))  # class 0 first
    start = int((labels[0] == 0).sum())
    constraints = rows[:, start:].roll(shift, 0)
    return replace(task, rows=torch.cat([rows[:, :start], constraints], 1))


def settings(p: Params) -> Iterator[Labels]:
    """The labels of every setting, without those of pairings.

    All clients and no compression by switch and local steps, then either at `local_steps`.
    """
    switches: list[Labels] = [{"switch": "hard"}]
    switches += [{"switch": "soft", "beta": beta} for beta in p["betas"]]
    for switch in switches:
        for steps in p["local_steps_sweep"]:
            yield {**switch, "local_steps": steps}
    soft: Labels = {"switch": "soft", "beta": p["beta"]}
    for switch in (switches[0], soft):
        usual = {**switch, "local_steps": p["local_steps"]}
        yield {**usual, "participants": p["participants"]}
        yield {**usual, "fraction": p["fraction"]}


def method(p: Params, labels: Mapping[str, Any]) -> FedSGM:
    """FedSGM in a setting."""
    compressor: Any = TopK(labels["fraction"]) if "fraction" in labels else Identity()
    return TurningFedSGM(
        lr=p["lr"],
        local_steps=labels["local_steps"],
        participants=labels.get("participants", CLIENTS),
        tolerance=p["tolerance"],
        switch=switch_of(labels),
        uplink=compressor,
        downlink=compressor,
    )


def specs(p: Params) -> dict[str, Spec]:
    """Every setting with every pairing; without a shift the data's own."""
    return by_name([*runs(p)], DEFAULTS)


def runs(p: Params) -> Iterator[Spec]:
    """The runs of every setting."""
    for labels in settings(p):
        algorithm = method(p, labels)
        for shift in p["shifts"]:
            task = partial(paired, shift=shift)
            run = Spec(algorithm, task, p["rounds"], p["seeds"], EVERY, KEEP)
            yield replace(run, labels={**labels, "shift": shift})
