"""A fairness constraint of people's own problems: the gap between two groups' mean outputs."""

from collections.abc import Hashable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.problems.client_rows import ClientRows
from fedlib.problems.fairness import sums


@dataclass(frozen=True)
class GroupGap(checks.Checked):
    """A constraint: the absolute gap between two groups' mean outputs, pooled over the clients.

    A client sends sums and counts of both groups. It may therefore lack a group, and gaps of
    opposite sign do not distort the result. The output is a logit, and its sigmoid is compared.

    Parameters
    ----------
    column : the name of the column that is 1 in the first group and 0 in the second.
    given : only rows with this target are compared; 1 means equal opportunity. None compares all
        rows, which means demographic parity.
    """

    column: Hashable
    given: float | None = None

    def four(self, rows: ClientRows, scale: Float[Tensor, "*B"]) -> Float[Tensor, "4"]:
        """Sum of outputs and number of rows, for the first group, then for the second."""
        weight, group = rows.weight * scale, rows.columns[self.column].to(rows.weight.dtype)
        if self.given is not None:
            weight = weight * (rows.target == self.given)
        return sums(torch.sigmoid(rows.output.reshape(weight.shape)), weight, group)
