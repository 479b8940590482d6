"""Problems for the theorems about sampled clients and minibatches, all with a box and G = 1.

`boxed_norms` are sums of distances whose constants are known. Linear losses, f_j(w) = <p_j, w> and
g_j(w) = <q_j, w> - r_j, are for the promises that fail: nothing drifts and no gradient turns, so
what happens to a run is the doing of the sample alone.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.problem import Batch, ConvexSet
from fedlib.sets import Box
from fedlib.shapes import Vector
from papers.fedsgm.problems.norms import (
    SPREADS,
    gap_metrics,
    norms,
    one_row_each,
    random_centres,
    solution_of,
)


def boxed_norms(
    seed: int,
    clients: int = 8,
    rows: int = 1,
    sigma: float = 0.01,
) -> Problem:
    """A random instance of `norms` in a box, with known constants: G = 1, D = sqrt(3).

    Client j has `rows` points a and b each. The b lie within 2 `sigma` of each other, so that every
    g_j, on all its rows or on one, lies in an interval of length 2 `sigma`: F-A4 and F-A5 (2) hold
    with this `sigma`. The a_j disagree much, a little or hardly (spread 1, 0.1, 0.001 as the seed
    goes on). The box is the cube of side 1 around the middle of w0 and the solution, which are at
    distance 1. All tensors are float64.

    Raises:
        RuntimeError: no solution was found; take another seed.
    """
    a, b, direction = random_centres(
        seed,
        clients * rows,
        3,
        SPREADS[seed % 3],
        offset=2.0,
    )
    if len(b) > 1:
        b = (b - b.mean(0)) * (2 * sigma / torch.pdist(b).max())
    c = 0.25 * float(a.mean(0).norm())
    w = solution_of(a, b, c)
    middle = w + 0.5 * direction
    problem = norms(
        a - middle,
        b - middle,
        c,
        w + direction - middle,
        w - middle,
    )
    client_rows = torch.arange(clients * rows).view(clients, rows)
    config = {"name": "boxed norms", "clients": clients, "rows": rows, "dim": 3}
    return replace(
        problem,
        rows=client_rows,
        sizes=(rows,) * clients,
        set=Box(0.5),
        config=config,
    )


def linear(
    p: Float[Tensor, "N d"],
    q: Float[Tensor, "N d"],
    r: Float[Tensor, "N"],
    w0: Vector,
    solution: Vector,
    set: ConvexSet | None = None,
) -> Problem:
    """The problem with one row (p_j, q_j, r_j) a client; see `gap_metrics`."""
    return one_row_each(
        "linear",
        (p, q, r),
        w0=w0,
        losses=_losses,
        gradient=_gradient,
        metrics=gap_metrics,
        heldout=(solution,),
        set=set,
    )


def split_objectives() -> Problem:
    """Two clients that agree on the constraint but for a hair, and not on the objective.

    G = 1, and the box has diameter D < 1. The client that reports the smaller constraint value
    pulls the other way than the mean objective, so that a run which lets the client that is asked
    for the value also make the step follows the wrong objective wherever the two values lie on both
    sides of the threshold.

    Half the difference of the two constraint values, sigma of F-A4 for n = 1, is 0.003.
    """
    gap = 0.003
    half = 0.35
    slope = 0.25
    p = torch.tensor([[-slope, -0.3], [0.13, 0.95]], dtype=torch.float64)
    q = torch.tensor([[slope, 0.0], [slope, 0.0]], dtype=torch.float64)
    r = -slope * half + gap * torch.tensor([1.0, -1.0], dtype=torch.float64)
    corner = torch.full((2,), half, dtype=torch.float64)
    return linear(p, q, r, corner, -corner, Box(half))


def skewed_levels(clients: int = 10, gap: float = 0.002) -> Problem:
    """One dimension; all clients but one report a constraint value that is `gap` too small.

    The gradients of all clients are the same, so the sample decides the switch and nothing else.
    G < 1, the interval has length D = 1, the solution is 0. A single client's value lies in an
    interval of length `clients * gap` around g, half of which is sigma of F-A4 for n = 1.
    """
    ones = torch.ones(clients, 1, dtype=torch.float64)
    r = gap * ones[:, 0]
    r[0] = -gap * (clients - 1)
    return linear(
        -0.15 * ones,
        0.3 * ones,
        r,
        0.95 * ones[0],
        0 * ones[0],
        Box(-0.05, 0.95),
    )


def _losses(w: Tensor, batch: Batch) -> Tensor:
    p, q, r = batch.data
    return torch.stack([batch.weight @ (p @ w), batch.weight @ (q @ w - r)])


def _gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:  # noqa: ARG001 - it is constant
    p, q, _ = batch.data
    return batch.weight @ (weights[0] * p + weights[1] * q)
