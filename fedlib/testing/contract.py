"""Checks that every algorithm must pass, as functions of an algorithm and a problem.

The library's tests run these checks on all its algorithms; `check_algorithm` runs them on your own.
A check raises AssertionError with one sentence. The checks examine the results of a round and not
its code, so a method in an unusual form passes if it is right.
"""

import copy
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib.core.algorithm import Algorithm
from fedlib.core.describe import describe
from fedlib.core.federation import Federation, Loop, Sent, Vectorized
from fedlib.core.problem import Draw, Problem
from fedlib.core.sampling import draw_with_coin, seeded
from fedlib.core.trees import stack_trees
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.stack import fill, floats
from fedlib.flower.client import Client
from fedlib.flower.job import Job, client_problem
from fedlib.flower.server import Server
from fedlib.run import run
from fedlib.vertical import VerticalProblem

SLACK = 0.25  # of a step: more than a sketch's error, less than a sum in place of a mean
AGREED = 2  # rounds to compare; a faulty memory shows in the second
REFUSED = "one by one"  # what `run` advises where points of a grid have other shapes
GRID_ROUNDS = 3  # rounds of a grid; a fault of a memory shows in the third
DRAWS = 3
ROUNDS = 20  # rounds within which a method must improve something


def check_algorithm(algorithm: Algorithm, problem: Problem) -> None:
    """Run all checks on an algorithm, with a problem that it is made for.

    Raises AssertionError that lists every check which failed, one sentence each.
    """
    failed = [f"{name}: {text}" for name, text in findings(algorithm, problem).items() if text]
    if failed:
        raise AssertionError("\n".join([f"{type(algorithm).__name__} fails", *failed]))


def findings(algorithm: Algorithm, problem: Problem) -> dict[str, str]:
    """The result of each check: an error sentence, or "" if the check passes.

    If a check in `FIRST` fails, the others are skipped, since they would fail for the same reason.
    """
    texts = dict[str, str]()
    for name, check in CHECKS.items():
        texts[name] = ""
        try:
            check(algorithm, problem)
        except AssertionError as error:
            texts[name] = str(error)
        except Exception as error:  # the other checks must still run
            lines = str(error).strip().splitlines() or [""]
            texts[name] = f"a round stops with {type(error).__name__}: {lines[0]}"
        if name in FIRST and texts[name]:
            break
    return texts


def is_a_record(algorithm: Algorithm, problem: Problem) -> None:
    """The algorithm is a frozen dataclass, and its state begins with `w`."""
    kind = type(algorithm)
    frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen
    require(frozen, "the class must be a frozen dataclass: @dataclass(frozen=True)")
    state = algorithm.init(problem)
    first = getattr(type(state), "_fields", ("",))[0]
    require(first == "w", f"init must return a NamedTuple whose first field is w, got {first!r}")
    require(state.w.shape == problem.w0.shape, f"w must be [{problem.dim}] at the start")
    describe(algorithm)


def is_pure(algorithm: Algorithm, problem: Problem) -> None:
    """The same state and draw lead to the same round, and the round changes no input."""
    state, draw = algorithm.init(problem), draw_with_coin(algorithm, problem, seeded(0, "rounds"))
    before = pytree.tree_map(torch.clone, state)
    once, _ = algorithm.round(Vectorized(problem), state, draw)
    rule = "a round must not change the state that it was given; write x = x + step, not x += step"
    require(equal(state, before), rule)
    again, _ = algorithm.round(Vectorized(problem), state, draw)
    rule = "two rounds from one state and one draw must be equal; draw random numbers in draw()"
    require(equal(once, again), rule)


def engines_agree(algorithm: Algorithm, problem: Problem) -> None:
    """Both engines compute the same rounds: in a map, and one by one with encoded messages."""
    state, rng = algorithm.init(problem), seeded(3, "rounds")
    for _ in range(5 if problem.w0.dtype == torch.float64 else 1):
        draw = draw_with_coin(algorithm, problem, rng)
        slow, slow_info = algorithm.round(Loop(problem), state, draw)
        state, info = algorithm.round(Vectorized(problem), state, draw)
        rule = (
            "Vectorized and Loop must give the same model; what is uploaded must be what the wire "
        )
        require(close(state.w, slow.w, 1e-12, 1e-4), f"{rule}format named at fed.ask can carry")
        same_bits = bool(info["bits_up"] == slow_info["bits_up"])
        require(same_bits, "Vectorized and Loop must count the same bits")


