"""The losses and the metrics of a problem of people's own."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from fedlib import models
from fedlib.core.problem import Batch, Problem
from fedlib.problems.client_rows import ClientRows, Function, heldout_rows, plain_client
from fedlib.problems.fairness import combine_gaps, group_gap
from fedlib.problems.fairness_gap import GroupGap

Vector = Float[Tensor, "d"]


@dataclass(frozen=True)
class OwnFunctions:
    """The losses and metrics of a `from_frame` problem, as methods that pickle can store."""

    apply: models.ModuleFunction
    objectives: tuple[Function, ...]
    constraints: tuple[Function, ...]
    measures: Mapping[str, Function]  # these return tensors
    host_measures: Mapping[str, Function]  # these return Python's numbers
    columns: tuple[Hashable, ...]
    group_gap: GroupGap | None = None

    def rows(self, w: Vector, batch: Batch, *, train: bool = False) -> ClientRows:
        """A batch as the functions' argument; a module's dropout is active only with `train`."""
        inputs, goal, *more = batch.data
        extra = dict(zip(self.columns, more, strict=False))  # `more` may end with the client's size
        return ClientRows(self.apply(w, inputs, train=train), goal, extra, batch.weight)

    def losses(self, w: Vector, batch: Batch, *, train: bool = True) -> Float[Tensor, "K"]:
        """The objectives, then the constraints."""
        rows = self.rows(w, batch, train=train)
        values = [function(rows) for function in (*self.objectives, *self.constraints)]
        if self.group_gap is not None:
            values.append(group_gap(self.group_gap.four(rows, rows.weight.new_ones(()))))
        return torch.stack(values)

    def statistics(self, w: Vector, batch: Batch) -> Float[Tensor, "4"]:
        """A client's statistics for a `GroupGap`; a minibatch estimates those of all its rows."""
        assert self.group_gap is not None
        return self.group_gap.four(self.rows(w, batch), batch.data[-1])

    def means(self, w: Vector, problem: Problem) -> dict[str, Float[Tensor, ""]]:
        """The mean objective, the largest constraint, and each of them if there are several."""
        exact = partial(self.losses, w, train=False)
        mean, m = problem.mean_over_clients(exact), problem.num_objectives
        f, g = mean[:m], mean[m:]
        if self.group_gap is not None:
            groups = problem.size_groups()
            own = vmap(partial(self.statistics, w))
            sent = torch.cat([own(problem.rows_of(group)) for group in groups])
            g = combine_gaps(sent)[0].unsqueeze(0)
        values = {"f": f.mean()} | ({"g": g.max()} if len(g) else {})
        for letter, each in (("f", f), ("g", g)):
            if len(each) > 1:
                values |= {f"{letter}_{k + 1}": value for k, value in enumerate(each)}
        return values

    def metrics(self, w: Vector, problem: Problem) -> dict[str, Float[Tensor, ""]]:
        """The means and the measures."""
        values = self.means(w, problem)
        return values | {k: self.measured(m, w, problem) for k, m in self.measures.items()}

    def measured(self, measure: Function, w: Vector, problem: Problem) -> Float[Tensor, ""]:
        """A measure of the held-out rows, or its mean over clients."""
        if problem.heldout:
            return measure(self.rows(w, heldout_rows(problem)))  # type: ignore[no-any-return]
        return problem.mean_over_clients(lambda batch: measure(self.rows(w, batch)))

    def on_host(self, w: Vector, problem: Problem) -> dict[str, float]:
        """The measures that are not tensor operations, computed from plain tensors on the CPU."""
        batches = [plain_client(problem, j) for j in range(problem.num_clients)]
        batches = [heldout_rows(problem)] if problem.heldout else batches
        with torch.no_grad():
            own = [self.rows(w, batch) for batch in batches]
            each = {k: [float(m(rows)) for rows in own] for k, m in self.host_measures.items()}
        return {k: sum(values) / len(values) for k, values in each.items()}
