"""Generated graphs in the form of QM9's molecules, with targets of a known rule.

They let `problems.qm9` run without a download. Nothing about chemistry can be learned from them.
"""

from __future__ import annotations

import torch

from papers.fedcmoo.data.molecules import Graphs
from papers.fedcmoo.networks import ATOM

#: The targets: the sum over the atoms of each of their numbers.
RULE = tuple(f"sum of number {k}" for k in range(1, ATOM + 1))


def generated(train: int, test: int, *, size: int = 8, seed: int = 0) -> tuple[Graphs, Graphs]:
    """Training and test graphs: chains of at most `size` atoms, random numbers, random places.

    Targets (`RULE`) have mean 0 and deviation 1 over all graphs together; `seed` fixes them all.
    """
    rng, count = torch.Generator().manual_seed(seed), train + test
    real = torch.arange(size) < torch.randint(1, size + 1, (count, 1), generator=rng)
    atoms = torch.randint(3, (count, size, ATOM), generator=rng) * real.unsqueeze(-1)
    order = torch.randint(1, 5, (count, size - 1), generator=rng) * real[:, 1:]
    bonds = torch.diag_embed(order, 1)
    positions = torch.randn(count, size, 3, generator=rng) * real.unsqueeze(-1)
    y = atoms.sum(1).float()
    spread = y.std(0, correction=0)
    y = (y - y.mean(0)) / torch.where(spread > 0, spread, 1.0)
    whole = Graphs(atoms.to(torch.uint8), (bonds + bonds.mT).to(torch.uint8), positions, real, y)
    return Graphs(*(x[:train] for x in whole)), Graphs(*(x[train:] for x in whole))
