"""A good instance of every record that a user makes, for corpora of bad arguments.

The algorithms are those of `fedlib.testing.examples`; what the studies add is listed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

import fedlib as fl
from fedlib.compress.sketches import Columns, Wire
from fedlib.sets.blocks import Blocks, PerClient
from fedlib.sets.vertices import Corner, OneEntry, RankOne, Several
from fedlib.testing.examples import examples, features_of
from fedlib.vertical import Composite, Partition
from papers.arena.stopped import Stopped
from papers.fedcmoo.guarded import GuardedFedCMOOPref
from papers.fedcmoo.probe.methods import GramProbe, ProgressProbe
from papers.fedcmoo.theory import Setting as MultiSetting
from papers.fedcmoo.toy.problems import DirectionProbe
from papers.fedfw.authors.loop import AuthorsFedDR, AuthorsFW
from papers.fedfw.leakage.attacks import Attacker, Reader
from papers.fedfw.leakage.gradients import Oracle, SmoothL1
from papers.fedfw.leakage.problem import Network
from papers.fedfw.lowrank.watched import Accelerated, Watched
from papers.fedfw.lowrank.watched import Clock as OracleClock
from papers.fedfw.rates.oracles import InexactFW
from papers.fedfw.theory_fw import Constants
from papers.fedsgm.cartpole.method import PolicyFedSGM
from papers.fedsgm.cartpole.simulator import CartPole
from papers.fedsgm.theory import Setting
from papers.kit.health_checks import HealthCheck
from papers.kit.needs import Needs
from papers.kit.store import Spec
from papers.ssca.long.problem import OneConstraint
from papers.ssca.tradeoff.theorem import Handover

WORK: dict[str, Any] = {"lr": 0.1, "local_steps": 2, "participants": 3}
RHO, GAMMA = fl.PowerLaw(0.6, 0.3), fl.PowerLaw(0.9, 0.35)


@cache
def records() -> tuple[Any, ...]:
    """One instance of each, every optional field filled in where that is possible."""
    return (*algorithms(), *ingredients(), *of_studies())


def algorithms() -> Iterator[Any]:
    """The library's."""
    for those in examples().values():
        yield those[0].algorithm


def ingredients() -> Iterator[Any]:
    """What the algorithms and the problems take."""
    yield from (fl.TopK(0.5), fl.RandK(0.5), fl.Rounding(3), fl.LowRank(), fl.Largest())
    yield from (fl.Masked(), Columns(), Wire(fl.Exact(), 2), fl.OneWay(), fl.TwoWay())
    yield from (fl.Ball(1.0), fl.Box(0.25, 3.0), fl.L1Ball(1.0), fl.Simplex(1.0))
    yield from (fl.NuclearBall(1.0, 2, 2), OneEntry(1.0), Corner(-1.0, 1.0), RankOne(2, 2))
    yield Several((OneEntry(1.0),), (4,))
    yield Blocks((fl.Ball(1.0), fl.Box(1.0)), (2, 3))
    yield PerClient((fl.Ball(1.0), fl.Box(1.0)), of=(0, 1, 0))
    yield from (fl.PowerLaw(0.5, 0.5), fl.Convex(), fl.Nonconvex(10), fl.Stochastic())
    yield from (fl.Fixed(0.5), fl.Soft(2.0), fl.Adam(), fl.FindWeights(), fl.Least())
    yield fl.FixedWeights((1.0, 2.0))
    yield from (CartPole(), PolicyFedSGM(participants=2, tolerance=0.1))
    yield fl.Preference(ratios=(1.0, 2.0))
    halves = (torch.tensor([0, 2]), torch.tensor([1, 3]))
    yield Partition("features", halves, 4)
    yield composite()


def composite() -> Composite:
    """The form of a classification whose features are divided."""
    problem = next(e.problem for e in examples()["SSCA"])
    return features_of(problem).composite


def of_studies() -> Iterator[Any]:
    """What the studies add: methods, probes, settings of theorems, what a study declares."""
    several = fl.FedCMOO(**WORK)
    constrained = fl.ConstrainedSSCA(1.0, RHO, GAMMA, penalty=10.0, levels=0.3)
    yield from (GuardedFedCMOOPref(**WORK, judges=2, judge_rows=rows) for rows in (None, 2))
    yield from (OracleClock(), Stopped(several), DirectionProbe(), GramProbe(several))
    yield ProgressProbe(several, fl.FSMGDA(**WORK))
    network = Network("lenet", 1, 8)
    yield from (network, SmoothL1(1.0), Oracle(fl.Ball(1.0)), Reader(network, Oracle(fl.Ball(1.0))))
    yield Attacker(network, SmoothL1(1.0), guess=SmoothL1(1.0))
    yield from (AuthorsFW(0.1), AuthorsFedDR())
    yield from (Accelerated(0.1), Watched(fl.FedFW(0.1)), InexactFW(0.1))
    yield from (OneConstraint(constrained), Handover(constrained, fl.SSCA(1.0, RHO, GAMMA), 3))
    yield from (Setting(D=1.0, G=1.0, E=2, T=5, N=4, n=2), MultiSetting(1.0, N=4, n=2, n_gram=2))
    yield Constants(L=1.0, D=1.0, N=2, lam0=0.1)
    yield from (Needs(parameters=("rounds",)), HealthCheck(metric="f", best=0.5))
    yield Spec(several, problem_of, rounds=3, seeds=(0, 1))
    yield problem_of(0)


def problem_of(seed: int) -> Any:
    """A small problem."""
    return fl.problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2) + seed, level=0.5)
