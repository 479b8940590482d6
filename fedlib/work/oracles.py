"""Work with oracles: each client calls a linear minimization oracle and sends an extreme point."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Problem
from fedlib.core.sampling import check_work, draw_coins
from fedlib.core.trees import index_tree
from fedlib.sets.blocks import PerClient
from fedlib.sets.vertices import wire_of
from fedlib.shapes import Vector
from fedlib.steps.schedules import Schedule, check_schedule
from fedlib.work.states import Iterate


class OracleWork(checks.Checked):
    """Base of Frank-Wolfe methods: it checks the set, draws coins and calls every client's oracle.

    Parameters
    ----------
    schedule : Schedule
        Rule for the step size and the penalty of round t.
    batch_size : int or None
        Number of rows in a gradient's minibatch; None for all rows.
    participation : float
        Probability that a client takes part in a round, in (0, 1].
    local_steps : int
        E, the number of local steps in a round.
    split : PerClient or None
        If given, a set for each client, in place of the problem's set.
    """

    schedule: Schedule
    batch_size: int | None
    participation: float = 1.0
    local_steps: int = 1
    split: PerClient | None = None

    def init(self, problem: Problem) -> Any:
        """Check that the problem has a feasible set; all clients share one model."""
        name = type(self).__name__
        count = problem.num_clients
        check_work(name, problem, count, constrained=False)
        inside = problem.set is not None and bool(problem.set.contains(problem.w0))
        rule = "have a feasible set that contains its start"
        remedy = "build it with problem.within"
        checks.require(inside, name, "problem", rule, problem.name, remedy)
        assert problem.set is not None
        problem.set.lmo(problem.w0)  # raises ValueError if the set is not bounded
        check_schedule(name, self.schedule, self.participation, problem.w0)
        if self.split is not None:
            entries = self.split.of
            rule = f"have an entry for each of {count} clients"
            checks.require(len(entries) == count, name, "split.of", rule, entries)
        return Iterate.start(problem)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw a coin and the rows of the minibatches for every client."""
        return draw_coins(  # 1
            problem,
            rng,
            local_steps=self.local_steps,
            batch_size=self.batch_size,
        )

    def ask(
        self,
        fed: Federation,
        draw: Draw,
        update: Callable[..., Any],
        w: Vector,
        active: Bool[Tensor, "N"],
        memory: Sequence[Float[Tensor, "N _ d"]] = (),
        dense: bool = False,
    ) -> Any:
        """Send w and run `update(client, w, convex_set=...)` at each client, with its own set.

        Returns what `fed.ask` returns. Uploads are extreme points in their set's wire format, or
        vectors if they are `dense`. Clients with the same set are asked together.
        """

        def ask_group(
            convex_set: ConvexSet,
            draw: Draw,
            active: Bool[Tensor, "n"],
        ) -> Any:
            wire = None if dense else wire_of(convex_set, fed.problem.dim)
            method = partial(update, convex_set=convex_set)
            clients = fed.clients(draw, memory=memory)
            return fed.ask(method, clients, w, wire=wire, active=active)

        if self.split is None:
            assert fed.problem.set is not None
            return ask_group(fed.problem.set, draw, active)
        answers = []
        order = []
        for convex_set, members in self.split.groups():
            numbers = torch.tensor(members, device=active.device)
            group_draw = index_tree(draw, numbers)
            answers.append(ask_group(convex_set, group_draw, active[numbers]))
            order.append(numbers)
        back = torch.cat(order).argsort()
        return pytree.tree_map(lambda *groups: torch.cat(groups)[back], *answers)
