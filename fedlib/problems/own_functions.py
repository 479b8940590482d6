"""The losses and the metrics of a problem of people's own."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import mul
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import models
from fedlib.core.problem import Batch, Problem
from fedlib.problems.client_rows import ClientRows, Function, heldout_rows, plain_client
from fedlib.problems.explain import attempt
from fedlib.problems.fairness_gap import GroupSums
from fedlib.problems.several_inputs import OfPacked
from fedlib.shapes import AnyRows, AnyTensor, PerLoss, Scalar, Vector, WholeNumber


@dataclass(frozen=True)
class OwnFunctions:
    """The losses and metrics of a `from_frame` problem, as methods that pickle can store.

    Metrics evaluate the module on `chunk` rows at a time, if the problem has more rows.
    """

    apply: "models.ModuleFunction | OfPacked | Outputs"
    objectives: tuple[Function, ...]
    constraints: tuple["Function | GroupSums", ...]
    measures: Mapping[str, Function]  # these return tensors
    host_measures: Mapping[str, Function]  # these return Python's numbers
    columns: tuple[Hashable, ...]
    chunk: int | None = None

    def rows(
        self, w: Vector, batch: Batch, *, train: bool = False, coin: WholeNumber | None = None
    ) -> ClientRows:
        """A batch as the functions' argument; a module's dropout is active only with `train`."""
        inputs, target, *further = batch.data
        columns = dict(zip(self.columns, further, strict=False))  # the client's size may follow
        output = self.apply(w, inputs, train=train, coin=coin)
        return ClientRows(output, target, columns, batch.weight)

    def losses(
        self, w: Vector, batch: Batch, *, train: bool = True, coin: WholeNumber | None = None
    ) -> PerLoss:
        """The objectives, then the constraints, or the statistics of a `GroupGap`."""
        rows = self.rows(w, batch, train=train, coin=coin)
        values = [objective(rows).reshape(1) for objective in self.objectives]
        for constraint in self.constraints:
            if isinstance(constraint, GroupSums):
                values.append(constraint.statistics(rows, batch.data[-1]))
            else:
                values.append(constraint(rows).reshape(1))
        return torch.cat(values)

    @property
    def gaps(self) -> list[GroupSums]:
        """The constraints that follow from statistics."""
        return [gap for gap in self.constraints if isinstance(gap, GroupSums)]

    @property
    def plain_constraints(self) -> list[Function]:
        """The constraints that are means over clients."""
        return [plain for plain in self.constraints if not isinstance(plain, GroupSums)]

    @property
    def num_statistics(self) -> int:
        """The number of losses after the objectives."""
        of_gaps = [gap.size for gap in self.gaps]
        return len(self.plain_constraints) + sum(of_gaps)

    def constraint_values(self, means: Float[Tensor, "s"]) -> Float[Tensor, "C"]:
        """The constraints, from the means over clients of the losses after the objectives."""
        values = []
        start = 0
        for constraint in self.constraints:
            if isinstance(constraint, GroupSums):
                end = start + constraint.size
                values.append(constraint.value(means[start:end]))
            else:
                end = start + 1
                values.append(means[start])
            start = end
        return torch.stack(values)

    def means(self, w: Vector, problem: Problem) -> dict[str, Scalar]:
        """The mean objective, the largest constraint, and each of them if there are several."""
        exact = partial(self.losses, w, train=False)
        mean = problem.mean_over_clients(exact)
        f = mean[: problem.num_objectives]
        g = problem.constraints(mean)
        values = {"f": f.mean()}
        if len(g):
            values["g"] = g.max()
        values.update(numbered("f", f))
        values.update(numbered("g", g))
        return values

    def metrics(self, w: Vector, problem: Problem) -> dict[str, Scalar]:
        """The means and the measures."""
        functions, problem = self.evaluated(w, problem)
        values = functions.means(w, problem)
        for name, measure in self.measures.items():
            values[name] = functions.measured(measure, w, problem)
        return values

    def measured(self, measure: Function, w: Vector, problem: Problem) -> Scalar:
        """A measure of the held-out rows, or its mean over clients."""

        def of_batch(batch: Batch) -> Scalar:
            value: Tensor = measure(self.rows(w, batch))
            return value

        if problem.heldout:
            return of_batch(heldout_rows(problem))
        return problem.mean_over_clients(of_batch)

    def on_host(self, w: Vector, problem: Problem) -> dict[str, float]:
        """The measures that are not tensor operations, computed from plain tensors on the CPU.

        Means over clients have the clients' weights. A measure that fails raises ValueError with
        its name and the client's.
        """
        numbers = defaultdict[str, list[float]](list)
        with torch.no_grad():
            functions, problem = self.evaluated(w, problem)
            for label, rows in functions.measured_rows(w, problem):
                for name, measure in self.host_measures.items():
                    title = f"measure {name!r} on {label}"
                    number = attempt(problem.name, title, measure, rows)
                    numbers[name].append(float(number))
        weights = problem.client_weights or (1.0,) * len(problem.sizes)
        if problem.heldout:
            weights = (1.0,)
        means = {}
        for name, values in numbers.items():
            means[name] = weighted_mean(values, weights)
        return means

    def measured_rows(self, w: Vector, problem: Problem) -> Iterator[tuple[str, ClientRows]]:
        """The rows that measures see, and whose they are: the held-out rows or each client's."""
        if problem.heldout:
            batch = heldout_rows(problem)
            yield "heldout", self.rows(w, batch)
            return
        for client in range(problem.num_clients):
            batch = plain_client(problem, client)
            yield f"client {client}", self.rows(w, batch)

    def evaluated(self, w: Vector, problem: Problem) -> "tuple[OwnFunctions, Problem]":
        """The functions and the problem with the module's outputs in place of its inputs.

        The module sees `chunk` rows at a time, so its activations need little memory. A problem
        that has no more rows stays as it is.
        """
        if self.chunk is None:
            return self, problem

        def with_outputs(rows: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            inputs, *further = rows
            return self.outputs(w, inputs), *further

        tensors: dict[str, Any] = {"data": with_outputs(problem.data)}
        if problem.heldout:
            tensors["heldout"] = with_outputs(problem.heldout)
        functions = replace(self, apply=Outputs(), chunk=None)
        return functions, problem.with_tensors(tensors)

    def outputs(self, w: Vector, inputs: AnyRows) -> AnyRows:
        """The module's outputs on some rows, `chunk` at a time."""
        size = self.chunk or len(inputs)
        chunks = torch.split(inputs, size)
        outputs = [self.apply(w, chunk, train=False) for chunk in chunks]
        return torch.cat(outputs)


@dataclass(frozen=True)
class Outputs:
    """The function in place of the module for rows that hold the module's outputs."""

    def __call__(
        self,
        w: Vector,  # noqa: ARG002 - as in `ModuleFunction`
        outputs: AnyTensor,
        *,
        train: bool = True,  # noqa: ARG002
        coin: WholeNumber | None = None,  # noqa: ARG002
    ) -> AnyTensor:
        """The outputs themselves."""
        return outputs


def numbered(letter: str, losses: Float[Tensor, "n"]) -> dict[str, Scalar]:
    """Several losses by their numbers; a single one has no number."""
    if len(losses) == 1:
        return {}
    values = {}
    for number, loss in enumerate(losses, 1):
        values[f"{letter}_{number}"] = loss
    return values


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """The mean of some numbers with positive weights."""
    total: float = sum(map(mul, values, weights))
    return total / sum(weights)
