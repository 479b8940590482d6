"""Further splits of rows over clients: whatever the labels, by windows of labels, and for testing.

As in `fedlib.data.split`, every split takes a CPU `torch.Generator` and gives row indices Int [N,
m], those of smaller clients padded by repeating their first, with the true numbers beside them
where they differ. Rows of a client come in random order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int, Integer
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Rng


def random_equal(count: Count, clients: Count, rng: Rng) -> Int[Tensor, "N m"]:
    """Rows 0 .. count - 1 at random, m = floor(count / N) for each client, whatever their labels.

    Raises ValueError or TypeError for more clients than rows, or counts that are none.
    """
    checks.arguments(random_equal, locals())
    checks.count("random_equal", "clients", clients, high=count, note="the rows")
    m = count // clients
    return torch.randperm(count, generator=rng)[: clients * m].view(clients, m)


def label_windows(
    labels: Integer[Tensor, " R"], clients: Count, k: Count, rng: Rng
) -> tuple[Int[Tensor, "N m"], tuple[int, ...]]:
    """Labels u, u + 1, ..., u + k - 1 for client u, counted round the classes; unequal sizes.

    The rows of a class are dealt out evenly, up to one, to the clients that hold it; all rows of
    classes that somebody holds are used.

    Args:
        labels: class numbers.
        clients: N.
        k: labels a client.
        rng: deals the rows.

    Returns:
        Rows, padded, and the clients' numbers of them.

    Raises:
        ValueError: k not in 1..number of classes, or a label with fewer rows than holders.
        TypeError: k or the number of clients is no whole number.
    """
    checks.arguments(label_windows, locals())
    if not len(labels):
        raise ValueError(checks.sentence("label_windows", "labels", "have rows", labels))
    classes = sorted(set(labels.tolist()))
    checks.count("label_windows", "k", k, high=len(classes), note="the number of classes")
    parts: list[list[Tensor]] = [[] for _ in range(clients)]
    for place, label in enumerate(classes):
        rows = (labels == label).nonzero().squeeze(1)
        rows = rows[torch.randperm(len(rows), generator=rng)]
        holders = [u for u in range(clients) if (place - u) % len(classes) < k]
        if len(rows) < len(holders):
            raise ValueError(
                f"label_windows: labels must have a row of class {label} for each of its "
                f"{len(holders)} clients, got {len(rows)}; use fewer clients or more rows."
            )
        for u, part in zip(holders, rows.tensor_split(max(len(holders), 1)), strict=False):
            parts[u].append(part)
    whole = [torch.cat(p) for p in parts]
    return padded([own[torch.randperm(len(own), generator=rng)] for own in whole])


def holdout(
    rows: Int[Tensor, "N m"], sizes: Sequence[int], fraction: float, rng: Rng
) -> tuple[Int[Tensor, "N m"], tuple[int, ...], Int[Tensor, " test"]]:
    """Every client's rows cut at random: `fraction` of them (rounded, one at least) for testing.

    Returns the rows that stay, padded, their numbers, and all clients' test rows together.

    Raises ValueError for a fraction not in (0, 1), or a client of a single row.
    """
    checks.arguments(holdout, locals())
    if len(sizes) != len(rows):
        rule = f"have {len(rows)} entries, one for each line of rows"
        raise ValueError(checks.sentence("holdout", "sizes", rule, sizes))
    checks.in_range("holdout", "fraction", fraction, 0, 1, open_low=True, open_high=True)
    stay, test = [], []
    for own, size in zip(rows, sizes, strict=True):
        checks.count("holdout", "sizes", size, low=2)
        checks.count("holdout", "sizes", size, 2, len(own), "the columns of rows")
        cut = min(max(round(fraction * size), 1), size - 1)
        mixed = own[torch.randperm(size, generator=rng)]
        test.append(mixed[:cut])
        stay.append(mixed[cut:])
    return *padded(stay), torch.cat(test)


def padded(whole: Sequence[Int[Tensor, " r"]]) -> tuple[Int[Tensor, "N m"], tuple[int, ...]]:
    """Rows of unequal number as one table, and the numbers."""
    most = max(len(own) for own in whole)
    table = torch.stack([torch.cat([own, own[:1].expand(most - len(own))]) for own in whole])
    return table, tuple(len(own) for own in whole)
