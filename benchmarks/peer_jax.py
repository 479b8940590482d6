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


def cross_entropy(out: Any, y: Any) -> Any:
    """The mean of the negative log-likelihoods."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(out), y[:, None], 1))


def softmax(w: Params, x: Any, y: Any) -> Any:
    """W1."""
    return cross_entropy(x @ w[0].T, y)


def logistic(w: Params, x: Any, y: Any, share: Any) -> Any:
    """W3."""
    z = x @ w[0]
    return jnp.mean((jax.nn.softplus(z) - y * z) * share)


def network(w: Params, x: Any, y: Any) -> Any:
    """W4."""
    return cross_entropy(dense(w[2:], jax.nn.relu(dense(w[:2], x))), y)


def lenet(w: Params, x: Any, y: Any) -> Any:
    """W2."""
    h = (x.astype(jnp.float32) / 255 - SCALE[0]) / SCALE[1]
    h = jax.nn.relu(pooled(convolved(w[0:2], h, "SAME")))
    h = jax.nn.relu(pooled(convolved(w[2:4], h, "VALID")))
    code = jax.nn.relu(dense(w[4:6], h.reshape(len(h), -1)))
    outs = (dense(w[k + 2 :], jax.nn.relu(dense(w[k:], code))) for k in (6, 10))
    return sum(cross_entropy(out, y[:, k]) for k, out in enumerate(outs)) / 2


def dense(w: Params, x: Any) -> Any:
    """A linear map."""
    return x @ w[0].T + w[1]


def convolved(w: Params, x: Any, padding: str) -> Any:
    """A convolution of pictures `[B, c, h, w]`."""
    return lax.conv_general_dilated(x, w[0], (1, 1), padding) + w[1][:, None, None]


def pooled(x: Any) -> Any:
    """The largest of every 2 x 2 pixels."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


LOSSES: dict[str, Callable[..., Any]] = {
    "softmax": softmax, "logistic": logistic, "network": network, "lenet": lenet,
}  # fmt: skip


def scan(work: Work) -> tuple[Advance, Models]:
    """All rounds of a turn in one compiled call, and all runs in it."""
    grad = jax.grad(LOSSES[work.workload.kind])

    def client(w: Params, rows: Any, lr: Any, data: Params) -> Params:
        def step(u: Params, batch: Any) -> tuple[Params, None]:
            slope = grad(u, *(x[batch] for x in data) if len(rows) > 1 else same)
            return jax.tree.map(lambda a, b: a - lr * b, u, slope), None

        same = [x[rows[0]] for x in data]  # one batch for all steps
        each = rows if len(rows) > 1 else jnp.zeros(work.steps)
        return lax.scan(step, w, each, unroll=work.steps <= 5)[0]

    def rounds(w: Params, rows: Any, lr: Any, data: Params) -> Params:
        def one(w: Params, rows: Any) -> tuple[Params, None]:
            u = jax.vmap(client, (None, 0, None, None))(w, rows, lr, data)
            return jax.tree.map(lambda x: x.mean(0), u), None

        return lax.scan(one, w, rows)[0]

    over_seeds = jax.vmap(rounds, (0, 0, None, None))
    many = jax.vmap(over_seeds, (0, None, 0, None))
    alone = len(work.lr) == 1 == len(work.rows)
    compiled = jax.jit(rounds if alone else many)
    ahead = () if alone else (len(work.lr), len(work.rows))
    data = tuple(jnp.asarray(x.numpy()) for x in work.data)
    table = work.rows.numpy().astype(np.int32)
    lr = jnp.asarray(work.lr[0] if alone else work.lr, jnp.float32)
    start = [jnp.asarray(p.numpy()) for p in work.start()]
    held = {"w": tuple(jnp.broadcast_to(p, (*ahead, *p.shape)) for p in start)}

    def advance(first: int, last: int) -> None:
        some = table[0, first:last] if alone else table[:, first:last]
        held["w"] = jax.block_until_ready(compiled(held["w"], some, lr, data))

    return advance, lambda: flat(held["w"], len(ahead))


def fedjax_loop(work: Work) -> tuple[Advance, Models]:
    """FedJAX's `for_each_client`, which compiles a client's step; a compiled mean.

    The mean is our own: that of FedJAX 0.0.17 calls `jax.tree_map`, which jax 0.6 took away.
    """
    import fedjax

    (lr,) = work.lr
    loss = LOSSES[work.workload.kind]

    def step(state: Params, batch: tuple[Any, ...]) -> Params:
        slope = jax.grad(loss)(state, *batch)
        return tuple(jax.tree.map(lambda a, b: a - lr * b, state, slope))

    each = fedjax.for_each_client(lambda shared, _: shared, step, lambda _, state: state)
    mean = jax.jit(lambda all_: jax.tree.map(lambda *x: sum(x) / len(x), *all_))
    data = tuple(x.numpy() for x in work.data)
    table = work.rows[0].numpy()
    held: dict[str, Any] = {"w": tuple(jnp.asarray(p.numpy()) for p in work.start())}

    def clients(rows: Any) -> Iterator[tuple[int, list[Any], None]]:
        for j, own in enumerate(rows):
            batches = [tuple(x[batch] for x in data) for batch in own]
            yield j, batches * (work.steps // len(batches)), None

    def advance(first: int, last: int) -> None:
        for rows in table[first:last]:
            held["w"] = mean([w for _, w in each(held["w"], clients(rows))])
        jax.block_until_ready(held["w"])

    return advance, lambda: flat(held["w"], 0)


def flat(w: Params, ahead: int) -> Tensor:
    """Parameters as flat vectors `[G, S, d]`."""
    parts = [torch.from_numpy(np.array(p)) for p in w]
    flats = [p.reshape(*p.shape[:ahead], -1) for p in parts]
    return torch.cat(flats, -1) if ahead else torch.cat(flats)[None, None]
