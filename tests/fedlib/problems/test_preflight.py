"""Tests before a run: right functions are taken, wrong ones are named, also in large problems."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import fedlib as fl
from fedlib import problems
from fedlib.problems import chunks
from tests.helpers.expect import close, refuses

RNG = torch.Generator().manual_seed(0)
SIZES = (3, 12, 40)
INPUTS = [torch.randn(m, 5, generator=RNG) for m in SIZES]
CLASSES = [torch.arange(m) % 2 for m in SIZES]
CLIENTS = [*zip(INPUTS, CLASSES, strict=True)]
AVERAGE = fl.FedAvg(0.3, 2, 3)


def entropy(rows):
    return rows.mean(F.cross_entropy(rows.output, rows.target, reduction="none"))


def accuracy(rows):
    return rows.mean(rows.output.argmax(1) == rows.target)


def logits(rows):
    scores = rows.output[:, 1] - rows.output[:, 0]
    return rows.mean(F.binary_cross_entropy_with_logits(scores, rows.target, reduction="none"))


def network():
    return fl.models.mlp((5, 8, 2))


def make(clients=CLIENTS, module=None, objective=entropy, **options):
    module = network() if module is None else module
    return problems.from_clients(clients, module=module, objective=objective, **options)


def quiet(problem, rounds=3, **options):
    return fl.run(AVERAGE, problem, rounds=rounds, progress=False, **options)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_taken_and_padding_still_found(dtype):
    clients = [(x.to(dtype), y) for x, y in CLIENTS]
    problem = make(clients, network().to(dtype))
    assert problem.w0.dtype == dtype
    start = make().metrics(make().w0, make())["f"]
    assert problem.metrics(problem.w0, problem)["f"].item() == pytest.approx(start.item(), rel=0.02)

    def plain(rows):
        return F.cross_entropy(rows.output, rows.target)

    refuses("'plain' must not count padding rows", make, clients, network().to(dtype), plain)


def test_large_gradients_that_cancel_are_no_padding():
    """Rows of +-1e6 whose gradients cancel: float32 leaves a rest of 0.1, padding or not."""
    inputs = [1e3 * torch.cat([x, -x]) for x in INPUTS]
    clients = [(x, torch.zeros(len(x))) for x in inputs]
    module = nn.Linear(5, 1, bias=False)

    def large(rows):
        return 1e3 * rows.mean(rows.output.squeeze(-1)) + rows.mean(rows.output.squeeze(-1) ** 2)

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


class Reversed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, x):
        return Reverse.apply(self.inner(x))


def test_a_function_without_a_map_runs_client_by_client():
    problem = make(module=Reversed())
    assert problem.sequential_clients
    assert not make().sequential_clients
    trace = quiet(problem, seeds=(0, 1))
    plain = quiet(make(), seeds=(0, 1))
    assert (trace.metrics["f"][:, -1] > trace.metrics["f"][:, 0]).all()  # it climbs
    assert (plain.metrics["f"][:, -1] < plain.metrics["f"][:, 0]).all()

    def reversed_loss(rows):
        return Reverse.apply(entropy(rows))

    assert make(objective=reversed_loss).sequential_clients


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = network()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.inner(x)


def whole_targets(rows):
    return rows.mean(F.one_hot(rows.target, 2)[:, 0] * rows.output[:, 0])


def indexed(rows):
    return rows.mean(rows.output.gather(1, rows.target.unsqueeze(1)).squeeze(1))


FLOATS = [(x, y.float()) for x, y in CLIENTS]
WORDS = {
    "cross entropy of floats": (
        {"clients": FLOATS},
        "expected target dtype to be Long*write rows.target.long()",
    ),
    "gather by floats": ({"clients": FLOATS, "objective": indexed}, "write rows.target.long()"),
    "one hot of floats": (
        {"clients": FLOATS, "objective": whole_targets},
        "write rows.target.long()",
    ),
    "binary cross entropy of classes": ({"objective": logits}, "write rows.target.float()"),
    "inputs of whole numbers": (
        {"clients": [(x.long(), y) for x, y in CLIENTS]},
        "module, of inputs of shape [3, 5], must work *; pass the inputs as floats",
    ),
    "inputs of bytes": (
        {"clients": [(x.byte(), y) for x, y in CLIENTS]},
        "; pass the inputs as floats",
    ),
    "places that are floats": (
        {"module": nn.Sequential(nn.Embedding(4, 2))},
        "; pass the inputs as whole numbers (int64)",
    ),
    "checkpoints": ({"module": Checkpointed()}, "must not use hooks on saved tensors, as torch"),
    "counted calls": (
        {"module": Counting()},
        "must leave its buffers * as they are, got ['calls']",
    ),
}


@pytest.mark.parametrize(("changes", "words"), WORDS.values(), ids=WORDS)
def test_a_failure_says_what_to_write(changes, words):
    refuses(f"from_clients: *{words}", make, **changes)


def two_classes(rows):
    if len(set(rows.target.tolist())) < 2:
        raise ValueError("Only one class present.")
    return 0.5


def share_of_ones(rows):
    return rows.mean(rows.output[:, 0], where=rows.target == 1)


def share_on_host(rows):
    return float(share_of_ones(rows))


def nothing(rows):
    return float("nan")


ONE_CLASS = [*CLIENTS[:2], (INPUTS[2], torch.zeros(40, dtype=torch.int64))]


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (two_classes, "measure 'm' on client 2 must work*Only one class present"),
        (share_of_ones, "measure 'm' must have rows on every client *none on client 2"),
        (share_on_host, "measure 'm' must have rows on client 2 *got 'none'"),
        (nothing, "measure 'm' must be finite on client 0 where methods start, got nan"),
    ],
)
def test_a_measure_is_tried_on_every_client(measure, words):
    refuses(f"from_clients: {words}", make, ONE_CLASS, measures={"m": measure})
    if measure is not nothing:
        assert make(ONE_CLASS, measures={"m": measure}, heldout=CLIENTS[2]).num_clients == 3


def test_a_measure_that_fails_later_is_named():
    def until_it_moves(rows):
        if abs(float(rows.output[0, 0]) - start) > 1e-9:
            raise RuntimeError("moved")
        return 0.0

    with torch.no_grad():
        start = float(network()(INPUTS[0])[0, 0])
    options = {"measures": {"still": until_it_moves}, "heldout": CLIENTS[0], "name": "wards"}
    refuses("wards: measure 'still' on heldout must work *: moved", quiet, make(**options))


@pytest.mark.parametrize("weights", [None, "rows", (1, 2, 5)])
def test_one_name_has_one_mean(weights):
    measures = {"tensor": accuracy, "number": lambda rows: float(accuracy(rows))}
    metrics = quiet(make(measures=measures, weights=weights)).metrics
    np.testing.assert_allclose(metrics["tensor"], metrics["number"], rtol=1e-6)
    with torch.no_grad():
        accuracies = [(network()(x).argmax(1) == y).double().mean().item() for x, y in CLIENTS]
    share = {None: (1, 1, 1), "rows": SIZES}.get(weights, weights)
    expected = np.average(accuracies, weights=share)
    assert metrics["number"][0, 0] == pytest.approx(expected, rel=1e-6)


class Squeezed(nn.Module):
    """A module that compares the rows of a batch with each other."""

    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, x):
        return self.inner(x - x.mean(0))


@pytest.fixture
def limit(monkeypatch):
    """A memory limit below the needs of the tests' problems."""
    monkeypatch.setattr(chunks, "LIMIT", 2000)


