"""Small examples of every algorithm: its settings, and a problem that it is made for.

The tests check every example. The book records a round of the first example of each algorithm and
lists its messages; the other examples show further bit counts. To add an algorithm to the library,
add its example here in one line, beside similar algorithms.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from fedlib import algorithms, compress, data
from fedlib.compress.compressors import Compressor
from fedlib.compress.sketches import Columns, Wire
from fedlib.core import Problem
from fedlib.core.problem import ConvexSet
from fedlib.core.sampling import seeded
from fedlib.problems import constrained_pareto, neyman_pearson, pareto
from fedlib.sets import Ball, Box, L1Ball, NuclearBall, Simplex
from fedlib.sets.vertices import Corner, OneEntry, RankOne, Several
from fedlib.shapes import Vector
from fedlib.steps import PowerLaw, Soft
from fedlib.vertical import Composite, Partition, VerticalProblem, contiguous, vertical
from fedlib.weights import FindWeights, MinNorm, OneWay

methods: Any = algorithms  # its attributes are the algorithms of its folder

CLIENTS = 20
TASKS = 3
TASK_DIM = 300
WIRE_DIM = 30  # numbers of a vector that is sent in a wire format
SIDE = 8  # side of the square matrices in the Frank-Wolfe problems
RADIUS = 4.0
RHO = PowerLaw(0.6, 0.3)
GAMMA = PowerLaw(0.9, 0.35)


class Example(NamedTuple):
    """An algorithm with its parameters, and its problem."""

    algorithm: Any
    problem: Problem


Group = Iterator[Example]


@lru_cache(maxsize=1)
def examples() -> dict[str, tuple[Example, ...]]:
    """The examples of every algorithm, by its name.

    >>> [type(e.algorithm).__name__ for e in examples()["MGDA"]]
    ['MGDA']
    """
    groups = (switching(), baselines(), objectives(), frank_wolfe(), successive())
    by_name: dict[str, tuple[Example, ...]] = {}
    for example in chain.from_iterable(groups):
        name = type(example.algorithm).__name__
        similar = by_name.get(name, ())
        by_name[name] = (*similar, example)
    return by_name


def on(problem: Problem, *algorithms: Any) -> Group:
    """Examples of several algorithms on one problem."""
    for algorithm in algorithms:
        yield Example(algorithm, problem)


def classification(clients: int, bias: bool = False) -> Problem:
    """Neyman-Pearson classification on the breast cancer data, with d = 30 and one constraint."""
    table = data.breast_cancer()
    return neyman_pearson(
        table.X,
        table.y,
        clients=clients,
        seed=0,
        train_fraction=0.8,
        dtype=torch.float64,
        bias=bias,
    )


def several(
    tasks: int,
    dim: int,
    convex_set: ConvexSet | None = None,
) -> Problem:
    """Quadratics of eight clients with three rows each; the start is far from the optimum."""
    centres = random_centres(tasks, dim)
    if convex_set is None:
        w0 = torch.ones(dim, dtype=torch.float64)
        return pareto(centres, w0=w0)
    corner = torch.eye(1, dim, dtype=torch.float64)[0]
    problem = pareto(centres, w0=RADIUS * corner)
    return problem.within(convex_set)


def several_in_a_ball(tasks: int, dim: int) -> Problem:
    """The same objectives in a ball beside their centres; the start is at its far end."""
    centres = random_centres(tasks, dim)
    entry = -(dim**-0.5)
    direction = torch.full((dim,), entry, dtype=torch.float64)
    middle = 2 * RADIUS * direction
    balls = middle + 0.1 * centres[:, 0, 0]
    w0 = 3 * RADIUS * direction
    return constrained_pareto(centres, balls, level=RADIUS**2, w0=w0)


def random_centres(tasks: int, dim: int) -> Float[Tensor, "8 3 tasks dim"]:
    """The centres of eight clients with three rows each."""
    rng = seeded(0, "split")

    def normal(clients: int, rows: int) -> Tensor:
        size = (clients, rows, tasks, dim)
        return torch.randn(size, generator=rng, dtype=torch.float64)

    common = 0.3 * normal(1, 1)
    of_clients = 0.1 * normal(8, 1)
    of_rows = 0.1 * normal(8, 3)
    return common + of_clients + of_rows


def switching() -> Group:
    """FedSGM and related methods under a constraint."""
    work: dict[str, Any] = {"lr": 0.1, "local_steps": 5, "tolerance": 0.05}
    hard = methods.FedSGM(**work, participants=10)
    top = compress.TopK(0.1)
    yield from on(
        classification(CLIENTS),
        replace(hard, switch=Soft(40.0), uplink=top, downlink=top),
        hard,
        replace(hard, participants=CLIENTS, uplink=compress.RandK(0.5), error_feedback=False),
        replace(hard, uplink=compress.Rounding(3), downlink=compress.Rounding(3)),
        methods.PenaltyFedAvg(**work, participants=10, rho=2.0),
    )
    multi = methods.MultiFedSGM(**work, participants=5, weights=MinNorm())
    soft = replace(multi, switch=Soft(10.0), gram=OneWay(), uplink=top, downlink=top)
    yield from on(
        several_in_a_ball(TASKS, TASK_DIM),
        multi,
        replace(soft, batch_size=2),
        replace(multi, weights=None),
    )


def baselines() -> Group:
    """Averaging methods, and methods for data in one place."""
    averaging = methods.FedAvg(lr=0.1, local_steps=5, participants=10)
    yield from on(
        classification(CLIENTS),
        averaging,
        replace(averaging, batch_size=6),
    )
    work: dict[str, Any] = {"lr": 0.1, "tolerance": 0.05, "steps": 5}
    primal_dual = methods.ConEx(**work, dual_lr=0.5)
    yield from on(
        classification(1),
        methods.SGM(**work),
        methods.PenaltySGM(**work, rho=2.0),
        primal_dual,
        replace(primal_dual, batch_size=20),
    )
    splitting = methods.FedDR(lr=0.1, local_steps=5)
    yield from on(
        several(1, SIDE**2, L1Ball(RADIUS)),
        splitting,
        replace(splitting, participation=0.8, batch_size=2),
    )


def objectives() -> Group:
    """Methods for three objectives."""
    work: dict[str, Any] = {"lr": 0.1, "local_steps": 5, "participants": 5}
    practice = methods.FedCMOO(**work, weights=FindWeights(step=0.01, steps=100))
    theory = methods.FedCMOOTheory(
        **work,
        step=0.05,
        gram_participants=3,
        compressor=compress.RandK(0.5),
    )
    yield from on(
        several(TASKS, TASK_DIM),
        practice,
        replace(practice, gram=OneWay()),
        replace(practice, gram=OneWay(compress.Exact())),
        replace(practice, batch_size=2),
        methods.FedCMOOPref(**work),
        theory,
        replace(theory, batch_size=2),
        methods.FSMGDA(**work),
        methods.FSMGDA(**work, batch_size=2),
        methods.Scalarized(**work),
        methods.Scalarized(**work, batch_size=2),
        methods.MGDA(lr=0.1),
    )


def frank_wolfe() -> Group:
    """The FedFW family with several sets; the first is the l1 ball."""
    plain = methods.FedFW(lam0=0.1)
    stochastic = methods.FedFWSto(lam0=0.1, batch_size=2)
    yield from on(
        several(1, SIDE**2, L1Ball(RADIUS)),
        plain,
        replace(plain, participation=0.8),
        methods.FedFWPlus(lam0=0.1),
        methods.FedFWPlus(lam0=0.1, participation=0.8),
        stochastic,
        replace(stochastic, participation=0.8),
        methods.FedFWReset(lam0=0.1, local_steps=2),
        methods.FedFWReset(lam0=0.1, local_steps=2, participation=0.8, batch_size=2),
        methods.NaiveFW(),
    )
    sets: list[ConvexSet] = [
        Simplex(1.0),
        Box(-1.0, 1.0),
        NuclearBall(1.0, SIDE, SIDE),
        Ball(1.0),
    ]
    for convex_set in sets:
        yield Example(plain, several(1, SIDE**2, convex_set))


def successive() -> Group:
    """Successive convex approximation and SGD, with samples or features split over clients."""
    steps: dict[str, Any] = {"tau": 1.0, "rho": RHO, "gamma": GAMMA}
    yield from on(
        classification(CLIENTS),
        methods.SSCA(**steps, batch_size=10),
        methods.SSCA(**steps),
        methods.ConstrainedSSCA(**steps, penalty=100.0, levels=0.3, batch_size=10),
        methods.MiniBatchSGD(lr=PowerLaw(0.3), local_steps=2, batch_size=10),
    )
    constrained = methods.ConstrainedVerticalSSCA(**steps, penalty=100.0, levels=0.3)
    sgd = methods.VerticalSGD(lr=PowerLaw(0.3), batch_size=10)
    yield from on(
        divided_features(),
        methods.VerticalSSCA(**steps, batch_size=10),
        methods.VerticalSSCA(**steps, batch_size=100),
        replace(constrained, objective="norm", batch_size=10),
        constrained,
        sgd,
        replace(sgd, batch_size=100),
    )


def divided_features() -> VerticalProblem:
    """Neyman-Pearson classification with its features split among three clients.

    The bias is a common parameter, so no client reads the last feature, a constant.
    """
    problem = classification(1, bias=True)
    size = problem.dim - 1
    *blocks, last_block = contiguous(size, 3)
    bias = torch.tensor([size])

    def inner(w: Any, x: Any) -> Any:
        features = x[:, : len(w)]
        return (features @ w).unsqueeze(-1)

    def outer(w_0: Any, embeddings: Any, labels: Any) -> Any:
        y, shares = labels
        total = sum(embeddings)
        z = total.squeeze(-1) + w_0
        losses = softplus(z) - y * z
        return losses.unsqueeze(-1) * shares

    last_features = torch.cat([last_block, bias])
    features = Partition("features", (*blocks, last_features), problem.dim)
    parameters = Partition("parameters", (bias, *blocks, last_block), problem.dim)
    return vertical(problem, Composite(features, parameters, inner, outer))


class WireFormat(NamedTuple):
    """A compressor or wire format, and a vector that it carries without loss.

    Without a vector, it carries what it makes of any vector of `WIRE_DIM` numbers.
    """

    wire: Compressor
    vector: Vector | None = None


def wire_formats() -> tuple[WireFormat, ...]:
    """Examples of every compressor, sketch and format of extreme points, for vectors of 30 numbers.

    The tests send each of them as bytes, and check its contraction and its bias. To add a
    compressor to the library, add it here in one line.

    >>> sorted({type(example.wire).__name__ for example in wire_formats()})[:3]
    ['Corner', 'Identity', 'OneEntry']
    """
    entry = torch.eye(1, WIRE_DIM)[0]
    is_high = torch.arange(WIRE_DIM) % 3 == 0
    corner = torch.where(is_high, 1.0, -1.0)
    rank_one = torch.outer(torch.arange(1.0, 6.0), torch.arange(6.0, 0.0, -1.0))
    formats = (OneEntry(1.0), Corner(-1.0, 1.0))
    several = Several(formats, (10, 20))
    compressors = (
        compress.Identity(),
        compress.TopK(0.1),
        compress.TopK(1.0),
        compress.RandK(0.2),
        compress.RandK(0.6),
        compress.RandK(0.5, scaled=False),
        compress.Rounding(1),
        compress.Rounding(3),
        compress.Rounding(22),
    )
    sketches = (
        compress.Exact(),
        compress.LowRank(),
        compress.Masked(),
        compress.Largest(0.5),
        compress.Largest(2.0),
        Columns(compress.TopK(0.3)),
        Columns(compress.RandK(0.3)),
    )
    wires = [Wire(sketch, TASKS) for sketch in sketches]
    vertex = torch.cat([-entry[:10], corner[:20]])
    return (
        *map(WireFormat, compressors),
        *map(WireFormat, wires),
        WireFormat(OneEntry(2.0), -2 * entry),
        WireFormat(OneEntry(2.0, signed=False), 2 * entry),
        WireFormat(Corner(-1.0, 1.0), corner),
        WireFormat(RankOne(5, 6), rank_one.flatten()),
        WireFormat(several, vertex),
    )
