"""What SSCA's rounds send and compute, counted: messages, bits, and numbers written."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from fedlib.compress.wire import FLOAT_BITS
from fedlib.core import Problem, Trace, Vectorized
from fedlib.core.problem import Draw
from fedlib.core.sampling import seeded
from fedlib.data import Table
from fedlib.steps import PowerLaw
from fedlib.testing.contract import messages
from fedlib.vertical import VerticalProblem
from papers.kit.numbers import Number, exact
from papers.kit.quantities import Row, labels_of, row
from papers.kit.study import Params, Traces
from papers.ssca import common
from papers.ssca.network import swish_network, vertical_network

# of the small problems on which is counted
CLIENTS = 4
INPUTS = 30
CLASSES = 5
BATCH = 10
WIDTHS = (32, 64, 96)  # hidden cells
LEVEL = 0.5
# K and L of the study's own network
PIXELS = {"mnist": 784, "digits": 64}
DIGITS = 10
#: Algorithm -> the split, and whether it is the one with a limit.
ALGORITHMS = {
    number: (split, limited)
    for split, numbers in common.NUMBERS.items()
    for number, limited in zip(numbers, (False, True), strict=True)
}

Wire = tuple[str, str, int, int]  # sender, receiver, floats, indices


@lru_cache(maxsize=1)
def counted() -> tuple[Row, ...]:
    """The messages that differ from the paper's table, and the work beside that of SGD.

    Of every algorithm: `wrong_messages` counts messages of a round that the table does not have and
    entries of the table that no message is. `per_parameter` are the numbers that the server writes
    in a round for every further parameter, `linearity` the ratio of what a second and a first
    enlargement of the network add to them, 1 for work in O(d). `client_ratio` are the numbers
    written at the clients over those of SGD; over features, in the whole round.
    """
    rows = []
    for algorithm, (split, limited) in ALGORITHMS.items():
        counts = {"wrong_messages": float(wrong_messages(split, limited))}
        if split == "samples":
            work = [server_work(split, limited, width) for width in WIDTHS]
            added, added_next = np.diff(work)
            parameters = (INPUTS + CLASSES) * (WIDTHS[1] - WIDTHS[0])
            counts["per_parameter"] = added / parameters
            counts["linearity"] = added_next / added
        counts["client_ratio"] = client_ratio(split, limited)
        rows += [row(name, exact(x), algorithm=algorithm) for name, x in counts.items()]
    return tuple(rows)


def network(hidden: int, rows: int = 80) -> Problem:
    """A small network on random pictures, samples split."""
    rng = seeded(0, "split")
    X = torch.rand(rows, INPUTS, generator=rng, dtype=torch.float64)
    y = torch.arange(rows) % CLASSES
    classes = tuple(str(number) for number in range(CLASSES))
    samples = Table(X, y, classes)
    return swish_network(
        samples,
        samples,
        clients=CLIENTS,
        hidden=hidden,
        scale=1.0,
        dtype=torch.float64,
    )


def by_features(hidden: int) -> VerticalProblem:
    return vertical_network(network(hidden), clients=CLIENTS, scale=1.0)


def algorithm(split: str, limited: bool) -> Any:
    if limited:
        return common.constrained(split, BATCH, LEVEL, clients=CLIENTS)
    return common.ssca(split, BATCH, clients=CLIENTS)


def wrong_messages(split: str, limited: bool) -> int:
    """How many messages of a round are not those of the paper's table."""
    hidden = 8
    method = algorithm(split, limited)
    if split == "samples":
        small = network(hidden)
        return int(by_server(method, small) != (small.dim, small.dim + limited))
    problem = by_features(hidden)
    log = messages(method, Vectorized(problem), seeded(0, "rounds"))
    sent = Counter((m.sender, m.receiver, m.floats, m.indices) for m in log)
    sizes = tuple(len(block) for block in problem.composite.features.parts)
    printed = table(sizes, hidden, CLASSES, CLIENTS * BATCH, limited)
    unexpected = sent - printed
    missing = printed - sent
    return unexpected.total() + missing.total()


def by_server(method: Any, problem: Problem) -> tuple[float, float]:
    """The floats that a client gets and sends in a round, on average over clients."""
    fed = Vectorized(problem)
    state = method.init(problem)
    draw = method.draw(problem, seeded(0, "rounds"))
    method.round(fed, state, draw)
    bits_per_client = FLOAT_BITS * problem.num_clients
    received = float(fed.bits_down / bits_per_client)
    sent = float(fed.bits_up / bits_per_client)
    return received, sent


def table(
    sizes: tuple[int, ...],
    hidden: int,
    classes: int,
    rows: int,
    limited: bool,
) -> Counter[Wire]:
    """The messages of Algorithm 3, or 4, as the paper's steps 3 to 6 have them.

    `sizes` are the features of every client, K_i; Algorithm 4 (`limited`) also sends the sum of the
    losses in step 6.
    """
    wires: Counter[Wire] = Counter()
    clients = {i: f"client {i}" for i in range(1, len(sizes) + 1)}
    for (i, name), size in zip(clients.items(), sizes, strict=True):
        wires["server", name, classes * hidden + hidden * size, rows] += 1  # 3
        for j, receiver in clients.items():
            if i != j:
                wires[name, receiver, rows * hidden, 0] += 1  # 4
        wires[name, "server", hidden * size, 0] += 1  # 5
    wires[clients[1], "server", classes * hidden + limited, 0] += 1  # 6
    return wires