def runs_batched(algorithm: Algorithm, problem: Problem) -> None:
    """`run`, which records a round and maps it over seeds, agrees with plain loops."""
    try:
        fast = run(algorithm, problem, rounds=3, seeds=(0, 1), progress=False)
    except ValueError as error:
        raise AssertionError(str(error).removeprefix(f"{type(algorithm).__name__}: ")) from error
    slow = run(algorithm, problem, rounds=3, seeds=(0, 1), progress=False, engine=Loop)
    rule = "the recorded round must equal the plain one; look for Python state in round()"
    require(close(fast.state.w, slow.state.w, 1e-9, 1e-3), rule)


def runs_in_a_grid(algorithm: Algorithm, problem: Problem) -> None:
    """Each point of a grid runs as it does alone, with its own start and draws, or is refused."""
    grid = [algorithm, other_floats(algorithm, problem)]
    options: dict[str, Any] = {"rounds": GRID_ROUNDS, "progress": False}
    try:
        together = run(grid, problem, **options)
    except ValueError as refusal:
        require(REFUSED in str(refusal), f"a grid stops with {refusal}")
        return
    for point, trace in zip(grid, together, strict=True):
        alone = run(point, problem, **options)
        rule = f"a point of a grid must run as it does alone; {point!r:.200} does not"
        require(close(trace.state.w, alone.state.w, 1e-9, 1e-3), rule)
        for name, curve in alone.info.items():
            fits = np.allclose(trace.info[name], curve, 1e-3, 1e-6, equal_nan=True)
            require(fits, f"{rule}, see {name}")


def other_floats(algorithm: Algorithm, problem: Problem) -> Algorithm:
    """The algorithm with every float halved, or 0 replaced by 1/4, where its checks allow it."""
    for name, value in floats(algorithm).items():
        with suppress(ValueError, TypeError):
            changed = fill(algorithm, {name: value / 2 if value else 0.25})
            changed.init(problem)
            algorithm = changed
    return algorithm


def draws_as_one_by_one(algorithm: Algorithm, problem: Problem) -> None:
    """`run` draws many rounds at once; they are those that `draw` gives one after another."""
    runs = BatchedRuns([algorithm], problem, (0,), problem.w0.device, None)
    together = runs.draws([seeded(0, "rounds")], DRAWS)
    rng = seeded(0, "rounds")
    one_by_one = stack_trees([draw_with_coin(algorithm, problem, rng) for _ in range(DRAWS)])
    alike = pytree.tree_map(lambda x: x.unsqueeze(1), one_by_one)
    rule = "draws of one generator must be equal; draw from the generator alone"
    require(equal(together, alike), rule)


def counts_its_bits(algorithm: Algorithm, problem: Problem) -> None:
    """`Info` holds the bits that the federation counted, and messages go both ways."""
    fed = Vectorized(problem)
    _, info = algorithm.round(
        fed, algorithm.init(problem), draw_with_coin(algorithm, problem, seeded(0, "rounds"))
    )
    for name in ("bits_up", "bits_down"):
        rule = f"the round's report must hold {name} as counted; return fed.info(...)"
        require(name in info and bool(info[name] == getattr(fed, name)), rule)
    both = problem.num_clients == 1 or bool(info["bits_up"] > 0 and info["bits_down"] > 0)
    require(both, "a round must send something both ways, with fed.ask and fed.broadcast")


