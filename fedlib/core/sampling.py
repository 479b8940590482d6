"""Draws of a round's randomness, and checks that several algorithms share."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fedlib import checks
from fedlib.checks import Seed
from fedlib.compress.compressors import Compressor, Identity
from fedlib.core.problem import Draw, Problem
from fedlib.shapes import Scalar

IDENTITY = Identity()
MANY = 1000  # with more clients than this, a few of them are drawn without a permutation


def draw_round(
    problem: Problem,
    rng: torch.Generator,
    *,
    participants: int,
    local_steps: int = 1,
    batch_size: int | None = None,
    value_batch_size: int | None = None,
    uplink: Compressor = IDENTITY,
    downlink: Compressor = IDENTITY,
    resample: bool = False,
) -> Draw:
    """Draw distinct participants, their minibatches with replacement, and compressors' noise.

    The order of the draws from `rng`, the seed's generator, is part of the format of stored runs.

    Parameters
    ----------
    participants : int
        n, the number of clients.
    local_steps : int
        E, the number of local steps.
    batch_size : int or None
        B, the number of rows in a minibatch; None for all rows.
    value_batch_size : int or None
        The number of rows in a separate batch for loss values; None for all rows.
    uplink : Compressor
        The clients' compressor; noise is drawn for n messages.
    downlink : Compressor
        The server's compressor; noise is drawn for one message.
    resample : bool
        Whether loss values come from a second, independent sample of n clients.
    """
    clients = sample(problem.num_clients, participants, rng)
    value_clients = clients
    if resample:
        value_clients = sample(problem.num_clients, participants, rng)
    return Draw(
        participants=clients,
        value_clients=value_clients if resample else (),
        batches=_positions(problem, clients, local_steps, batch_size, rng),
        values=_squeeze(_positions(problem, value_clients, 1, value_batch_size, rng), 1),
        uplink=uplink.draw(participants, problem.dim, rng),
        downlink=_squeeze(downlink.draw(1, problem.dim, rng), 0),
    )


class Sampled(ABC):
    """Base of methods that draw a round by `draw_round`, with arguments from `sampling`.

    `run` draws the participants of many such rounds at once. A class that defines `draw` itself is
    drawn round by round, whatever else it is called.
    """

    @abstractmethod
    def sampling(self) -> dict[str, Any]:
        """The arguments of `draw_round`, by name."""

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw the participants, their batches and the compressors' noise."""
        return draw_round(problem, rng, **self.sampling())


def draw_with_coin(
    algorithm: Any,
    problem: Problem,
    rng: torch.Generator,
) -> Draw:
    """The draw of a round; for a problem with dropout, also the coin of its masks."""
    drawn: Draw = algorithm.draw(problem, rng)
    if not problem.dropout:
        return drawn
    coin = torch.randint(2**62, (), generator=rng)
    return drawn._replace(coin=coin)


def draw_many(
    algorithm: Any,
    problems: Sequence[Problem],
    rngs: Sequence[torch.Generator],
    rounds: int,
) -> Draw | None:
    """Draw many rounds at once, `[rounds, S, ...]`, with the result of one draw after another.

    This works for methods whose `draw` is that of `Sampled` and draws participants only; for others
    it returns None. In long runs of short rounds, separate draws would take as long as the rounds.
    """
    if type(algorithm).draw is not Sampled.draw or problems[0].dropout:
        return None
    settings = algorithm.sampling()
    for name in ("batch_size", "value_batch_size"):
        if settings.get(name) is not None:
            return None
    for name in ("uplink", "downlink"):
        if not isinstance(settings.get(name, IDENTITY), Identity):
            return None
    n = settings["participants"]
    resample = settings.get("resample", False)
    samples_per_round = 1
    if resample:
        samples_per_round = 2
    clients = problems[0].num_clients
    samples = []
    for rng in rngs:
        for _ in range(rounds * samples_per_round):
            if clients <= MANY:
                samples.append(torch.randperm(clients, generator=rng))
            else:
                samples.append(sample(clients, n, rng))
    # all permutations are cut at once: to cut one takes as long as to draw it
    cut = torch.stack(samples)[:, :n]
    by_seed = cut.reshape(len(rngs), rounds, samples_per_round, n)
    table = by_seed.permute(2, 1, 0, 3).contiguous()
    return Draw(participants=table[0], value_clients=table[1] if resample else ())


def draw_coins(
    problem: Problem,
    rng: torch.Generator,
    *,
    local_steps: int = 1,
    batch_size: int | None = None,
) -> Draw:
    """Draw one uniform number in [0, 1) for every client, the coin that `active_clients` reads.

    A client takes part with probability p, if its number is below p, independently of the others; a
    round may have no participants. Runs with different p share the same numbers. They are stored in
    `chance`, and all clients are participants of the draw.
    """
    n = problem.num_clients
    clients = torch.arange(n)
    return Draw(
        participants=clients,
        chance=torch.rand(n, generator=rng, dtype=torch.float64),
        batches=_positions(problem, clients, local_steps, batch_size, rng),
    )


