"""What the messages of SSCA's network example give away: one sample, a span, a gauge freedom.

Plain NumPy and SciPy, apart from the library's own network. The network is the paper's: K inputs, J
swish cells, L softmax outputs, no biases.
"""

from collections import defaultdict
from itertools import product

import numpy as np
from scipy.optimize import minimize_scalar

from fedlib.core.trace import Array
from papers.kit.numbers import Number, mean

SEED = 640  # of the random networks and batches, drawn after the rule that judges them
BATCHES = (2, 4, 8)  # for 6 cells, 5 inputs and 3 outputs: fewer pixels than equations


def network_gradients(
    W1: Array,
    W2: Array,
    X: Array,
    Y: Array,
) -> tuple[Array, Array]:
    """(33) and (34), the gradients of the cross-entropy of a batch X `[B, K]`, Y `[B, L]`."""
    z = X @ W1.T
    sigmoid = 1 / (1 + np.exp(-z))
    swish = z * sigmoid
    swish_slope = sigmoid * (1 + z * (1 - sigmoid))
    logits = swish @ W2.T
    odds = np.exp(logits - logits.max(1, keepdims=True))
    probabilities = odds / odds.sum(1, keepdims=True)
    error = (probabilities - Y) / len(X)
    first_gradient = (error @ W2 * swish_slope).T @ X
    second_gradient = error.T @ swish
    return first_gradient, second_gradient


def recover(
    W1: Array,
    W2: Array,
    first_gradient: Array,
    second_gradient: Array,
    longest: float,
) -> Array:
    """The one nonnegative sample, no longer than `longest`, that has these gradients, `[K]`.

    Its direction is that of the largest row of `first`; its length and its label are searched for.
    """
    row = largest_row(first_gradient)
    unit = row / np.linalg.norm(row)

    def wrong(length: float, label: int) -> float:
        Y = np.eye(len(W2))[[label]]
        first, second = network_gradients(W1, W2, length * unit[None], Y)
        first_error = np.square(first - first_gradient).sum()
        second_error = np.square(second - second_gradient).sum()
        return float(first_error + second_error)

    lengths = np.linspace(0, longest, 201)[1:]
    pairs = product(range(len(W2)), lengths)
    label, near = min(pairs, key=lambda pair: wrong(pair[1], pair[0]))
    spacing = longest / 200
    best = minimize_scalar(
        wrong,
        args=(label,),
        bounds=(near - spacing, near + spacing),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return np.asarray(best.x * unit)


def case(
    rng: np.random.Generator,
    J: int,
    K: int,
    L: int,
    B: int,
) -> tuple[Array, ...]:
    """A random network and a random batch: W1, W2, X, Y."""
    W1 = rng.uniform(-1, 1, (J, K)) / K**0.5
    W2 = rng.uniform(-1, 1, (L, J)) / J**0.5
    X = rng.random((B, K))
    Y = np.eye(L)[rng.integers(L, size=B)]
    return W1, W2, X, Y


def rank(W1: Array, W2: Array, X: Array, Y: Array) -> int:
    """Rank of the derivative of both gradients by the samples, labels known: central differences.

    Where it is the number of entries of X, no other batch near X has the same message.
    """

    def message(samples: Array) -> Array:
        first, second = network_gradients(W1, W2, samples, Y)
        return np.concatenate([first.ravel(), second.ravel()])

    step = 1e-5
    derivatives = []
    for pixel in np.eye(X.size):
        move = step * pixel.reshape(X.shape)
        change = message(X + move) - message(X - move)
        derivatives.append(change / (2 * step))
    sizes = np.linalg.svd(np.array(derivatives), compute_uv=False)
    return int((sizes > 1e-7 * sizes[0]).sum())


def largest_row(matrix: Array) -> Array:
    """The row with the largest norm, with the sign that makes its sum positive."""
    row = matrix[np.square(matrix).sum(1).argmax()]
    return np.asarray(row * np.sign(row.sum()))


def combined(first_gradient: Array) -> Array:
    """The largest row of `first`, one combination of the batch, with entries from 0 to 1, `[K]`.

    Its sign is the one with which most of it is positive, as it would be for one picture.
    """
    row = largest_row(first_gradient)
    low = row.min()
    high = row.max()
    return np.asarray((row - low) / (high - low))


def fibre(W: Array, X: Array) -> int:
    """Dimension of the pairs near (W, X) with the same product W X."""
    by_W = np.kron(np.eye(W.shape[0]), X.T)
    by_X = np.kron(W, np.eye(X.shape[1]))
    derivative = np.hstack([by_W, by_X])
    return W.size + X.size - int(np.linalg.matrix_rank(derivative))


def leaked() -> dict[str, Number]:
    """What messages leave open on ten random networks, each a value: C13 of SSCA.

    The largest error of the one sample that is read off, and how many directions a larger batch may
    be changed in without a change of the message; the same of the other clients' view.
    """
    rng = np.random.default_rng(SEED)
    values: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(10):
        W1, W2, X, Y = case(rng, 12, 20, 5, 1)
        first_gradient, second_gradient = network_gradients(W1, W2, X, Y)
        recovered = recover(W1, W2, first_gradient, second_gradient, 20**0.5)
        values["error_B1"].append(float(np.abs(recovered - X[0]).max()))
        for B in BATCHES:
            W1, W2, X, Y = case(rng, 6, 5, 3, B)
            free = X.size - rank(3 * W1, 3 * W2, 4 * X - 2, Y)
            values[f"free_B{B}"].append(free)
        W = rng.standard_normal((5, 3))
        X = rng.standard_normal((3, 20))
        values["free_clients"].append(fibre(W, X))
    return {key: mean(x) for key, x in values.items()}
