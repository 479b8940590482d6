"""Splits: what each promises about rows and classes, on fixed labels and on those drawn."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from fedlib.data import split
from tests.helpers.expect import close, refuses
from tests.helpers.randoms import generator


def labels_of(counts, seed=0):
    y = torch.cat([torch.full((n,), label) for label, n in counts.items()])
    return y[torch.randperm(len(y), generator=generator(seed + 100))]


UNEVEN = labels_of({3: 212, 7: 357})  # labels need not be 0, 1, ...


def test_dirichlet_follows_uneven_classes_in_the_mean():
    rows = split.dirichlet(UNEVEN, 20, 1e6, generator())
    share = (UNEVEN[rows] == 3).double().mean(1)
    assert abs(share.mean() - 212 / 569) < 0.02
    assert share.std() < 0.15  # binomial, 28 rows: 0.09


def test_dirichlet_cells_shares_have_the_mean_and_variance_of_the_distribution():
    """Share of a client: Beta(alpha, 4 alpha) of 5 clients, mean 1/5."""
    cells = torch.zeros(2000, dtype=torch.int64)
    sizes = [split.dirichlet_cells(cells, 5, 2.0, generator(s))[1] for s in range(400)]
    share = torch.tensor(sizes).double() / 2000
    close(share.mean(0), torch.full((5,), 0.2).double(), 0.02)
    assert share.var().item() == pytest.approx(0.2 * 0.8 / 11, rel=0.12)


def test_train_test_refuses_a_class_of_one_row():
    words = "at least 2 rows of class 9, *, got 1"
    refuses(
        words,
        split.train_test,
        labels_of({0: 5, 9: 1}),
        0.5,
        generator(),
    )


#: A few rows of three classes, so that every split's answer can stand here whole.
FEW = torch.tensor([2, 0, 1, 1, 0, 2, 2, 0, 1, 2, 0, 2, 1, 2, 0, 0, 1])
PINNED = [
    (
        split.stratified_iid,
        (FEW, 2),
        [[14, 15, 4, 3, 16, 9, 11, 6], [7, 10, 1, 12, 8, 13, 0, 5]],
    ),
    (
        split.dirichlet,
        (FEW, 4, 0.7),
        [[14, 15, 4, 3], [7, 10, 9, 11], [1, 16, 12, 6], [8, 2, 13, 0]],
    ),
    (
        split.dirichlet_cells,
        (FEW, 3, 1.5),
        [
            [
                [14, 15, 3, 9, 14, 14, 14],
                [4, 16, 12, 11, 6, 13, 4],
                [7, 10, 1, 8, 2, 0, 5],
            ],
            [4, 6, 7],
        ],
    ),
    (
        split.train_test,
        (FEW, 0.3),
        [[0, 1, 2, 4, 5, 6, 7, 8, 10, 12, 13], [3, 9, 11, 14, 15, 16]],
    ),
    (split.random_equal, (11, 3), [[10, 5, 6], [8, 1, 7], [0, 4, 3]]),
    (
        split.label_windows,
        (FEW, 4, 2),
        [
            [[3, 14, 16, 15, 3], [11, 8, 6, 12, 9], [4, 0, 7, 13, 5], [1, 2, 10, 1, 1]],
            [4, 5, 5, 3],
        ],
    ),
    (
        split.holdout,
        (torch.arange(18).view(3, 6), (6, 2, 5), 0.3),
        [[[1, 2, 3, 0], [7, 7, 7, 7], [14, 12, 15, 14]], [4, 1, 3], [4, 5, 6, 16, 13]],
    ),
]


def as_lists(value):
    """Tensors as lists, also in tuples."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return [as_lists(entry) for entry in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize(("make", "arguments", "pinned"), PINNED)
def test_every_split_is_pinned_and_draws_from_its_generator_alone(make, arguments, pinned):
    """Stored runs depend on these rows in this order; no data set is needed to notice a change."""
    global_state = torch.get_rng_state()
    assert as_lists(make(*arguments, generator(4))) == pinned
    assert as_lists(make(*arguments, generator(2))) != pinned
    assert torch.equal(torch.get_rng_state(), global_state)


@pytest.mark.parametrize("fraction", [0.01, 0.99])
def test_at_least_one_row_is_tested_and_one_stays(fraction):
    table = torch.arange(4).view(2, 2)
    stay, sizes, test = split.holdout(table, (2, 2), fraction, generator())
    assert stay.shape == (2, 1)
    assert sizes == (1, 1)
    assert len(test) == 2


SEEDS = st.integers(0, 2**16)


@st.composite
def labelled(draw):
    """Labels of some rows, numbers of clients, a seed."""
    counts = draw(st.lists(st.integers(1, 30), min_size=1, max_size=5))
    y = labels_of({3 * label: n for label, n in enumerate(counts)}, draw(SEEDS))
    return y, draw(st.integers(1, 6)), generator(draw(SEEDS))


def dealt(rows, sizes=None):
    """The rows that clients really have, none of them twice, no client without."""
    sizes = sizes or [rows.shape[1]] * len(rows)
    assert min(sizes) >= 1
    real = [row for line, size in zip(rows.tolist(), sizes, strict=True) for row in line[:size]]
    assert len(set(real)) == len(real)
    return set(real)


def smallest_class(y):
    return int(y.unique(return_counts=True)[1].min())


@given(labelled(), st.sampled_from([0.05, 1.0, 50.0]))
def test_equal_splits_deal_as_many_rows_as_they_can(drawn, alpha):
    y, clients, rng = drawn
    assume(clients <= len(y))
    most = len(y) // clients * clients
    assert len(dealt(split.random_equal(len(y), clients, rng))) == most
    assert len(dealt(split.dirichlet(y, clients, alpha, rng))) == most


@given(labelled())
def test_stratified_clients_have_equal_counts_of_each_class(drawn):
    y, clients, rng = drawn
    assume(smallest_class(y) >= clients)
    rows = split.stratified_iid(y, clients, rng)
    dealt(rows)
    assert (y[rows].sort().values == y[rows[0]].sort().values).all()


@given(labelled(), st.integers(1, 3))
def test_label_windows_deal_all_rows_of_the_labels_that_somebody_holds(drawn, k):
    y, clients, rng = drawn
    labels = len(y.unique())
    assume(smallest_class(y) >= clients)
    rows = dealt(*split.label_windows(y, clients, min(k, labels), rng))
    assert clients < labels or rows == set(range(len(y)))


@given(labelled())
def test_cells_and_what_is_held_out_are_all_rows(drawn):
    y, clients, rng = drawn
    assume(len(y) > 20 * clients)  # else a client may stay without, which is refused
    rows, sizes = split.dirichlet_cells(y, clients, 50.0, rng)
    everything = set(range(len(y)))
    assert dealt(rows, sizes) == everything
    assume(min(sizes) > 1)
    stay, left, test = split.holdout(rows, sizes, 0.3, rng)
    assert dealt(stay, left) == everything - set(test.tolist())


@given(labelled(), st.sampled_from([0.1, 0.5, 0.9]))
def test_training_and_test_rows_are_all_rows_and_shares_of_each_class(drawn, fraction):
    y, _, rng = drawn
    assume(smallest_class(y) > 1)
    train, test = split.train_test(y, fraction, rng)
    assert sorted([*train.tolist(), *test.tolist()]) == list(range(len(y)))
    for label in y.unique():
        count = int((y == label).sum())
        nearest = round(fraction * count)
        tested = int((y[test] == label).sum())
        assert abs(tested - min(max(nearest, 1), count - 1)) <= (fraction * count % 1 == 0.5)
