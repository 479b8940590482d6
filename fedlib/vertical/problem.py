"""A problem whose features are divided among clients."""

from dataclasses import dataclass, field, fields, replace

import torch
from jaxtyping import Int
from torch import Tensor

from fedlib import checks
from fedlib.core.problem import Problem
from fedlib.vertical.composite import Composite, Party
from fedlib.vertical.partition import Partition, consecutive


@dataclass(frozen=True)
class VerticalProblem(Problem):
    """What `vertical` returns: `data[0]` holds the features, the rest of `data` the labels.

    `rows [1, R]` is the one pool of samples, which all clients share. As an ordinary problem it is
    therefore centralized; `composite` defines the clients, who hold features.
    """

    composite: Composite = field(kw_only=True)

    def party(self, number: int, samples: Int[Tensor, "B"]) -> Party:
        """Client `number` with its features and the labels of some samples of the pool."""
        rows = self.rows[0][samples]
        features, *labels = (tensor[rows] for tensor in self.data)
        return Party(
            number=number,
            features=self.composite.features.cut(features, number - 1),
            labels=tuple(labels),
            form=self.composite,
        )

    def to(self, device: torch.device | str) -> "VerticalProblem":
        """The same problem with all its tensors on `device`."""
        composite = replace(
            self.composite,
            features=self.composite.features.to(device),
            parameters=self.composite.parameters.to(device),
        )
        tensors = super().to(device).tensors()
        return replace(self, **tensors, composite=composite)


def vertical(problem: Problem, composite: Composite) -> VerticalProblem:
    """Pool a problem's samples and divide its features among clients.

    Parameters
    ----------
    problem : Problem
        A problem with the features of all samples in `data[0]`, `[R, f]`. The result has the same
        losses, metrics and start; the former split of the samples is ignored.
    composite : Composite
        The form of the losses.

    Raises ValueError if the composite does not fit the numbers of features and parameters, or if
    its losses differ from the problem's on the first samples.
    """
    checks.arguments(vertical, locals())
    check_sizes(problem, composite)
    check_losses(problem, composite)
    clients = range(problem.num_clients)
    pool = torch.cat([problem.own_rows(client) for client in clients])
    values = {entry.name: getattr(problem, entry.name) for entry in fields(Problem)}
    values["rows"] = pool.unsqueeze(0)
    values["sizes"] = (len(pool),)
    values["lengths"] = ()
    values["config"] = {
        **problem.config,
        "clients": composite.clients,
        "blocks": [describe_block(block) for block in composite.features.parts],
    }
    return VerticalProblem(**values, composite=composite)


def check_sizes(problem: Problem, composite: Composite) -> None:
    """Raise ValueError unless features and parameters are as many as the problem has."""
    shapes = {"features": problem.data[0].shape[1:], "parameters": problem.w0.shape}
    for name, shape in shapes.items():
        partition: Partition = getattr(composite, name)
        divided_shape = [partition.size]
        rule = f"be divided as {problem.name} has them, shape {list(shape)}"
        checks.require(divided_shape == list(shape), "vertical", name, rule, divided_shape)


def check_losses(problem: Problem, composite: Composite) -> None:
    """Raise ValueError unless the form gives the problem's losses on its first two samples."""
    rows = problem.own_rows(0)[:2]
    features, *labels = (tensor[rows] for tensor in problem.data)
    w = problem.w0
    expected = problem.losses(w, problem.batch_at(rows))
    losses = composite.losses(w, features, tuple(labels)).mean(0)
    same_shape = expected.shape == losses.shape
    fits = same_shape and torch.allclose(expected, losses, rtol=1e-4)
    rule = f"give the losses of {problem.name}, {expected.tolist()} on its first samples"
    checks.require(fits, "vertical", "composite", rule, losses.tolist())


def describe_block(block: Int[Tensor, "k"]) -> list[int] | str:
    """A block as a text `"0-21"` if it is consecutive, else the list of its features."""
    numbers: list[int] = block.tolist()
    if numbers and consecutive(block):
        return f"{numbers[0]}-{numbers[-1]}"
    return numbers