def both_ends_agree(algorithm: Algorithm, problem: Problem) -> None:
    """The simulation's rounds are reproduced if each end has only its own data.

    The server has no rows and no memories; a client has its rows, its memory and its messages.
    """
    if problem.num_clients == 1 or isinstance(problem, VerticalProblem):
        return  # nothing is sent, or clients exchange messages on a `Line`
    states = walk(algorithm, problem, AGREED)
    t = rounds_alike(algorithm, problem, states)
    require(
        t == AGREED,
        f"with rows and memories at the clients only, round {t + 1} has another model; the server "
        "must use nothing but uploads, a client nothing but its own data and its messages",
    )
    declared = getattr(algorithm, "client_state", ())
    others = {k: x for k, x in states[0]._asdict().items() if k not in declared}
    for name, x in others.items():
        if isinstance(x, Tensor) and x.numel() and x.shape[:1] == (problem.num_clients,):
            other = copy.copy(algorithm)
            object.__setattr__(other, "client_state", (*declared, name))
            require(
                rounds_alike(other, problem, states) < AGREED,
                f"every end would hold all rows of the state's field {name}, but the server needs "
                "none of them and a client only its own; name the field in the class: "
                f'client_state: ClassVar[tuple[str, ...]] = ("{name}",)',
            )


def rounds_alike(algorithm: Algorithm, problem: Problem, states: list[Any]) -> int:
    """The number of rounds after which a federation's model first differs from the simulation's."""
    ends = list[Any]()
    with suppress(RuntimeError):  # the model or a client's answer is not finite
        server = two_ends(Job(algorithm, partial(client_problem, problem), AGREED))
        server.run(lambda _, state: ends.append(state))
    alike = [close(a.w, b.w, 1e-6, 1e-4) for a, b in zip(ends, states, strict=False)]
    return [*alike, False].index(False)


def two_ends(job: Job) -> Server:
    """A server with a link to clients in the same process."""
    link = InProcess()
    server = Server(job, link)
    link.clients += [Client(job, j) for j in range(server.place.problem.num_clients)]
    for client in link.clients:  # computed once for all clients
        client.place.blanks = server.place.blanks
    return server


class InProcess:
    """A `Link` to clients in the same process."""

    def __init__(self) -> None:
        self.clients, self.answers = list[Client](), deque[tuple[int, bytes]]()

    def send(self, client: int, data: bytes) -> None:
        """Send as in `Link`."""
        self.answers.append((client, self.clients[client].handle(data)))

    def receive(self, seconds: float) -> tuple[int, bytes] | None:  # noqa: ARG002 - none is late
        """Receive as in `Link`."""
        return self.answers.popleft() if self.answers else None


def averages(algorithm: Algorithm, problem: Problem) -> None:
    """The step is the same in a federation that contains every client twice."""
    special = problem.simulator is not None or isinstance(problem, VerticalProblem)
    if problem.num_clients == 1 or special:
        return  # the data are in one place, or cannot be copied
    names = [f.name for f in fields(algorithm) if f.name.endswith("participants")]  # type: ignore[arg-type]
    counts = {name: 2 * getattr(algorithm, name) for name in names}
    larger: Algorithm = replace(algorithm, **counts)  # type: ignore[type-var]
    twice = replace(
        problem,
        rows=torch.cat([problem.rows, problem.rows]),
        sizes=problem.sizes * 2,
        lengths=torch.cat([problem.lengths] * 2) if isinstance(problem.lengths, Tensor) else (),
    )
    draw = doubled(draw_with_coin(algorithm, problem, seeded(0, "rounds")), problem.num_clients)
    same, _ = larger.round(Vectorized(twice), larger.init(twice), draw)
    (after,) = walk(algorithm, problem, 1)
    near = bool((same.w - after.w).norm() <= SLACK * (after.w - problem.w0).norm())
    rule = "a federation with every client twice must make the same step; take the mean over "
    require(near, f"{rule}clients in place of a sum")


def doubled(draw: Draw, clients: int) -> Draw:
    """The draw for a doubled federation: each client is followed by its copy, at +`clients`."""
    new: dict[str, Any] = {"others": tuple(doubled(other, clients) for other in draw.others)}
    for name, x in draw._asdict().items():
        if isinstance(x, Tensor) and name not in ("downlink", "coin"):
            more = clients if name in ("participants", "value_clients") else 0
            new[name] = torch.stack([x, x + more], 1).flatten(0, 1)
    return draw._replace(**new)


