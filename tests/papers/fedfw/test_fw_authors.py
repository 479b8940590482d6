"""The authors' own rows and loop: rows as theirs to the digit, rounds as worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import fedlib as fl
from fedlib.core.federation import Sequential
from fedlib.core.sampling import seeded
from fedlib.data.split import padded
from fedlib.problems import classifier
from fedlib.problems.classification import Samples, linear_model, mlp_model
from papers.fedfw.authors import STUDY
from papers.fedfw.authors.loop import AuthorsFedDR, AuthorsFW, generator, random_models, shapes_of
from papers.fedfw.authors.quantities import STEPS, counted, waterfall
from papers.fedfw.authors.report import forensics
from papers.fedfw.authors.rows import authors_problem, authors_rows
from papers.fedfw.authors.runs import DEFAULTS, run_of
from papers.fedfw.cells import PRINTED
from papers.kit.numbers import exact
from papers.kit.quantities import Query, name_of

FILES = 57  # values that a file of the authors is the source of
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


def small(net="mclr", sizes=(70, 5, 130)):
    """Three clients with 2, 1 and 3 minibatches of at most 64 rows."""
    rng = seeded(3, "split")
    count = sum(sizes)
    X, y = torch.randn(count, 4, generator=rng), torch.randint(3, (count,), generator=rng)
    rows, sizes = padded(torch.split(torch.randperm(count, generator=rng), list(sizes)))
    model = linear_model(4, 3) if net == "mclr" else mlp_model(4, 5, 3, rng)
    made = classifier(Samples(X, y), Samples(X, y), rows, model, sizes=sizes)
    return replace(made, sequential_clients=True)


def slope(problem, x, rows):
    """The gradient of a client's mean cross-entropy on some rows, by autograd."""
    X, y = (part[rows] for part in problem.data)
    shapes = shapes_of(problem)
    x = x.clone().requires_grad_()
    W, b, *rest = (
        part.view(shape)
        for part, shape in zip(x.split([int(np.prod(s)) for s in shapes]), shapes, strict=True)
    )
    out = X @ W.T + b
    if rest:
        out = torch.relu(out) @ rest[0].T + rest[1]
    F.cross_entropy(out, y).backward()
    return x.grad


def corner(problem, g, norm, radius):
    """The answer of a ball for each tensor."""
    ends = [int(np.prod(s)) for s in shapes_of(problem)]
    balls = fl.Ball(radius) if norm == "l2" else fl.L1Ball(radius)
    return torch.cat([balls.lmo(part) for part in g.split(ends)])


def by_hand(problem, method, draws):
    """The authors' FedFW on lists, a client after another; the server's model after every round."""
    n, w, steps = problem.num_clients, problem.w0, [0] * problem.num_clients
    kept = [torch.zeros_like(w) for _ in range(n)]
    for draw in draws:
        rng, models = generator(draw), []
        orders = [np.arange(n) if method.ordered else rng.permutation(n) for n in problem.sizes]
        for i, order in enumerate(orders):
            x = w.clone()
            for part in torch.split(problem.own_rows(i)[torch.from_numpy(order)], 64):
                steps[i] += 1
                s = steps[i]
                g = slope(problem, x, part) / n
                eta, lam = 2 / (s + 1), method.lam0 * (s + 1) ** 0.5
                if method.averaged:
                    eta, lam = 9 / (s + 8), method.lam0 * (s + 8) ** 0.5
                    rho = 4 / (s + 7) ** (2 / 3)
                    g = kept[i] = (1 - rho) * kept[i] + rho * g
                v = corner(problem, g + lam * (x - w), method.norm, method.radius)
                x = (1 - eta) * x + eta * v
            models.append(x)
        w = torch.stack(models).mean(0)
        yield w


@pytest.mark.parametrize("net", ["mclr", "dnn"])
@pytest.mark.parametrize(
    "method",
    [
        AuthorsFW(0.1, radius=2.0),
        AuthorsFW(0.1, "l1", radius=2.0),
        AuthorsFW(0.1, radius=2.0, averaged=True),
        AuthorsFW(0.1, radius=2.0, ordered=True),
    ],
)
def test_the_authors_loop_is_the_one_on_lists(net, method):
    problem, rng = small(net), seeded(0, "rounds")
    draws = [method.draw(problem, rng) for _ in range(3)]
    state = method.init(problem)
    for draw, w in zip(draws, by_hand(problem, method, draws), strict=True):
        state, _ = method.round(Sequential(problem), state, draw)
        torch.testing.assert_close(state.w, w, rtol=1e-4, atol=1e-5)


