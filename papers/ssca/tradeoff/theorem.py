r"""What the check of Theorem 5 runs: from the constrained example (37) over to the ridge (27).

Where $w$ solves $\min |w|^2$ subject to $F(w) \le U$ with the multiplier $\nu > 0$, the theorem
says that the gradient of $F(w) + \lambda |w|^2$ with $\lambda = 1 / \nu$ is zero there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fedlib import checks
from fedlib.algorithms.ssca import SSCA, ConstrainedSSCA, State
from fedlib.checks import Count
from fedlib.core import Problem
from fedlib.core.federation import Federation
from fedlib.core.problem import Batch, Draw, Info
from fedlib.steps import PowerLaw
from papers.ssca.common import SCALES, TAU, constrained, slice_table, tables
from papers.ssca.network import swish_network

STEPS = PowerLaw(1.0), PowerLaw(0.1)  # full batches: nothing to average, and steps may stay
DESCENT = PowerLaw(1.0), PowerLaw(0.05)  # afterwards: gradient descent with step 0.05 / 2 tau


class HandoverState(NamedTuple):
    """What the server carries from round to round."""

    w: Tensor  # [d]
    first: State  # of the constrained method; stands still after the handover
    then: State  # of the unconstrained one; its w follows the other's before
    nu: Tensor  # the multiplier of the last constrained round


@dataclass(frozen=True)
class Handover:
    r"""A constrained method, and after some rounds the unconstrained one from where it has come to.

        1  in rounds 1 .. R: w and nu from a round of `first`
        2  afterwards: w from a round of `then` (zero surrogate at first), ridge = 1 / nu of round R

    Reports `nu`, the slack of `first`, and `moved`: how far w has gone since round R, as a share of
    its length there.

    Differs: this is no algorithm of the paper, it follows the statement of Theorem 5, part ii.
    """

    first: ConstrainedSSCA  # with one constraint
    then: SSCA  # its ridge does not count
    rounds: Count  # R

    def __post_init__(self) -> None:
        checks.fields(self)
        if self.first.batch_size != self.then.batch_size:
            wanted = f"be that of first, {self.first.batch_size}"
            got = self.then.batch_size
            raise ValueError(checks.sentence("Handover", "then.batch_size", wanted, got))

    def init(self, problem: Problem) -> HandoverState:
        """Check both against the problem; their zero surrogates."""
        first, then = self.first.init(problem), self.then.init(problem)
        if len(first.constant) != 1:
            wanted = "have one loss, which is the constraint"
            raise ValueError(checks.sentence("Handover", "problem", wanted, problem.name))
        return HandoverState(problem.w0, first, then, problem.w0.new_ones(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """A batch of every client."""
        return self.first.draw(problem, rng)

    def round(
        self, fed: Federation, state: HandoverState, draw: Draw
    ) -> tuple[HandoverState, Info]:
        """One round at the server; both methods work in it, one of them counts."""
        early = state.first.t < self.rounds
        first, one = self.first.round(fed, state.first, draw)
        ridge: Any = 1 / state.nu
        then, two = replace(self.then, ridge=ridge).round(fed, state.then, draw)
        nu = torch.where(early, one["nu"].reshape(()).to(state.nu.dtype), state.nu)  # 1
        then = chosen(early, state.then._replace(w=first.w), then)  # 2
        first = chosen(early, first, state.first)
        way = (then.w - first.w).norm() / first.w.norm()
        slack = one["slack"].reshape(()) * early
        bits = {k: torch.where(early, one[k], two[k] - one[k]) for k in ("bits_up", "bits_down")}
        new = HandoverState(then.w, first, then, nu)
        return new, {"nu": nu, "slack": slack, "moved": way, **bits}


def chosen(when: Tensor, one: State, other: State) -> State:
    return State(*(torch.where(when, a, b) for a, b in zip(one, other, strict=True)))


def handover(level: float, rounds: int) -> Handover:
    """The constrained example at a level with full batches, then descent on the ridge."""
    rho, gamma = STEPS
    first = constrained("samples", 100, level, rho=rho, gamma=gamma, batch_size=None)
    if not isinstance(first, ConstrainedSSCA):
        raise TypeError(checks.sentence("handover", "first", "be split by samples", first))
    return Handover(first, SSCA(tau=TAU, rho=DESCENT[0], gamma=DESCENT[1]), rounds)


@lru_cache(maxsize=32)
def theorem_problem(seed: int, *, pictures: int, clients: int, hidden: int) -> Problem:
    r"""The network on scikit-learn's first digits, in float64, with its gradient in the metrics.

    `metrics`, on all pictures of all clients: `cost` F, `norm` $|w|^2$, `slope` $|\nabla F|$, and
    the gradient's parts `along` w (its length, with sign) and `across` it. With these,
    $|\nabla F + 2 \lambda w|^2 = \text{across}^2 + (\text{along} + 2 \lambda |w|)^2$.
    """
    train, test = tables("digits")
    made = swish_network(
        slice_table(train, slice(pictures)),
        test,
        clients=clients,
        hidden=hidden,
        seed=seed,
        evaluate=pictures,
        scale=SCALES["digits"],
        dtype=torch.float64,
        config={"data": "digits", "measured": "gradient"},
    )

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        rows = problem.rows.flatten()
        share = torch.full_like(rows, 1 / len(rows), dtype=w.dtype)
        batch = Batch(tuple(x[rows] for x in problem.data), share)
        gradient = slope_of(problem, w, batch)
        unit = w / w.norm()
        along = gradient @ unit
        return {
            "cost": problem.losses(w, batch)[0],
            "norm": w @ w,
            "slope": gradient.norm(),
            "along": along,
            "across": (gradient - along * unit).norm(),
        }

    return replace(made, metrics=metrics)


def slope_of(problem: Problem, w: Tensor, batch: Batch) -> Tensor:
    """The gradient `[d]` of a problem's one loss on a batch."""
    if problem.gradient is None:
        wanted = "have its gradient in closed form"
        raise TypeError(checks.sentence("ssca", "problem", wanted, problem.name))
    return problem.gradient(w, batch, w.new_ones(1))
