"""Tests before a run: right functions are taken, wrong ones are named, also in large problems."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import fedlib as fl
from fedlib import problems
from fedlib.problems import ClientRows, chunks
from tests.fedlib.problems.own import CLIENTS, FEDAVG, SIZES, accuracy, entropy, network, quiet
from tests.helpers.expect import close, refuses
from tests.helpers.randoms import generator

LONGEST, _ = CLIENTS[2]
ONE_CLASS = [*CLIENTS[:2], (LONGEST, torch.zeros(40, dtype=torch.int64))]


def each(rows):
    return F.cross_entropy(rows.output, rows.target, reduction="none")


def with_padding(rows):
    return each(rows).mean()


def make(clients=CLIENTS, module=None, objective=entropy, **options):
    module = module or network()
    return problems.from_clients(clients, module=module, objective=objective, **options)


@pytest.fixture(params=[chunks.LIMIT, 2000], ids=["all rows at once", "some rows at a time"])
def limit(request, monkeypatch):
    """Memory for all rows of the tests' problems, and for some rows alone."""
    monkeypatch.setattr(chunks, "LIMIT", request.param)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_taken_and_padding_still_found(dtype):
    clients = [(x.to(dtype), y) for x, y in CLIENTS]
    half = network().to(dtype)
    problem = make(clients, half)
    assert problem.w0.dtype == dtype
    loss = problem.mean_losses(problem.w0).float()
    close(loss, make().mean_losses(make().w0), 0.02)
    refuses("'with_padding' must not count padding rows", make, clients, half, with_padding)


def test_large_gradients_that_cancel_are_no_padding():
    """Rows of +-1e6 whose gradients cancel: float32 leaves a rest of 0.1, padding or not."""
    clients = []
    for x, _ in CLIENTS:
        inputs = 1e3 * torch.cat([x, -x])
        clients.append((inputs, torch.zeros(len(inputs))))

    def large(rows):
        output = rows.output.squeeze(-1)
        return rows.mean(1e3 * output + output**2)

    module = nn.Linear(5, 1, bias=False)
    assert make(clients, module, large).sizes == (6, 24, 80)


class Reverse(torch.autograd.Function):
    """A function with a backward pass of its own and no rule for `vmap`."""

    @staticmethod
    def forward(x):
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, slope):  # noqa: ARG004
        return -slope


class Changed(nn.Module):
    """The network between two functions."""

    def __init__(self, prepare=nn.Identity(), finish=nn.Identity()):  # noqa: B008
        super().__init__()
        self.inner = network()
        self.prepare = prepare
        self.finish = finish

    def forward(self, x):
        return self.finish(self.inner(self.prepare(x)))


def test_a_function_without_a_map_runs_client_by_client():
    problem = make(module=Changed(finish=Reverse.apply))
    assert problem.sequential_clients
    assert not make().sequential_clients
    climbing = quiet(FEDAVG, problem).metrics["f"][0]
    assert climbing[-1] > climbing[0]
    assert make(objective=lambda rows: Reverse.apply(entropy(rows))).sequential_clients


def checkpointed(x):
    return checkpoint(torch.tanh, x, use_reentrant=False)


def indexed(rows):
    chosen = rows.output.gather(1, rows.target.unsqueeze(1))
    return rows.mean(chosen.squeeze(1))


def binary(rows):
    loss = F.binary_cross_entropy_with_logits(
        rows.output[:, 0],
        rows.target,
        reduction="none",
    )
    return rows.mean(loss)


FLOATS = [(x, y.float()) for x, y in CLIENTS]
WHOLE = [(x.long(), y) for x, y in CLIENTS]
THREE = [CLIENTS[0], (CLIENTS[1][0], torch.arange(12) % 3)]
REMEDIES = [
    ("dtype to be Long*write rows.target.long()", {"clients": FLOATS}),
    ("write rows.target.long()", {"clients": FLOATS, "objective": indexed}),
    ("write rows.target.float()", {"objective": binary}),
    (
        "module, of inputs of shape [3, 5], must work *; pass the inputs as floats",
        {"clients": WHOLE},
    ),
    ("; pass the inputs as whole numbers (int64)", {"module": nn.Embedding(4, 2)}),
    ("not use hooks on saved tensors, as torch", {"module": Changed(checkpointed)}),
    ("of shape [3, 5], must work on rows, but failed: mat1", {"module": nn.Linear(3, 2)}),
    ("objective 'entropy' on client 1 must work on*2 is out of bounds", {"clients": THREE}),
]


@pytest.mark.parametrize(("words", "changes"), REMEDIES)
def test_a_failure_says_what_to_write(words, changes):
    refuses(f"from_clients: *{words}", make, **changes)


def branching(rows):
    return entropy(rows) if rows.target.sum() > 2 else accuracy(rows)


def share_of_ones(rows):
    return rows.mean(rows.output[:, 0], where=rows.target == 1)