def rows_per_chunk(problem):
    return problem.metrics.__self__.chunk


OPTIONS = {
    "constraint": accuracy,
    "measures": {"tensor": accuracy, "number": lambda rows: float(accuracy(rows))},
    "weights": "rows",
}


class TestLargeProblems:
    """Some rows at a time give the numbers and the sentences of all rows at once."""

    @pytest.mark.filterwarnings("ignore:from_clients. the gradient of constraint")
    @pytest.mark.parametrize("heldout", [(), CLIENTS[2]])
    def test_metrics_are_the_same(self, monkeypatch, heldout):
        in_one = make(heldout=heldout, **OPTIONS)
        monkeypatch.setattr(chunks, "LIMIT", 2000)
        in_chunks = make(heldout=heldout, **OPTIONS)
        assert rows_per_chunk(in_one) is None
        assert 1 <= rows_per_chunk(in_chunks) < 40
        assert in_one.config == in_chunks.config
        trace_in_one = quiet(in_one, seeds=(0, 1))
        trace_in_chunks = quiet(in_chunks, seeds=(0, 1))
        assert trace_in_one.metrics.keys() == trace_in_chunks.metrics.keys()
        for name in trace_in_one.metrics:
            np.testing.assert_allclose(
                trace_in_one.metrics[name], trace_in_chunks.metrics[name], rtol=1e-6
            )
        assert torch.equal(trace_in_one.state.w, trace_in_chunks.state.w)

    @pytest.mark.usefixtures("limit")
    def test_wrong_functions_are_refused(self):
        def plain(rows):
            return F.cross_entropy(rows.output, rows.target)

        def reading(rows):
            return entropy(rows) if rows.target.sum() > 2 else accuracy(rows)

        def infinite(rows):
            return rows.mean(rows.output[:, 0].clamp(max=0).sqrt())

        refuses("'plain' must not count padding rows", make, objective=plain)
        refuses("'reading' must not read values", make, objective=reading)
        refuses("must be finite where methods start*on client 1", make, objective=infinite)
        refuses("none on client 2'; or take a GroupGap", make, ONE_CLASS, objective=share_of_ones)
        with pytest.warns(UserWarning, match="the gradient of constraint 'accuracy' is zero"):
            make(constraint=accuracy)

    def test_a_gradient_that_is_not_finite_within_the_module_is_found(self, monkeypatch):
        class Root(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = fl.models.linear(5, 2)

            def forward(self, x):
                return self.layer(x).abs().sqrt()

        monkeypatch.setattr(chunks, "LIMIT", 500)
        refuses("the gradient of objective 'entropy' must be finite", make, module=Root())

    @pytest.mark.usefixtures("limit")
    def test_rows_that_depend_on_each_other_stay_together(self):
        clients = [(INPUTS[2], CLASSES[2]), (INPUTS[2].flip(0), CLASSES[2])]
        problem = make(clients, Squeezed())
        assert rows_per_chunk(problem) is None
        with torch.no_grad():
            expected = [F.cross_entropy(Squeezed()(x), y) for x, y in clients]
        close(problem.mean_losses(problem.w0), torch.stack(expected).mean().view(1), 1e-6)


def test_small_problems_are_not_split():
    module = fl.models.picture_cnn(torch.Generator().manual_seed(0))
    pictures = torch.rand(20, 1, 28, 28, generator=RNG)
    inputs = pictures.repeat(10, 1, 1, 1)
    w, apply = fl.models.ravel(module)
    assert chunks.rows_at_a_time(apply, w, pictures) == 20
    rows = chunks.rows_at_a_time(apply, w, inputs)
    assert rows < 200
    needed = chunks.bytes_of(apply, w, pictures[:rows]) - chunks.bytes_of(apply, w, pictures[:0])
    assert needed <= 1.5 * chunks.LIMIT
