"""The metrics of a classifier of pictures take a client's rows piece by piece."""

import pytest
import torch

from fedlib import L1Ball
from fedlib.core.trees import loop_map
from fedlib.metrics import fw_gap
from fedlib.problems.classification import Samples, classifier, cnn_model, in_pieces

SIZES = (15, 3, 7)


@pytest.fixture(scope="module")
def problem():
    rng = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 255, (45, 1, 16, 16), dtype=torch.uint8, generator=rng)
    samples = Samples(pictures, torch.randint(0, 10, (45,), generator=rng))
    model = cnn_model(1, 16, 10, rng)
    rows = torch.arange(45).view(3, 15)
    scale = (255.0, 0.5, 0.5)
    return classifier(samples, samples, rows, model, sizes=SIZES, scale=scale).within(L1Ball(10.0))


def test_one_client_after_another_gives_the_numbers_of_all_together(problem):
    def losses(batch):
        return problem.losses(problem.w0, batch)

    together = loop_map(losses, (0,))(problem.rows_of(range(3)))
    assert torch.equal(problem.mean_over_clients(losses), together.mean(0))


@pytest.mark.parametrize("weights", [None, "rows", (1.0, 2.0, 5.0)])
def test_pieces_have_the_means_of_the_clients(problem, weights):
    weighted = problem if weights is None else problem.weighted(weights)
    pieces = in_pieces(weighted, 4)
    assert pieces.sizes == (4, 4, 4, 3, 3, 4, 3)
    w = weighted.w0
    torch.testing.assert_close(pieces.mean_losses(w), weighted.mean_losses(w))
    torch.testing.assert_close(fw_gap(pieces, w), fw_gap(weighted, w))
    assert in_pieces(weighted, 15) is weighted
