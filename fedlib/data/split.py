"""Splits of rows with labels [R] over N clients, as row indices [N, m], and into train and test.

Every split takes a CPU `torch.Generator`; the same generator state yields the same split. Most
splits take the labels [R]. They return row indices Int [N, m]: m rows for each of the N clients, no
row twice. If clients have unequal numbers of rows, these numbers are returned, too, and smaller
clients are padded by repeating their first row. `stratified_iid`, `dirichlet` and `dirichlet_cells`
order a client's rows by class, so draw batches from them at random. Every split raises ValueError
or TypeError for arguments out of range.
"""

from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive, Rng, between

Labels = Integer[Tensor, " R"] | Bool[Tensor, " R"]
#: The rows of every client, padded to equal numbers.
Rows = Int[Tensor, "N m"]
#: A number in (0, 1).
Part = Annotated[float, between(0, 1, open_low=True, open_high=True)]


def stratified_iid(
    labels: Labels,
    clients: Count,
    rng: Rng,
) -> Rows:
    """Deal out random rows, with equal sizes and equal class counts for all clients.

    Every client gets floor(rows of the class / clients) rows of each class; the rest is dropped.
    Raises ValueError for a class with fewer rows than there are clients.
    """
    checks.arguments(stratified_iid, locals())
    groups = _shuffled_classes("stratified_iid", labels, rng)
    chunks = []
    for label, rows in groups.items():
        share = _rows_each("stratified_iid", label, len(rows), clients)
        used = rows[: clients * share]
        chunks.append(used.view(clients, share))
    return torch.cat(chunks, dim=1)


