"""Splits of the rows of a data set over clients, and into training and test rows.

Every split takes the labels [R] and a CPU `torch.Generator`, and gives row indices Int [N, m]:
the same number m of rows for each of the N clients, no row twice (`dirichlet_cells` alone: unequal
numbers, padded, and the sizes beside them). The same generator state gives the same split. Rows of
a client come class by class: draw batches from them, do not cut.
"""

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from fedlib import checks


def stratified_iid(
    labels: Shaped[Tensor, " R"], clients: int, rng: torch.Generator
) -> Int[Tensor, "N m"]:
    """Rows at random, equal sizes and equal class counts for all clients.

    Every client gets floor(rows of the class / clients) rows of each class; the rest is dropped.

    Raises:
        ValueError: a class has fewer rows than there are clients, or a bad argument.
        TypeError: labels that are no integer tensor, or no generator.
    """
    groups = _shuffled_classes("stratified_iid", labels, clients, rng)
    parts = []
    for label, rows in groups.items():
        share = _share("stratified_iid", label, len(rows), clients)
        parts.append(rows[: clients * share].view(clients, share))
    return torch.cat(parts, dim=1)


def dirichlet(
    labels: Shaped[Tensor, " R"], clients: int, alpha: float, rng: torch.Generator
) -> Int[Tensor, "N m"]:
    """Class mixtures from a Dirichlet distribution, equal sizes m = floor(R / clients).

    Client i draws a mixture q_i ~ Dirichlet(alpha C p) over the C classes, p their frequencies in
    `labels` (with equal classes, all C parameters are alpha), and takes m rows by it without
    replacement. Where a class runs out, the clients that still want it (chosen at random) draw
    again from their mixture over the classes that are left: equal sizes and exact mixtures cannot
    both be had. Small alpha: nearly one class each; large: all alike.

    Raises:
        ValueError: alpha not positive, more clients than rows, or a bad argument.
        TypeError: labels that are no integer tensor, or no generator.
    """
    checks.positive("dirichlet", "alpha", alpha)
    groups = list(_shuffled_classes("dirichlet", labels, clients, rng).values())
    checks.count("dirichlet", "clients", clients, high=len(labels), note="the rows")
    left = torch.tensor([len(rows) for rows in groups])
    parameters = alpha * len(groups) * left / len(labels)
    mixtures = _log_dirichlet(parameters.double(), clients, rng)
    counts = _fill(mixtures, left, len(labels) // clients, rng)  # [N, C]
    ends = counts.cumsum(0)
    return torch.stack(
        [
            torch.cat([rows[e - c : e] for rows, c, e in zip(groups, taken, upto, strict=True)])
            for taken, upto in zip(counts, ends, strict=True)
        ]
    )


def dirichlet_cells(
    cells: Shaped[Tensor, " R"], clients: int, alpha: float, rng: torch.Generator
) -> tuple[Int[Tensor, "N m"], tuple[int, ...]]:
    """Every cell dealt out by its own Dirichlet(alpha) shares of the clients; unequal sizes.

    A cell is whatever `cells` numbers, for instance 2 label + group. All rows are used: those of a
    cell go, in random order, to client i up to its share, cuts rounded to whole rows. Clients
    differ in size and in mixture, the more so the smaller alpha.

    Returns rows [N, m], m the largest client's number, those of smaller clients padded by
    repeating their first; and the sizes, how many of each client's are real.

    Raises:
        ValueError: alpha not positive, a client that gets no row at all, or a bad argument.
        TypeError: cells that are no integer tensor, or no generator.
    """
    checks.positive("dirichlet_cells", "alpha", alpha)
    groups = _shuffled_classes("dirichlet_cells", cells, clients, rng).values()
    parts: list[list[Tensor]] = [[] for _ in range(clients)]
    for rows in groups:
        even = torch.full((clients,), float(alpha), dtype=torch.float64)
        shares = torch.softmax(_log_dirichlet(even, 1, rng)[0], 0)
        ends = (shares.cumsum(0) * len(rows)).round().long()
        ends[-1] = len(rows)  # rounding of the sum must not lose a row
        for i, part in enumerate(torch.tensor_split(rows, ends[:-1])):
            parts[i].append(part)
    whole = [torch.cat(p) for p in parts]
    sizes = tuple(len(own) for own in whole)
    if min(sizes) == 0:
        raise ValueError(
            f"dirichlet_cells: alpha must leave every client a row, client {sizes.index(0)} has "
            f"none at {alpha:g}; use a larger alpha, fewer clients or another seed."
        )
    most = max(sizes)
    padded = [torch.cat([own, own[:1].expand(most - len(own))]) for own in whole]
    return torch.stack(padded), sizes


def k_labels(
    labels: Shaped[Tensor, " R"], clients: int, k: int, rng: torch.Generator
) -> Int[Tensor, "N m"]:
    """Exactly k labels a client, the same number of rows of each, equal sizes.

    Labels go to clients at random but evenly: two labels are held by numbers of clients that
    differ by one at most. With m = k q, q is the largest number that every label can give to each
    of its holders; the rest is dropped.

    Raises:
        ValueError: k not in 1..number of classes, a label with fewer rows than holders, or a bad
            argument.
        TypeError: labels that are no integer tensor, k no whole number, or no generator.
    """
    groups = _shuffled_classes("k_labels", labels, clients, rng)
    checks.count("k_labels", "k", k, high=len(groups), note="the number of classes")
    holds = _deal(clients, len(groups), k, rng)  # [N, C]
    shares = [
        _share("k_labels", label, len(rows), holders)
        for (label, rows), holders in zip(groups.items(), holds.sum(0).tolist(), strict=True)
        if holders
    ]
    share = min(shares)
    place = (holds.cumsum(0) - 1).tolist()  # which of the holders of the label the client is
    chosen = []
    for client in range(clients):
        for label, rows in enumerate(groups.values()):
            if holds[client, label]:
                chosen.append(rows.narrow(0, place[client][label] * share, share))
    return torch.cat(chosen).view(clients, k * share)


def train_test(
    labels: Shaped[Tensor, " R"], fraction: float, rng: torch.Generator
) -> tuple[Int[Tensor, " train"], Int[Tensor, " test"]]:
    """Row indices (train, test), sorted, with `fraction` of every class in the test rows.

    The number of test rows of a class is rounded to the nearest, and both sides get one at least.

    Raises:
        ValueError: fraction not in (0, 1), a class of a single row, or a bad argument.
        TypeError: labels that are no integer tensor, or no generator.
    """
    checks.in_range("train_test", "fraction", fraction, 0, 1, open_low=True, open_high=True)
    train, test = [], []
    for label, rows in _shuffled_classes("train_test", labels, 1, rng).items():
        _share("train_test", label, len(rows), 2, "sides")
        cut = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
        test.append(rows[:cut])
        train.append(rows[cut:])
    return torch.cat(train).sort().values, torch.cat(test).sort().values


def _shuffled_classes(
    who: str, labels: Tensor, clients: int, rng: torch.Generator
) -> dict[int, Int[Tensor, " r"]]:
    """Rows of each class, in random order, after the checks that every split needs."""
    checks.count(who, "clients", clients)
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.is_complex():
        got = str(labels.dtype) if isinstance(labels, Tensor) else type(labels).__name__
        raise TypeError(f"{who}: labels must be a tensor of integers, got {got}.")
    if labels.ndim != 1 or len(labels) == 0 or labels.device.type != "cpu":
        got = f"shape {list(labels.shape)} on {labels.device}"
        raise ValueError(f"{who}: labels must have shape [R], R >= 1, on the CPU, got {got}.")
    if not isinstance(rng, torch.Generator) or rng.device.type != "cpu":
        raise TypeError(checks.sentence(who, "rng", "be a torch.Generator on the CPU", rng))
    groups = {}
    for label in sorted(set(labels.tolist())):
        rows = (labels == label).nonzero().squeeze(1)
        groups[label] = rows[torch.randperm(len(rows), generator=rng)]
    return groups


def _share(who: str, label: int, rows: int, takers: int, called: str = "clients") -> int:
    """Rows of a class for each taker; raises ValueError if there are too few."""
    if rows < takers:
        raise ValueError(
            f"{who}: labels must have at least {takers} rows of class {label} (one for each of "
            f"its {takers} {called}), got {rows}; use fewer clients or more rows."
        )
    return rows // takers


def _log_dirichlet(
    parameters: Float[Tensor, " C"], clients: int, rng: torch.Generator
) -> Float[Tensor, "N C"]:
    """Logarithms of Dirichlet draws up to a constant a row, safe for tiny parameters.

    A Gamma(a) variable is a Gamma(a + 1) variable times U^(1/a); in logarithms nothing underflows.
    """
    a = parameters.expand(clients, -1)
    # the sampler behind torch.distributions.Gamma, which itself takes no generator
    gamma = torch._standard_gamma(a + 1, generator=rng)
    uniform = 1 - torch.rand(a.shape, generator=rng, dtype=a.dtype)  # in (0, 1]
    return gamma.log() + uniform.log() / a


def _fill(
    mixtures: Float[Tensor, "N C"], left: Int[Tensor, " C"], rows: int, rng: torch.Generator
) -> Int[Tensor, "N C"]:
    """How many rows of each class each client gets: `rows` in all, drawn by its mixture.

    Each pass exhausts a class or ends, so there are C + 1 passes at most.
    """
    counts = torch.zeros(mixtures.shape, dtype=torch.int64)
    left = left.clone()
    while (need := rows - counts.sum(1)).any():
        odds = torch.softmax(mixtures.masked_fill(left == 0, -torch.inf), dim=1)
        drawn = torch.multinomial(odds, int(need.max()), replacement=True, generator=rng)
        wanted = torch.arange(drawn.shape[1]) < need[:, None]  # [N, draws]
        client, label = wanted.nonzero()[:, 0], drawn[wanted]
        order = torch.randperm(len(label), generator=rng)
        for c in range(len(left)):
            granted = client[order][label[order] == c][: int(left[c])]
            counts[:, c] += granted.bincount(minlength=len(counts))
            left[c] -= len(granted)
    return counts


def _deal(clients: int, classes: int, k: int, rng: torch.Generator) -> Bool[Tensor, "N C"]:
    """Which labels a client holds: the k that fewest hold so far, ties at random."""
    holds = torch.zeros(clients, classes, dtype=torch.bool)
    for client in range(clients):
        ties = torch.rand(classes, generator=rng, dtype=torch.float64)
        holds[client, (holds.sum(0) + ties).argsort()[:k]] = True
    return holds
