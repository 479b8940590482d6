"""What the Frank-Wolfe methods share: checks, the coins, the question to every client's oracle."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Info, Problem
from fedlib.core.sampling import check_work
from fedlib.sets.blocks import PerClient
from fedlib.sets.vertices import wire_of
from fedlib.steps.schedules import Schedule


class State(NamedTuple):
    """What the methods carry from round to round."""

    w: Float[Tensor, "d"]  # the server's model, the mean of the clients'
    x: Float[Tensor, "N d"]  # the clients' models, or [N, 0]; their messages tell them
    extra: Float[Tensor, "N d"]  # y_i (FedFW+) or d_i (FedFW-sto); [N, 0] where there is none
    t: Float[Tensor, ""]  # the number of rounds done


@runtime_checkable
class FrankWolfe(Protocol):
    """The parameters that the server's half uses."""

    @property
    def participation(self) -> float:
        """The probability with which a client takes part."""
        ...

    @property
    def schedule(self) -> Schedule:
        """Step sizes and penalties."""
        ...

    @property
    def split(self) -> PerClient | None:
        """A set for each client, or None."""
        ...


def check_parameters(who: str, lam0: object, participation: object) -> None:
    """Check the parameters that these methods have; raises as `checks` does."""
    checks.nonnegative(who, "lam0", lam0)
    checks.in_range(who, "participation", participation, 0, 1, open_low=True)


def start(problem: Problem, *, keeps: bool = True, extra: bool = False) -> State:
    """All clients at the problem's start; whether they keep a model, and something beside it."""
    w, n = problem.w0, problem.num_clients
    x = w.repeat(n, 1) if keeps else w.new_zeros(n, 0)
    return State(w, x, w.new_zeros(n, problem.dim if extra else 0), w.new_zeros(()))


def check_feasible(
    who: str, problem: Problem, split: PerClient | None = None, batch_size: int | None = None
) -> None:
    """Check a problem for a method that needs a feasible set.

    Raises
    ------
    ValueError
        for a problem without a set, with constraints, with a start outside the set, with fewer rows
        than a batch, or with another number of clients than `split` has.
    """
    check_work(who, problem, problem.num_clients, batch_size)
    if problem.num_constraints:
        raise ValueError(
            f"{who}: the problem must have objectives only, {problem.name} has "
            f"{problem.num_constraints} constraints."
        )
    if problem.set is None:
        raise ValueError(
            f"{who}: the problem must have a feasible set, {problem.name} has none; "
            "build it with problem.within(L1Ball(radius))."
        )
    if not bool(problem.set.contains(problem.w0)):
        raise ValueError(
            f"{who}: the problem must start in its feasible set, {problem.name} does not; "
            "build it with problem.within(set), which projects the start."
        )
    if split is not None and len(split.of) != problem.num_clients:
        rule = f"have an entry for each of the {problem.num_clients} clients"
        raise ValueError(checks.sentence(who, "split", rule, f"{len(split.of)} of them"))


def active_clients(draw: Draw, participation: float | Float[Tensor, ""]) -> Bool[Tensor, "N"]:
    """Who takes part, a boolean `[N]`: each client by its own coin."""
    assert isinstance(draw.chance, Tensor)
    return draw.chance < participation


def on_active(
    active: Bool[Tensor, "N"], new: Float[Tensor, "N *x"], old: Float[Tensor, "N *x"]
) -> Float[Tensor, "N *x"]:
    """`new [N, ...]` for those who take part, `old [N, ...]` for the others."""
    return torch.where(active.view(-1, *(1,) * (new.dim() - 1)), new, old)


def server_round(
    method: FrankWolfe, fed: Federation, state: State, draw: Draw, update: Callable[..., Any]
) -> tuple[State, Info]:
    """The server's half of Algorithm 1: coins, w to the clients, their extreme points, the new w.

    `update` answers with the extreme point, keeps the client's model `[d]`, or the model and what
    is beside it `[2, d]`, and reports the gap.
    """
    w, active = state.w, active_clients(draw, method.participation)
    two = state.extra.shape[-1] > 0
    memory = torch.stack([state.x, state.extra], 1) if two else state.x
    s, new, gap = ask_oracles(fed, update, draw, memory, w, active, method.split)
    who = active.to(w.dtype)
    moved = who @ s - who @ state.x
    eta = method.schedule.eta(state.t + 1, method.participation)
    w_next = w + eta * moved / fed.problem.num_clients
    x = on_active(active, torch.lerp(state.x, s, eta), state.x)  # as the messages tell
    extra = on_active(active, new[:, 1], state.extra) if two else state.extra
    info = fed.info(gap=gap.sum(), distance=torch.linalg.vector_norm(state.x - w))
    return State(w_next, x, extra, state.t + 1), info


def ask_oracles(
    fed: Federation,
    method: Callable[..., Any],
    draw: Draw,
    memory: Float[Tensor, "N *x"],
    w: Float[Tensor, "d"],
    active: Bool[Tensor, "N"],
    split: PerClient | None,
    dense: bool = False,
) -> Any:
    """Send w to all clients and run `method(client, w, convex_set=...)` at each, with its own set.

    The answer is that of `fed.ask`. Uploads are extreme points and travel in their set's format,
    unless they are `dense`. Clients with the same set are asked together.
    """
    dim = fed.problem.dim
    assert fed.problem.set is not None
    if split is None:
        everywhere: ConvexSet = fed.problem.set
        clients = fed.clients(draw, memory=memory)
        wire = None if dense else wire_of(everywhere, dim)
        own = partial(method, convex_set=everywhere)
        return fed.ask(own, clients, w, wire=wire, active=active)
    answers: list[Any] = []
    order: list[int] = []
    for convex_set, members in split.groups():
        who = torch.tensor(members, device=draw.participants.device)
        clients = fed.clients(_only(draw, who), memory=memory)
        wire = None if dense else wire_of(convex_set, dim)
        own = partial(method, convex_set=convex_set)
        answers.append(fed.ask(own, clients, w, wire=wire, active=active[who]))
        order += members
    back = torch.tensor(order, device=draw.participants.device).argsort()
    return pytree.tree_map(lambda *parts: torch.cat(parts)[back], *answers)


def _only(draw: Draw, who: Tensor) -> Draw:
    """The draw of some clients, of one that has all."""
    batches = draw.batches[who] if isinstance(draw.batches, Tensor) else ()
    chance = draw.chance[who] if isinstance(draw.chance, Tensor) else ()
    return draw._replace(participants=who, batches=batches, chance=chance)
