"""FedDR: Douglas-Rachford splitting with a projection at the server.

Tran-Dinh, Pham, Phan, Nguyen, *FedDR: Randomized Douglas-Rachford Splitting Algorithms for
Nonconvex Federated Composite Optimization*, NeurIPS 2021, Algorithm 1.

Symbol in the source -> name here: x-bar -> `w`, x-tilde -> `x`, alpha -> `relaxation`. The source's
g is the indicator of the feasible set, so prox_g is the projection.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive, Share
from fedlib.core.client import Client, Reply
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info, Problem
from fedlib.core.sampling import active_clients, draw_coins, on_active
from fedlib.shapes import Vector

#: A number in (0, 2).
Relaxation = Annotated[
    float, checks.between(0, 2, open_low=True, open_high=True, name="Relaxation")
]


class State(NamedTuple):
    """The state of FedDR."""

    w: Vector  # x-bar, the projection of x; the server sends it to the clients
    x: Vector  # x-tilde, the mean of the last known x-hat_i
    memory: Float[Tensor, "N 3 d"]  # y_i, x_i, x-hat_i


@dataclass(frozen=True)
class FedDR(checks.Checked):
    r"""Randomized Douglas-Rachford splitting with a projection at the server.

        1  each client takes part with probability p, by its own coin;
           initially y_i = x_i = xhat_i = x = w
        2  the server sends w; each such client i:
        3      y_i <- y_i + relaxation (w - x_i)
        4      x_i <- an approximate minimizer of f_i(u) + |u - y_i|^2 / (2 eta): from u = x_i,
               E times u <- u - lr (grad f_i(u) + (u - y_i) / eta)
        5      xhat_i <- 2 x_i - y_i, and i sends the change of xhat_i
        6  x <- x + (sum of the changes) / N, so that x stays the mean of all xhat_i
        7  w <- project(x)

    >>> from fedlib import FedDR, problems, run
    >>> problem = problems.pareto(torch.eye(4).view(4, 1, 1, 4))
    >>> run(FedDR(lr=0.1, local_steps=2), problem, rounds=20).late("f").round(1)
    array([0.4])

    Parameters
    ----------
    lr : float
        Step size of the local steps.
    local_steps : int
        E, the number of local steps in a round.
    eta : float
        Client i adds the proximal term |u - y_i|^2 / (2 eta) around its centre y_i to its
        objective.
    relaxation : float
        alpha, in (0, 2), the factor in y_i <- y_i + alpha (w - x_i), with x_i the client's model.
    participation : float
        Probability p that a client takes part in a round, in (0, 1].
    batch_size : int or None
        Number of rows in a minibatch; None for full local gradients.

    Info: `drift` is the root mean square over all clients of x_i - w before the round.

    Differs: in the source, each x_i starts at an inexact proximal point of the start. Here each
    x_i starts at the start itself. Constraints are ignored, and several objectives count by their
    mean.
    """

    client_state: ClassVar[tuple[str, ...]] = ("memory",)

    lr: Positive
    local_steps: Count
    eta: Positive = 10.0
    relaxation: Relaxation = 1.0
    participation: Share = 1.0
    batch_size: Count | None = None

    def init(self, problem: Problem) -> State:
        """All clients begin at the problem's start."""
        w = problem.w0
        return State(
            w=w,
            x=w,
            memory=w.repeat(problem.num_clients, 3, 1),
        )

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_coins(  # 1
            problem,
            rng,
            local_steps=self.local_steps,
            batch_size=self.batch_size,
        )

    def local_update(self, client: Client, w: Vector) -> Reply:
        """At the client: make an inexact proximal step; send the change of the reflected point."""
        y, x, reflected_before = client.memory
        y = y + self.relaxation * (w - x)  # 3
        weights = client.objective_weights(w)
        for step in range(self.local_steps):
            slope = client.gradient(x, client.batch(step), weights)
            x = x - self.lr * (slope + (x - y) / self.eta)  # 4
        reflected = 2 * x - y  # 5
        memory = torch.stack([y, x, reflected])
        return Reply(upload=reflected - reflected_before, memory=memory)  # 5

    def round(
        self,
        fed: Federation,
        state: State,
        draw: Draw,
    ) -> tuple[State, Info]:
        active = active_clients(draw, self.participation)  # 1
        clients = fed.clients(draw, memory=state.memory)
        change, memory = fed.ask(
            self.local_update,
            clients,
            state.w,
            active=active,
        )  # 2-5
        changes = on_active(active, change, torch.zeros_like(change))
        x = state.x + changes.mean(0)  # 6
        differences = state.memory[:, 1] - state.w
        squares = differences.square().sum(-1)
        drift = squares.mean().sqrt()
        state = State(
            w=fed.project(x),  # 7
            x=x,
            memory=on_active(active, memory, state.memory),
        )
        return state, fed.info(drift=drift)
