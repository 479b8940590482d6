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
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib.core.algorithm import Algorithm
from fedlib.core.describe import describe
from fedlib.core.federation import Federation, Loop, Sent, Vectorized
from fedlib.core.floats import fill, floats
from fedlib.core.problem import Draw, Problem
from fedlib.core.sampling import draw_with_coin, seeded
from fedlib.core.trees import clone_tree, same_numbers, stack_trees
from fedlib.engine.batch import BatchedRuns
from fedlib.flower.client import Client
from fedlib.flower.job import Job, client_problem
from fedlib.flower.server import Server
from fedlib.run import run
from fedlib.shapes import Vector
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
    lines = [f"{type(algorithm).__name__} fails"]
    for name, text in findings(algorithm, problem).items():
        if text:
            lines.append(f"{name}: {text}")
    if len(lines) > 1:
        raise AssertionError("\n".join(lines))


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
    method = type(algorithm)
    frozen = is_dataclass(method) and method.__dataclass_params__.frozen
    require(frozen, "the class must be a frozen dataclass: @dataclass(frozen=True)")
    state = algorithm.init(problem)
    name = getattr(type(state), "_fields", ("",))[0]
    require(name == "w", f"init must return a NamedTuple whose first field is w, got {name!r}")
    require(state.w.shape == problem.w0.shape, f"w must be [{problem.dim}] at the start")
    describe(algorithm)


def is_pure(algorithm: Algorithm, problem: Problem) -> None:
    """The same state and draw lead to the same round, and the round changes no input."""
    state = algorithm.init(problem)
    draw = draw_with_coin(algorithm, problem, seeded(0, "rounds"))
    copied = clone_tree(state)
    once, _ = algorithm.round(Vectorized(problem), state, draw)
    rule = "a round must not change the state that it was given; write x = x + step, not x += step"
    require(equal(state, copied), rule)
    again, _ = algorithm.round(Vectorized(problem), state, draw)
    rule = "two rounds from one state and one draw must be equal; draw random numbers in draw()"
    require(equal(once, again), rule)


def engines_agree(algorithm: Algorithm, problem: Problem) -> None:
    """Both engines compute the same rounds: in a map, and one by one with encoded messages."""
    state = algorithm.init(problem)
    rng = seeded(3, "rounds")
    rounds = 1
    if problem.w0.dtype == torch.float64:
        rounds = 5
    for _ in range(rounds):
        draw = draw_with_coin(algorithm, problem, rng)
        looped, looped_info = algorithm.round(Loop(problem), state, draw)
        state, info = algorithm.round(Vectorized(problem), state, draw)
        require(
            close(state.w, looped.w, 1e-12, 1e-4),
            "Vectorized and Loop must give the same model; what is uploaded must be what the wire "
            "format named at fed.ask can carry",
        )
        same_bits = bool(info["bits_up"] == looped_info["bits_up"])
        require(same_bits, "Vectorized and Loop must count the same bits")


def runs_batched(algorithm: Algorithm, problem: Problem) -> None:
    """`run`, which records a round and maps it over seeds, agrees with plain loops."""
    options: dict[str, Any] = {
        "rounds": 3,
        "seeds": (0, 1),
        "progress": False,
    }
    try:
        recorded = run(algorithm, problem, **options)
    except ValueError as error:
        raise AssertionError(str(error).removeprefix(f"{type(algorithm).__name__}: ")) from error
    looped = run(algorithm, problem, **options, engine=Loop)
    rule = "the recorded round must equal the plain one; look for Python state in round()"
    require(close(recorded.state.w, looped.state.w, 1e-9, 1e-3), rule)


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
            together_curve = trace.info[name]
            agree = np.allclose(together_curve, curve, 1e-3, 1e-6, equal_nan=True)
            require(agree, f"{rule}, see {name}")


def other_floats(algorithm: Algorithm, problem: Problem) -> Algorithm:
    """The algorithm with every float halved, or 0 replaced by 1/4, where its checks allow it."""
    for name, value in floats(algorithm).items():
        with suppress(ValueError, TypeError):
            other_value = 0.25
            if value:
                other_value = value / 2
            changed = fill(algorithm, {name: other_value})
            changed.init(problem)
            algorithm = changed
    return algorithm


def draws_as_one_by_one(algorithm: Algorithm, problem: Problem) -> None:
    """`run` draws many rounds at once; they are those that `draw` gives one after another."""
    runs = BatchedRuns([algorithm], problem, (0,), problem.w0.device, None)
    together = runs.draws([seeded(0, "rounds")], DRAWS)
    rng = seeded(0, "rounds")
    draws = [draw_with_coin(algorithm, problem, rng) for _ in range(DRAWS)]
    one_by_one = stack_trees(draws)
    expected = pytree.tree_map(lambda x: x.unsqueeze(1), one_by_one)
    rule = "draws of one generator must be equal; draw from the generator alone"
    require(equal(together, expected), rule)


