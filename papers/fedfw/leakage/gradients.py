"""What a client's message tells about its picture: what is sent, and deep leakage from it.

Zhu, Liu, Han, *Deep Leakage from Gradients*, NeurIPS 2019: given a gradient, or what an oracle
makes of it, find inputs and labels that give the same. Dadras et al., *Federated Frank-Wolfe
Algorithm*, ECML PKDD 2024, Figure 1, applies it to the answers of linear minimization oracles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.core.problem import ConvexSet

Apply = Callable[[Tensor, Tensor], Tensor]  # (w [d], X [B, ...]) -> outputs [B, classes]
Signal = Callable[[Tensor], Tensor]  # what a client makes of its gradient before it sends it


@dataclass(frozen=True)
class Whole:
    """The gradient itself is sent."""

    def __call__(self, gradient: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """The gradient."""
        return gradient


@dataclass(frozen=True)
class Oracle:
    """The answer of a set's linear minimization oracle is sent.

    `Oracle(Ball(1.0))`, `Oracle(L1Ball(1.0))`; tensor by tensor, as the authors' code does it,
    `Oracle(Blocks.of_shapes(shapes, Ball(1.0)))`. The answer of the l1 ball is constant almost
    everywhere: an attack by derivatives cannot move.
    """

    convex_set: ConvexSet

    def __call__(self, gradient: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """The point of the set that minimizes the inner product with the gradient."""
        return self.convex_set.lmo(gradient)


@dataclass(frozen=True)
class SmoothL1:
    """The l1 ball's oracle with a soft arg max: `-radius sign(g) softmax(sharpness |g| / max |g|)`.

    A surrogate with derivatives, for the attacker; it tends to the oracle as `sharpness` grows.
    """

    radius: float
    sharpness: float = 20.0

    def __call__(self, gradient: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """The softened vertex."""
        size = gradient.abs()
        top = size.amax()
        relative = size / torch.where(top == 0, torch.ones_like(top), top)
        return -self.radius * gradient.sign() * torch.softmax(self.sharpness * relative, 0)


def leaked_gradient(
    apply: Apply, w: Float[Tensor, "d"], X: Float[Tensor, "B *shape"], y: Float[Tensor, "B classes"]
) -> Float[Tensor, "d"]:
    """The gradient by w of the mean cross-entropy with probabilities y, itself differentiable."""
    start = w.detach().requires_grad_()
    loss = -(y * torch.log_softmax(apply(start, X), 1)).sum(1).mean()
    (found,) = torch.autograd.grad(loss, start, create_graph=True)
    return found


def attack(
    apply: Apply,
    w: Float[Tensor, "d"],
    X: Float[Tensor, "B *shape"],
    y: Float[Tensor, "B classes"],
    *,
    signal: Signal,
    guess: Signal,
    rng: torch.Generator,
    steps: int,
) -> tuple[Float[Tensor, "T *shape"], Float[Tensor, " T"]]:
    """Match the message of rows X by dummy rows and labels: these rows after 0, 1, ... steps.

    A step is a call of L-BFGS, of up to 20 inner iterations. The dummies start as standard normal
    numbers; labels are softmax of free numbers. Beside the rows is |guess of the dummies -
    message|^2.

    Parameters
    ----------
    apply, w : the model, smooth (sigmoid, not ReLU), and its parameters.
    X, y : the client's true rows, and their labels as probabilities.
    signal, guess : what the client sends of its gradient, and what the attacker takes for it.
    rng : draws the dummies' start.
    """
    message = signal(leaked_gradient(apply, w, X, y)).detach()
    dummy = torch.randn(X.shape, generator=rng, dtype=X.dtype).requires_grad_()
    label = torch.randn(y.shape, generator=rng, dtype=X.dtype).requires_grad_()
    search = torch.optim.LBFGS([dummy, label], lr=1.0, line_search_fn="strong_wolfe")

    def mismatch() -> Tensor:
        seen = guess(leaked_gradient(apply, w, dummy, torch.softmax(label, 1)))
        return (seen - message).square().sum()

    def closure() -> float:
        search.zero_grad()
        found = mismatch()
        if found.requires_grad:  # not for an oracle whose answer is constant
            found.backward()  # type: ignore[no-untyped-call]
        return float(found.detach())

    rows, values = [dummy.detach().clone()], [mismatch().detach()]
    for _ in range(steps):
        search.step(closure)  # type: ignore[no-untyped-call]
        rows.append(dummy.detach().clone())
        values.append(mismatch().detach())
    return torch.stack(rows), torch.stack(values)
