"""FedAvg in jax: `lax.scan` over rounds and `vmap` over clients, and FedJAX's map over clients."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"  # read when jax starts
os.environ["NPROC"] = "1"

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.workloads import SCALE, Advance, Models, Work

Params = tuple[Any, ...]


def cross_entropy(outputs: Any, y: Any) -> Any:
    """The mean of the negative log-likelihoods."""
    logarithms = jax.nn.log_softmax(outputs)
    return -jnp.mean(jnp.take_along_axis(logarithms, y[:, None], 1))


def softmax(w: Params, x: Any, y: Any) -> Any:
    """W1."""
    return cross_entropy(x @ w[0].T, y)


def logistic(w: Params, x: Any, y: Any, share: Any) -> Any:
    """W3."""
    z = x @ w[0]
    losses = jax.nn.softplus(z) - y * z
    return jnp.mean(losses * share)


def network(w: Params, x: Any, y: Any) -> Any:
    """W4."""
    h = jax.nn.relu(dense(w[:2], x))
    return cross_entropy(dense(w[2:], h), y)


def lenet(w: Params, x: Any, y: Any) -> Any:
    """W2."""
    mean, deviation = SCALE
    h = (x.astype(jnp.float32) / 255 - mean) / deviation
    h = jax.nn.relu(pooled(convolved(w[0:2], h, "SAME")))
    h = jax.nn.relu(pooled(convolved(w[2:4], h, "VALID")))
    h = h.reshape(len(h), -1)
    code = jax.nn.relu(dense(w[4:6], h))
    return (network(w[6:10], code, y[:, 0]) + network(w[10:14], code, y[:, 1])) / 2


def dense(w: Params, x: Any) -> Any:
    """A linear map."""
    return x @ w[0].T + w[1]


def convolved(w: Params, x: Any, padding: str) -> Any:
    """A convolution of pictures `[B, c, h, w]`."""
    kernel, bias = w
    return lax.conv_general_dilated(x, kernel, (1, 1), padding) + bias[:, None, None]


def pooled(x: Any) -> Any:
    """The largest of every 2 x 2 pixels."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


LOSSES: dict[str, Callable[..., Any]] = {
    "softmax": softmax,
    "logistic": logistic,
    "network": network,
    "lenet": lenet,
}


def descent(w: Params, slope: Params, lr: Any) -> Params:
    """A gradient step."""
    return tuple(x - lr * gradient for x, gradient in zip(w, slope, strict=True))


def scan(work: Work) -> tuple[Advance, Models]:
    """All rounds of a turn in one compiled call, and all runs in it."""
    grad = jax.grad(LOSSES[work.workload.model])

    def client(w: Params, rows: Any, lr: Any, data: Params) -> Params:
        same_batch = [x[rows[0]] for x in data]

        def step(u: Params, batch: Any) -> tuple[Params, None]:
            tensors = [x[batch] for x in data] if len(rows) > 1 else same_batch
            return descent(u, grad(u, *tensors), lr), None

        batches = rows if len(rows) > 1 else jnp.zeros(work.steps)
        u, _ = lax.scan(step, w, batches, unroll=work.steps <= 5)
        return u

    def rounds(w: Params, rows: Any, lr: Any, data: Params) -> Params:
        over_clients = jax.vmap(client, (None, 0, None, None))

        def round_of(w: Params, rows: Any) -> tuple[Params, None]:
            models = over_clients(w, rows, lr, data)
            return jax.tree.map(lambda x: x.mean(0), models), None

        w, _ = lax.scan(round_of, w, rows)
        return w

    data = tuple(jnp.asarray(x.numpy()) for x in work.data)
    table = work.rows.numpy().astype(np.int32)
    step_sizes = jnp.asarray(work.lr, jnp.float32)
    start = tuple(jnp.asarray(p.numpy()) for p in work.start())
    if len(work.lr) == 1 == len(work.rows):
        run_axes: tuple[int, ...] = ()
        compiled = jax.jit(rounds)
        table = table[0]
        step_sizes = step_sizes[0]
    else:
        run_axes = (len(work.lr), len(work.rows))
        over_seeds = jax.vmap(rounds, (0, 0, None, None))
        compiled = jax.jit(jax.vmap(over_seeds, (0, None, 0, None)))
    models = tuple(jnp.broadcast_to(p, (*run_axes, *p.shape)) for p in start)

    def advance(start: int, end: int) -> None:
        nonlocal models
        rows = table[..., start:end, :, :, :]
        models = jax.block_until_ready(compiled(models, rows, step_sizes, data))

    return advance, lambda: flat(models, len(run_axes))


def fedjax_loop(work: Work) -> tuple[Advance, Models]:
    """FedJAX's `for_each_client`, which compiles a client's step; a compiled mean.

    The mean is our own: that of FedJAX 0.0.17 calls `jax.tree_map`, which jax 0.6 took away.
    """
    import fedjax

    (lr,) = work.lr
    loss = LOSSES[work.workload.model]

    def step(state: Params, batch: tuple[Any, ...]) -> Params:
        return descent(state, jax.grad(loss)(state, *batch), lr)

    for_each = fedjax.for_each_client(lambda shared, _: shared, step, lambda _, state: state)

    @jax.jit
    def mean(models: list[Params]) -> Params:
        return tuple(sum(tensors) / len(tensors) for tensors in zip(*models, strict=True))

    data = tuple(x.numpy() for x in work.data)
    table = work.rows[0].numpy()
    w: Params = tuple(jnp.asarray(p.numpy()) for p in work.start())

    def clients(rows: Any) -> Iterator[tuple[int, list[Any], None]]:
        for number, client_rows in enumerate(rows):
            batches = [tuple(x[batch] for x in data) for batch in client_rows]
            yield number, batches * (work.steps // len(batches)), None

    def advance(start: int, end: int) -> None:
        nonlocal w
        for rows in table[start:end]:
            models = [model for _, model in for_each(w, clients(rows))]
            w = mean(models)
        jax.block_until_ready(w)

    return advance, lambda: flat(w, 0)


def flat(w: Params, run_axes: int) -> Tensor:
    """Parameters as flat vectors `[G, S, d]`."""
    vectors = []
    for p in w:
        x = torch.from_numpy(np.array(p))
        vectors.append(x.reshape(*x.shape[:run_axes], -1))
    models = torch.cat(vectors, -1)
    return models if run_axes else models[None, None]