def counts_its_bits(algorithm: Algorithm, problem: Problem) -> None:
    """`Info` holds the bits that the federation counted, and messages go both ways."""
    fed = Vectorized(problem)
    state = algorithm.init(problem)
    draw = draw_with_coin(algorithm, problem, seeded(0, "rounds"))
    _, info = algorithm.round(fed, state, draw)
    counts = {"bits_up": fed.bits_up, "bits_down": fed.bits_down}
    for name, bits in counts.items():
        rule = f"the round's report must hold {name} as counted; return fed.info(...)"
        require(name in info and bool(info[name] == bits), rule)
    if problem.num_clients > 1:
        rule = "a round must send something both ways, with fed.ask and fed.broadcast"
        require(bool(info["bits_up"] > 0 and info["bits_down"] > 0), rule)


def both_ends_agree(algorithm: Algorithm, problem: Problem) -> None:
    """The simulation's rounds are reproduced if each end has only its own data.

    The server has no rows and no memories; a client has its rows, its memory and its messages.
    """
    if problem.num_clients == 1 or isinstance(problem, VerticalProblem):
        return  # nothing is sent, or clients exchange messages on a `Line`
    states = walk(algorithm, problem, AGREED)
    rounds = rounds_alike(algorithm, problem, states)
    require(
        rounds == AGREED,
        f"with rows and memories at the clients only, round {rounds + 1} has another model; the "
        "server must use nothing but uploads, a client nothing but its own data and its messages",
    )
    declared = getattr(algorithm, "client_state", ())
    for name, field in states[0]._asdict().items():
        if name in declared or not has_client_axis(field, problem):
            continue
        redeclared = copy.copy(algorithm)
        object.__setattr__(redeclared, "client_state", (*declared, name))
        require(
            rounds_alike(redeclared, problem, states) < AGREED,
            f"every end would hold all rows of the state's field {name}, but the server needs "
            "none of them and a client only its own; name the field in the class: "
            f'client_state: ClassVar[tuple[str, ...]] = ("{name}",)',
        )


def has_client_axis(field: Any, problem: Problem) -> bool:
    """Whether a field of a state is a tensor with one row for each client."""
    if not isinstance(field, Tensor) or not field.numel():
        return False
    return field.shape[:1] == (problem.num_clients,)


def rounds_alike(
    algorithm: Algorithm,
    problem: Problem,
    states: list[Any],
) -> int:
    """The number of rounds after which a federation's model first differs from the simulation's."""
    received = list[Any]()
    with suppress(RuntimeError):  # the model or a client's answer is not finite
        server = two_ends(Job(algorithm, partial(client_problem, problem), AGREED))
        server.run(lambda _, state: received.append(state))
    rounds = 0
    for state, simulated in zip(received, states, strict=False):
        if not close(state.w, simulated.w, 1e-6, 1e-4):
            break
        rounds += 1
    return rounds


def two_ends(job: Job) -> Server:
    """A server with a link to clients in the same process."""
    link = InProcess()
    server = Server(job, link)
    for number in range(server.place.problem.num_clients):
        client = Client(job, number)
        client.place.blanks = server.place.blanks  # computed once for all clients
        link.clients.append(client)
    return server


class InProcess:
    """A `Link` to clients in the same process."""

    def __init__(self) -> None:
        self.clients = list[Client]()
        self.answers = deque[tuple[int, bytes]]()

    def send(self, client: int, data: bytes) -> None:
        """Let a client handle a message now, and keep its answer."""
        answer = self.clients[client].handle(data)
        self.answers.append((client, answer))

    def receive(self, seconds: float) -> tuple[int, bytes] | None:  # noqa: ARG002 - none is late
        """The number of a client and its answer, in the order of sending; None if all are read."""
        if not self.answers:
            return None
        return self.answers.popleft()


def averages(algorithm: Algorithm, problem: Problem) -> None:
    """The step is the same in a federation that contains every client twice."""
    special = problem.simulator is not None or isinstance(problem, VerticalProblem)
    if problem.num_clients == 1 or special:
        return  # the data are in one place, or cannot be copied
    counts = {}
    for field in fields(algorithm):  # type: ignore[arg-type]
        if field.name.endswith("participants"):
            counts[field.name] = 2 * getattr(algorithm, field.name)
    larger: Algorithm = replace(algorithm, **counts)  # type: ignore[type-var]
    lengths = problem.lengths
    if isinstance(lengths, Tensor):
        lengths = torch.cat([lengths, lengths])
    twice = replace(
        problem,
        rows=torch.cat([problem.rows, problem.rows]),
        sizes=problem.sizes + problem.sizes,
        lengths=lengths,
    )
    draw = draw_with_coin(algorithm, problem, seeded(0, "rounds"))
    draw_of_twice = doubled(draw, problem.num_clients)
    start = larger.init(twice)
    state, _ = larger.round(Vectorized(twice), start, draw_of_twice)
    (expected,) = walk(algorithm, problem, 1)
    step = expected.w - problem.w0
    error = state.w - expected.w
    require(
        bool(error.norm() <= SLACK * step.norm()),
        "a federation with every client twice must make the same step; take the mean over clients "
        "in place of a sum",
    )


