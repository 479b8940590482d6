"""Molecules as padded graphs: features of known ones, targets, and the problem on them."""

import pytest
import torch

from fedlib import models
from papers.fedcmoo import networks
from papers.fedcmoo.data import molecules
from papers.fedcmoo.problems.qm9 import qm9
from tests.helpers.expect import close, near
from tests.helpers.problems import batches
from tests.helpers.randoms import generator, normal, numbers, uniform

NAMES = "A B C mu alpha homo lumo gap r2 zpve u0 u298 h298 g298 cv".split()  # noqa: SIM905
HYDROGEN = 1
CARBON = 6
NITROGEN = 7
OXYGEN = 8
#: Hydrogen cyanide, formaldehyde and methane: their atoms, and bonds as (atom, atom, order).
ATOMS = [
    [CARBON, NITROGEN, HYDROGEN],
    [CARBON, OXYGEN, HYDROGEN, HYDROGEN],
    [CARBON, HYDROGEN, HYDROGEN, HYDROGEN, HYDROGEN],
]
BONDS = [
    [(0, 1, 3), (0, 2, 1)],
    [(0, 1, 2), (0, 2, 1), (0, 3, 1)],
    [(0, 1, 1), (0, 2, 1), (0, 3, 1), (0, 4, 1)],
]
NO_TARGETS = torch.zeros(3, 11)


def together(lists):
    """Lists one after the other, and where each begins and ends."""
    ends = torch.tensor([0, *map(len, lists)]).cumsum(0)
    tensors = [torch.tensor(items, dtype=torch.uint8) for items in lists]
    return torch.cat(tensors), ends


@pytest.fixture(scope="module")
def three():
    """The three molecules, positions and targets at random."""
    atoms, atom_ends = together(ATOMS)
    bonds, bond_ends = together(BONDS)
    return molecules.Molecules(
        uniform(3, 15),
        tuple(NAMES),
        atoms,
        numbers(12, 3),
        atom_ends,
        bonds,
        bond_ends,
    )


def test_features_of_three_molecules(three):
    graphs = molecules.graphs(three, torch.arange(3), NO_TARGETS, size=6)
    assert graphs.real.sum(1).tolist() == [3, 4, 5]
    assert not graphs.atoms[~graphs.real].any()
    cyanide, formaldehyde, methane = graphs.atoms.tolist()
    assert cyanide[0] == [0, 1, 0, 0, 0, 6, 0, 1, 0, 0, 1]  # sp
    assert cyanide[1] == [0, 0, 1, 0, 0, 7, 0, 1, 0, 0, 0]
    assert formaldehyde[1] == [0, 0, 0, 1, 0, 8, 0, 0, 1, 0, 0]  # sp2
    assert methane[0] == [0, 1, 0, 0, 0, 6, 0, 0, 0, 1, 4]  # sp3, four hydrogens
    assert methane[1] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


def test_bonds_and_positions_of_three_molecules(three):
    graphs = molecules.graphs(three, torch.arange(3), NO_TARGETS, size=6)
    bonds = graphs.bonds[0]
    assert bonds[:3, :3].tolist() == [[0, 3, 1], [3, 0, 0], [1, 0, 0]]
    assert not bonds[3:].any()
    assert torch.equal(graphs.positions[2, :5], three.positions[7:])
    assert not graphs.positions[~graphs.real].any()


def test_edges_are_bonds_and_distances(three):
    graphs = molecules.graphs(three, torch.tensor([1]), NO_TARGETS, size=4)
    positions = graphs.positions[0]
    edges = molecules.edges(graphs.bonds[0], positions)
    assert edges[0, 1, :4].tolist() == [0, 1, 0, 0]  # a double bond
    assert edges[2, 3, :4].tolist() == [0, 0, 0, 0]
    close(edges[..., 4], torch.cdist(positions, positions), 1e-6)


def test_energies_are_those_of_atomization(three):
    y = molecules.targets(three)
    of_methane = three.targets[2, NAMES.index("u0")]
    expected = of_methane + 37.846772 + 4 * 0.500273
    near(float(y[2, 6]), float(expected), rel=1e-12)
    for k, name in enumerate(("mu", "alpha", "homo", "lumo", "r2", "zpve")):
        assert torch.equal(y[:, k], three.targets[:, NAMES.index(name)])


@pytest.fixture(scope="module")
def twelve(three):
    """Every molecule four times, with targets at random."""
    y = normal(3, 11).float()
    graphs = molecules.graphs(three, torch.arange(3), y, size=6)
    return molecules.Graphs(*(torch.cat([tensor] * 4) for tensor in graphs))


def predicted(graphs, rows):
    """What the network of the start says of some molecules."""
    w, apply = models.ravel(networks.molecule_network(generator()))
    edges = molecules.edges(graphs.bonds[rows], graphs.positions[rows])
    outputs = apply(w, graphs.atoms[rows].float(), edges, graphs.real[rows])
    return outputs.squeeze(-1)


def test_losses_and_metrics(twelve):
    problem = qm9(twelve, twelve, clients=4)
    assert (problem.dim, problem.num_objectives) == (617_675, 11)
    assert problem.config["shared"] == 616_960
    rows = problem.rows[1]
    errors = predicted(twelve, rows) - twelve.targets[rows]
    losses = problem.losses(problem.w0, batches(problem)[1])
    near(losses.tolist(), errors.square().mean(0).tolist(), rel=1e-4)
    values = problem.metrics(problem.w0, problem)
    assert len(values) == 12
    errors = predicted(twelve, slice(None)) - twelve.targets
    near(float(values["loss_7"]), float(errors[:, 6].square().mean()), rel=1e-4)
