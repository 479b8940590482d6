"""Projected gradient on quadratic forms over the simplex: the thousand small steps of a round.

A step is `v = w - beta G w`, then `w = max(v - theta, 0)` as in `project_simplex`. Here all is done
with `u = -v`, which saves two changes of sign a step and rounds alike. A step's cost is that of
calling numpy, whatever the size, so that few small problems are solved one after another in plain
numbers, and many at once. Both give the same bits: the product is numpy's in both, the rest is the
same few sums, quotients and differences in the same order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LIGHT = 50  # problems times (weights + 10) up to which plain numbers are faster; measured
LOOK = 16  # steps between two looks whether anything still changes


def descent(G: Array, w: Array, beta: Array, steps: int) -> Array:
    """The weights `[b, M]` after `steps` steps from `w`, by forms `[b, M, M]` and steps `[b]`."""
    if len(w) * (w.shape[1] + 10) > LIGHT:
        return together(G, w, beta, steps)
    each = [alone(*one, steps) for one in zip(G, w, beta.tolist(), strict=True)]
    if any(one is None for one in each):
        return together(G, w, beta, steps)
    return np.array(each).reshape(w.shape)


def alone(G: Array, w: Array, beta: float, steps: int) -> list[float] | None:
    """One problem in plain numbers; None where a number overflows, which numpy has rules for."""
    now: list[float] = w.tolist()
    w, product = w.copy(), np.empty_like(w)
    for _ in range(steps):
        G.dot(w, product)
        u = [beta * g - x for g, x in zip(product.tolist(), now, strict=True)]
        total, above, thetas = 0.0, 0, []
        for place, x in enumerate(sorted(u), 1):
            total += x
            theta = (total + 1) / place
            above += x < theta
            thetas.append(theta)
        if total - total != 0:  # not finite
            return None
        theta = thetas[max(above, 1) - 1]
        after = [theta - x if theta > x else 0.0 for x in u]
        if after == now:
            break
        w[:] = now = after
    return now


def together(G: Array, w: Array, beta: Array, steps: int) -> Array:
    """All problems at once, every step into the same memory."""
    place, first = np.arange(1.0, w.shape[1] + 1), np.arange(len(w)) * w.shape[1] - 1
    factor = np.repeat(beta[:, None], w.shape[1], 1)
    product, w, after = np.empty((*w.shape, 1)), w.copy(), np.empty_like(w)
    u, ordered, theta, above = np.empty_like(w), np.empty_like(w), np.empty_like(w), w > 0
    number, chosen = np.empty(len(w), np.intp), np.empty((len(w), 1))
    for step in range(steps):
        np.matmul(G, w[..., None], product)
        np.multiply(factor, product[..., 0], u)
        np.subtract(u, w, u)
        np.copyto(ordered, u)
        ordered.sort(1)
        np.add.accumulate(ordered, 1, None, theta)
        np.add(theta, 1, theta)
        np.divide(theta, place, theta)
        np.less(ordered, theta, above)
        above.sum(1, out=number)
        np.maximum(number, 1, out=number)
        np.add(number, first, number)
        theta.take(number, out=chosen[:, 0], mode="clip")
        np.subtract(chosen, u, u)
        np.maximum(u, 0, out=after)
        if step % LOOK == 0 and np.array_equal(after, w):
            break
        w, after = after, w
    return w
