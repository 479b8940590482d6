"""The theorems of the study on bounds: their instances, and what each of them prescribes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import sqrt
from typing import Any

import torch

from fedlib.core import Problem
from fedlib.core.describe import describe
from fedlib.core.problem import ConvexSet
from fedlib.sets import Ball, Box
from papers.fedsgm import theory
from papers.fedsgm.gamma import bound, gamma_local, gamma_partial_direct
from papers.fedsgm.problems.norms import (
    OFFSETS,
    SPREADS,
    active_level,
    norms,
    random_centres,
    solution_of,
)
from papers.fedsgm.problems.weakly_convex import multiplier_bound, random_clipped, slater_slack
from papers.fedsgm.theory import Rate, Setting

CLIENTS = 10
DIM = 10
ROWS = 4
BATCH = 2
DELTA = 0.1  # allowed probability of failure
RHO = 0.5  # weak convexity of the clipped distances
RHO_HAT = 1.5  # weight of the prox term
AGREEMENT = 0.01  # spread of the constraints' centres
REGIONS: dict[str, ConvexSet] = {"ball": Ball(1.0), "box": Box(1 / sqrt(DIM))}


@lru_cache(maxsize=256)
def instance(seed: int, region: str = "", rows: int = 1) -> Problem:
    """A sum of distances with its solution at 0 and its start at distance 1 from it.

    The shape cycles through twelve kinds with the seed: clients that disagree, nearly agree or
    agree on the objective, which pulls far or hardly out of the feasible set. On the constraint the
    clients agree to 0.01, or the term sigma of the sampled theorems would bury all others. The
    `"ball"` and the `"box"` have diameter D = 2 and their centre at the solution, the start is on
    the boundary of both. With `rows` there are so many distances a client.
    """
    offset = OFFSETS[seed % 4]
    a, b, direction = random_centres(
        seed,
        CLIENTS * rows,
        DIM,
        SPREADS[seed % 3],
        offset,
    )
    b = AGREEMENT * b
    c = active_level(b, offset)
    w = solution_of(a, b, c)
    task = norms(
        a - w,
        b - w,
        c,
        direction.sign() / sqrt(DIM),
        torch.zeros_like(w),
    )
    limits = REGIONS.get(region)
    shape = {"spreads": SPREADS, "offsets": OFFSETS, "agreement": AGREEMENT}
    config = {**task.config, **shape, "set": limits, "rows_a_client": rows}
    return replace(
        task,
        rows=torch.arange(CLIENTS * rows).view(CLIENTS, rows),
        sizes=(rows,) * CLIENTS,
        set=limits,
        config=describe(config),
    )


@dataclass(frozen=True)
class Method:
    """A theorem's setting: how it is called, its instances, and what it prescribes.

    `rate` maps the setting and the version to a Rate.
    """

    label: str
    versions: tuple[str, ...]
    rate: Callable[[Setting, Any], Rate]
    problem: Callable[[int], Problem] = instance
    D: float = 1.0
    uplink: str = ""  # "topk", "randk" or nothing
    sampled: bool = False
    stochastic: bool = False


def hard_rate(s: Setting, version: str) -> Rate:
    """F Theorem 3, printed or with Gamma_direct = 3E/2 - 1 (ours)."""
    if version == "printed":
        return theory.theorem_3(s)
    return theory.hard_rate(s, gamma_local(s.E, "direct"))


def partial_rate(s: Setting, version: Any) -> Rate:
    """F Theorem 1 for sampled clients; ours is the corrected one with `gamma_partial_direct`."""
    if version != "ours":
        return theory.theorem_1_partial(s, version)
    base = theory.theorem_1_partial(s, "corrected")
    direct = theory.hard_rate(s, gamma_partial_direct(s.E, s.q, s.q0, s.ratio))
    change = direct.accuracy - bound(s.D, s.G, s.E, s.T, base.gamma)
    return replace(direct, tolerance=base.tolerance + change, accuracy=base.accuracy + change)


def weak_multiplier(s: Setting) -> float:
    """Lemma 10's Lambda; all instances of the weakly convex problem have the same slack."""
    return multiplier_bound(s.D, s.G, RHO_HAT, slater_slack(random_clipped(0)))


def stochastic_rate(s: Setting, version: Any) -> Rate:
    """F Theorem 9; a gradient is a mean of unit vectors, so never further than 2 from its mean."""
    return theory.theorem_9(s, 2.0, s.sigma, BATCH, version)


PRINTED = ("printed",)
BOTH = ("printed", "corrected")
half = partial(Method, D=2.0, sampled=True)
METHODS: dict[str, Method] = {
    "hard": Method("F 3: hard", ("printed", "ours"), hard_rate),
    "soft": Method("F 5: soft", BOTH, theory.theorem_5),
    "feedback": Method(
        "F 6: hard, Top-K both ways",
        PRINTED,
        lambda s, _: theory.theorem_6(s),
        uplink="topk",
    ),
    "soft_feedback": Method(
        "F 2: soft, Top-K both ways",
        BOTH,
        theory.theorem_2,
        uplink="topk",
    ),
    "unbiased": Method(
        "W 1: hard, Rand-K uplink",
        PRINTED,
        lambda s, _: theory.workshop_theorem_1(s),
        uplink="randk",
    ),
    "sampled": half(
        "F 4: half of the clients",
        BOTH,
        theory.theorem_4,
        partial(instance, region="ball"),
    ),
    "sampled_feedback": half(
        "F 1: half of the clients, Top-K",
        (*BOTH, "ours"),
        partial_rate,
        partial(instance, region="box"),
        uplink="topk",
    ),
    "stochastic": half(
        "F 9: half, minibatches",
        BOTH,
        stochastic_rate,
        partial(instance, region="ball", rows=ROWS),
        stochastic=True,
    ),
    "weak": half(
        "F 10: weakly convex",
        PRINTED,
        lambda s, version: theory.theorem_10(s, RHO, weak_multiplier(s), version),
        random_clipped,
    ),
}
