"""What a client's message tells about its data: the attack, the exact reading, the rebuilt model.

Zhu, Liu, Han, *Deep Leakage from Gradients*, NeurIPS 2019: given a gradient, or what an oracle
makes of it, find inputs and labels that give the same. Dadras et al., *Federated Frank-Wolfe
Algorithm*, ECML PKDD 2024, Figure 1, applies it to the answers of linear minimization oracles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive
from fedlib.core.problem import ConvexSet

Apply = Callable[[Tensor, Tensor], Tensor]  # (w [d], X [B, ...]) -> outputs [B, classes]


@runtime_checkable
class Signal(Protocol):
    """What a client makes of its gradient before it sends it."""

    def __call__(self, gradient: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """The message."""
        ...


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

    def __post_init__(self) -> None:
        checks.fields(self)

    def __call__(self, gradient: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """The point of the set that minimizes the inner product with the gradient."""
        return self.convex_set.lmo(gradient)


@dataclass(frozen=True)
class SmoothL1:
    """The l1 ball's oracle with a soft arg max: `-radius sign(g) softmax(sharpness |g| / max |g|)`.

    A surrogate with derivatives, for the attacker; it tends to the oracle as `sharpness` grows.
    """

    radius: Positive
    sharpness: Positive = 20.0

    def __post_init__(self) -> None:
        checks.fields(self)

    def __call__(self, gradient: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """The softened vertex."""
        size = gradient.abs()
        top = size.amax()
        relative = size / torch.where(top == 0, torch.ones_like(top), top)
        return -self.radius * gradient.sign() * torch.softmax(self.sharpness * relative, 0)


class Attack(NamedTuple):
    """What an attack saw, every `every` steps from step 0 on."""

    steps: Int[Tensor, " T"]
    guesses: Float[Tensor, "T *shape"]  # the dummy inputs
    mismatch: Float[Tensor, " T"]  # |signal of the dummies - message|^2
    psnr: Float[Tensor, " T"]  # of the dummies against the truth, in dB


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
    y: Int[Tensor, " B"],
    classes: int,
    *,
    signal: Signal,
    rng: torch.Generator,
    guess: Signal | None = None,
    steps: int = 60,
    every: int = 1,
    peak: float = 1.0,
) -> Attack:
    """Match the message of some rows by dummy rows and labels, with L-BFGS.

    The dummies start as standard normal numbers; labels are softmax of free numbers. Runs on the
    CPU or GPU where the tensors are, in their dtype (float64 goes furthest).

    Parameters
    ----------
    apply, w : the model, smooth (sigmoid, not ReLU), and its parameters.
    X, y : the client's true rows and labels.
    classes : how many there are.
    signal : what the client sends of its gradient.
    rng : draws the dummies' start.
    guess : what the attacker takes for it, if not the same, such as `SmoothL1`.
    steps : calls of L-BFGS, of up to 20 inner iterations each.
    every : steps between two records.
    peak : the largest possible minus the smallest possible input, for the PSNR.

    Raises
    ------
    ValueError, TypeError
        for counts that are no whole numbers from 1 on, or a peak that is not positive.
    """
    for name, value in (("classes", classes), ("steps", steps), ("every", every)):
        checks.count("attack", name, value)
    checks.positive("attack", "peak", peak)
    guess = signal if guess is None else guess
    hot = torch.nn.functional.one_hot(y, classes).to(X.dtype)
    message = signal(leaked_gradient(apply, w, X, hot)).detach()
    dummy = torch.randn(X.shape, generator=rng, dtype=X.dtype).to(X).requires_grad_()
    label = torch.randn(hot.shape, generator=rng, dtype=X.dtype).to(X).requires_grad_()

    def mismatch() -> Tensor:
        seen = guess(leaked_gradient(apply, w, dummy, torch.softmax(label, 1)))
        return (seen - message).square().sum()

    search = _search(mismatch, [dummy, label])
    records: list[tuple[int, Tensor, Tensor]] = []
    for step in range(steps + 1):
        if step % every == 0:
            records.append((step, dummy.detach().clone(), mismatch().detach()))
        if step < steps:
            search()
    numbers, guesses, values = zip(*records, strict=True)
    quality = [psnr(each, X, peak) for each in guesses]
    return Attack(
        torch.tensor(numbers), torch.stack(guesses), torch.stack(values), torch.stack(quality)
    )


def _search(value: Callable[[], Tensor], free: list[Tensor]) -> Callable[[], None]:
    """A step of L-BFGS that changes the tensors `free` so that `value` falls."""
    method = torch.optim.LBFGS(free, lr=1.0, line_search_fn="strong_wolfe")

    def closure() -> float:
        method.zero_grad()
        found = value()
        if found.requires_grad:  # not for an oracle whose answer is constant
            found.backward()  # type: ignore[no-untyped-call]
        return float(found.detach())

    def step() -> None:
        method.step(closure)  # type: ignore[no-untyped-call]

    return step


def psnr(
    guess: Float[Tensor, "*shape"], truth: Float[Tensor, "*shape"], peak: float = 1.0
) -> Float[Tensor, ""]:
    """Peak signal-to-noise ratio in dB, `10 log10(peak^2 / mean square error)`; inf if equal.

    Of several rows in one tensor the mean error of all counts; they are not matched in another
    order.
    """
    return 10 * torch.log10(peak**2 / (guess - truth).square().mean())


def input_of_linear_layer(
    weights: Float[Tensor, "h p"], biases: Float[Tensor, " h"]
) -> Float[Tensor, " p"]:
    """The input of a linear layer, read from one row's gradient by its weights and its biases.

    The gradient by weight row k is (gradient by bias k) times the input: their ratio, at the bias
    of largest gradient, is the input exactly. A common factor, which is all that the l2 oracle
    changes, cancels; of several rows it is a weighted mean of inputs.

    Raises ValueError if all bias gradients are 0.
    """
    place = biases.abs().argmax()
    if not bool(biases[place] != 0):
        rule = "have a gradient that is not 0"
        raise ValueError(checks.sentence("input_of_linear_layer", "biases", rule, "zeros"))
    return weights[place] / biases[place]


def rebuilt_models(
    start: Float[Tensor, "N d"],
    messages: Float[Tensor, "T N d"],
    eta: Sequence[float] | Float[Tensor, " T"],
    active: Bool[Tensor, "T N"] | None = None,
) -> Float[Tensor, "T1 N d"]:
    """Every client's model after 0, 1, ..., T rounds of FedFW, from its messages alone.

    x_i <- (1 - eta_t) x_i + eta_t s_i in the rounds in which client i took part (`active`; None:
    all): the server knows the clients' models, though they never send them.

    Raises ValueError if there is not one step size a round.
    """
    if len(eta) != len(messages):
        rule = f"hold one number for each of the {len(messages)} rounds"
        raise ValueError(checks.sentence("rebuilt_models", "eta", rule, len(eta)))
    models = [start]
    for t, s in enumerate(messages):
        moved = (1 - eta[t]) * models[-1] + eta[t] * s
        here = torch.ones(len(start), 1, dtype=torch.bool) if active is None else active[t, :, None]
        models.append(torch.where(here.to(start.device), moved, models[-1]))
    return torch.stack(models)
