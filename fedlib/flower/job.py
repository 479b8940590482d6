"""A federation's server and clients as separate processes, which Flower links.

A round draws nothing and never branches on a tensor, so every end can run `algorithm.round` itself,
with asks and broadcasts in the same order. Stand-ins replace what an end cannot know: NaN for rows
and memories at the server, and a client's own answer for the other clients' answers. A method that
uses such values by mistake therefore ends with NaN or with a wrong model.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.checks import Count, Seed
from fedlib.core.algorithm import Algorithm
from fedlib.core.client import ClientState, Reply
from fedlib.core.describe import describe
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Problem
from fedlib.core.sampling import draw_with_coin, seeded
from fedlib.flower.packing import Garbled
from fedlib.shapes import AnyTensor
from fedlib.vertical import VerticalProblem


@dataclass(frozen=True)
class Job:
    """A run in a federation; the server and every client hold the same object.

    Parameters
    ----------
    algorithm : Algorithm
        Any algorithm whose clients hold samples.
    problem : Callable
        A function of a client's number. The problem that it returns holds the rows of this client
        alone (`with_rows`), or no rows for None, the server.
    rounds : int
        T, the number of rounds.
    seed : int
        The seed from which server and clients each draw the rounds' randomness.
    """

    algorithm: Algorithm
    problem: Callable[[int | None], Problem]
    rounds: Count
    seed: Seed = 0

    def __post_init__(self) -> None:
        checks.fields(self)


def client_problem(problem: Problem, client: int | None) -> Problem:
    """The problem with the rows of one client alone, or with no rows for None.

    >>> from fedlib import problems
    >>> everything = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> [len(client_problem(everything, client).data[0]) for client in (0, None)]
    [1, 1]
    >>> client_problem(everything, None).data[0]
    tensor([[nan, nan]])
    """
    rows = problem.own_rows(0 if client is None else client)
    data = [tensor[rows] for tensor in problem.data]
    return with_rows(problem, data, client, problem.sizes)


def with_rows(
    problem: Problem,
    data: Sequence[Shaped[Tensor, "m ..."]],
    client: int | None,
    sizes: Sequence[int],
) -> Problem:
    """The problem of `len(sizes)` clients in which client number `client` has the rows `data`."""
    rows = torch.zeros(sum(sizes), dtype=torch.int64, device=problem.w0.device)
    if client is None:
        data = [blank(tensor[:1]) for tensor in data]
    else:
        start = sum(sizes[:client])
        rows[start : start + sizes[client]] = torch.arange(sizes[client])
    return problem.with_tensors(
        {
            "data": tuple(data),
            "rows": rows,
            "sizes": tuple(sizes),
            "heldout": tuple(map(blank, problem.heldout)),
            "lengths": (),
        }
    )


def blank(x: AnyTensor) -> AnyTensor:
    """Replace floats by NaN and whole numbers by 0."""
    if x.is_floating_point():
        return torch.full_like(x, torch.nan)
    return torch.zeros_like(x)


def samples(draw: Draw) -> list[list[int]]:
    """The clients of a round: the participants, those asked for values, and others of the draw."""
    groups: list[list[int]] = [draw.participants.tolist()]
    if isinstance(draw.value_clients, Tensor):
        groups.append(draw.value_clients.tolist())
    for other_draw in draw.others:
        groups += samples(other_draw)
    return groups


class Place:
    """An end's position in a run: the round, the state before it, and the random generator."""

    def __init__(self, job: Job, me: int | None) -> None:
        self.problem = job.problem(me)
        self.algorithm = job.algorithm
        checks.require(
            not isinstance(self.problem, VerticalProblem),
            "Job",
            "problem",
            "have its samples split among clients",
            self.problem.name,
            "use run()",
        )
        self.run = run_id(job, self.problem)
        self.local_clients = [] if me is None else [me]  # clients whose memory is at this end
        self.tables: Sequence[str] = getattr(job.algorithm, "client_state", ())
        self.rng = seeded(job.seed, "rounds")
        self.blanks: dict[int, Any] = {}
        self.round = 0
        self.state = self.local_state(job.algorithm.init(self.problem))
        self.draw: Draw = draw_with_coin(job.algorithm, self.problem, self.rng)

    def local_state(self, state: Any) -> Any:
        """The state at this end, with NaN for the memories of other clients."""
        tables = {}
        for name in self.tables:
            memories = getattr(state, name)
            local = torch.full_like(memories, torch.nan)
            local[self.local_clients] = memories[self.local_clients]
            tables[name] = local
        return state._replace(**tables)

    def go_on(self, state: Any) -> None:
        """Move to the next round with its first state."""
        self.state = self.local_state(state)
        self.round += 1
        self.draw = draw_with_coin(self.algorithm, self.problem, self.rng)


