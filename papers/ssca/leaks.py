"""What the messages of SSCA's network example give away: one sample, a span, a gauge freedom.

Plain NumPy and SciPy, apart from the library's own network. The network is the paper's: K inputs, J
swish cells, L softmax outputs, no biases.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from fedlib.core.trace import Array


def network_gradients(W1: Array, W2: Array, X: Array, Y: Array) -> tuple[Array, Array]:
    """(33) and (34), the gradients of the cross-entropy of a batch X `[B, K]`, Y `[B, L]`."""
    z = X @ W1.T
    sigmoid = 1 / (1 + np.exp(-z))
    logits = (z * sigmoid) @ W2.T
    odds = np.exp(logits - logits.max(1, keepdims=True))
    rest = (odds / odds.sum(1, keepdims=True) - Y) / len(X)
    slope = sigmoid * (1 + z * (1 - sigmoid))
    return (rest @ W2 * slope).T @ X, rest.T @ (z * sigmoid)


def recover(W1: Array, W2: Array, first: Array, second: Array, longest: float) -> Array:
    """The one nonnegative sample, no longer than `longest`, that has these gradients, `[K]`.

    Its direction is that of the largest row of `first`; its length and its label are searched for.
    """
    row = first[np.square(first).sum(1).argmax()]
    unit = row / np.linalg.norm(row) * np.sign(row.sum())

    def wrong(length: float, label: int) -> float:
        found = network_gradients(W1, W2, length * unit[None], np.eye(len(W2))[[label]])
        return float(np.square(found[0] - first).sum() + np.square(found[1] - second).sum())

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


def combined(first: Array) -> Array:
    """The largest row of `first`, one combination of the batch, with entries from 0 to 1, `[K]`.

    Its sign is the one with which most of it is positive, as it would be for one picture.
    """
    row = first[np.square(first).sum(1).argmax()]
    row = row * np.sign(row.sum())
    low, high = row.min(), row.max()
    return np.asarray((row - low) / (high - low))


def fibre(W: Array, X: Array) -> int:
    """Dimension of the pairs near (W, X) with the same product W X."""
    left = np.kron(W, np.eye(X.shape[1]))  # derivative of W X by X
    right = np.kron(np.eye(W.shape[0]), X.T)  # and by W
    return W.size + X.size - int(np.linalg.matrix_rank(np.hstack([right, left])))