def dirichlet(
    labels: Labels,
    clients: Count,
    alpha: Positive,
    rng: Rng,
) -> Rows:
    """Give each client a class mixture from Dirichlet(alpha), and m = floor(R / clients) rows.

    Client i draws a mixture q_i ~ Dirichlet(alpha C p) over the C classes, where p are the class
    frequencies in `labels` (with equal classes, all C parameters are alpha). It takes m rows by
    this mixture without replacement. If a class runs out, the clients that still want it (chosen at
    random) draw again from their mixture over the remaining classes, so mixtures are not exact. For
    small alpha, a client has nearly one class; for large alpha, all clients are alike. Raises
    ValueError for more clients than rows.
    """
    checks.arguments(dirichlet, locals())
    groups = list(_shuffled_classes("dirichlet", labels, rng).values())
    checks.count("dirichlet", "clients", clients, high=len(labels), note="the rows")
    class_sizes = torch.tensor(list(map(len, groups)))
    parameters = alpha * len(groups) * class_sizes / len(labels)
    mixtures = _log_dirichlet(parameters.double(), clients, rng)
    counts = _fill(mixtures, class_sizes, len(labels) // clients, rng)  # [N, C]
    chunks = []
    class_ends = counts.cumsum(0).T.tolist()
    for rows, ends in zip(groups, class_ends, strict=True):
        *taken, _ = rows.tensor_split(ends)
        chunks.append(taken)
    client_rows = map(torch.cat, zip(*chunks, strict=True))
    return torch.stack(list(client_rows))


def dirichlet_cells(
    cells: Labels,
    clients: Count,
    alpha: Positive,
    rng: Rng,
) -> tuple[Rows, tuple[int, ...]]:
    """Deal out each cell, such as a (label, group) pair, by Dirichlet(alpha) shares; sizes differ.

    `cells` numbers the cells, for instance 2 label + group. All rows are used. The rows of a cell
    are shuffled and cut at the clients' shares, rounded to whole rows. The smaller alpha is, the
    more the clients differ in size and in mixture.

    Returns the padded rows, and the number of rows of each client. Raises ValueError if a client
    gets no row.
    """
    checks.arguments(dirichlet_cells, locals())
    groups = _shuffled_classes("dirichlet_cells", cells, rng).values()
    parameters = torch.full((clients,), float(alpha), dtype=torch.float64)
    chunks = []
    for rows in groups:
        (logarithms,) = _log_dirichlet(parameters, 1, rng)
        shares = torch.softmax(logarithms, 0)
        ends = shares.cumsum(0) * len(rows)
        whole_ends = ends.round().long()
        chunks.append(rows.tensor_split(whole_ends[:-1]))
    by_client = zip(*chunks, strict=True)
    client_rows = list(map(torch.cat, by_client))
    fits = min(map(len, client_rows))
    rule = "leave every client a row"
    remedy = "use a larger alpha, fewer clients or another seed"
    checks.require(fits, "dirichlet_cells", "alpha", rule, alpha, remedy)
    return padded(client_rows)


def train_test(
    labels: Labels,
    fraction: Part,
    rng: Rng,
) -> tuple[Int[Tensor, " train"], Int[Tensor, " test"]]:
    """Return sorted row indices (train, test); the test rows are a share `fraction` of each class.

    The number of test rows of a class is rounded to the nearest; both parts get at least one row.
    Raises ValueError for a class with a single row.
    """
    checks.arguments(train_test, locals())
    train = []
    test = []
    for label, rows in _shuffled_classes("train_test", labels, rng).items():
        _rows_each("train_test", label, len(rows), 2)
        cut = _test_rows(fraction, len(rows))
        test.append(rows[:cut])
        train.append(rows[cut:])
    train_rows = torch.cat(train)
    test_rows = torch.cat(test)
    return train_rows.sort().values, test_rows.sort().values


def random_equal(
    count: Count,
    clients: Count,
    rng: Rng,
) -> Rows:
    """Deal out rows 0 .. count - 1 at random, m = floor(count / N) for each client.

    Raises ValueError for more clients than rows.
    """
    checks.arguments(random_equal, locals())
    checks.count("random_equal", "clients", clients, high=count, note="the rows")
    m = count // clients
    shuffled = torch.randperm(count, generator=rng)
    return shuffled[: clients * m].view(clients, m)


def label_windows(
    labels: Labels,
    clients: Count,
    k: Count,
    rng: Rng,
) -> tuple[Rows, tuple[int, ...]]:
    """Give client u the labels u, u + 1, ..., u + k - 1, counted cyclically; sizes are unequal.

    The rows of a class are dealt out to the clients that hold it, in numbers that differ by one at
    most. All rows of these classes are used. Rows of a client come in random order.

    Returns the padded rows, and the number of rows of each client. Raises ValueError if k exceeds
    the number of classes, or a label has fewer rows than holders.
    """
    checks.arguments(label_windows, locals())
    groups = _shuffled_classes("label_windows", labels, rng)
    checks.count("label_windows", "k", k, high=len(groups), note="the number of classes")
    chunks: list[list[Tensor]] = [[] for _ in range(clients)]
    for position, (label, rows) in enumerate(groups.items()):
        holders = [u for u in range(clients) if (position - u) % len(groups) < k]
        if not holders:
            continue
        _rows_each("label_windows", label, len(rows), len(holders))
        class_chunks = rows.tensor_split(len(holders))
        for client, chunk in zip(holders, class_chunks, strict=True):
            chunks[client].append(chunk)
    client_rows = [_shuffled(torch.cat(client_chunks), rng) for client_chunks in chunks]
    return padded(client_rows)


def holdout(
    rows: Rows,
    sizes: Sequence[int],
    fraction: Part,
    rng: Rng,
) -> tuple[Rows, tuple[int, ...], Int[Tensor, " test"]]:
    """Cut each client's rows at random: `fraction` of them (rounded, at least one) are test rows.

    Returns the remaining rows, padded, their numbers, and the test rows of all clients together.
    Raises ValueError for a client with a single row.
    """
    checks.arguments(holdout, locals())
    rule = f"have {len(rows)} entries, one for each line of rows"
    checks.require(len(sizes) == len(rows), "holdout", "sizes", rule, sizes)
    train = []
    test = []
    for client_rows, size in zip(rows, sizes, strict=True):
        rule = "be at least 2 (a row to keep, one to test) and at most the columns of rows"
        fits = 2 <= size <= len(client_rows)
        checks.require(fits, "holdout", "every entry of sizes", rule, size)
        cut = _test_rows(fraction, size)
        shuffled = _shuffled(client_rows[:size], rng)
        test.append(shuffled[:cut])
        train.append(shuffled[cut:])
    table, train_sizes = padded(train)
    return table, train_sizes, torch.cat(test)


def padded(rows: Sequence[Int[Tensor, " r"]]) -> tuple[Rows, tuple[int, ...]]:
    """Put row lists of unequal length into one padded table; return it with the lengths."""
    sizes = tuple(map(len, rows))
    longest = max(sizes)
    lines = []
    for client_rows, size in zip(rows, sizes, strict=True):
        padding = client_rows[:1].expand(longest - size)
        lines.append(torch.cat([client_rows, padding]))
    return torch.stack(lines), sizes


def _shuffled(rows: Tensor, rng: Rng) -> Tensor:
    """Some rows in random order."""
    return rows[torch.randperm(len(rows), generator=rng)]


def _shuffled_classes(
    split: str,
    labels: Tensor,
    rng: Rng,
) -> dict[int, Tensor]:
    """The rows of each class in random order."""
    checks.require(len(labels), split, "labels", "have rows", labels)
    groups = {}
    for label in sorted(set(labels.tolist())):
        rows = (labels == label).nonzero().squeeze(1)
        groups[label] = _shuffled(rows, rng)
    return groups


def _rows_each(
    split: str,
    label: int,
    rows: int,
    takers: int,
) -> int:
    """The number of rows of a class for each taker; raises ValueError if there are too few."""
    rule = f"have at least {takers} rows of class {label}, one for each client that takes some"
    checks.require(rows >= takers, split, "labels", rule, rows, "use fewer clients or more rows")
    return rows // takers


def _test_rows(fraction: float, rows: int) -> int:
    """The number of test rows among some rows; both parts get at least one."""
    count = round(fraction * rows)
    return min(max(count, 1), rows - 1)


def _log_dirichlet(
    parameters: Float[Tensor, " C"],
    clients: Count,
    rng: Rng,
) -> Float[Tensor, "N C"]:
    """Logarithms of Dirichlet draws up to a constant a row, accurate for tiny parameters.

    A Gamma(a) variable is a Gamma(a + 1) variable times U^(1/a); in logarithms nothing underflows.
    """
    a = parameters.expand(clients, -1)
    # torch.distributions.Gamma takes no generator, but the sampler that it calls does
    gamma = torch._standard_gamma(a + 1, generator=rng)
    draws = torch.rand(a.shape, generator=rng, dtype=a.dtype)
    uniform = 1 - draws  # in (0, 1]
    return gamma.log() + uniform.log() / a


def _fill(
    mixtures: Float[Tensor, "N C"],
    class_sizes: Int[Tensor, " C"],
    rows: int,
    rng: Rng,
) -> Int[Tensor, "N C"]:
    """The number of rows of each class for each client: `rows` in all, drawn by its mixture.

    Each pass exhausts a class or is the last, so there are at most C + 1 passes.
    """
    counts = torch.zeros(mixtures.shape, dtype=torch.int64)
    while True:
        missing = rows - counts.sum(1)
        if not missing.any():
            return counts
        remaining = class_sizes - counts.sum(0)
        possible = mixtures.masked_fill(remaining == 0, -torch.inf)
        draws = int(missing.max())
        drawn = torch.multinomial(
            torch.softmax(possible, dim=1),
            draws,
            replacement=True,
            generator=rng,
        )
        used = torch.arange(draws) < missing.unsqueeze(1)  # [N, draws]
        client = used.nonzero()[:, 0]
        label = drawn[used]
        order = torch.randperm(len(label), generator=rng)
        client = client[order]
        label = label[order]
        for c, limit in enumerate(remaining.tolist()):
            granted = client[label == c][:limit]
            counts[:, c] += granted.bincount(minlength=len(counts))
