"""A fairness constraint of people's own problems: the gap between groups' mean outputs."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.problems.client_rows import ClientRows, Function, Functions
from fedlib.shapes import AnyRows, Rowwise, Scalar

MOST_GROUPS = 20  # a column with more values holds no groups


@dataclass(frozen=True)
class GroupGap(checks.Checked):
    """A constraint: the largest gap between any two groups' mean outputs, over all clients' rows.

    The output is a logit, or the logits of two classes; the probability of class 1 is compared. A
    client sends the sum of its outputs and the number of its rows for each group. The server
    answers with the derivatives of the gap by these sums and counts, so the clients' steps lower
    the gap over all rows, even if each client has rows of one group only.

    Parameters
    ----------
    column : Hashable
        Name of the column that holds the group of each row, a number for each group.
    given : float or None
        Only rows with this target are compared; 1 means equal opportunity. None compares all rows,
        which means demographic parity.

    The gap counts each row once, whatever the weights of the clients. If some groups have no row
    among the clients of a round, the gap of the other groups counts, or 0 if fewer than two are
    left.
    """

    column: Hashable
    given: float | None = None


@dataclass(frozen=True)
class GroupSums:
    """A `GroupGap` with the groups of a problem: what clients send, and what it means.

    The statistics of G groups are the G sums of probabilities, then the G numbers of rows.
    """

    gap: GroupGap
    groups: tuple[float, ...]

    @property
    def size(self) -> int:
        """The number of statistics, 2 G."""
        return 2 * len(self.groups)

    def statistics(self, rows: ClientRows, scale: Rowwise) -> Float[Tensor, "2G"]:
        """A client's sums and counts; `scale` is the number of rows that its mean stands for.

        On a minibatch they estimate those of all rows of the client.
        """
        weight = rows.weight * scale
        if self.gap.given is not None:
            target = rows.target.reshape(weight.shape)
            weight = weight * (target == self.gap.given)
        column = rows.columns[self.gap.column]
        group = column.reshape(-1, 1)
        is_member = group == group.new_tensor(self.groups)
        member = is_member.to(weight.dtype)
        outputs = weight * probabilities(rows.output)
        sums = outputs @ member
        counts = weight @ member
        return torch.cat([sums, counts])

    def value(self, statistics: Float[Tensor, "2G"]) -> Scalar:
        """The largest gap between the groups that have rows."""
        sums, counts = statistics.chunk(2)
        present = counts > 0
        divisors = torch.where(present, counts, 1)
        rates = sums / divisors
        below = torch.where(present, rates, -torch.inf)
        above = torch.where(present, rates, torch.inf)
        gap = below.amax() - above.amin()
        comparable = present.sum() > 1
        return torch.where(comparable, gap, 0)


def probabilities(output: Float[Tensor, "B ..."]) -> Rowwise:
    """The probability of class 1, from one logit a row or from two."""
    logits = output.reshape(len(output), -1)
    if logits.shape[1] == 2:
        difference = logits[:, 1] - logits[:, 0]
        return torch.sigmoid(difference)
    return torch.sigmoid(logits.squeeze(1))


#: One constraint, or several.
Constraints = Functions | GroupGap | Sequence[Function | GroupGap]


def listed(constraint: Constraints) -> tuple[Function | GroupGap, ...]:
    """One constraint or several, as a tuple."""
    if callable(constraint) or isinstance(constraint, GroupGap):
        return (constraint,)
    return tuple(constraint)


def with_gap_columns(columns: Sequence[Hashable], constraint: Constraints) -> list[Hashable]:
    """The columns that functions see, and those of each `GroupGap`, without repetition."""
    names = dict.fromkeys(columns)
    for gap in listed(constraint):
        if isinstance(gap, GroupGap):
            names[gap.column] = None
    return list(names)


def with_groups(
    caller: str,
    constraint: Constraints,
    columns: Mapping[Hashable, AnyRows],
    target: AnyRows,
) -> tuple[Function | GroupSums, ...]:
    """The constraints, with a `GroupSums` in place of each `GroupGap`."""
    constraints: list[Function | GroupSums] = []
    for function in listed(constraint):
        if isinstance(function, GroupGap):
            column = columns[function.column]
            constraints.append(group_sums(caller, function, column, target))
        else:
            constraints.append(function)
    return tuple(constraints)


def group_sums(
    caller: str,
    gap: GroupGap,
    column: AnyRows,
    target: AnyRows,
) -> GroupSums:
    """The statistics of a `GroupGap` for the rows of all clients.

    Raises ValueError unless the column holds the groups and every group has rows to compare.
    """
    name = f"column {gap.column!r}"
    is_plain = column[0].numel() == 1
    checks.require(is_plain, caller, name, "hold one number a row", list(column.shape))
    values = column.flatten()
    groups = sorted(set(values.tolist()))
    rule = f"hold a number for each group, from 2 to {MOST_GROUPS} groups"
    fits = 2 <= len(groups) <= MOST_GROUPS
    checks.require(fits, caller, name, rule, f"{len(groups)} different numbers, {groups[:3]} ...")
    if gap.given is not None:
        rule = "hold one number a row, for a GroupGap with given"
        is_plain = target[0].numel() == 1
        checks.require(is_plain, caller, "target", rule, list(target.shape))
        compared = values[target.flatten() == gap.given]
        missing = sorted(set(groups) - set(compared.tolist()))
        if missing:
            rule = "be the target of some row in every group"
            fault = f"{gap.given:g}, which no row of group {missing[0]:g} has"
            checks.require(False, caller, "given of GroupGap", rule, fault)
    return GroupSums(gap, tuple(groups))


def check_groups(
    caller: str,
    constraint: Constraints,
    columns: Mapping[Hashable, AnyRows],
    rounded: Mapping[Hashable, AnyRows],
) -> None:
    """Raise ValueError if rounding to the module's dtype makes one group of several."""
    remedy = "number the groups 0, 1, ..."
    for gap in listed(constraint):
        if isinstance(gap, GroupGap):
            rounded_column = rounded[gap.column]
            count = count_groups(columns[gap.column])
            fits = count_groups(rounded_column) == count
            name = f"column {gap.column!r}"
            rule = f"hold numbers that stay apart in {rounded_column.dtype}"
            checks.require(fits, caller, name, rule, f"{count} groups", remedy)


def count_groups(column: AnyRows) -> int:
    """The number of different values in a column."""
    values = column.flatten()
    return len(set(values.tolist()))


def check_logits(caller: str, output: Float[Tensor, "B ..."]) -> None:
    """Raise ValueError unless a module's output is one logit a row, or two."""
    rule = "give one logit a row, or the logits of two classes, for a GroupGap"
    fits = output[0].numel() in (1, 2)
    checks.require(fits, caller, "module", rule, list(output.shape))