def doubled(draw: Draw, clients: int) -> Draw:
    """The draw for a doubled federation: each client is followed by its copy, at +`clients`."""
    changed: dict[str, Any] = {}
    for name, x in draw._asdict().items():
        if not isinstance(x, Tensor) or name in ("downlink", "coin"):
            continue
        copied = x
        if name in ("participants", "value_clients"):
            copied = x + clients
        pairs = torch.stack([x, copied], 1)
        changed[name] = pairs.flatten(0, 1)
    further_draws = tuple(doubled(further, clients) for further in draw.others)
    return draw._replace(others=further_draws, **changed)


def uses_the_gradient_given(algorithm: Algorithm, problem: Problem) -> None:
    """A problem's closed-form gradient and autograd lead to the same round."""
    if problem.gradient is None or problem.simulator is not None:
        return
    (closed_form,) = walk(algorithm, problem, 1)
    (autograd,) = walk(algorithm, replace(problem, gradient=None), 1)
    rule = "the gradient in closed form and autograd's must give the same model"
    require(close(closed_form.w, autograd.w, 1e-12, 1e-4), rule)


def improves(algorithm: Algorithm, problem: Problem) -> None:
    """Within some rounds the mean objective or the largest constraint decreases."""
    if problem.simulator is not None:
        return
    w = walk(algorithm, problem, ROUNDS)[-1].w
    start = problem.mean_losses(algorithm.init(problem).w)
    end = problem.mean_losses(w)
    m = problem.num_objectives
    start_objective = start[:m].mean()
    end_objective = end[:m].mean()
    improved = bool(end_objective < start_objective)
    if problem.num_constraints:
        start_constraint = problem.constraints(start).max()
        end_constraint = problem.constraints(end).max()
        improved = improved or bool(end_constraint < start_constraint)
    require(
        improved and bool(w.isfinite().all()),
        f"within {ROUNDS} rounds the objective or the constraint must fall; try a smaller lr, and "
        "look for a wrong sign",
    )


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


def walk(
    algorithm: Algorithm,
    problem: Problem,
    rounds: int,
) -> list[Any]:
    """The states after each of the first rounds of a simulation with seed 0."""
    state = algorithm.init(problem)
    rng = seeded(0, "rounds")
    states = []
    for _ in range(rounds):
        draw = draw_with_coin(algorithm, problem, rng)
        state, _ = algorithm.round(Vectorized(problem), state, draw)
        states.append(state)
    return states


def messages(
    algorithm: Any,
    fed: Federation,
    rng: torch.Generator,
) -> list[Sent]:
    """All messages of an algorithm's first round, in order.

    >>> from fedlib import FedAvg, problems
    >>> from fedlib.core import Vectorized
    >>> from fedlib.testing.contract import messages
    >>> fed = Vectorized(problems.quadratics())
    >>> for m in messages(FedAvg(0.1, 2, 3), fed, torch.Generator()):
    ...     print(f"{m.sender} to {m.receiver}: {m.name}, {m.copies} of {m.bits} bits")
    server to participant: w, 3 of 64 bits
    participant to server: local_update, 3 of 64 bits
    """
    log = list[Sent]()
    fed.log = log
    state = algorithm.init(fed.problem)
    draw = draw_with_coin(algorithm, fed.problem, rng)
    algorithm.round(fed, state, draw)
    return log


def equal(a: Any, b: Any) -> bool:
    """Whether two trees have equal entries; NaN equals NaN."""
    tensors = pytree.tree_leaves(a)
    other_tensors = pytree.tree_leaves(b)
    if len(tensors) != len(other_tensors):
        return False
    return all(map(same_numbers, tensors, other_tensors))


def close(
    a: Vector,
    b: Vector,
    double: float,
    single: float,
) -> bool:
    """Whether two models are finite and agree in every entry to the tolerance of their dtype."""
    limit = single
    if a.dtype == torch.float64:
        limit = double
    if a.shape != b.shape:
        return False
    distance = (a - b).abs()
    return bool((distance <= limit).all())


def require(holds: bool, sentence: str) -> None:
    """Raise AssertionError with the sentence unless it holds."""
    if not holds:
        raise AssertionError(f"{sentence}.")
