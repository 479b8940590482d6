"""How far clients' gradient pairs turn away from the global pair, and the multiplier.

Section 3.2 and appendix A of "FedSGM: A Unified Framework for Constraint Aware, Bidirectionally
Compressed, Multi-step Federated Optimization".
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.core import Trace
from fedlib.core.problem import Batch, Problem, pullback
from fedlib.shapes import Scalar, Vector


class Skewness(NamedTuple):
    """Frobenius norms of the antisymmetric part of (objective gradient)(constraint gradient)^T."""

    local: Scalar  # |K_loc|, K_loc = mean_j (a_j b_j^T - b_j a_j^T)
    glob: Scalar  # |K_glob|, the same of the mean gradients
    difference: Scalar  # |K_loc - K_glob|, what client drift adds
    bound: Scalar  # sqrt(2 V_f V_g), never below `difference`


def skewness(a: Float[Tensor, "N d"], b: Float[Tensor, "N d"]) -> Skewness:
    """How far the clients' gradient pairs turn away from the global pair.

    No d x d matrix is formed: all vectors are written in an orthonormal basis of their span (the
    triangular factor of a QR decomposition, the square root of their Gram matrix, without the loss
    of digits that squaring brings), at cost O(N^2 d).

    Args:
        a: objective gradients, one row a client.
        b: constraint gradients, one row a client.

    Returns:
        Four scalars; V_f and V_g are the mean squared distances of the rows from their mean.
    """
    da = a - a.mean(0)
    db = b - b.mean(0)
    a, b, da, db = _coordinates(a, b, da, db)
    local = skew_matrix(a, b)
    mean_a = a.mean(0, keepdim=True)
    mean_b = b.mean(0, keepdim=True)
    glob = skew_matrix(mean_a, mean_b)
    difference = skew_matrix(da, db)  # the identity of appendix A
    variance_f = da.square().sum(-1).mean()
    variance_g = db.square().sum(-1).mean()
    square_bound = variance_f * variance_g * 2
    return Skewness(
        local=torch.linalg.matrix_norm(local),
        glob=torch.linalg.matrix_norm(glob),
        difference=torch.linalg.matrix_norm(difference),
        bound=square_bound.sqrt(),
    )


def skew_matrix(a: Float[Tensor, "N d"], b: Float[Tensor, "N d"]) -> Float[Tensor, "d d"]:
    """mean_j (a_j b_j^T - b_j a_j^T), the matrix itself: for small d.

    Args:
        a: one row a client.
        b: one row a client.
    """
    clients = len(a)
    product = a.T @ b / clients
    return product - product.T


def _coordinates(*blocks: Float[Tensor, "N d"]) -> list[Float[Tensor, "N r"]]:
    """The same vectors in an orthonormal basis of their span, r <= min(d, rows in all)."""
    clients = len(blocks[0])
    rows = torch.cat(blocks)
    _, triangular = torch.linalg.qr(rows.T, mode="r")  # [r, rows]
    return list(triangular.T.split(clients))


def client_gradients(
    problem: Problem, w: Vector
) -> tuple[Float[Tensor, "N d"], Float[Tensor, "N d"]]:
    """Every client's full gradients of its objective and its constraint at `w`.

    The problem has one objective and one constraint.
    """
    clients = problem.all_clients()

    of_objective, of_constraint = torch.eye(2, dtype=w.dtype, device=w.device)

    def gradient(batch: Batch, weights: Tensor) -> Tensor:
        return pullback(problem.losses, problem.gradient, w, batch, weights)

    gradients = torch.func.vmap(gradient, in_dims=(0, None))
    a = gradients(clients, of_objective)
    b = gradients(clients, of_constraint)
    return a, b


def multiplier(problem: Problem, w: Vector) -> float:
    r"""The ratio of the norms of the gradients of f and g at `w`.

    At a stationary point of $(1-\sigma)\nabla f + \sigma\nabla g$ it is the multiplier
    $\lambda = \sigma/(1-\sigma)$ of the constraint.
    """
    a, b = client_gradients(problem, w)
    objective = a.mean(0)
    constraint = b.mean(0)
    return float(objective.norm() / constraint.norm())


def final_models(
    trace: Trace, problem: Callable[[int], Problem]
) -> Iterator[tuple[Problem, Vector]]:
    """The problem and the final model of every seed of a run."""
    for seed, w in zip(trace.seeds, trace.state, strict=True):
        task = problem(seed)
        yield task, torch.as_tensor(w).to(task.w0)
