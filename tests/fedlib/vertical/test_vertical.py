"""Features split over clients: what is sent, and that the result is that of pooled features."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from expect import close, refuses

import fedlib as fl
from fedlib import data
from fedlib.algorithms import (
    SSCA,
    ConstrainedSSCA,
    ConstrainedVerticalSSCA,
    MiniBatchSGD,
    VerticalSGD,
    VerticalSSCA,
)
from fedlib.algorithms._vertical import messages
from fedlib.core import Problem
from fedlib.core.sampling import seeded
from fedlib.core.types import Batch
from fedlib.data import Table
from fedlib.problems import swish_network, vertical_network
from fedlib.steps import PowerLaw
from fedlib.vertical import Composite, Partition, contiguous, vertical
from fedlib.vertical.line import Line, Message

J, L, K, B = 6, 10, 64, 7  # hidden, classes, inputs, batch
RHO, GAMMA = PowerLaw(0.6, 0.3), PowerLaw(0.9, 0.35)
FREE = VerticalSSCA(tau=0.1, rho=RHO, gamma=GAMMA, batch_size=B, ridge=1e-3)
NORM = ConstrainedVerticalSSCA(
    tau=0.1, rho=RHO, gamma=GAMMA, penalty=1e5, batch_size=B, levels=0.5, objective="norm"
)
SGD = VerticalSGD(lr=PowerLaw(0.5, 0.1), batch_size=B, ridge=1e-3)
ALL = (FREE, NORM, SGD)
DEBIASED = replace(FREE, debias=True), replace(NORM, debias=True)
TWIN = {VerticalSSCA: SSCA, ConstrainedVerticalSSCA: ConstrainedSSCA, VerticalSGD: MiniBatchSGD}
by_name = {"ids": lambda a: type(a).__name__}


def network(seed=0, rows=300):
    table = data.digits()
    train = Table(table.X[:rows], table.y[:rows], table.classes)
    test = Table(table.X[-50:], table.y[-50:], table.classes)
    return swish_network(
        train, test, clients=3, hidden=J, seed=seed, scale=16.0, dtype=torch.float64
    )


def task(clients=5, seed=0, **options):
    return vertical_network(network(seed), clients=clients, scale=16.0, **options)


def horizontal(algorithm):
    """The algorithm that is given all features in one place."""
    twin = TWIN[type(algorithm)]
    own = {f.name for f in fields(twin)}
    same = {f.name: getattr(algorithm, f.name) for f in fields(algorithm) if f.name in own}
    return twin(**same)


def general(clients=3):
    """An objective and two constraints that see the clients' numbers side by side, by autograd."""
    rng = torch.Generator().manual_seed(5)
    X = torch.randn(40, 7, generator=rng, dtype=torch.float64)
    y = torch.randn(40, generator=rng, dtype=torch.float64)
    blocks = contiguous(7, clients)
    heads = 2 * clients
    ends = torch.cumsum(torch.tensor([heads, *(2 * len(b) for b in blocks)]), 0)
    parts = torch.tensor_split(torch.randperm(int(ends[-1]), generator=rng), ends[:-1])

    def inner(w, x):
        return torch.tanh(x @ w.view(-1, 2))

    def outer(w, h, labels):
        out = torch.cat(h, 1).square() @ w + h[0][:, 0]
        error = (out - labels[0]).square()
        return torch.stack([error, out - 0.1, torch.sin(out) * labels[0] - 0.2], 1)

    own = Partition("parameters", parts, int(ends[-1]))
    form = Composite(Partition("features", blocks, 7), own, inner, outer)
    w0 = torch.randn(int(ends[-1]), generator=rng, dtype=torch.float64)
    problem = Problem(
        name="general",
        data=(X, y),
        rows=torch.arange(40).view(2, 20),
        sizes=(20, 20),
        losses=lambda w, batch: batch.weight @ form.losses(w, batch.data[0], batch.data[1:]),
        num_objectives=1,
        num_constraints=2,
        w0=w0,
        metrics=lambda w, problem: {"f": problem.mean_losses(w)[0]},
    )
    return vertical(problem, form)


