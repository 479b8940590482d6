r"""Vertical federation: every client holds some features of every sample.

`vertical` gives an ordinary problem the composite form of `fedlib.vertical.composite` and with it
clients who have blocks of features; every message of a round crosses a `Line`, which counts it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from fedlib import checks
from fedlib.compress.compressors import FLOAT_BITS
from fedlib.core.federation import SERVER, Federation, Sent, count_numbers
from fedlib.core.problem import Batch, Info, Problem
from fedlib.vertical.composite import Composite, Party, Pieces, consecutive

INDEX_BITS = 32  # a sample's number on the wire


@dataclass(frozen=True)
class VerticalProblem(Problem):
    """A problem whose losses have composite form: `data[0]` holds the features, the rest labels.

    `rows [1, R]` is the one pool of samples that all clients have (their own features of), so as an
    ordinary problem it is the centralized one; the clients are those of `composite`.
    """

    composite: Composite = field(kw_only=True)

    def party(self, number: int, samples: Int[Tensor, "B"]) -> Party:
        """Client `number`, with what it holds of some samples of the pool."""
        rows = self.rows[0][samples]
        features = self.composite.features.cut(self.data[0][rows], number - 1)
        return Party(number, features, tuple(x[rows] for x in self.data[1:]), self.composite)

    def to(self, device: torch.device | str) -> VerticalProblem:
        """The same problem with all its tensors on `device`."""
        form = self.composite
        moved = replace(
            form, features=form.features.to(device), parameters=form.parameters.to(device)
        )
        return replace(self, **super().to(device).tensors(), composite=moved)


def vertical(problem: Problem, composite: Composite) -> VerticalProblem:
    """The problem with its samples pooled and its features divided among clients.

    Parameters
    ----------
    problem : with the features of all samples in `data[0]`, `[R, f]`. Its losses, its metrics and
        its start remain; how its samples were divided does not matter any more.
    composite : the form of its losses.

    Raises
    ------
    ValueError
        if the composite is not for so many features or parameters, or gives other losses than the
        problem on its first samples.
    """
    checks.arguments(vertical, locals())
    for name, part, size in (
        ("features", composite.features, problem.data[0].shape[1:]),
        ("parameters", composite.parameters, problem.w0.shape),
    ):
        rule = f"be divided as {problem.name} has them, shape {list(size)}"
        checks.require(list(size) == [part.size], "vertical", name, rule, [part.size])
    x, *labels = (z[problem.rows[0, :2]] for z in problem.data)
    batch = Batch((x, *labels), problem.w0.new_full((len(x),), 1 / len(x)))
    direct = problem.losses(problem.w0, batch)
    composed = composite.losses(problem.w0, x, tuple(labels)).mean(0)
    same = direct.shape == composed.shape and torch.allclose(direct, composed, rtol=1e-4)
    rule = f"give the losses of {problem.name}, {direct.tolist()} on its first samples"
    checks.require(same, "vertical", "composite", rule, composed.tolist())
    pool = torch.cat([own[:size] for own, size in zip(problem.rows, problem.sizes, strict=True)])
    blocks = [_span(block) for block in composite.features.parts]
    changed = {
        "rows": pool.unsqueeze(0),
        "sizes": (len(pool),),
        "lengths": (),
        "config": {**problem.config, "clients": composite.clients, "blocks": blocks},
    }
    fields_of = {f.name: getattr(problem, f.name) for f in fields(Problem)}
    return VerticalProblem(**{**fields_of, **changed}, composite=composite)


def _span(block: Int[Tensor, "k"]) -> list[int] | str:
    """First and last feature of a block of consecutive ones, as `"0-21"`, or all of them."""
    numbers: list[int] = block.tolist()
    return f"{numbers[0]}-{numbers[-1]}" if numbers and consecutive(block) else numbers


class Line:
    """The messages of one round: who sends what to whom, and how many bits.

    Bits are counted at 32 a number: those from and to the server by the federation, those from
    client to client in `bits_between`. The federation's log receives every message.

    Parameters
    ----------
    fed : the round's federation; its problem is a `VerticalProblem`.
    """

    def __init__(self, fed: Federation) -> None:
        self.fed, self.bits_between = fed, 0
        self.problem = check_vertical("Line", fed.problem)

    def to_client(self, client: int, what: str, *parts: Shaped[Tensor, "..."]) -> Pieces:
        """From the server to one client."""
        self.fed.bits_down += self._sent(SERVER, f"client {client}", what, parts)
        return parts

    def to_server(self, client: int, what: str, *parts: Shaped[Tensor, "..."]) -> Pieces:
        """From one client to the server."""
        self.fed.bits_up += self._sent(f"client {client}", SERVER, what, parts)
        return parts

    def to_others(self, client: int, what: str, *parts: Shaped[Tensor, "..."]) -> Pieces:
        """From one client to every other client."""
        for other in self.problem.composite.numbers:
            if other != client:
                self.bits_between += self._sent(f"client {client}", f"client {other}", what, parts)
        return parts

    def info(self, **metrics: Shaped[Tensor, "..."]) -> Info:
        """What the round reports: `metrics`, and the bits that crossed the line in it."""
        report = self.fed.info(**metrics)
        return {**report, "bits_between": torch.zeros_like(report["bits_up"]) + self.bits_between}

    def _sent(self, sender: str, receiver: str, what: str, parts: Pieces) -> int:
        floats, indices = count_numbers(parts)
        bits = FLOAT_BITS * floats + INDEX_BITS * indices
        if self.fed.log is not None:
            self.fed.log.append(Sent(sender, receiver, what, floats, indices, bits))
        return bits


def check_vertical(who: str, problem: Problem) -> VerticalProblem:
    """The problem itself; raises TypeError unless its features are divided among clients."""
    if not isinstance(problem, VerticalProblem):
        rule, remedy = "be a VerticalProblem", "make it one with fedlib.vertical.vertical"
        raise TypeError(checks.sentence(who, "problem", rule, problem.name, remedy))
    return problem