class Written(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the numbers that tensor operations write; views write none."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers: int = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        """Perform an operation, and count what it returns."""
        result = func(*args, **(kwargs or {}))
        if not any(r.alias_info is not None for r in func._schema.returns):
            leaves = pytree.tree_leaves(result)
            self.numbers += sum(x.numel() for x in leaves if isinstance(x, Tensor))
        return result


class Answered(Vectorized):
    """A line whose clients have answered already, so that only the server works."""

    def __init__(self, problem: Problem, sent: Tensor) -> None:
        super().__init__(problem)
        self.sent = sent

    def clients(self, draw: Draw, *_: Any, **__: Any) -> Any:
        """Nobody is needed."""
        return draw

    def ask(self, *_: Any, **__: Any) -> Tensor:
        """What they sent."""
        return self.sent


def server_work(split: str, limited: bool, hidden: int) -> int:
    """The numbers that the server writes in a round of Algorithm 1, 2, or of SGD (`"sgd"`)."""
    problem = network(hidden)
    method = sgd("samples") if split == "sgd" else algorithm("samples", limited)
    sent = torch.ones(CLIENTS, problem.dim + limited, dtype=torch.float64)
    return round_work(method, problem, Answered(problem, sent))


def round_work(method: Any, problem: Problem, fed: Vectorized | None = None) -> int:
    state = method.init(problem)
    draw = method.draw(problem, seeded(0, "rounds"))
    with Written() as work:
        method.round(fed or Vectorized(problem), state, draw)
    return int(work.numbers)


def client_ratio(split: str, limited: bool) -> float:
    """The numbers written at the clients over those of SGD; over features in the whole round."""
    hidden = WIDTHS[0]
    problem = network(hidden) if split == "samples" else by_features(hidden)
    ssca_work = round_work(algorithm(split, limited), problem)
    sgd_work = round_work(sgd(split), problem)
    if split == "samples":
        ssca_work -= server_work(split, limited, hidden)
        sgd_work -= server_work("sgd", False, hidden)
    return ssca_work / sgd_work


def sgd(split: str) -> Any:
    return common.sgd(
        split,
        BATCH,
        1,
        PowerLaw(0.3, 0.3),
        clients=CLIENTS,
    )


def between(clients: int, rows: int, hidden: int) -> int:
    """The bits that clients send one another in a round: every one `rows * hidden` numbers."""
    return FLOAT_BITS * clients * (clients - 1) * rows * hidden


def up_and_down(
    split: str,
    limited: bool,
    p: Params,
    rows: int,
) -> tuple[int, int]:
    """The bits of a round from and to the server that follow from the paper's table.

    `rows` is the batch of features, whose indices are sent as 32 bits each.
    """
    clients = int(p["clients"])
    hidden = int(p["hidden"])
    first_layer = hidden * PIXELS[p["data"]]
    second = hidden * DIGITS
    if split == "samples":
        up = clients * (first_layer + second + limited)
        down = clients * (first_layer + second)
    else:
        up = first_layer + second + limited
        down = first_layer + clients * (second + rows)
    return FLOAT_BITS * up, FLOAT_BITS * down


def rows_of(trace: Trace) -> int:
    """The rows of a common batch; 0 where samples are split."""
    split = labels_of(trace)["split"]
    return int(trace.config["algorithm"]["batch_size"]) if split == "features" else 0


def megabits(trace: Trace, p: Params) -> dict[str, Number]:
    """What a round sends up, down and between clients, in units of 10^6 bits, all clients."""
    bits = trace.config["bits"]
    lengths = {
        "up": bits["bits_up"],
        "down": bits["bits_down"],
        "between": between(int(p["clients"]), rows_of(trace), int(p["hidden"])),
    }
    return {name: exact(length / 1e6, "Mbit") for name, length in lengths.items()}


def bits_off(traces: Traces, p: Params) -> Iterator[Row]:
    """By how many bits, at most, uploads and downloads of an algorithm's runs are off the table."""
    off: defaultdict[int, list[int]] = defaultdict(list)
    for trace in traces.values():
        labels = labels_of(trace)
        if labels["start"] != "usual" or labels["method"] not in ("ssca", "limit"):
            continue
        split = str(labels["split"])
        limited = labels["method"] == "limit"
        up, down = up_and_down(split, limited, p, rows_of(trace))
        bits = trace.config["bits"]
        algorithm = common.NUMBERS[split][limited]
        off[algorithm] += [abs(bits["bits_up"] - up), abs(bits["bits_down"] - down)]
    for algorithm, differences in off.items():
        yield row("bits_off", exact(max(differences), "bits"), algorithm=algorithm)
