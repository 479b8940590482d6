"""What an end has of a problem and of a state: a client its own rows, the server nobody's."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from fedlib.core.problem import Problem


def part(problem: Problem, client: int | None) -> Problem:
    """The rows of one client (None: of nobody), everybody's sizes, start and losses.

    >>> from fedlib import problems
    >>> whole = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> [len(part(whole, client).data[0]) for client in (0, None)]
    [1, 1]
    >>> part(whole, None).data[0]
    tensor([[nan, nan]])
    """
    here = 0 if client is None else client
    own = problem.rows[here, : problem.sizes[here]]
    data = tuple(x[own] for x in problem.data)
    return placed(problem, data, client, problem.sizes)


def placed(
    problem: Problem,
    data: Sequence[Shaped[Tensor, "m ..."]],
    client: int | None,
    sizes: Sequence[int],
) -> Problem:
    """The problem of `len(sizes)` clients in which client number `client` holds `data`."""
    other, most = copy.copy(problem), max(sizes)
    rows = torch.zeros(len(sizes), most, dtype=torch.int64, device=problem.w0.device)
    if client is None:
        data = tuple(blank(x[:1]) for x in data)
    else:
        rows[client] = torch.arange(most).clamp_max(sizes[client] - 1)
    heldout = tuple(map(blank, problem.heldout))
    new = {"data": tuple(data), "rows": rows, "sizes": tuple(sizes), "heldout": heldout}
    vars(other).update(**new, lengths=())
    return other


def blank(x: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    """NaN in place of floats, 0 in place of whole numbers."""
    return torch.full_like(x, torch.nan) if x.is_floating_point() else torch.zeros_like(x)


def own_part(state: Any, me: int | None, names: Sequence[str]) -> Any:
    """What an end keeps of a state: of the clients' memories its own row, at the server none."""
    return state._replace(**{name: getattr(state, name)[own_rows(me)] for name in names})


def whole_state(own: Any, me: int | None, clients: int, names: Sequence[str]) -> Any:
    """A state of all clients in which the memories that an end does not have are NaN."""
    found = {}
    for name in names:
        x = getattr(own, name)
        found[name] = x.new_full((clients, *x.shape[1:]), torch.nan)
        found[name][own_rows(me)] = x
    return own._replace(**found)


def own_rows(me: int | None) -> slice:
    """Where the memory of an end stands among all clients'."""
    return slice(0, 0) if me is None else slice(me, me + 1)
