"""What crosses the line in one round, message by message."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor

from fedlib.compress.compressors import FLOAT_BITS, Compressor

if TYPE_CHECKING:
    from fedlib.core.algorithm import Algorithm
    from fedlib.core.federation import Federation

SERVER, PARTICIPANT, EVERYONE = "server", "participant", "every client"


class Sent(NamedTuple):
    """One message, as often as it was sent at once.

    `sender` and `receiver` are `"server"`, `"participant"`, `"every client"` or `"client 3"`;
    `what` is the name of an argument or of a client's method. `floats` and `indices` are the real
    and the whole numbers that it is about, `bits` what one copy takes on the wire.
    """

    sender: str
    receiver: str
    what: str
    floats: int
    indices: int
    bits: int
    copies: int = 1


def messages(algorithm: Algorithm, fed: Federation, rng: torch.Generator) -> list[Sent]:
    """Everything that is sent in the first round of an algorithm, in order.

    >>> from fedlib import FedAvg, problems
    >>> from fedlib.core import Vectorized
    >>> from fedlib.core.messages import messages
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> fed = Vectorized(problem)
    >>> for m in messages(FedAvg(0.1, 2, 3), fed, torch.Generator()):
    ...     print(f"{m.sender} to {m.receiver}: {m.what}, {m.copies} of {m.bits} bits")
    server to participant: w, 3 of 64 bits
    participant to server: local_update, 3 of 64 bits
    """
    fed.log = log = list[Sent]()
    algorithm.round(fed, algorithm.init(fed.problem), algorithm.draw(fed.problem, rng))
    return log


def about(parts: Sequence[Shaped[Tensor, "..."]]) -> tuple[int, int]:
    """How many real and how many whole numbers some tensors are."""
    floats = sum(x.numel() for x in parts if x.is_floating_point())
    return floats, sum(x.numel() for x in parts) - floats


def asked(
    method: Callable[..., Any],
    broadcast: Sequence[Shaped[Tensor, "..."]],
    upload: Shaped[Tensor, "..."],
    wire: Compressor,
    copies: int,
) -> Iterator[Sent]:
    """The messages to and from so many participants whose `method` is asked for one `upload` each.

    The parts of a broadcast are called as the method calls its arguments.
    """
    while isinstance(method, partial):
        method = method.func
    names = list(inspect.signature(method).parameters)[1:]
    for name, part in zip(names, broadcast, strict=False):
        bits = FLOAT_BITS * part.numel()
        yield Sent(SERVER, PARTICIPANT, name, *about([part]), bits, copies)
    bits = wire.bits(upload.numel())
    yield Sent(PARTICIPANT, SERVER, method.__name__, *about([upload]), bits, copies)


def told(message: Shaped[Tensor, "..."], wire: Compressor, receivers: int | None, N: int) -> Sent:
    """A message from the server to some `receivers`; for None to all N clients."""
    whom, copies = (EVERYONE, N) if receivers is None else (PARTICIPANT, receivers)
    return Sent(SERVER, whom, "", *about([message]), wire.bits(message.numel()), copies)