def run_id(job: Job, problem: Problem) -> str:
    """The same text at all ends of a run; with other settings, another one."""
    settings = [describe(job.algorithm), job.seed, list(problem.sizes), problem.dim]
    text = json.dumps(settings)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class End(Federation):
    """One round at an end, for the round and state in `place`.

    The server's and the clients' ends define how methods are mapped and messages are broadcast,
    with stand-ins for what an end does not know. At the server, these are zeros for clients that
    are not asked and NaN for memories; at a client, its own answer for the others' answers.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place.problem)
        self.place = place
        self.draw = place.draw
        self.count = 0  # the number of asks and broadcasts so far

    def run(self) -> Any:
        """Run the round as far as the messages go; return the next state and the report."""
        return self.place.algorithm.round(self, self.place.state, self.draw)

    def only_client(self, draw: Draw) -> Any:  # noqa: ARG002 - whatever is drawn
        """Raise ValueError, because no message would be sent."""
        name = type(self.place.algorithm).__name__
        checks.require(False, "Job", "algorithm", "ask clients", name, "use run()")

    def addressed(self, receivers: int | None) -> list[int]:
        """The receivers of a broadcast: all N clients, or all clients in the draw."""
        if receivers is None:
            return list(range(self.place.problem.num_clients))
        return sorted(set().union(*samples(self.draw)))

    def asked(self, clients: ClientState) -> list[int]:
        """The participants' numbers; -1 for a participant that is not asked."""
        numbers = torch.as_tensor(clients.number)
        if self.active is not None:
            numbers = numbers.where(self.active, -1)
        listed: list[int] = numbers.tolist()
        return listed

    def blank_answer(
        self,
        method: Any,
        clients: ClientState,
        broadcast: Any,
    ) -> Any:
        """One client's answer with NaN entries; its shape is found without computing it."""
        blanks = self.place.blanks
        if self.count not in blanks:
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                state = pytree.tree_map(mode.from_tensor, clients.at(0))
                arguments = [mode.from_tensor(argument) for argument in broadcast]
                answer = method(self.client(state), *arguments)
            blanks[self.count] = pytree.tree_map(self.not_a_number, answer)
        return blanks[self.count]

    def not_a_number(
        self,
        x: AnyTensor,
    ) -> AnyTensor:
        """NaN in a tensor's shape and dtype, on the problem's device."""
        return self.problem.w0.new_full(x.shape, torch.nan, dtype=x.dtype)


def as_reply(answer: Any) -> Reply:
    """A client's answer as a `Reply`, with an empty memory and report if it has none."""
    if isinstance(answer, Reply):
        return answer
    return Reply(answer, ())


def enclose(
    head: dict[str, Any],
    messages: Sequence[bytes | None] = (),
) -> bytes:
    """Put a head and some messages into one envelope with a check sum."""
    sizes = [None if message is None else len(message) for message in messages]
    text = json.dumps({**head, "sizes": sizes}).encode()
    content = b"".join(message for message in messages if message is not None)
    body = len(text).to_bytes(4) + text + content
    return zlib.crc32(body).to_bytes(4) + body


def disclose(data: bytes) -> tuple[dict[str, Any], list[bytes | None]]:
    """The inverse of `enclose`; raises Garbled for other bytes."""
    check_sum = zlib.crc32(data[4:]).to_bytes(4)
    if len(data) < 8 or check_sum != data[:4]:
        raise Garbled("an envelope is damaged")
    start = 8 + int.from_bytes(data[4:8])
    head = json.loads(data[8:start])
    messages: list[bytes | None] = []
    for size in head.pop("sizes"):
        if size is None:
            messages.append(None)
        else:
            messages.append(data[start : start + size])
            start += size
    return head, messages
