"""What reads a large table in portions gives what it gives at once."""

import pytest
import torch
from randoms import numbers
from torch.func import vmap

import fedlib as fl
from fedlib import problems
from fedlib.core import Loop, Vectorized, federation
from fedlib.core.problem import Batch
from fedlib.engine import portions, simplify
from fedlib.engine.record import record

ROWS, WIDTH = 120, 40


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Everything is large here, and a portion is a few rows."""
    for module in (portions, simplify):
        monkeypatch.setattr(module, "LARGE", 2048)
    monkeypatch.setattr(federation, "WORTH", 0)
    monkeypatch.setattr(portions, "PORTION", 1024)


TABLE, ORDER = numbers(ROWS, WIDTH), numbers(ROWS, seed=2).argsort()
LABELS, MATRIX = torch.arange(ROWS) % 4, numbers(WIDTH, 4, seed=1)


def operations(replay):
    return [str(getattr(n.target, "__name__", n.target)) for n in replay.graph.graph.nodes]


def same(function, *example, cut=True):
    """The recording, which is or is not cut, gives the function's values."""
    replay = record(function, *example)
    expected, given = function(*example), replay(*example)
    torch.testing.assert_close(given, expected, rtol=1e-6, atol=1e-6)
    whole = {TABLE.shape, (1, *TABLE.shape)}
    values = [n.meta.get("val") for n in replay.graph.graph.nodes if n.op == "call_function"]
    assert cut != any(isinstance(x, torch.Tensor) and x.shape in whole for x in values)
    assert bool(replay.graph.meta.get("in portions")) == cut
    return replay


def cross_entropy(x, order, w):
    out, labels = x[order] @ w, LABELS[order]
    each = out.logsumexp(-1) - out.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return each.mean(), (out.argmax(1) == labels).to(x.dtype).mean()


def wide(x, order, w):
    out = torch.bmm(w.T.unsqueeze(0), x[order].T.unsqueeze(0)).squeeze(0)  # [4, R]
    return torch.softmax(out, 0).sum(1), out.amax(0)


def weighed(x, order, w):
    weight = torch.arange(float(len(order))) + w[0, 0]  # of every row, from elsewhere: to be cut
    column = weight.unsqueeze(1)
    return ((x[order] @ w[:, 0]) * weight).sum(), (x[order] * column).sum(1)


NEAR = torch.stack([ORDER.roll(k) for k in range(16)], 1)  # of every row, 16 others


def of_clients(x, order, w):
    batch = x[order.view(10, -1)]  # [N, m, p]
    return vmap(lambda rows: torch.log_softmax(rows @ w, -1).mean(0))(batch)


def of_seeds(x, order, w):
    many = torch.stack([w, 2 * w])
    return vmap(lambda v: cross_entropy(x, order, v))(many)


CUT = {
    "cross entropy": cross_entropy,
    "wide": wide,
    "with bias": lambda x, order, w: torch.addmm(w[0], x[order], w).relu().square().mean(0),
    "weighed": weighed,
    "rows of rows": lambda x, order, w: (x[NEAR[order][:, 3]] @ w).relu().sum(1),
    "of clients": of_clients,
    "of seeds": of_seeds,
}


@pytest.mark.parametrize("function", CUT.values(), ids=CUT)
def test_rows_in_portions_give_the_same(function):
    same(function, TABLE, ORDER, MATRIX)


def test_a_value_that_needs_all_rows_first_is_one_cut():
    def centred(x, order, w):
        out = x[order] @ w
        return (out - out.mean(0)).square().mean(0)  # the second pass sees all of `out`

    same(centred, TABLE, ORDER, MATRIX)


def written_to(x, order, w):
    rows = x[order]
    rows.mul_(2.0)
    return rows @ w


WHOLE = {
    "across rows": lambda x, order, w: torch.softmax(x[order], 0) @ w,
    "all rows wanted": lambda x, order, w: (x[order], x[order] @ w),
    "sorted rows": lambda x, order, w: x[order].sort(0).values @ w,
    "written to": written_to,
}


@pytest.mark.parametrize("function", WHOLE.values(), ids=WHOLE)
def test_what_needs_all_rows_at_once_is_left_whole(function):
    same(function, TABLE, ORDER, MATRIX, cut=False)


def test_a_small_table_is_left_whole(monkeypatch):
    monkeypatch.setattr(portions, "LARGE", 2**20)
    same(cross_entropy, TABLE, ORDER, MATRIX, cut=False)


