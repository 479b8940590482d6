"""Splits: equal sizes, no row twice, and what each promises about the classes."""

import pytest
import torch

from fedlib.data import split
from tests.helpers.randoms import generator


def labels_of(counts, seed=0):
    y = torch.cat([torch.full((n,), label) for label, n in counts.items()])
    return y[torch.randperm(len(y), generator=generator(seed + 100))]


BALANCED = labels_of(dict.fromkeys(range(10), 60))
UNEVEN = labels_of({3: 212, 7: 357})  # labels need not be 0, 1, ...
SPLITS = {
    "stratified_iid": lambda y, n, g: split.stratified_iid(y, n, g),
    "dirichlet": lambda y, n, g: split.dirichlet(y, n, 0.3, g),
}


def class_counts(y, rows):
    return torch.stack([(y[rows] == label).sum(1) for label in y.unique()], dim=1)  # [N, C]


@pytest.mark.parametrize("make", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("y", [BALANCED, UNEVEN], ids=["balanced", "uneven"])
class TestEverySplit:
    def test_the_generator_decides_and_the_global_one_does_not(self, make, y):
        global_state = torch.get_rng_state()
        rows = make(y, 5, generator(1))
        assert torch.equal(rows, make(y, 5, generator(1)))
        assert not torch.equal(rows, make(y, 5, generator(2)))
        assert torch.equal(global_state, torch.get_rng_state())


def test_iid_gives_every_client_the_same_class_counts():
    counts = class_counts(UNEVEN, split.stratified_iid(UNEVEN, 20, generator()))
    assert (counts == torch.tensor([212 // 20, 357 // 20])).all()


def test_dirichlet_mixtures_have_the_moments_of_their_distribution():
    alpha = torch.tensor([0.3, 0.6, 2.1], dtype=torch.float64)
    q = split._log_dirichlet(alpha, 20000, generator()).softmax(1)
    mean = alpha / alpha.sum()
    variance = mean * (1 - mean) / (alpha.sum() + 1)
    assert torch.allclose(q.mean(0), mean, atol=0.01)  # 3 standard errors are 0.005
    assert torch.allclose(q.var(0), variance, rtol=0.06)


def test_dirichlet_follows_uneven_classes_in_the_mean():
    counts = class_counts(UNEVEN, split.dirichlet(UNEVEN, 20, 1e6, generator()))
    share = counts[:, 0] / counts.sum(1)
    assert abs(float(share.mean()) - 212 / 569) < 0.02
    assert float(share.std()) < 0.15  # binomial, 28 rows: 0.09


def test_dirichlet_cells_shares_have_the_mean_and_variance_of_the_distribution():
    """Share of a client: Beta(alpha, 4 alpha) of 5 clients, mean 1/5."""
    cells = torch.zeros(2000, dtype=torch.int64)
    sizes = [split.dirichlet_cells(cells, 5, 2.0, generator(s))[1] for s in range(400)]
    share = torch.tensor(sizes).double() / 2000
    assert torch.allclose(share.mean(0), torch.tensor(0.2).double(), atol=0.02)
    assert share.var().item() == pytest.approx(0.2 * 0.8 / 11, rel=0.12)


def test_train_test_refuses_a_class_of_one_row():
    with pytest.raises(ValueError, match=r"at least 2 rows of class 9, .*, got 1"):
        split.train_test(labels_of({0: 5, 9: 1}), 0.5, generator())


#: A few rows of three classes, so that every split's answer can stand here whole.
FEW = torch.tensor([2, 0, 1, 1, 0, 2, 2, 0, 1, 2, 0, 2, 1, 2, 0, 0, 1])
PINNED = {
    "stratified_iid": [[14, 15, 4, 3, 16, 9, 11, 6], [7, 10, 1, 12, 8, 13, 0, 5]],
    "dirichlet": [[14, 15, 4, 3], [7, 10, 9, 11], [1, 16, 12, 6], [8, 2, 13, 0]],
    "dirichlet_cells": [
        [[14, 15, 3, 9, 14, 14, 14], [4, 16, 12, 11, 6, 13, 4], [7, 10, 1, 8, 2, 0, 5]],
        [4, 6, 7],
    ],
    "train_test": [[0, 1, 2, 4, 5, 6, 7, 8, 10, 12, 13], [3, 9, 11, 14, 15, 16]],
    "random_equal": [[10, 5, 6], [8, 1, 7], [0, 4, 3]],
    "label_windows": [
        [[3, 14, 16, 15, 3], [11, 8, 6, 12, 9], [4, 0, 7, 13, 5], [1, 2, 10, 1, 1]],
        [4, 5, 5, 3],
    ],
    "holdout": [[[1, 2, 3, 0], [7, 7, 7, 7], [14, 12, 15, 14]], [4, 1, 3], [4, 5, 6, 16, 13]],
}
SMALL = {
    "stratified_iid": lambda g: split.stratified_iid(FEW, 2, g),
    "dirichlet": lambda g: split.dirichlet(FEW, 4, 0.7, g),
    "dirichlet_cells": lambda g: split.dirichlet_cells(FEW, 3, 1.5, g),
    "train_test": lambda g: split.train_test(FEW, 0.3, g),
    "random_equal": lambda g: split.random_equal(11, 3, g),
    "label_windows": lambda g: split.label_windows(FEW, 4, 2, g),
    "holdout": lambda g: split.holdout(torch.arange(18).view(3, 6), (6, 2, 5), 0.3, g),
}


def as_lists(value):
    """Tensors as lists, also in tuples."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return [as_lists(entry) for entry in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", SMALL)
def test_every_split_is_pinned(name):
    """Stored runs depend on these rows in this order; no data set is needed to notice a change."""
    assert as_lists(SMALL[name](generator(4))) == PINNED[name]


def test_at_least_one_row_is_tested_and_one_stays():
    table = torch.arange(4).view(2, 2)
    for fraction in (0.01, 0.99):
        stay, sizes, test = split.holdout(table, (2, 2), fraction, generator())
        assert (stay.shape, sizes, len(test)) == ((2, 1), (1, 1), 2)