def batch_of(problem, samples):
    rows = problem.rows[0][samples]
    weight = problem.w0.new_full((len(rows),), 1 / len(rows))
    return Batch(tuple(x[rows] for x in problem.data), weight)


class Tapped(Line):
    """A line that keeps what is sent."""

    def __init__(self, fed):
        super().__init__(fed)
        self.seen = {}

    def _sent(self, sender, receiver, what, parts):
        self.seen[sender, receiver, what] = parts
        return super()._sent(sender, receiver, what, parts)


# --- who sends what -------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALL, **by_name)
@pytest.mark.parametrize("head", [1, 4])
def test_the_messages_of_a_round_are_those_of_the_table(algorithm, head):
    problem, clients = task(5), range(1, 6)
    features = {1: 13, 2: 13, 3: 13, 4: 13, 5: 12}
    table = [  # the paper's rows: sender, receiver, floats, indices
        *(("server", f"client {i}", L * J + J * features[i], B) for i in clients),
        *((f"client {i}", f"client {j}", B * J, 0) for i in clients for j in clients if i != j),
        *((f"client {i}", "server", J * features[i], 0) for i in clients),
        (f"client {head}", "server", L * J + (algorithm is NORM), 0),
    ]
    sent = messages(replace(algorithm, head=head), problem, seeded(0, "rounds"))
    assert [(m.sender, m.receiver, m.floats, m.indices) for m in sent] == table
    assert len({m.what for m in sent}) == 4
    assert all(isinstance(m, Message) for m in sent)


@pytest.mark.parametrize("algorithm", ALL, **by_name)
def test_bits(algorithm):
    problem = task(5)
    state, draw = algorithm.init(problem), algorithm.draw(problem, seeded(0, "rounds"))
    _, info = algorithm.round(fl.Vectorized(problem), state, draw)
    assert info["bits_down"] == 32 * (5 * (L * J + B) + K * J)
    assert info["bits_up"] == 32 * (problem.dim + (algorithm is NORM))
    assert info["bits_between"] == 32 * 5 * 4 * B * J


def test_a_client_of_its_own_sends_to_nobody_else():
    sent = messages(FREE, task(1), seeded(0, "rounds"))
    assert [(m.sender, m.receiver) for m in sent] == [
        ("server", "client 1"),
        ("client 1", "server"),
        ("client 1", "server"),
    ]


def test_constraints_of_the_problem_send_their_values_and_the_objective_none():
    problem = general(3)
    method = replace(NORM, objective="problem", levels=0.0, batch_size=5)
    sent = messages(method, problem, seeded(0, "rounds"))
    up = [m.floats for m in sent if m.receiver == "server"]
    assert up == [3 * 6, 3 * 4, 3 * 4, 3 * 6 + 2]  # three losses: gradients of each, two values
    all_three = replace(method, objective="norm", levels=0.5)
    assert messages(all_three, problem, seeded(0, "rounds"))[-1].floats == 3 * 6 + 3


def tapped(problem, algorithm, w, draw):
    line = Tapped(fl.Vectorized(problem))
    algorithm.round_over(line, algorithm.init(problem)._replace(w=w), draw)
    return line.seen


