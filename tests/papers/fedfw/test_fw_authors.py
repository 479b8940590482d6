"""The authors' own rows and loop: rows as theirs to the digit, rounds as worked out by hand."""

import pytest

from papers.fedfw.authors.rows import authors_problem, authors_rows

SIZES = (9545, 855, 2180, 24380, 11685, 285, 2075, 450, 470, 870)
TEN = [17913, 1645, 477, 9060, 1725, 172, 116, 3636, 1376, 16675]
HUNDRED = [8053, 31459, 4708, 20330, 1657, 20785, 3043, 18260, 10962, 86538]
#: Users, classes, rows, label counts, the sum of all features, the first three of the first row.
THEIRS = [
    (10, 10, 52_795, TEN, -357005.5918, (-2.056799, -1.097627, -0.735923)),
    (10, 3, 52_795, [9482, 8471, 34842], -357271.2329, (-0.418571, -0.523648, -0.517860)),
    (100, 10, 205_795, HUNDRED, -283221.3021, (1.170852, -0.447271, -0.268067)),
    (100, 3, 205_795, [78917, 68174, 58704], -283677.2124, (-0.208014, 0.527412, -1.221335)),
]


@pytest.mark.parametrize(("users", "classes", "rows", "counts", "total", "first"), THEIRS)
def test_rows_are_those_of_the_authors(users, classes, rows, counts, total, first):
    X, y, sizes = authors_rows(users, classes)
    assert X.shape == (rows, 60)
    assert len(sizes) == users
    assert sizes[:10] == SIZES
    assert y.bincount().tolist() == counts
    assert X.double().sum().item() == pytest.approx(total, abs=0.05)  # float32 holds the rows
    assert X[0, :3].tolist() == pytest.approx(first, abs=1e-6)


def test_a_quarter_of_every_users_rows_is_for_testing_and_the_model_has_ten_outputs():
    problem = authors_problem(1, net="mclr", classes=3)
    assert problem.sizes == tuple(n - round(n / 4) for n in SIZES)
    assert len(problem.heldout[1]) == 52_795 - sum(problem.sizes)
    assert problem.dim == 610
    assert authors_problem(1, net="dnn", classes=3).dim == 61 * 20 + 21 * 10
    with pytest.raises(ValueError, match="authors_problem: net must be one of"):
        authors_problem(1, net="cnn", classes=3)