MISTAKES = [
    ("constraint 'each' must return one number*[3]", {"constraint": each}),
    ("'with_padding' must not count padding rows, got * without", {"objective": with_padding}),
    (
        "one number a row, *, got float32 [3, 2]",
        {"objective": lambda r: r.mean(r.output)},
    ),
    (
        "'with_padding' must not count padding rows",
        {"module": fl.models.linear(5, 2), "objective": with_padding},  # all rows have one loss
    ),
    ("'branching' must not read values at `return *torch.where", {"objective": branching}),
    ("must return one number, *got 0.5", {"objective": lambda _: 0.5}),
    ("no attribute 'outputs'", {"objective": lambda rows: rows.outputs}),
    (
        "finite where*on client 0",
        {"objective": lambda rows: rows.mean(rows.target.log())},
    ),
    (
        "objective 'entropy' *must be finite",
        {"module": Changed(finish=lambda x: (x - x).sqrt())},
    ),
    ("client 2'; or take a GroupGap", {"clients": ONE_CLASS, "constraint": share_of_ones}),
    ("measure 'm' must return one number", {"measures": {"m": each}}),
    ("the problem must have an objective, got 0", {"objective": ()}),
]


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize(("words", "changes"), MISTAKES)
def test_a_mistake_is_one_sentence(words, changes):
    refuses(f"from_clients: *{words}", make, **changes)


@pytest.mark.usefixtures("limit")
def test_a_loss_without_slope_is_warned_of():
    with pytest.warns(UserWarning, match="the gradient of constraint 'accuracy' is zero"):
        make(constraint=accuracy)


def test_the_mean_of_a_condition_that_nobody_meets_is_0():
    ones = torch.ones(2)
    rows = ClientRows(ones, ones, {}, ones / 2)
    assert rows.mean(ones, where=rows.target == 0) == 0
    assert rows.mean(rows.target == 1) == 1


def two_classes(rows):
    if len(rows.target.unique()) < 2:
        raise ValueError("Only one class present.")
    return 0.5


ON_CLIENTS = [
    ("on client 2 must work*Only one class present", two_classes),
    ("must have rows on every client *none on client 2", share_of_ones),
    ("must have rows on client 2 *got 'none'", lambda rows: float(share_of_ones(rows))),
]


@pytest.mark.parametrize(("words", "measure"), ON_CLIENTS)
def test_a_measure_is_tried_on_every_client(words, measure):
    measures = {"m": measure}
    refuses(f"from_clients: measure 'm' {words}", make, ONE_CLASS, measures=measures)
    assert make(ONE_CLASS, measures=measures, heldout=CLIENTS[2]).num_clients == 3


def test_a_measure_is_finite_and_one_that_fails_later_is_named():
    def until_it_moves(rows):
        if abs(float(rows.output[0, 0]) - start) > 1e-9:
            raise RuntimeError("moved")
        return 0.0

    nothing = {"m": lambda _: float("nan")}
    refuses("measure 'm' must be finite on client 0 where *, got nan", make, measures=nothing)
    start = network()(CLIENTS[0][0])[0, 0].item()
    measures = {"still": until_it_moves}
    problem = make(measures=measures, heldout=CLIENTS[0], name="wards")
    refuses("wards: measure 'still' on heldout must work *: moved", quiet, FEDAVG, problem)


@pytest.mark.parametrize("weights", [None, "rows", (1, 2, 5)])
def test_one_name_has_one_mean(weights):
    measures = {"tensor": accuracy, "number": lambda rows: float(accuracy(rows))}
    metrics = quiet(FEDAVG, make(measures=measures, weights=weights)).metrics
    np.testing.assert_allclose(metrics["tensor"], metrics["number"], rtol=1e-6)
    accuracies = []
    for x, y in CLIENTS:
        answers = network()(x).argmax(1)
        accuracies.append(float((answers == y).double().mean()))
    shares = {None: (1, 1, 1), "rows": SIZES}
    expected = np.average(accuracies, weights=shares.get(weights, weights))
    assert metrics["number"][0, 0] == pytest.approx(expected, rel=1e-6)


def rows_at_a_time(problem):
    return problem.metrics.__self__.chunk


@pytest.mark.filterwarnings("ignore:from_clients. the gradient of constraint")
@pytest.mark.parametrize("heldout", [(), CLIENTS[2]])
def test_some_rows_at_a_time_give_the_metrics_of_all_rows_at_once(monkeypatch, heldout):
    options = {
        "constraint": accuracy,
        "measures": {"tensor": accuracy, "number": lambda rows: float(accuracy(rows))},
        "weights": "rows",
        "heldout": heldout,
    }
    in_one = make(**options)
    monkeypatch.setattr(chunks, "LIMIT", 2000)
    in_chunks = make(**options)
    assert rows_at_a_time(in_one) is None
    assert 1 <= rows_at_a_time(in_chunks) < 40
    assert in_chunks.config == in_one.config
    trace = quiet(FEDAVG, in_chunks)
    for name, curve in quiet(FEDAVG, in_one).metrics.items():
        np.testing.assert_allclose(trace.metrics[name], curve, rtol=1e-6)


def test_rows_that_depend_on_each_other_stay_together(monkeypatch):
    monkeypatch.setattr(chunks, "LIMIT", 2000)
    centred = Changed(prepare=lambda x: x - x.mean(0))
    problem = make(CLIENTS[2:], centred)
    assert rows_at_a_time(problem) is None
    inputs, classes = CLIENTS[2]
    loss = F.cross_entropy(centred(inputs), classes)
    close(problem.mean_losses(problem.w0)[0], loss.detach(), 1e-6)


def test_small_problems_are_not_split_and_large_ones_keep_to_the_limit():
    module = fl.models.picture_cnn(generator())
    pictures = torch.rand(200, 1, 28, 28, generator=generator())
    w, apply = fl.models.ravel(module)
    assert chunks.rows_at_a_time(apply, w, pictures[:20]) == 20
    rows = chunks.rows_at_a_time(apply, w, pictures)
    assert rows < 200
    constant = chunks.bytes_of(apply, w, pictures[:0])
    assert chunks.bytes_of(apply, w, pictures[:rows]) - constant <= 1.5 * chunks.LIMIT