def test_without_its_changes_the_loop_is_the_papers():
    """Kept models, one step on all rows, one ball: Algorithm 1, the library's FedFW."""
    problem = small("dnn").within(fl.Ball(2.0))
    plain = AuthorsFW(0.1, radius=2.0, reset=False, epoch=False, tensors=False)
    ours, library = (
        fl.run(method, problem, rounds=6, progress=False).state.w[0]
        for method in (plain, fl.FedFW(0.1))
    )
    torch.testing.assert_close(ours, library, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize(("norm", "order"), [("l2", 2), ("l1", 1)])
def test_the_authors_feddr_is_the_one_by_hand(norm, order, published):
    method = AuthorsFedDR(norm, 0.02, common=published, ordered=published)
    problem, rng = small(sizes=(70, 80, 130)), seeded(0, "rounds")
    draws = [method.draw(problem, rng) for _ in range(4)]
    state = method.init(problem)
    assert not state.w.any()
    w, clients = state.w, []
    scaled = 0
    for t, draw in enumerate(draws):
        chance = generator(draw)
        if t == 0:
            count = 1 if published else 3
            starts = torch.from_numpy(random_models(shapes_of(problem), count, chance))
            starts = starts.expand(3, -1)
            clients = [(x, x, x) for x in starts]
        moves = []
        for i, (y, x, before) in enumerate(clients):
            size = problem.sizes[i]
            if published:  # the 2, 2, 3 minibatches in turn, the last one short
                parts = torch.split(problem.own_rows(i), 64)
                rows = parts[t % len(parts)]
            else:
                places = torch.from_numpy(chance.choice(size, 64, replace=False))
                rows = problem.own_rows(i)[places]
            y = y + 0.01 * (w - x)
            x = x - 0.05 * (slope(problem, x, rows) + 0.01 * (x - y))
            clients[i] = (y, x, 2 * x - y)
            moves.append(2 * x - y - before)
        w = w + torch.stack(moves).mean(0)
        length = torch.linalg.vector_norm(w, order)
        if length > 0.02:
            w, scaled = w * 0.02 / length, scaled + 1
        state, _ = method.round(Sequential(problem), state, draw)
        torch.testing.assert_close(state.w, w, rtol=1e-4, atol=1e-6)
    assert scaled


def test_every_printed_value_is_there_once_and_has_the_run_of_its_setting():
    assert [sum(x.table == k for x in PRINTED) for k in (1, 2, 3)] == [36, 24, 16]
    assert len({x[:4] for x in PRINTED}) == 76
    assert sum(x.last is not None for x in PRINTED) == FILES
    runs = {x[1:4]: name_of(run_of(x), DEFAULTS) for x in PRINTED if run_of(x)}
    assert {*runs.values()} <= {*STUDY.specs(STUDY.resolve("full"))}
    assert runs["mclr_synthetic_iid", "l1", "plus"] == "mclr_iid_l1_fw_lam0.001"
    # FedFW+ is FedFW's run where the files have the same lambda_0, which is all but one column
    assert (len(runs), len({*runs.values()})) == (28, 21)


@pytest.mark.parametrize(("distance", "kind"), [(1.0, "same"), (-1.1, "near"), (-3.1, "apart")])
def test_values_are_counted_within_one_point_and_three(distance, kind):
    labels = {"net": "dnn", "split": "iid", "norm": "l2", "method": "feddr"}
    printed = next(x for x in PRINTED if run_of(x) == labels)
    rows = counted({Query.of("best", **labels): exact(printed.value + distance)})
    counts = {row["measure"]: row["value"] for row in rows}
    assert counts[kind] == counts["compared"] == 1
    assert counts["same"] + counts["near"] + counts["apart"] == 1
    assert counts["without"] == 75


def test_the_waterfall_takes_one_change_after_another():
    traces = STUDY.load()
    accuracies = {name: 100 * trace.metrics["accuracy"] for name, trace in traces.items()}
    gaps = waterfall(traces, 100)
    assert list(gaps) == list(STEPS)
    theirs = accuracies["mclr_iid_l2_feddr"]
    ours = accuracies["mclr_iid_l2_fw_lam0.001"]
    assert gaps["reset"] == pytest.approx(accuracies["reset_fw"][:, -1] - theirs[:, 100])
    assert gaps["epoch"] == pytest.approx(accuracies["epoch_fw"][:, -1] - theirs[:, 100])
    assert gaps["tensors"] == pytest.approx(ours[:, 100] - theirs[:, 100])
    assert gaps["rounds"] == pytest.approx(ours[:, -1] - theirs[:, -1])
    assert gaps["best"] == pytest.approx(ours.max(1) - theirs.max(1))
    assert gaps["chosen"].mean() >= gaps["best"].mean()
    loss = {name: trace.metrics["loss"][:, -3:].mean() for name, trace in traces.items()}
    first_steps = {}
    for method in ("fw", "feddr"):
        grid = [name for name in traces if name.startswith(f"ours_{method}_")]
        first_steps[method] = accuracies[min(grid, key=loss.get)][:, -1]
    assert gaps["text"] == pytest.approx(first_steps["fw"] - first_steps["feddr"])


def test_the_table_tells_where_a_printed_value_is_from():
    fw = {"net": "mclr", "split": "iid", "norm": "l2", "method": "fw", "lam": 0.001}
    feddr = {"net": "dnn", "split": "classes", "norm": "l1", "method": "feddr"}
    ours = {Query.of("best", **fw): exact(79.5), Query.of("best", **feddr): exact(91.5)}
    table = forensics(ours, {"mclr_synthetic_iid_l2_fedfw.accuracy": exact(70.0)})
    assert len(table) == 76
    line = table.loc["Table 1, ℓ2 synthetic, IID: FedFW"]
    assert list(line) == ["80.20", "the maximum", "80.16", "79.94", "79.5", "-0.7 same", "70.0"]
    assert table.loc["Table 1, ℓ2 synthetic, IID: FedFW+"]["distance"] == "-0.5 same"
    assert table.loc["Table 2, ℓ1 60-20-10, synthetic, 3 labels a client: FedDR"]["distance"] == (
        "-2.0 near"
    )
    line = table.loc["Table 3, ℓ2 EMNIST-62, 20 labels a client: FedFW-sto"]
    assert list(line)[:4] == ["60.51", "the maximum", "59.92", "56.95"]
    assert (table["authors' file"] == "no artefact is public").sum() == 76 - FILES
