"""The networks of the multi-task experiments: sizes, order of parameters, plain computations."""

import pytest
import torch
from torch import nn

from fedlib import models
from papers.fedcmoo import networks
from tests.helpers.randoms import generator


@pytest.mark.parametrize(
    ("make", "options", "size", "encoder"),
    [
        (networks.pair_lenet, {}, 34_635, 28_515),
        (networks.pair_cnn, {}, 1_726_508, 1_685_888),
        (networks.molecule_network, {}, 617_675, 616_960),
    ],
)
def test_numbers_of_parameters_are_those_of_the_paper(make, options, size, encoder):
    module = make(generator(), **options)
    w0, _ = models.ravel(module)
    assert w0.shape == (size,)
    assert networks.encoder_size(module) == encoder
    encoder_numbers = torch.cat([p.detach().flatten() for p in module.encoder.parameters()])
    assert torch.equal(w0[:encoder], encoder_numbers)
    assert w0.isfinite().all()


# ---- molecules ------------------------------------------------------------------------------


def molecules(sizes, n):
    """Random padded graphs; what is padded holds noise, which must not matter."""
    rng = generator(4)
    atoms = torch.randn(len(sizes), n, 11, generator=rng, dtype=torch.float64)
    edges = torch.randn(len(sizes), n, n, 5, generator=rng, dtype=torch.float64)
    return atoms, edges, torch.arange(n) < torch.tensor(sizes).unsqueeze(1)


def plain(module, atoms, edges):
    """One molecule without padding: an explicit matrix an edge, PyTorch's own recurrent cells."""
    net = module.encoder
    n = len(atoms)
    gru = nn.GRUCell(64, 64).double()
    lstm = nn.LSTMCell(128, 64).double()
    for cell, ours in ((gru, net), (lstm, net.pool)):
        cell.weight_ih = ours.gates_in.weight
        cell.bias_ih = ours.gates_in.bias
        cell.weight_hh = ours.gates_own.weight
        cell.bias_hh = ours.gates_own.bias
    h = torch.relu(net.first(atoms))
    for _ in range(3):
        rows = []
        for v in range(n):
            total = torch.zeros(64, dtype=torch.float64)
            for u in range(n):
                if u != v:
                    matrix = net.matrix(torch.relu(net.edge(edges[v, u])))
                    total = total + h[u] @ matrix.view(64, 64)
            mean = total / max(1, n - 1)
            rows.append(torch.relu(net.root(h[v]) + mean))
        h = gru(torch.stack(rows), h)
    both = torch.zeros(1, 128, dtype=torch.float64)
    question = cell = torch.zeros(1, 64, dtype=torch.float64)
    for _ in range(3):
        question, cell = lstm(both, (question, cell))
        share = torch.softmax(h @ question[0], 0)
        both = torch.cat([question, (share @ h).unsqueeze(0)], 1)
    code = torch.relu(net.last(both))
    return torch.stack([decoder(code) for decoder in module.decoders], -2)[0]


def test_message_passing_is_the_plain_computation_and_padding_does_not_matter():
    module = networks.molecule_network(generator()).double()
    sizes = [5, 2, 1, 4]
    atoms, edges, real = molecules(sizes, 7)
    w0, apply = models.ravel(module)
    outputs = apply(w0, atoms, edges, real)
    assert outputs.shape == (4, 11, 1)
    for k, n in enumerate(sizes):
        alone = plain(module, atoms[k, :n], edges[k, :n, :n])
        assert torch.allclose(outputs[k], alone, rtol=1e-10, atol=1e-12)
    wrong = apply(w0, atoms, edges, torch.ones_like(real))
    assert (wrong - outputs).abs().max() > 1e-3  # the test would see a mask that is not used