def draw_some_coins(
    problem: Problem,
    rng: torch.Generator,
    participation: float,
    *,
    batch_size: int | None = None,
) -> Draw:
    """Draw a coin for every client, and the minibatches of those that may take part.

    The participants are the clients with the smallest coins, as many as almost surely suffice
    (`most_active`), in the order of their numbers; `active_clients` tells those that do take part.
    With few participants a round need not compute the other clients.

    Raises RuntimeError if more clients take part, which happens in fewer than one of 10^12 rounds.
    """
    clients = problem.num_clients
    bound = most_active(clients, participation)
    coins = torch.rand(clients, generator=rng, dtype=torch.float64)
    smallest = coins.topk(bound, largest=False, sorted=False).indices
    participants = smallest.sort().values
    active = int((coins < participation).sum())
    if active > bound:
        raise RuntimeError(
            f"draw_some_coins: participants of a round must be at most {bound} of {clients}, got "
            f"{active}; run with other seeds, or with measure_all=True."
        )
    return Draw(
        participants=participants,
        chance=coins[participants],
        batches=_positions(problem, participants, 1, batch_size, rng),
    )


def most_active(clients: int, participation: float) -> int:
    """The number of clients that more take part than in fewer than one of 10^12 rounds.

    Bernstein's inequality bounds the chance that N coins exceed their mean N p by t, by
    exp(-t^2 / (2 (N p (1 - p) + t / 3))); t is eight standard deviations and 24.

    >>> most_active(100_000, 0.001)
    204
    """
    mean = clients * participation
    deviation = math.sqrt(mean * (1 - participation))
    return min(clients, math.ceil(mean + 8 * deviation + 24))


def active_clients(
    draw: Draw,
    participation: float | Scalar,
) -> Bool[Tensor, "N"]:
    """The clients whose coin is below `participation`, as a boolean `[N]`."""
    assert isinstance(draw.chance, Tensor)
    return draw.chance < participation


def on_active(
    active: Bool[Tensor, "N"],
    new: Float[Tensor, "N *x"],
    old: Float[Tensor, "N *x"],
) -> Float[Tensor, "N *x"]:
    """Select `new [N, ...]` for clients that take part, `old [N, ...]` for the others."""
    axes = [1] * (new.dim() - 1)
    return torch.where(active.view(-1, *axes), new, old)


def sample(
    size: int,
    count: int,
    rng: torch.Generator,
) -> Int[Tensor, "n"]:
    """Draw `count` distinct numbers below `size`; all ordered choices are equally likely.

    The numbers are the start of a permutation. From more than `MANY`, a few are drawn with
    replacement and repetitions are skipped, so the time does not grow with `size`.
    """
    if size <= MANY or 4 * count > size:
        return torch.randperm(size, generator=rng)[:count]
    chosen = dict[int, None]()  # a dictionary, because it keeps the order
    while len(chosen) < count:
        numbers = torch.randint(size, (count,), generator=rng)
        chosen.update(dict.fromkeys(numbers.tolist()))
    return torch.tensor(list(chosen)[:count])


def check_work(
    subject: str,
    problem: Problem,
    participants: int,
    distinct_batch: int | None = None,
    *,
    constrained: bool | None = None,
) -> None:
    """Raise ValueError if the problem has too few clients or rows, or losses of the wrong kind.

    Raises ValueError if there are fewer clients than participants, or if a batch of distinct rows
    is larger than a client. If `constrained` is given, the problem must have one objective and at
    least one constraint (True), or objectives only (False).
    """
    clients = problem.num_clients
    checks.count(subject, "participants", participants, 1, clients, "the problem's clients")
    if distinct_batch is not None:
        note = "a batch has distinct rows of the smallest client"
        checks.count(subject, "batch_size", distinct_batch, 1, min(problem.sizes), note)
    if constrained is None:
        return
    objectives = problem.num_objectives
    constraints = problem.num_constraints
    fits = constraints == 0
    rule = "have objectives only"
    if constrained:
        fits = objectives == 1 and constraints > 0
        rule = "have one objective and at least one constraint"
    losses = f"{objectives} objectives, {constraints} constraints"
    checks.require(fits, subject, "problem", rule, losses)


def _positions(
    problem: Problem,
    clients: Tensor,
    steps: int,
    batch_size: int | None,
    rng: torch.Generator,
) -> Tensor | tuple[()]:
    """Positions `[n, steps, batch_size]` within some clients' rows; `()` for all rows."""
    if batch_size is None:
        return ()
    rows = [problem.sizes[j] for j in clients.tolist()]
    sizes = torch.tensor(rows).view(-1, 1, 1)
    shape = (len(clients), steps, batch_size)
    uniform = torch.rand(shape, generator=rng, dtype=torch.float64)
    drawn = (uniform * sizes).long()
    if not problem.whole_batches:
        return drawn
    # positions beyond a client's rows repeat its last row, and have weight 0
    all_rows = torch.minimum(torch.arange(batch_size), sizes - 1)
    return torch.where(sizes <= batch_size, all_rows, drawn)


def _squeeze(x: Tensor | tuple[()], axis: int) -> Tensor | tuple[()]:
    if isinstance(x, Tensor):
        return x.squeeze(axis)
    return ()


def seeded(seed: Seed, stream: Literal["split", "rounds"]) -> torch.Generator:
    """A CPU generator for one seed and one purpose: `"split"` or `"rounds"`.

    Raises ValueError if the seed is negative or the stream is unknown.
    """
    checks.arguments(seeded, locals())
    offset = 0
    if stream == "rounds":
        offset = 1
    return torch.Generator().manual_seed(2 * seed + offset)


def round_generators(seeds: Sequence[int], points: int = 1) -> list[torch.Generator]:
    """The generators of the draws from round 0 on: one for each seed, for each point in turn."""
    generators = []
    for _ in range(points):
        generators += [seeded(seed, "rounds") for seed in seeds]
    return generators
