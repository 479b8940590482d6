"""Work on mini-batches of distinct rows at all clients, which hold samples."""

from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count
from fedlib.core.problem import Draw, Problem

#: Permutations that are in memory together; of more, the processor's cache would not hold all.
AT_ONCE = 500


class OverSamples(checks.Checked):
    """Base of methods over samples: all clients draw batches of distinct rows.

    Parameters
    ----------
    batch_size : int or None
        B, the number of rows in a batch, drawn without replacement; None for all rows.
    local_steps : int
        E, the number of batches in a round.
    """

    batch_size: Count | None
    local_steps: int = 1

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw each step's batches for all clients; the rows of a batch are distinct."""
        clients = torch.arange(problem.num_clients)
        if self.batch_size is None:
            return Draw(participants=clients)  # 1
        shape = (self.local_steps, self.batch_size)
        sizes = problem.sizes
        if len(set(sizes)) == 1:
            batches = distinct(sizes[0], (len(sizes), *shape), rng)
        else:
            batches = torch.stack([distinct(size, shape, rng) for size in sizes])
        return Draw(participants=clients, batches=batches)


def distinct(
    size: int,
    shape: tuple[int, ...],
    rng: torch.Generator,
) -> Int[Tensor, "*b B"]:
    """Numbers below `size`, distinct along the last axis; all ordered choices are equally likely.

    Small choices are drawn with replacement; of equal numbers, all but the first are drawn again
    until none are left. Only equality matters here, so no choice is preferred to another.
    """
    count = shape[-1]
    if 4 * count > size:
        chosen = torch.empty(prod(shape[:-1]), count, dtype=torch.int64)
        for part in torch.split(chosen, AT_ONCE):
            permutations = [torch.randperm(size, generator=rng) for _ in range(len(part))]
            # all permutations are cut at once: to cut one takes as long as to draw it
            part.copy_(torch.stack(permutations)[:, :count])
        return chosen.view(shape)
    numbers = torch.randint(size, shape, generator=rng)
    flat = numbers.view(-1, count)
    while True:
        ordered, columns = flat.sort(stable=True)
        repeated = ordered[:, 1:] == ordered[:, :-1]
        row, rank = repeated.nonzero(as_tuple=True)
        if not len(row):
            return flat.view(shape)
        column = columns[row, rank + 1]
        flat[row, column] = torch.randint(size, row.shape, generator=rng)


def shares(problem: Problem) -> Float[Tensor, "N"]:
    """Each client's share of all samples, which is N_i / N in the paper on SSCA."""
    sizes = problem.lengths
    if not isinstance(sizes, Tensor):
        sizes = torch.tensor(problem.sizes, device=problem.rows.device)
    counts = sizes.to(problem.w0.dtype)
    return counts / counts.sum()
