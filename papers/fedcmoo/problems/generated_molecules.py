"""Generated graphs in the form of QM9's molecules, with targets of a known rule.

They let `problems.qm9` run without a download. Nothing about chemistry can be learned from them.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Seed
from papers.fedcmoo.data.molecules import Graphs, Molecules, graphs

#: The targets, each computed from the graph by `rule`.
RULE = (
    *("H", "C", "N", "O", "F"),  # atoms
    *("single", "double", "triple"),  # bonds
    *("mean", "largest", "spread"),  # distances
)

VALENCE = {6: 4, 7: 3, 8: 2, 9: 1}
SHARE = (0.7, 0.12, 0.13, 0.05)  # of carbon, nitrogen, oxygen, fluorine among the heavy atoms
LENGTH, HYDROGEN = 1.5, 1.1  # Angstrom, of a bond between heavy atoms and of one to a hydrogen


def generated(
    train: Count, test: Count, *, heavy: Count = 4, seed: Seed = 0
) -> tuple[Graphs, Graphs]:
    """Training and test graphs: random trees of atoms whose valences are filled with hydrogen.

    A tree starts at one heavy atom; each further one is tied to a random atom that has a valence
    left, by a bond of random order and fixed length in a random direction. Targets (`rule`) have
    mean 0 and deviation 1 over all graphs together.

    Parameters
    ----------
    train, test : how many graphs.
    heavy : atoms other than hydrogen, at most; graphs are padded to 3 `heavy` + 2 atoms.
    seed : fixes all graphs.

    Raises
    ------
    ValueError
        for numbers that are not positive.
    """
    checks.arguments(generated, locals())
    for name, value in (("train", train), ("test", test), ("heavy", heavy)):
        checks.count("generated", name, value)
    rng = torch.Generator().manual_seed(seed)
    made = [tree(heavy, rng) for _ in range(train + test)]
    whole = graphs(
        table(made), torch.arange(len(made)), torch.zeros(len(made), len(RULE)), 3 * heavy + 2
    )
    y = rule(whole)
    spread = y.std(0, correction=0)
    y = (y - y.mean(0)) / torch.where(spread > 0, spread, 1.0)
    whole = whole._replace(targets=y)
    return Graphs(*(x[:train] for x in whole)), Graphs(*(x[train:] for x in whole))


def rule(some: Graphs) -> Float[Tensor, "R 11"]:
    """The targets in the order of `RULE`, as they are: counts, and distances in Angstrom.

    The mean and the largest distance are those of two atoms; the spread is the mean square of the
    distance from the centre.
    """
    counts = some.atoms[..., :5].sum(1).float()
    order = torch.arange(1, 4)
    bonds = (some.bonds.unsqueeze(-1) == order).sum((1, 2)) / 2
    real = some.real.float()
    atoms = real.sum(1)
    apart = torch.cdist(some.positions, some.positions) * real.unsqueeze(1) * real.unsqueeze(2)
    pairs = (atoms * (atoms - 1)).clamp(min=1)
    centre = (some.positions * real.unsqueeze(-1)).sum(1, keepdim=True) / atoms.view(-1, 1, 1)
    off = ((some.positions - centre).square().sum(-1) * real).sum(1) / atoms
    distances = torch.stack([apart.sum((1, 2)) / pairs, apart.amax((1, 2)), off], 1)
    return torch.cat([counts, bonds, distances], 1)


Tree = tuple[list[int], list[tuple[int, int, int]], list[Tensor]]


def tree(heavy: int, rng: torch.Generator) -> Tree:
    """Atomic numbers, bonds (one atom, another, order) and positions of one random molecule."""
    z: list[int] = []
    left: list[int] = []  # valences
    bonds: list[tuple[int, int, int]] = []
    positions: list[Tensor] = []
    for _ in range(1 + int(torch.randint(heavy, (1,), generator=rng))):
        new = [*VALENCE][int(torch.multinomial(torch.tensor(SHARE), 1, generator=rng))]
        free = VALENCE[new]
        open_ = [i for i, n in enumerate(left) if n]
        if z and not open_:
            break
        place = torch.zeros(3)
        if z:
            i = open_[int(torch.randint(len(open_), (1,), generator=rng))]
            order = 1 + int(torch.randint(min(left[i], free, 3), (1,), generator=rng))
            bonds.append((i, len(z), order))
            left[i] -= order
            free -= order
            place = positions[i] + LENGTH * direction(rng)
        z.append(new)
        left.append(free)
        positions.append(place)
    for i, n in enumerate(left):
        for _ in range(n):
            bonds.append((i, len(z), 1))
            z.append(1)
            positions.append(positions[i] + HYDROGEN * direction(rng))
    return z, bonds, positions


def direction(rng: torch.Generator) -> Float[Tensor, "3"]:
    """A random vector of length 1."""
    way = torch.randn(3, generator=rng)
    return torch.nn.functional.normalize(way, dim=0)


def table(made: list[Tree]) -> Molecules:
    """The molecules one after another, as `molecules.qm9` has them, without targets."""
    atoms = torch.tensor([0, *(len(z) for z, _, _ in made)]).cumsum(0)
    ties = torch.tensor([0, *(len(bonds) for _, bonds, _ in made)]).cumsum(0)
    return Molecules(
        targets=torch.zeros(len(made), 15, dtype=torch.float64),
        target_names=(),
        z=torch.tensor([x for z, _, _ in made for x in z], dtype=torch.uint8),
        positions=torch.stack([x for _, _, positions in made for x in positions]),
        atom_offset=atoms,
        bonds=torch.tensor([b for _, bonds, _ in made for b in bonds], dtype=torch.uint8).view(
            -1, 3
        ),
        bond_offset=ties,
        index=torch.arange(len(made)),
        smiles=(),
    )