@pytest.mark.parametrize("algorithm", ALL, **by_name)
def test_nothing_of_another_client_enters_what_a_client_sends_to_others(algorithm):
    """Client 2's features and parameters become NaN: what 1 and 3 say of themselves is the same."""
    problem = task(3)
    draw = algorithm.draw(problem, seeded(0, "rounds"))
    problem = replace(problem, data=(problem.data[0].double(), *problem.data[1:]))
    X, w = problem.data[0].clone(), problem.w0.clone()
    X[:, problem.composite.features.parts[1]] = torch.nan
    w[problem.composite.parameters.parts[2]] = torch.nan
    poisoned = problem.with_tensors({"data": (X, *problem.data[1:])})
    clean, bad = (tapped(p, algorithm, v, draw) for p, v in ((problem, problem.w0), (poisoned, w)))
    assert clean.keys() == bad.keys()
    for key, parts in clean.items():
        sender, receiver, what = key
        if (sender == "server" and receiver != "client 2") or (
            what == "embeddings" and sender != "client 2"
        ):
            for a, b in zip(parts, bad[key], strict=True):
                assert torch.equal(a, b), key
    assert bad["client 2", "client 1", "embeddings"][0].isnan().all()


def test_a_client_reaches_its_own_block_and_the_labels_of_the_batch_only():
    problem, samples = task(3), torch.tensor([4, 0, 250])
    rows = problem.rows[0][samples]
    party = problem.party(2, samples)
    held = [getattr(party, f.name) for f in fields(party) if f.name != "form"]
    assert held[0] == 2
    assert torch.equal(held[1], problem.data[0][rows][:, 22:43])
    assert [x.shape for x in held[2]] == [(3,)]
    assert torch.equal(held[2][0], problem.data[1][rows])
    for f in fields(party.form):  # the form itself holds numbers of features, no data
        value = getattr(party.form, f.name)
        assert callable(value) or value is None or isinstance(value, Partition)


def test_what_a_client_sends_depends_on_others_by_what_it_heard_only():
    """The gradient of a block, from what the client was told and heard and nothing else."""
    problem = task(3)
    draw = FREE.draw(problem, seeded(0, "rounds"))
    seen = tapped(problem, FREE, problem.w0, draw)
    samples, w_0, w_3 = seen["server", "client 3", "samples, head, block"]
    one = torch.ones(1, 1).double()
    party = problem.party(3, samples)
    told = [seen[f"client {j}", "client 3", "embeddings"][0] for j in (1, 2)]
    heard = (*told, party.embedding(w_3))
    again = party.gradients(w_0, w_3, heard, one)
    assert torch.equal(again, seen["client 3", "server", "gradient of the block"][0])


# --- the same numbers -----------------------------------------------------------------------


def moved(algorithm, problem, rounds, seed=0):
    """The last state of some rounds, all equal to those of the algorithm with pooled features."""
    twin, rng = horizontal(algorithm), seeded(seed, "rounds")
    state, pooled = algorithm.init(problem), twin.init(problem)
    for _ in range(rounds):
        draw = algorithm.draw(problem, rng)
        state, info = algorithm.round(fl.Vectorized(problem), state, draw)
        pooled, twin_info = twin.round(fl.Vectorized(problem), pooled, draw)
        for a, b in zip(state, pooled, strict=True):
            torch.testing.assert_close(a, b, atol=1e-12, rtol=1e-11)
        for key in twin_info.keys() - {"bits_up", "bits_down"}:
            torch.testing.assert_close(info[key], twin_info[key], atol=1e-9, rtol=1e-9)
    return state


@pytest.mark.parametrize("clients", [1, 2, 5])
@pytest.mark.parametrize(
    "algorithm", [*ALL, *(replace(a, debias=True) for a in ALL[:2])], **by_name
)
def test_equals_the_horizontal_algorithm_on_the_same_batches(algorithm, clients):
    problem = task(clients)
    assert (moved(algorithm, problem, 12, seed=1).w - problem.w0).norm() > 0.1


@pytest.mark.parametrize("clients", [1, 2, 5])
@pytest.mark.parametrize("objective", ["problem", "norm"])
def test_equals_the_horizontal_algorithm_with_constraints_of_the_problem(clients, objective):
    levels = 0.0 if objective == "problem" else (2.0, 0.3, 0.3)
    method = replace(NORM, objective=objective, levels=levels, penalty=10.0, growth=2.0, patience=3)
    moved(method, general(clients), 8)
    moved(replace(FREE, ridge=0.0), general(clients), 1)  # without constraints: the objective alone


