"""What a function of one's own sees of a client: `ClientRows`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from fedlib.core.problem import Batch
from fedlib.models.modules import Apply


class ClientRows(NamedTuple):
    """What an objective, a constraint or a measure sees: B rows of one client.

    `output` is what the module makes of them `[B, ...]`, `target [B, ...]` what it should be,
    `columns` further columns by name, and `weight [B]` how much each row counts: clients with fewer
    rows than others are padded, and padding weighs nothing. `mean` respects that.

    >>> rows = ClientRows(torch.zeros(3), torch.ones(3), {}, torch.tensor([0.5, 0.5, 0.0]))
    >>> rows.mean(torch.tensor([1.0, 3.0, 100.0]))  # the last row is padding
    tensor(2.)
    """

    output: Float[Tensor, "B ..."]
    target: Shaped[Tensor, "B ..."]
    columns: Mapping[str, Shaped[Tensor, "B ..."]]
    weight: Float[Tensor, "B"]

    def mean(
        self, values: Shaped[Tensor, "m"], where: Shaped[Tensor, "m"] | None = None
    ) -> Float[Tensor, ""]:
        """The mean of one number a row, over all rows or those `where` a condition holds.

        Where it holds for none the mean is 0. On a minibatch, a mean over some rows only estimates
        that over all such rows of the client.

        Raises
        ------
        ValueError
            unless `values` and `where` are `[B]`: one number a row.
        """
        for name, value in (("values", values), ("where", where)):
            if value is not None and value.shape != self.weight.shape:
                raise ValueError(
                    f"ClientRows.mean: {name} must hold one number a row, shape "
                    f"{list(self.weight.shape)}, got {list(value.shape)}; drop or reduce the "
                    "other axes, for instance with squeeze(-1)."
                )
        weight = self.weight
        if where is not None:
            chosen = weight * where.to(weight.dtype)
            weight = chosen / chosen.sum().clamp(min=torch.finfo(weight.dtype).tiny)
        return weight @ values.to(weight.dtype)


#: An objective, a constraint or a measure: one number of some rows of one client.
Function = Callable[[ClientRows], Tensor]


def seen(apply: Apply, columns: Sequence[str], w: Float[Tensor, "d"], batch: Batch) -> ClientRows:
    """The rows of a batch as the functions see them, at the parameters `w`."""
    inputs, target, *more = batch.data
    named = dict(zip(columns, more, strict=True))
    return ClientRows(apply(w, inputs), target, named, batch.weight)
