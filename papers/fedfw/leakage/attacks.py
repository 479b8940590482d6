"""Who looks for a client's picture in the study of leakage.

Zhu, Liu, Han, *Deep Leakage from Gradients*, NeurIPS 2019. Dadras et al., *Federated Frank-Wolfe
Algorithm*, ECML PKDD 2024, Figure 1: oracle answers in place of gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fedlib.core import Problem
from fedlib.core.federation import Federation
from fedlib.core.problem import ConvexSet, Draw, Info
from fedlib.shapes import Vector
from papers.fedfw.leakage.problem import Network, dummies

Apply = Callable[[Tensor, Tensor], Tensor]  # (w [d], X [B, ...]) -> outputs [B, classes]
Signal = Callable[[Tensor], Tensor]  # what a client makes of its gradient before it sends it


@dataclass(frozen=True)
class Whole:
    """The gradient itself is sent."""

    def __call__(self, gradient: Vector) -> Vector:
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

    def __call__(self, gradient: Vector) -> Vector:
        """The point of the set that minimizes the inner product with the gradient."""
        return self.convex_set.lmo(gradient)


@dataclass(frozen=True)
class SmoothL1:
    """The l1 ball's oracle with a soft arg max: `-radius sign(g) softmax(sharpness |g| / max |g|)`.

    A surrogate with derivatives, for the attacker; it tends to the oracle as `sharpness` grows.
    """

    radius: float
    sharpness: float = 20.0

    def __call__(self, gradient: Vector) -> Vector:
        """The softened vertex."""
        size = gradient.abs()
        top = size.amax()
        relative = size / torch.where(top == 0, torch.ones_like(top), top)
        share = torch.softmax(self.sharpness * relative, 0)
        return -self.radius * gradient.sign() * share


def leaked_gradient(
    apply: Apply,
    w: Vector,
    X: Float[Tensor, "B *shape"],
    y: Float[Tensor, "B classes"],
) -> Vector:
    """The gradient by w of the mean cross-entropy with probabilities y, itself differentiable."""
    start = w.detach().requires_grad_()
    log_probabilities = torch.log_softmax(apply(start, X), 1)
    products = (y * log_probabilities).sum(1)
    (gradient,) = torch.autograd.grad(-products.mean(), start, create_graph=True)
    return gradient


def attack(
    apply: Apply,
    w: Vector,
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
        distance = mismatch()
        if distance.requires_grad:  # not for an oracle whose answer is constant
            distance.backward()  # type: ignore[no-untyped-call]
        return float(distance.detach())

    rows = [dummy.detach().clone()]
    values = [mismatch().detach()]
    for _ in range(steps):
        search.step(closure)  # type: ignore[no-untyped-call]
        rows.append(dummy.detach().clone())
        values.append(mismatch().detach())
    return torch.stack(rows), torch.stack(values)


class State(NamedTuple):
    """What an attacker carries: the picture so far, and what it will find."""

    w: Tensor  # [p] the picture
    path: Tensor  # [steps, p] after each step, once the attack is done
    mismatch: Tensor  # [steps] of the messages, relative
    t: Tensor  # rounds done


@dataclass(frozen=True)
class Attacker:
    """Deep leakage: the pictures that L-BFGS goes through, a step a round.

        1  in round 1: the client sends signal(gradient at its picture); from random dummies L-BFGS
           makes |guess(gradient at the dummies) - message|^2 small, `steps` times
        2  in round t: w is the dummy picture after t of them

    Info: `mismatch`, the squared distance of the messages over the squared length of the client's.

    Parameters
    ----------
    network, signal : the model, and what the client sends of its gradient.
    guess : what the attacker takes for it, if something else.
    steps : as many as there are rounds.

    Differs: a picture that overflows is replaced by the last one that did not. Works on a CPU, one
    seed after another.
    """

    network: Network
    signal: Whole | Oracle | SmoothL1
    guess: SmoothL1 | None = None
    steps: int = 100

    def init(self, problem: Problem) -> State:
        w = problem.w0
        return State(
            w,
            path=w.repeat(self.steps, 1),
            mismatch=w.new_zeros(self.steps),
            t=w.new_zeros(()),
        )

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        del rng
        return Draw(torch.arange(problem.num_clients))

    def round(
        self,
        fed: Federation,
        state: State,
        draw: Draw,
    ) -> tuple[State, Info]:
        del draw
        t = int(state.t)
        if t == 0:
            state = self.search(fed.problem, state)
        at = min(t, self.steps - 1)
        new = state._replace(w=state.path[at], t=state.t + 1)
        return new, fed.info(mismatch=state.mismatch[at])

    def search(self, problem: Problem, state: State) -> State:
        truth, label, weights, number = problem.heldout
        guesses, mismatch = attack(
            self.network,
            weights,
            truth,
            one_hot(label),
            signal=self.signal,
            guess=self.guess or self.signal,
            rng=dummies(number),
            steps=self.steps,
        )
        sent = message(self.network, self.signal, problem)
        path = []
        latest = state.w
        for picture in guesses[1:]:
            if bool(picture.isfinite().all()):
                latest = picture.flatten()
            path.append(latest)
        apart = mismatch[1:] / sent.square().sum()
        return state._replace(path=torch.stack(path), mismatch=apart)


def message(network: Network, signal: Signal, problem: Problem) -> Tensor:
    truth, label, weights, _ = problem.heldout
    gradient = leaked_gradient(network, weights, truth, one_hot(label))
    return signal(gradient.detach())


def one_hot(label: Tensor) -> Tensor:
    return nn.functional.one_hot(label, 10).double()
