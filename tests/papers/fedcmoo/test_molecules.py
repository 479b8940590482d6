"""Molecules as padded graphs: features of known ones, targets, and the problem on them."""

import pytest
import torch

from fedlib import models
from papers.fedcmoo import networks
from papers.fedcmoo.data import molecules
from papers.fedcmoo.problems.qm9 import qm9
from tests.helpers.expect import near
from tests.helpers.problems import batches

NAMES = tuple("A B C mu alpha homo lumo gap r2 zpve u0 u298 h298 g298 cv".split())  # noqa: SIM905


def offsets(lengths):
    return torch.tensor([0, *lengths]).cumsum(0)


@pytest.fixture
def three():
    """Hydrogen cyanide, formaldehyde, methane: made by hand, positions at random."""
    rng = torch.Generator().manual_seed(0)
    z = [6, 7, 1, *[6, 8, 1, 1], *[6, 1, 1, 1, 1]]
    bonds = [[0, 1, 3], [0, 2, 1]]
    bonds += [[0, 1, 2], [0, 2, 1], [0, 3, 1]]
    bonds += [[0, k, 1] for k in range(1, 5)]
    return molecules.Molecules(
        torch.rand(3, 15, generator=rng, dtype=torch.float64),
        NAMES,
        torch.tensor(z, dtype=torch.uint8),
        torch.randn(12, 3, generator=rng),
        offsets([3, 4, 5]),
        torch.tensor(bonds, dtype=torch.uint8),
        offsets([2, 3, 4]),
    )


def test_features_of_three_molecules(three):
    graphs = molecules.graphs(
        three,
        torch.arange(3),
        torch.zeros(3, 11),
        size=6,
    )
    assert graphs.real.sum(1).tolist() == [3, 4, 5]
    assert not graphs.atoms[~graphs.real].any()
    assert not graphs.positions[~graphs.real].any()
    cyanide, formaldehyde, methane = graphs.atoms.tolist()
    assert cyanide[0] == [0, 1, 0, 0, 0, 6, 0, 1, 0, 0, 1]  # sp
    assert cyanide[1] == [0, 0, 1, 0, 0, 7, 0, 1, 0, 0, 0]
    assert formaldehyde[1] == [0, 0, 0, 1, 0, 8, 0, 0, 1, 0, 0]  # sp2
    assert methane[0] == [0, 1, 0, 0, 0, 6, 0, 0, 0, 1, 4]  # sp3, four hydrogens
    assert methane[1] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    bonds = graphs.bonds[0]
    assert bonds[:3, :3].tolist() == [[0, 3, 1], [3, 0, 0], [1, 0, 0]]
    assert not bonds[3:].any()
    assert torch.equal(graphs.positions[2, :5], three.positions[7:])


def test_edges_are_bonds_and_distances(three):
    graphs = molecules.graphs(
        three,
        torch.tensor([1]),
        torch.zeros(3, 11),
        size=4,
    )
    numbers = molecules.edges(graphs.bonds[0], graphs.positions[0])
    assert numbers.shape == (4, 4, 5)
    assert numbers[0, 1, :4].tolist() == [0, 1, 0, 0]  # a double bond
    assert numbers[2, 3, :4].tolist() == [0, 0, 0, 0]
    distance = torch.cdist(graphs.positions[0], graphs.positions[0])
    assert torch.allclose(numbers[..., 4], distance, atol=1e-6)


def test_energies_are_those_of_atomization(three):
    y = molecules.targets(three)
    u0 = three.targets[:, NAMES.index("u0")]
    expected = u0[2] + 37.846772 + 4 * 0.500273
    near(float(y[2, 6]), float(expected), rel=1e-12)
    for k, name in enumerate(("mu", "alpha", "homo", "lumo", "r2", "zpve")):
        assert torch.equal(y[:, k], three.targets[:, NAMES.index(name)])
    assert torch.equal(y[:, 10], three.targets[:, NAMES.index("cv")])


def small(three, repeats=4):
    y = torch.randn(3, 11, generator=torch.Generator().manual_seed(1))
    graphs = molecules.graphs(
        three,
        torch.arange(3),
        y,
        size=6,
    )
    return molecules.Graphs(*(torch.cat([x] * repeats) for x in graphs))


def inputs_of(graphs):
    """What the network takes."""
    return graphs.atoms.float(), molecules.edges(graphs.bonds, graphs.positions), graphs.real


def test_losses_and_metrics(three):
    train = small(three)
    test = small(three, 2)
    problem = qm9(train, test, clients=4)
    assert (problem.dim, problem.num_objectives) == (617_675, 11)
    assert problem.rows.shape == (4, 3)
    assert problem.config["shared"] == 616_960
    assert len(problem.rows.flatten().unique()) == 12
    _, apply = models.ravel(networks.molecule_network())
    rows = problem.rows[1]
    outputs = apply(problem.w0, *(x[rows] for x in inputs_of(train))).squeeze(-1)
    expected = (outputs - train.targets[rows]).square().mean(0)
    losses = problem.losses(problem.w0, batches(problem)[1])
    assert torch.allclose(losses, expected, rtol=1e-4)
    values = problem.metrics(problem.w0, problem)
    assert set(values) == {"loss", *(f"loss_{k}" for k in range(1, 12))}
    error = apply(problem.w0, *inputs_of(test)).squeeze(-1) - test.targets
    expected = float(error[:, 6].square().mean())
    near(float(values["loss_7"]), expected, rel=1e-4)


# ---- real files -----------------------------------------------------------------------------
