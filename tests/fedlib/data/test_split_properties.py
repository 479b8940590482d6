"""What splits promise, on labels that hypothesis draws."""

import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from fedlib.data import split
from tests.helpers.randoms import generator

SEEDS = st.integers(0, 2**16)


@st.composite
def labelled(draw):
    """Labels of some rows, numbers of clients, a seed."""
    counts = draw(st.lists(st.integers(1, 30), min_size=1, max_size=5))
    y = torch.cat([torch.full((n,), 3 * label) for label, n in enumerate(counts)])
    mixed = y[torch.randperm(len(y), generator=generator(draw(SEEDS)))]
    return mixed, draw(st.integers(1, 6)), generator(draw(SEEDS))


def held(rows, sizes=None):
    """The rows that clients really have, none of them twice, no client without."""
    sizes = sizes or [rows.shape[1]] * len(rows)
    assert min(sizes) >= 1
    real = torch.cat([row[:size] for row, size in zip(rows, sizes, strict=True)])
    assert len(real.unique()) == len(real)
    return set(real.tolist())


@given(labelled(), st.sampled_from([0.05, 1.0, 50.0]), st.integers(1, 3))
def test_splits_deal_every_row_at_most_once(given_, alpha, k):
    y, clients, rng = given_
    assume(clients <= len(y))
    all_rows = set(range(len(y)))
    least = int(y.unique(return_counts=True)[1].min())
    assert len(held(split.random_equal(len(y), clients, rng))) == len(y) // clients * clients
    assert len(held(split.dirichlet(y, clients, alpha, rng))) == len(y) // clients * clients
    if least >= clients:
        rows = split.stratified_iid(y, clients, rng)
        held(rows)
        counts = [torch.stack([(y[r] == c).sum() for c in y.unique()]) for r in rows]
        assert all(torch.equal(count, counts[0]) for count in counts)
        k = min(k, len(y.unique()))
        rows, sizes = split.label_windows(y, clients, k, rng)
        assert held(rows, sizes) <= all_rows
        if clients >= len(y.unique()):
            assert held(rows, sizes) == all_rows
    if alpha > 1 and len(y) > 20 * clients:  # else a client may stay without, which is refused
        rows, sizes = split.dirichlet_cells(y, clients, alpha, rng)
        assert held(rows, sizes) == all_rows
        assume(min(sizes) > 1)
        stay, left, test = split.holdout(rows, sizes, 0.3, rng)
        assert held(stay, left).isdisjoint(test.tolist())
        assert held(stay, left) | set(test.tolist()) == all_rows


@given(labelled(), st.sampled_from([0.1, 0.5, 0.9]))
def test_training_and_test_rows_are_all_rows(given_, fraction):
    y, _, rng = given_
    assume(int(y.unique(return_counts=True)[1].min()) > 1)
    train, test = split.train_test(y, fraction, rng)
    assert sorted([*train.tolist(), *test.tolist()]) == list(range(len(y)))
    for label in y.unique():
        of_class = (y == label).sum()
        tested = (y[test] == label).sum()
        assert 1 <= tested < of_class
        assert abs(tested - fraction * of_class) <= max(
            0.5, 1 - fraction * float(of_class), fraction * of_class - of_class + 1
        )
