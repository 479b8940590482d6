"""QM9 as dense padded graphs and eleven normalized targets, for message passing.

Features and targets are those of Askin, Sharma, Joshi, Joe-Wong, *Federated
Communication-Efficient Multi-Objective Optimization*, AISTATS 2025, and of its authors' code, which
has them from PyTorch Geometric. One differs: the hybridization of an atom is read off its bonds
here (sp with a triple or two double bonds, sp2 with one double or an aromatic bond, else sp3), so
that nitrogen and oxygen beside a double bond, which a chemistry package calls sp2, count as sp3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from fedlib.data.cache import get
from fedlib.data.sources import SOURCES

ATOMS = 29  # at most, in a molecule of QM9

#: The targets, in the order of the tasks; the energies of line two are those of atomization.
TARGETS = ("mu", "alpha", "homo", "lumo", "r2", "zpve", "u0", "u298", "h298", "g298", "cv")

#: Energies of single atoms in hartree by atomic number, of the set's authors (atomref.txt).
ATOM_ENERGY = {
    "u0": {1: -0.500273, 6: -37.846772, 7: -54.583861, 8: -75.064579, 9: -99.718730},
    "u298": {1: -0.498857, 6: -37.845355, 7: -54.582445, 8: -75.063163, 9: -99.717314},
    "h298": {1: -0.497912, 6: -37.844411, 7: -54.581501, 8: -75.062219, 9: -99.716370},
    "g298": {1: -0.510927, 6: -37.861317, 7: -54.598897, 8: -75.079532, 9: -99.733544},
}

ELEMENTS = (1, 6, 7, 8, 9)
HELD = 20_000  # molecules for tests and validation


@dataclass(frozen=True, eq=False)
class Molecules:
    """QM9: atoms and bonds of molecule i are rows offset[i]:offset[i + 1] of their arrays."""

    targets: Float[Tensor, "R 15"]  # float64, in the units of the source tables
    target_names: tuple[str, ...]
    z: UInt8[Tensor, "atoms"]  # atomic numbers
    positions: Float[Tensor, "atoms 3"]  # float32, Angstrom
    atom_offset: Int[Tensor, "R+1"]
    bonds: UInt8[Tensor, "bonds 3"]  # i, j (within the molecule), order; 4 is aromatic
    bond_offset: Int[Tensor, "R+1"]


def qm9() -> Molecules:
    """QM9: 130831 molecules and their 15 targets, units as in the source tables.

    A, B, C in GHz, mu in debye, alpha in bohr^3, homo, lumo, gap, zpve, u0, u298, h298, g298 in
    hartree, r2 in bohr^2, cv in cal/mol/K.
    """
    path = get("qm9", SOURCES["qm9"].instead[0])
    with np.load(path) as packed:
        raw = dict(packed)
    units = 10.0 ** raw["target_decimals"]
    targets = raw["target_scaled"].T / units
    targets = np.ascontiguousarray(targets)
    names = [str(name) for name in raw["target_names"]]
    return Molecules(
        targets=torch.from_numpy(targets),
        target_names=tuple(names),
        z=torch.from_numpy(raw["z"]),
        positions=torch.from_numpy(raw["pos"]),
        atom_offset=_offsets(raw["n_atoms"]),
        bonds=torch.from_numpy(raw["bonds"]),
        bond_offset=_offsets(raw["n_bonds"]),
    )


def _offsets(lengths: np.ndarray) -> Int[Tensor, "R+1"]:
    """Where the rows of every molecule start, and where those of the last one end."""
    ends = np.cumsum(lengths, dtype=np.int64)
    offsets = np.concatenate([[0], ends])
    return torch.from_numpy(offsets)


class Graphs(NamedTuple):
    """Molecules with at most n atoms; what is padded is zero."""

    atoms: UInt8[Tensor, "R n 11"]  # element (5), atomic number, aromatic, sp, sp2, sp3, hydrogens
    bonds: UInt8[Tensor, "R n n"]  # 0 none, 1-3 order, 4 aromatic; symmetric
    positions: Float[Tensor, "R n 3"]  # float32, Angstrom
    real: Bool[Tensor, "R n"]
    targets: Float[Tensor, "R 11"]  # float32


@lru_cache(maxsize=1)
def sets(train: int, test: int) -> tuple[Graphs, Graphs]:
    """Training and test molecules of QM9, by a random permutation; targets normalized.

    Of the permutation the first 10,000 molecules are for tests, as many for validation (unused
    here), and the training molecules come after them. The authors' code has a permutation of its
    own. Mean 0 and deviation 1 are over the whole of QM9, as in their code.

    Parameters
    ----------
    train, test : how many molecules, the first ones of their part.

    Raises
    ------
    DataError
        if QM9 is not in the cache.
    """
    molecules = qm9()
    rng = torch.Generator().manual_seed(0)
    order = torch.randperm(len(molecules.targets), generator=rng)
    unscaled = targets(molecules)
    centred = unscaled - unscaled.mean(0)
    y = (centred / unscaled.std(0)).float()
    train_rows = order[HELD : HELD + train]
    test_rows = order[:test]
    train_set = graphs(molecules, train_rows, y)
    test_set = graphs(molecules, test_rows, y)
    return train_set, test_set


def targets(molecules: Molecules) -> Float[Tensor, "R 11"]:
    """The eleven targets in the units of the tables, float64; energies less those of the atoms."""
    columns = [molecules.target_names.index(name) for name in TARGETS]
    y = molecules.targets[:, columns].clone()
    owner = _owner(molecules.atom_offset)
    numbers = molecules.z.long()
    for name, energies in ATOM_ENERGY.items():
        of_element = y.new_zeros(max(ELEMENTS) + 1)
        of_element[[*energies]] = y.new_tensor([*energies.values()])
        of_atom = of_element[numbers]
        of_molecule = y.new_zeros(len(y))
        of_molecule.index_add_(0, owner, of_atom)
        column = TARGETS.index(name)
        y[:, column] -= of_molecule
    return y


def graphs(
    molecules: Molecules,
    rows: Int[Tensor, "R"],
    y: Float[Tensor, "all 11"],
    size: int = ATOMS,
) -> Graphs:
    """Some molecules, each once, as padded graphs of `size` atoms, with their rows of `y`."""
    count = len(rows)
    slots = torch.full((len(molecules.targets),), -1)  # of a molecule among the rows
    slots[rows] = torch.arange(count)

    start = molecules.atom_offset
    owner = _owner(start)
    slot = slots[owner]
    keep = slot >= 0
    within = torch.arange(len(owner)) - start[owner]
    index = (slot[keep], within[keep])
    atoms = torch.zeros(count, size, 11, dtype=torch.uint8)
    atoms[index] = atom_features(molecules)[keep]
    positions = torch.zeros(count, size, 3)
    positions[index] = molecules.positions[keep]
    real = torch.zeros(count, size, dtype=torch.bool)
    real[index] = True
    bonds = torch.zeros(count, size, size, dtype=torch.uint8)
    _fill_bonds(bonds, molecules, slots)
    return Graphs(atoms, bonds, positions, real, y[rows])


def _fill_bonds(
    matrices: UInt8[Tensor, "R n n"], molecules: Molecules, slots: Int[Tensor, "all"]
) -> None:
    """Write the bonds of every molecule into the matrix of its slot, if that is not -1."""
    owner = _owner(molecules.bond_offset)
    slot = slots[owner]
    keep = slot >= 0
    molecule = slot[keep]
    bonds = molecules.bonds[keep]
    i, j, _ = bonds.long().unbind(1)
    order = bonds[:, 2]
    matrices[molecule, i, j] = order
    matrices[molecule, j, i] = order


def atom_features(molecules: Molecules) -> UInt8[Tensor, "atoms 11"]:
    """The eleven numbers of every atom; see `Graphs.atoms`."""
    owner = _owner(molecules.bond_offset)
    start = molecules.atom_offset[owner]
    i, j, order = molecules.bonds.long().unbind(1)
    ends = torch.cat([start + i, start + j])
    neighbours = torch.cat([start + j, start + i])
    order = order.repeat(2)
    z = molecules.z

    def count(chosen: Tensor) -> Tensor:
        """Of every atom, how many of its bonds are chosen."""
        counts = torch.zeros(len(z), dtype=torch.long)
        return counts.index_add_(0, ends, chosen.long())

    double = count(order == 2)
    triple = count(order == 3)
    aromatic = count(order == 4) > 0
    sp = (triple > 0) | (double > 1)
    sp2 = ~sp & (aromatic | (double == 1))
    sp3 = ~sp & ~sp2 & (z > 1)
    elements = [z == number for number in ELEMENTS]
    to_hydrogen = z[neighbours] == 1
    hydrogens = torch.where(z > 1, count(to_hydrogen), 0)
    features = [*elements, z, aromatic, sp, sp2, sp3, hydrogens]
    columns = [feature.to(torch.uint8) for feature in features]
    return torch.stack(columns, 1)


def edges(
    bonds: UInt8[Tensor, "*b n n"], positions: Float[Tensor, "*b n 3"]
) -> Float[Tensor, "*b n n 5"]:
    """Numbers of every pair of atoms: four kinds of bond (all 0: none) and the distance."""
    kinds = torch.arange(1, 5, device=bonds.device)
    is_of_kind = bonds.unsqueeze(-1) == kinds
    apart = positions.unsqueeze(-2) - positions.unsqueeze(-3)
    square = apart.square().sum(-1, keepdim=True)
    distance = square.sqrt()
    kind = is_of_kind.to(distance.dtype)
    return torch.cat([kind, distance], -1)


def _owner(offset: Int[Tensor, "ends"]) -> Int[Tensor, "atoms"]:
    """The molecule of every atom (or bond)."""
    molecules = torch.arange(len(offset) - 1)
    return torch.repeat_interleave(molecules, offset.diff())
