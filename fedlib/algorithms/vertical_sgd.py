"""Mini-batch SGD over features, the baseline of the feature-based successive approximation.

Ye, Cui, *Sample-based and Feature-based Federated Learning via Mini-batch SSCA* (arXiv 2104.06011),
section VI.

Paper -> here: omega -> w = (w_0, w_1, ..., w_I), the common parameters and those of each client;
h_{0,i} -> h_i, lambda -> `ridge`, bar a / t^bar alpha -> `lr`, the fastest client -> `head`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.algorithms._vertical import check_batch, draw_samples, exchange, mean_objective
from fedlib.checks import Count, Nonnegative
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.steps.schedules import PowerLaw, power_law
from fedlib.vertical.line import Line


class Iterate(NamedTuple):
    """What SGD carries from round to round."""

    w: Float[Tensor, "d"]
    t: Float[Tensor, ""]  # rounds done


@dataclass(frozen=True)
class VerticalSGD:
    r"""Mini-batch SGD over features, the baseline of `VerticalSSCA`, with the same messages.

        1  the server draws a batch of B samples without replacement and sends every client i their
               numbers, w_0 and w_i
        2  each client i sends h_i, of every sample of the batch, to all other clients
        3  each client i sends the gradient by w_i, summed over the batch
        4  client `head` also sends the gradient by w_0, summed over the batch
        5  g = (what was sent, put together) / B + 2 ridge w
        6  w <- project(w - lr_t g)

    >>> from fedlib import VerticalSGD, run
    >>> from fedlib.testing.examples import network
    >>> method = VerticalSGD(lr=PowerLaw(1.0))
    >>> run(method, network(), rounds=5, progress=False).late("accuracy").round(1)
    array([0.2])

    Parameters
    ----------
    lr : step size of round t, a `PowerLaw`.
    batch_size, ridge, head : as in `VerticalSSCA`.

    Differs: as the paper describes it; it gives neither the grid of lr nor how it was searched.

    Raises
    ------
    ValueError, TypeError
        as `VerticalSSCA`.

    Reference: section VI of the paper, after the feature-based methods that it cites.
    """

    lr: PowerLaw
    batch_size: Count | None = None
    ridge: Nonnegative = 0.0
    head: Count = 1

    def __post_init__(self) -> None:
        checks.fields(self)
        power_law("VerticalSGD", "lr", self.lr)

    def init(self, problem: Problem) -> Iterate:
        check_batch("VerticalSGD", problem, self.batch_size, self.head)
        return Iterate(problem.w0, problem.w0.new_zeros(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_samples(problem, rng, self.batch_size)  # 1

    def round(self, fed: Federation, state: Iterate, draw: Draw) -> tuple[Iterate, Info]:
        line, w, t = Line(fed), state.w, state.t + 1
        gradients, _ = exchange(line, w, draw, mean_objective(fed.problem, w), self.head)  # 1-4
        g = gradients[0] + 2 * self.ridge * w  # 5
        return Iterate(fed.project(w - self.lr(t) * g), t), line.info()  # 6