def test_every_portion_is_gathered_and_multiplied_by_itself():
    replay = same(cross_entropy, TABLE, ORDER, MATRIX)
    assert operations(replay).count("index_select.default") > 10
    assert operations(replay).count("mm.default") > 10


def test_a_part_of_gathered_rows_is_gathered_alone():
    def parts(x, order, w):
        rows = x[order.view(10, 2, -1)]
        return [(rows[a : a + 5, step] @ w).sum() for a in (0, 5) for step in (0, 1)]

    replay = same(parts, TABLE, ORDER, MATRIX)
    largest = max(
        n.meta["val"].numel()
        for n in replay.graph.graph.nodes
        if n.target is torch.ops.aten.index_select.default
    )
    assert largest <= TABLE.numel() / 4


def test_data_of_several_runs_are_cut_within_a_run():
    def evaluation(x, order, w):
        rows = vmap(lambda x, own: x[own])(x, order)  # [S, N, m, p]
        out = torch.log_softmax(vmap(torch.matmul)(rows, w), -1)
        return out.mean((-2, -1))

    x, order = (
        numbers(2, 400, 16),
        torch.stack(
            [torch.randperm(400, generator=torch.Generator().manual_seed(s)) for s in (0, 1)]
        ),
    )
    replay = same(evaluation, x, order.view(2, 10, 40), numbers(2, 16, 4))
    gathered = [
        n.meta["val"].numel()
        for n in replay.graph.graph.nodes
        if n.target is torch.ops.aten.index_select.default
    ]
    assert sum(gathered) == x.numel()
    assert max(gathered) <= x.numel() / 20, "a run's rows are gathered at once"


def classes(**how):
    X = numbers(ROWS, 8)
    y = (X[:, 0] > 0).long() + 2 * (X[:, 1] > 0)
    return problems.softmax_regression(X, y, ORDER.view(10, -1), 4, **how)


METHODS = {
    "minibatches": fl.FedAvg(lr=0.1, local_steps=3, participants=7, batch_size=8),
    "all rows": fl.FedAvg(lr=0.1, local_steps=2, participants=10),
    "values apart": fl.FedSGM(
        lr=0.1, local_steps=2, participants=9, tolerance=0.0, batch_size=8, value_batch_size=12
    ),
    "memories": fl.FedSGM(
        lr=0.1, local_steps=1, participants=9, tolerance=0.0, batch_size=10,
        uplink=fl.compress.TopK(0.3), downlink=fl.compress.TopK(0.5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_clients_in_portions_give_what_a_loop_gives(name, monkeypatch):
    monkeypatch.setattr(portions, "PORTION", 4096)
    problem = classes(constrained=(2, 3)) if name in ("values apart", "memories") else classes()
    found = {}
    for engine in (Vectorized, Loop):
        grid = {"seeds": (0, 1), "rounds": 2, "progress": False, "engine": engine}
        found[engine] = fl.run(METHODS[name], problem, **grid)
    torch.testing.assert_close(found[Vectorized].state, found[Loop].state, rtol=1e-4, atol=1e-6)


def test_the_number_of_portions_follows_from_the_bytes():
    assert portions.portions(2047, most=100) == 1
    assert portions.portions(2048, most=100) == 2
    assert portions.portions(10_000, most=100) == 10
    assert portions.portions(10_000, most=4) == 4


def test_what_counts_are_the_rows_of_one_step_and_of_all_runs_together():
    problem = classes()
    fed = Vectorized(problem)
    draw = METHODS["minibatches"].draw(problem, torch.Generator().manual_seed(0))
    clients = fed.clients(draw)
    row = 4 * 8 + 8 + 4  # features, label, share
    assert fed._bytes_read(clients) == 7 * 8 * row
    assert isinstance(clients.rows, Batch)  # gathered too, but not what a step reads
    assert len(list(fed._in_portions(clients))) == 3
    fed.runs = 2
    assert len(list(fed._in_portions(clients))) == 4


def test_clients_that_send_as_much_as_they_read_are_taken_whole(monkeypatch):
    problem = classes()
    fed = Vectorized(problem)
    draw = METHODS["minibatches"].draw(problem, torch.Generator().manual_seed(0))
    clients = fed.clients(draw)
    times = fed._bytes_read(clients) / (7 * problem.w0.nbytes)
    for worth, count in ((0.9 * times, 3), (1.1 * times, 1)):
        monkeypatch.setattr(federation, "WORTH", worth)
        assert len(list(fed._in_portions(clients))) == count