def uses_the_gradient_given(algorithm: Algorithm, problem: Problem) -> None:
    """A problem's closed-form gradient and autograd lead to the same round."""
    if problem.gradient is None or problem.simulator is not None:
        return
    a, b = (walk(algorithm, p, 1)[0] for p in (problem, replace(problem, gradient=None)))
    rule = "the gradient in closed form and autograd's must give the same model"
    require(close(a.w, b.w, 1e-12, 1e-4), rule)


def improves(algorithm: Algorithm, problem: Problem) -> None:
    """Within some rounds the mean objective or the largest constraint decreases."""
    if problem.simulator is not None:
        return
    w = walk(algorithm, problem, ROUNDS)[-1].w
    before, after = problem.mean_losses(algorithm.init(problem).w), problem.mean_losses(w)
    m = problem.num_objectives
    better = after[:m].mean() < before[:m].mean()
    if problem.num_constraints:
        largest = problem.constraints(after).max()
        better = better | (largest < problem.constraints(before).max())
    rule = (
        f"within {ROUNDS} rounds the objective or the constraint must fall; try a smaller lr, and"
    )
    require(bool(better) and bool(w.isfinite().all()), f"{rule} look for a wrong sign")


#: Every check by name, in the order in which their messages should be read.
CHECKS: Mapping[str, Callable[[Algorithm, Problem], None]] = {
    "is a record": is_a_record,
    "is pure": is_pure,
    "runs batched": runs_batched,
    "runs in a grid": runs_in_a_grid,
    "draws as one by one": draws_as_one_by_one,
    "engines agree": engines_agree,
    "counts its bits": counts_its_bits,
    "both ends agree": both_ends_agree,
    "averages": averages,
    "uses the gradient given": uses_the_gradient_given,
    "improves": improves,
}


#: The checks on which the others depend.
FIRST = ("is a record", "is pure")


def walk(algorithm: Algorithm, problem: Problem, rounds: int) -> list[Any]:
    """The states after each of the first rounds of a simulation with seed 0."""
    state, rng, states = algorithm.init(problem), seeded(0, "rounds"), []
    for _ in range(rounds):
        state, _ = algorithm.round(
            Vectorized(problem), state, draw_with_coin(algorithm, problem, rng)
        )
        states.append(state)
    return states


def messages(algorithm: Any, fed: Federation, rng: torch.Generator) -> list[Sent]:
    """All messages of an algorithm's first round, in order.

    >>> from fedlib import FedAvg, problems
    >>> from fedlib.core import Vectorized
    >>> from fedlib.testing.contract import messages
    >>> fed = Vectorized(problems.quadratics())
    >>> for m in messages(FedAvg(0.1, 2, 3), fed, torch.Generator()):
    ...     print(f"{m.sender} to {m.receiver}: {m.what}, {m.copies} of {m.bits} bits")
    server to participant: w, 3 of 64 bits
    participant to server: local_update, 3 of 64 bits
    """
    fed.log = log = list[Sent]()
    algorithm.round(fed, algorithm.init(fed.problem), draw_with_coin(algorithm, fed.problem, rng))
    return log


def equal(a: Any, b: Any) -> bool:
    """Whether two trees have equal entries; NaN equals NaN."""
    ones, others = pytree.tree_leaves(a), pytree.tree_leaves(b)
    if [x.shape for x in ones] != [x.shape for x in others]:
        return False
    pairs = zip(ones, others, strict=True)
    return all(bool(((x == y) | (x.isnan() & y.isnan())).all()) for x, y in pairs)


def close(a: Float[Tensor, "d"], b: Float[Tensor, "d"], double: float, single: float) -> bool:
    """Whether two models are finite and agree in every entry to the tolerance of their dtype."""
    limit = double if a.dtype == torch.float64 else single
    return a.shape == b.shape and bool(((a - b).abs() <= limit).all())


def require(holds: bool, sentence: str) -> None:
    """Raise AssertionError with the sentence unless it holds."""
    if not holds:
        raise AssertionError(f"{sentence}.")