@pytest.mark.parametrize("closed", [True, False])
def test_what_is_sent_up_is_the_gradient(closed):
    rng = torch.Generator().manual_seed(2)
    blocks = torch.tensor_split(torch.randperm(K, generator=rng), [5, 20, 41])  # not neighbours
    problem = task(blocks=blocks)
    if not closed:
        form = replace(problem.composite, outer_pullback=None, inner_pullback=None)
        problem = replace(problem, composite=form)
    draw = SGD.draw(problem, rng)
    seen = tapped(problem, SGD, problem.w0, draw)
    up = {i: seen[f"client {i}", "server", "gradient of the block"][0][0] for i in range(1, 5)}
    first, values = seen["client 1", "server", "gradient of the head"]
    assert values.numel() == 0
    batch = batch_of(problem, draw.batches[0, 0])
    true = torch.func.grad(lambda w: B * problem.losses(w, batch)[0])(problem.w0)
    close(first[0], true[J * K :])
    for i, block in enumerate(blocks, start=1):
        columns = true[: J * K].view(J, K)[:, block].flatten()
        close(up[i], columns)


def test_the_sums_of_values_are_the_losses():
    problem = task(4)
    draw = NORM.draw(problem, seeded(0, "rounds"))
    seen = tapped(problem, NORM, problem.w0, draw)
    _, values = seen["client 1", "server", "gradient of the head"]
    losses = problem.losses(problem.w0, batch_of(problem, draw.batches[0, 0]))
    close(values / B, losses, 1e-13)


# --- batches, runs --------------------------------------------------------------------------


def test_a_batch_is_common_distinct_and_uniform():
    problem = task(2)
    draw = FREE.draw(problem, seeded(0, "rounds"))
    assert draw.participants.tolist() == [0]
    assert draw.batches.shape == (1, 1, B)
    assert len(set(draw.batches.flatten().tolist())) == B
    full = replace(FREE, batch_size=None).draw(problem, seeded(0, "rounds"))
    assert full.batches.flatten().tolist() == list(range(300))
    times, rng = torch.zeros(300), seeded(0, "rounds")
    for _ in range(2000):
        times[replace(FREE, batch_size=60).draw(problem, rng).batches[0, 0]] += 1
    assert (times / 2000 - 0.2).abs().max() < 0.04  # standard deviation 0.009


@pytest.mark.parametrize("problem", [task(3), general(2)], ids=["network", "general"])
def test_runs_on_both_engines(problem):
    options = {"rounds": 3, "seeds": [0, 4], "evaluate_every": 3}
    a, b = (fl.run(FREE, problem, **options, engine=e) for e in (fl.Vectorized, fl.Loop))
    close(a.state.w, b.state.w, 1e-11)
    for name, values in a.metrics.items():
        np.testing.assert_allclose(values, b.metrics[name], atol=1e-11)
    np.testing.assert_array_equal(a.info["bits_between"], b.info["bits_between"])
    if problem.name != "general":
        described = a.config["problem"]
        assert (described["clients"], described["blocks"]) == (3, ["0-21", "22-42", "43-63"])


def test_the_cost_falls_and_the_constraint_is_met():
    steps = {"rho": PowerLaw(0.9, 0.3), "gamma": PowerLaw(0.9, 0.6), "batch_size": 100}
    free = fl.run(replace(FREE, **steps), task(4), rounds=60, evaluate_every=60)
    norm = fl.run(replace(NORM, **steps), task(4), rounds=100, evaluate_every=100)
    assert free.metrics["cost"][0, -1] < 0.5 < 2 < free.metrics["cost"][0, 0]
    assert norm.metrics["cost"][0, -1] == pytest.approx(0.5, abs=0.05)
    assert norm.info["slack"][0, 0, -1] < 1e-3


