"""FedAvg as one writes it in torch without a library: a module, an optimizer, client by client."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus

from benchmarks.tasks import SCALE, Advance, Models, Work
from papers.fedcmoo import networks


def loop(
    work: Work, order: torch.memory_format = torch.contiguous_format
) -> tuple[Advance, Models]:
    """A plain loop over rounds, clients and steps; `order` of pictures in memory."""
    module, loss = model(work.task.kind, order)
    parameters = list(module.parameters())
    (lr,) = work.lr
    optimizer = torch.optim.SGD(parameters, lr=lr)
    now = [s.clone().view_as(p) for s, p in zip(work.start(), parameters, strict=True)]

    def client(rows: Tensor) -> None:
        for p, start in zip(parameters, now, strict=True):
            p.data.copy_(start)
        for step in range(work.steps):
            batch = rows[step % len(rows)]
            optimizer.zero_grad()
            loss(*(x[batch] for x in work.data)).backward()
            optimizer.step()

    def advance(first: int, last: int) -> None:
        for each in work.rows[0, first:last]:
            total = [torch.zeros_like(p) for p in now]
            for rows in each:
                client(rows)
                for t, p in zip(total, parameters, strict=True):
                    t.add_(p.detach(), alpha=1 / len(each))
            for w, t in zip(now, total, strict=True):
                w.copy_(t)

    return advance, lambda: torch.cat([w.flatten() for w in now])[None, None]


def model(kind: str, order: torch.memory_format) -> tuple[nn.Module, Callable[..., Tensor]]:
    """The module of a kind of task, and the loss of a batch."""
    if kind == "softmax":
        module: nn.Module = nn.Linear(784, 10, bias=False)
        return module, lambda x, y: cross_entropy(module(x), y)
    if kind == "network":
        module = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
        return module, lambda x, y: cross_entropy(module(x), y)
    if kind == "logistic":
        module = nn.Linear(30, 1, bias=False)
        return module, lambda x, y, share: logistic(module(x).squeeze(-1), y, share)
    network = networks.pair_lenet()
    network.encoder.to(memory_format=order)  # type: ignore[call-overload]
    return network, lambda x, y: tasks(network, x, y, order)


def logistic(z: Tensor, y: Tensor, share: Tensor) -> Tensor:
    """The weighted mean of the logistic loss."""
    return ((softplus(z) - y * z) * share).mean()


def tasks(network: networks.Tasks, x: Tensor, y: Tensor, order: torch.memory_format) -> Tensor:
    """The mean of the losses of both tasks on pictures in bytes."""
    mean, std = SCALE
    pictures = x.to(torch.float32).div_(255).sub_(mean).div_(std).to(memory_format=order)
    code = network.encoder(pictures)
    losses = [cross_entropy(head(code), y[:, k]) for k, head in enumerate(network.decoders)]
    return torch.stack(losses).mean()
