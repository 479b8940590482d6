"""The argument of people's functions: some rows of one client and the module's output there."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from fedlib import checks
from fedlib.core.problem import Batch, Problem
from fedlib.shapes import Scalar


class ClientRows(NamedTuple):
    """B rows of one client, the argument of an objective, a constraint or a measure.

    Attributes
    ----------
    output : Tensor
        `[B, ...]`, the module's output.
    target : Tensor
        `[B, ...]`, the values to predict.
    columns : mapping
        Name -> `[B, ...]`, further columns.
    weight : Tensor
        `[B]`, each row's weight in the method `mean`, 0 for the padding of a short client.

    >>> rows = ClientRows(torch.zeros(3), torch.ones(3), {}, torch.tensor([0.5, 0.5, 0.0]))
    >>> rows.mean(torch.tensor([1.0, 3.0, 100.0]))  # the last row is padding
    tensor(2.)
    """

    output: Float[Tensor, "B ..."]
    target: Shaped[Tensor, "B ..."]
    columns: Mapping[Hashable, Shaped[Tensor, "B ..."]]
    weight: Float[Tensor, "B"]

    def mean(
        self,
        values: Shaped[Tensor, "m"],
        where: Shaped[Tensor, "m"] | None = None,
    ) -> Scalar:
        """The mean of one number per row, over all rows or over those `where` a condition holds.

        The condition must hold for some row of every client, else the problem raises ValueError. A
        minibatch may have no such row and then counts 0, so its mean is only an estimate. Raises
        ValueError unless `values` and `where` are `[B]`: one number per row.
        """
        weight = self.weight
        check_shape("values", values, weight)
        if where is not None:
            check_shape("where", where, weight)
            chosen = weight * where.to(weight.dtype)
            share = chosen.sum()
            SHARES.append(share)
            tiny = torch.finfo(weight.dtype).tiny
            weight = chosen / share.clamp(min=tiny)
        return weight @ values.to(weight.dtype)


def check_shape(name: str, values: Tensor, weight: Tensor) -> None:
    """Raise ValueError unless there is one number per row."""
    fits = values.shape == weight.shape
    rule = f"hold one number a row, shape {list(weight.shape)}"
    remedy = "drop or reduce the other axes, for instance with squeeze(-1)"
    checks.require(fits, "ClientRows.mean", name, rule, values, remedy)


class Shares(threading.local):
    """The shares of rows for which conditions held, while this thread tests a function."""

    def __init__(self) -> None:
        self.latest = deque[Tensor](maxlen=100)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.latest)

    def append(self, share: Tensor) -> None:
        """Add the share of one condition."""
        self.latest.append(share)

    def clear(self) -> None:
        """Forget all shares."""
        self.latest.clear()


SHARES = Shares()

#: An objective, a constraint or a measure: a function of a client's rows that returns one number.
Function = Callable[[ClientRows], Any]
Functions = Function | Sequence[Function]


def plain_client(problem: Problem, client: int) -> Batch:
    """One client's rows without padding."""
    rows = problem.own_rows(client)
    return evenly_weighted(problem, problem.data_at(rows))


def heldout_rows(problem: Problem) -> Batch:
    """The rows that no client trains on."""
    return evenly_weighted(problem, problem.heldout)


def evenly_weighted(problem: Problem, tensors: tuple[Tensor, ...]) -> Batch:
    """A batch of all rows of some tensors, with equal weights."""
    count = len(tensors[0])
    weight = problem.w0.new_full((count,), 1 / count)
    return Batch(tensors, weight)


def title(function: Function) -> str:
    """The name of a function."""
    default = type(function).__name__
    return str(getattr(function, "__name__", default))
