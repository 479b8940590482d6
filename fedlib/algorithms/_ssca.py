"""What the algorithms of successive convex approximation share: state, batches, checks, penalty."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.core.problem import Draw, Problem
from fedlib.core.sampling import distinct, distinct_each
from fedlib.steps.schedules import PowerLaw, averaging
from fedlib.steps.surrogate import Surrogate

OBJECTIVES = ("problem", "norm")
Objective = Literal["problem", "norm"]
#: One level for all constraints, or one each.
Levels = float | Annotated[tuple[float, ...], checks.SOME]
#: At least 1.
Growth = Annotated[float, checks.least(1, "Growth")]


class State(NamedTuple):
    """What the server carries from round to round."""

    w: Float[Tensor, "d"]
    linear: Float[Tensor, "K d"]  # the averaged surrogates
    constant: Float[Tensor, "K"]
    left: Float[Tensor, ""]  # prod (1 - rho)
    factor: Float[Tensor, ""]  # what the penalty has been multiplied by
    t: Float[Tensor, ""]  # rounds done


def start(problem: Problem, losses: int) -> State:
    """The problem's start, the zero surrogate of `losses` losses, round 0."""
    w = problem.w0
    return State(w, *Surrogate.zero(w, losses), w.new_ones(()), w.new_zeros(()))


def surrogate(state: State) -> Surrogate:
    """The averaged surrogates of a state."""
    return Surrogate(state.linear, state.constant, state.left)


def check_numbers(who: str, tau: float, rho: PowerLaw, gamma: PowerLaw) -> None:
    """Check the curvature and the two step sizes."""
    checks.positive(who, "tau", tau)
    averaging(who, "rho", rho)
    averaging(who, "gamma", gamma)


def check_penalty(who: str, penalty: float, growth: float, patience: int, tol: float) -> None:
    """Check the penalty and how it grows."""
    checks.positive(who, "penalty", penalty)
    checks.at_least(who, "growth", growth, 1)
    checks.count(who, "patience", patience)
    checks.nonnegative(who, "tolerance", tol)


def check_levels(who: str, levels: float | tuple[float, ...], objective: str) -> None:
    """Check what is minimized, and the levels alone."""
    checks.one_of(who, "objective", objective, OBJECTIVES)
    check = checks.positive if objective == "norm" else checks.number
    for level in levels if isinstance(levels, tuple) else (levels,):
        check(who, "levels", level)


def check_constraints(
    who: str, problem: Problem, levels: float | tuple[float, ...], objective: str
) -> None:
    """Raise ValueError for a problem whose constraints do not fit.

    It has one objective (any number if all losses are constraints), a constraint, a level for
    each, no set, and no pooled constraint.
    """
    count, given = problem.num_constraints, f"{who}: the problem must have"
    if objective == "norm":
        count += problem.num_objectives
    elif problem.num_objectives != 1:
        raise ValueError(f"{given} one objective, {problem.name} has {problem.num_objectives}.")
    if count == 0:
        raise ValueError(
            f'{given} a constraint, {problem.name} has none; pass objective="norm" to constrain '
            "its losses."
        )
    if problem.set is not None or problem.pooled is not None:
        raise ValueError(
            f"{given} no set and no pooled constraint, {problem.name} has one; its server step "
            "has no closed form there."
        )
    if isinstance(levels, tuple) and len(levels) != count:
        rule = f"hold {count} numbers (the constraints of {problem.name})"
        raise ValueError(checks.sentence(who, "levels", rule, levels))


def level_vector(levels: float | tuple[float, ...], like: Float[Tensor, "M"]) -> Float[Tensor, "M"]:
    """The levels `[M]`, one number for all or one each."""
    if isinstance(levels, tuple):
        return torch.tensor(levels, dtype=like.dtype, device=like.device)
    return torch.zeros_like(like) + levels


def raised(
    factor: Float[Tensor, ""],
    slack: Float[Tensor, "M"],
    t: Float[Tensor, ""],
    *,
    growth: float,
    patience: int,
    tolerance: float,
) -> Float[Tensor, ""]:
    """The penalty's factor after round `t`: times `growth` if it is due and the slack large."""
    due = (t % patience == 0) & (slack.norm() > tolerance)
    return torch.where(due, factor * growth, factor)


def draw_batches(
    problem: Problem, rng: torch.Generator, steps: int, batch_size: int | None
) -> Draw:
    """All clients, and their batches of every step: rows of a batch are distinct."""
    who = torch.arange(problem.num_clients)
    if batch_size is None:
        return Draw(participants=who)
    sizes = problem.sizes
    if len(set(sizes)) == 1:
        return Draw(who, batches=distinct(sizes[0], (len(sizes), steps, batch_size), rng))
    return Draw(who, batches=distinct_each(sizes, steps, batch_size, rng))


def shares(problem: Problem) -> Float[Tensor, "N"]:
    """What every client has of all samples, N_i / N in the paper's letters."""
    sizes = problem.lengths
    if not isinstance(sizes, Tensor):
        sizes = torch.tensor(problem.sizes, device=problem.rows.device)
    counts = sizes.to(problem.w0.dtype)
    return counts / counts.sum()