# --- partitions, refusals -------------------------------------------------------------------


def test_partition_cuts_and_joins():
    rng = torch.Generator().manual_seed(0)
    parts = torch.tensor_split(torch.randperm(9, generator=rng), [2, 2, 6])
    whole = Partition("features", parts, 9)
    x = torch.randn(3, 9, generator=rng)
    assert [piece.shape[1] for piece in whole.split(x)] == [2, 0, 4, 3]
    assert torch.equal(whole.join(whole.split(x)), x)
    assert torch.equal(whole.to("cpu").join(whole.split(x)), x)
    moved = whole.to("meta")
    assert {p.device.type for p in (*moved.parts, moved.order)} == {"meta"}


def test_ten_blocks_of_mnist():
    assert [len(block) for block in contiguous(784, 10)] == [79] * 4 + [78] * 6


def test_a_problem_moves_with_its_partitions():
    moved = task(3).to("cpu")
    assert type(moved) is type(task(3))
    assert torch.equal(moved.composite.features.parts[1], torch.arange(22, 43))
    assert moved.composite.clients == 3


def test_the_pool_is_all_samples_of_all_clients():
    source = network()
    problem = vertical_network(source, clients=2, scale=16.0)
    assert problem.sizes == (300,)
    assert torch.equal(problem.rows[0], source.rows.flatten())
    assert torch.equal(problem.w0, source.w0)
    padded = replace(source, rows=source.rows.repeat(1, 2), sizes=(100, 100, 100))
    again = vertical_network(padded, clients=2, scale=16.0)
    assert torch.equal(again.rows, problem.rows)


def blocks(*lists):
    return [torch.tensor(numbers) for numbers in lists]


def test_refused_divisions():
    for cuts, words in (
        (([*range(40)], [*range(39, 64)]), "only once * 39 is in parts 0, 1 (1 such)."),
        (([*range(40)], [*range(42, 64)]), "all appear * 40 is in no part (2 such)."),
    ):
        refuses(f"vertical: features must *{words}", task, blocks=blocks(*cuts))
    more = blocks([*range(64)], [64])
    refuses("features must lie in 0..63, got 64.", task, blocks=more)
    refuses("clients must lie in 1..64 (the number of features), got 65.", task, clients=65)
    refuses("labels_at must name all clients 1..5* to [2, 4, 5].", task, labels_at=(1, 3))


def test_refused_problems():
    words, two = "composite must give the losses of swish_network", {"clients": 2, "scale": 255.0}
    refuses(words, vertical_network, network(), **two)
    words = "network must be made by swish_network, got 'general'"
    refuses(words, vertical_network, general(), error=TypeError)
    form = task(2).composite
    refuses("features must be divided as general has them*[7]", vertical, general(), form)
    seven = replace(form, features=Partition("features", contiguous(7, 2), 7))
    refuses("parameters must be divided as general has them", vertical, general(3), seven)
    refuses("parameters must be in 3 parts", replace, form, parameters=form.features)
    refuses("must be given together", replace, form, inner_pullback=None)
    words = "problem must be a VerticalProblem, swish_network"
    for algorithm in ALL:
        refuses(words, algorithm.init, network(), error=TypeError)


def test_refused_penalties_and_levels():
    who, own = "ConstrainedVerticalSSCA", replace(NORM, objective="problem")
    refuses(f"{who}: penalty must be positive, got 0", replace, NORM, penalty=0.0)
    refuses(f"{who}: levels must be positive, got -0.1", replace, NORM, levels=-0.1)
    refuses(f"{who}: objective must be one of 'problem', 'norm'", replace, NORM, objective="w")
    refuses(f"{who}: the problem must have a constraint", own.init, task())
    refuses(f"{who}: levels must hold 1 numbers", replace(NORM, levels=(0.1, 0.2)).init, task())
