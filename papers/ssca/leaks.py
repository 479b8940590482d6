"""What the messages of SSCA's network example give away: one sample, a span, a gauge freedom.

Plain NumPy and SciPy, apart from the library's own network. The network is the paper's: K inputs, J
swish cells, L softmax outputs, no biases.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from fedlib.core.trace import Array
from papers.kit.numbers import Number, mean

SEED = 640  # of the random networks and batches, drawn after the rule that judges them
BATCHES = (2, 4, 8)  # for 6 cells, 5 inputs and 3 outputs: fewer pixels than equations


def network_gradients(W1: Array, W2: Array, X: Array, Y: Array) -> tuple[Array, Array]:
    """(33) and (34), the gradients of the cross-entropy of a batch X `[B, K]`, Y `[B, L]`."""
    z = X @ W1.T
    sigmoid = 1 / (1 + np.exp(-z))
    logits = (z * sigmoid) @ W2.T
    odds = np.exp(logits - logits.max(1, keepdims=True))
    error = (odds / odds.sum(1, keepdims=True) - Y) / len(X)
    slope = sigmoid * (1 + z * (1 - sigmoid))
    return (error @ W2 * slope).T @ X, error.T @ (z * sigmoid)


def recover(
    W1: Array, W2: Array, first_gradient: Array, second_gradient: Array, longest: float
) -> Array:
    """The one nonnegative sample, no longer than `longest`, that has these gradients, `[K]`.

    Its direction is that of the largest row of `first`; its length and its label are searched for.
    """
    row = first_gradient[np.square(first_gradient).sum(1).argmax()]
    unit = row / np.linalg.norm(row) * np.sign(row.sum())

    def wrong(length: float, label: int) -> float:
        gradients = network_gradients(W1, W2, length * unit[None], np.eye(len(W2))[[label]])
        return float(
            np.square(gradients[0] - first_gradient).sum()
            + np.square(gradients[1] - second_gradient).sum()
        )

    grid = np.linspace(0, longest, 201)[1:]
    label, near = min(
        ((label, length) for label in range(len(W2)) for length in grid),
        key=lambda pair: wrong(pair[1], pair[0]),
    )
    ends = (near - longest / 200, near + longest / 200)
    best = minimize_scalar(
        lambda length: wrong(length, label), bounds=ends, method="bounded", options={"xatol": 1e-12}
    )
    return np.asarray(best.x * unit)


def case(rng: np.random.Generator, J: int, K: int, L: int, B: int) -> tuple[Array, ...]:
    """A random network and a random batch: W1, W2, X, Y."""
    W1 = rng.uniform(-1, 1, (J, K)) / K**0.5
    W2 = rng.uniform(-1, 1, (L, J)) / J**0.5
    return W1, W2, rng.random((B, K)), np.eye(L)[rng.integers(L, size=B)]


def rank(W1: Array, W2: Array, X: Array, Y: Array) -> int:
    """Rank of the derivative of both gradients by the samples, labels known: central differences.

    Where it is the number of entries of X, no other batch near X has the same message.
    """
    columns = []
    for k in range(X.size):
        h = 1e-5 * np.eye(X.size)[k].reshape(X.shape)
        ends = [
            np.concatenate([g.ravel() for g in network_gradients(W1, W2, X + s * h, Y)])
            for s in (1, -1)
        ]
        columns.append((ends[0] - ends[1]) / 2e-5)
    sizes = np.linalg.svd(np.array(columns), compute_uv=False)
    return int((sizes > 1e-7 * sizes[0]).sum())


def combined(first_gradient: Array) -> Array:
    """The largest row of `first`, one combination of the batch, with entries from 0 to 1, `[K]`.

    Its sign is the one with which most of it is positive, as it would be for one picture.
    """
    row = first_gradient[np.square(first_gradient).sum(1).argmax()]
    row = row * np.sign(row.sum())
    low = row.min()
    high = row.max()
    return np.asarray((row - low) / (high - low))


def fibre(W: Array, X: Array) -> int:
    """Dimension of the pairs near (W, X) with the same product W X."""
    left = np.kron(W, np.eye(X.shape[1]))  # derivative of W X by X
    right = np.kron(np.eye(W.shape[0]), X.T)  # and by W
    return W.size + X.size - int(np.linalg.matrix_rank(np.hstack([right, left])))


def leaked(networks: int = 10) -> dict[str, Number]:
    """What messages leave open on random networks, each a value: C13 of SSCA.

    The largest error of the one sample that is read off, and how many directions a larger batch may
    be changed in without a change of the message; the same of the other clients' view.
    """
    rng = np.random.default_rng(SEED)
    values: dict[str, list[float]] = {}
    for _ in range(networks):
        W1, W2, X, Y = case(rng, 12, 20, 5, 1)
        read = recover(W1, W2, *network_gradients(W1, W2, X, Y), 20**0.5)
        values.setdefault("error_B1", []).append(float(np.abs(read - X[0]).max()))
        for B in BATCHES:
            W1, W2, X, Y = case(rng, 6, 5, 3, B)
            left = X.size - rank(3 * W1, 3 * W2, 4 * X - 2, Y)
            values.setdefault(f"free_B{B}", []).append(left)
        matrices = rng.standard_normal((5, 3)), rng.standard_normal((3, 20))
        values.setdefault("free_clients", []).append(fibre(*matrices))
    return {key: mean(x) for key, x in values.items()}
