"""The algorithms of the arena, made from a problem's units and two numbers of a grid."""

from __future__ import annotations

from typing import Any

from fedlib.algorithms.baselines import FedAvg, PenaltyFedAvg
from fedlib.algorithms.conex import ConEx
from fedlib.algorithms.fedcmoo import FedCMOOPref
from fedlib.algorithms.feddr import FedDR
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.ssca import ConstrainedSSCA
from fedlib.compress import TopK
from fedlib.preference import Preference
from fedlib.schedules import PowerLaw
from fedlib.studies.arena_units import Units
from fedlib.switching import Soft

__all__ = [
    "KEPT",
    "averaging",
    "compressed",
    "conex",
    "penalty",
    "preferring",
    "several",
    "soft",
    "splitting",
    "ssca",
    "switching",
]

KEPT = 0.1  # the share of the entries that Top-K keeps
LARGEST = 10.0  # the exact penalty of SSCA, in units of f(w0) / level
RHO = PowerLaw(0.9, 0.3)  # how SSCA averages its surrogates; its iterates fall with FALL
FALL = 0.35
FASTER = 10.0  # SSCA's steps in these units: they shrink, and no theorem ties tau to L


def switching(u: Units, x: float, **own: Any) -> FedSGM:
    """FedSGM with everybody in every round."""
    work: dict[str, Any] = {"local_steps": u.local_steps, "participants": u.clients}
    return FedSGM(lr=x * u.lr, **work, level=u.level, batch_size=u.batch, **own)


def soft(u: Units, x: float, y: float) -> FedSGM:
    """Soft switching, the sharpness in units of 1 / level."""
    return switching(u, x, tolerance=0.0, switch=Soft(y / u.level))


def compressed(u: Units, x: float, y: float) -> FedSGM:
    """The same with Top-K both ways."""
    few = TopK(KEPT)
    sharp = Soft(y / u.level)
    return switching(u, x, tolerance=0.0, switch=sharp, uplink=few, downlink=few)


def penalty(u: Units, x: float, y: float) -> PenaltyFedAvg:
    """Penalty-FedAvg, the penalty in units of f(w0) / level."""
    return PenaltyFedAvg(
        x * u.lr,
        u.local_steps,
        u.clients,
        tolerance=0.0,
        rho=y * u.start / u.level,
        level=u.level,
        batch_size=u.batch,
    )


def conex(u: Units, x: float, y: float) -> ConEx:
    """IPP ConEx on batches as large as those of all clients; dual step times level^2 / f(w0)."""
    return ConEx(
        x * u.lr,
        y * u.start / u.level**2,
        tolerance=0.0,
        level=u.level,
        steps=u.local_steps,
        batch_size=u.pooled_batch,
        value_batch_size=u.pooled_batch,
    )


def ssca(u: Units, x: float, y: float) -> ConstrainedSSCA:
    """Surrogates whose own step is 10 x / L, averaged with y / t^0.35."""
    return ConstrainedSSCA(
        1 / (2 * FASTER * x * u.lr),
        RHO,
        PowerLaw(y, FALL),
        penalty=LARGEST * u.start / u.level,
        batch_size=u.batch,
        levels=u.level,
        growth=1,  # whole, so that no grid takes it for one of its numbers
    )


def splitting(u: Units, x: float, y: float) -> FedDR:
    """FedDR, eta in units of 1 / L, and its relaxation."""
    eta = u.lr / x
    return FedDR(1 / (1 / u.lr + 1 / eta), u.local_steps, eta=eta, relaxation=y, batch_size=u.batch)


def averaging(u: Units, x: float, _: float) -> FedAvg:
    """FedAvg, projected where there is a set."""
    return FedAvg(x * u.lr, u.local_steps, u.clients, batch_size=u.batch)


def several(u: Units, x: float, **own: Any) -> dict[str, Any]:
    """What methods for several objectives have in common."""
    work = {"lr": x * u.lr, "local_steps": u.local_steps, "participants": u.clients}
    return {**work, "batch_size": u.batch, **own}


def preferring(u: Units, x: float, y: float) -> FedCMOOPref:
    """Losses in the ratio (y f(w0)) : level, the optimum's if y f(w0) is the optimal value."""
    wanted = Preference(ratios=(1 / (y * u.start), 1 / u.level))
    return FedCMOOPref(**several(u, x, preference=wanted))
