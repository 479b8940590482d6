"""What people bring: modules as they are, rows as they are, runs that go on, the way back."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import fedlib as fl
from fedlib import problems

RNG = torch.Generator().manual_seed(0)
SIZES = (3, 12, 40)
CLIENTS = [
    (torch.randn(m, 5, generator=RNG), torch.randint(0, 2, (m,), generator=RNG)) for m in SIZES
]


def loss(rows):
    return rows.mean(cross_entropy(rows.output, rows.target, reduction="none"))


def accuracy(rows):
    return rows.mean(rows.output.argmax(1) == rows.target)


def network(*middle):
    hidden, relu, output = fl.models.mlp((5, 8, 2))
    return nn.Sequential(hidden, *middle, relu, output)


def make(module=None, clients=CLIENTS, **options):
    module = network() if module is None else module
    return problems.from_clients(clients, module=module, objective=loss, **options)


def quiet(method, problem, rounds=4, **options):
    return fl.run(method, problem, rounds=rounds, progress=False, **options)


FEDAVG = fl.FedAvg(0.3, 2, 3)


def test_frozen_parameters_stay_and_do_not_count():
    module = network()
    module[0].requires_grad_(False)
    frozen = module[0].weight.clone()
    problem = make(module)
    assert problem.dim == sum(p.numel() for p in module[-1].parameters())
    trace = quiet(FEDAVG, problem)
    trace.load_into(module)
    assert torch.equal(module[0].weight, frozen)
    assert not torch.equal(trace.state.w[0], problem.w0)


def test_the_trained_module_is_one_call_away():
    module = network()
    trace = quiet(FEDAVG, make(module, measures={"accuracy": accuracy}), seeds=(0, 1))
    with pytest.raises(ValueError, match="seed"):
        trace.load_into(module)
    trace.load_into(module, seed=1)
    with torch.no_grad():
        right = [(module(x).argmax(1) == y).double().mean().item() for x, y in CLIENTS]
    assert np.mean(right) == pytest.approx(trace.metrics["accuracy"][1, -1], abs=1e-6)


def test_a_batch_may_be_larger_than_a_client():
    large = fl.FedAvg(0.3, 2, 3, batch_size=16)
    loop = quiet(large, make(), engine=fl.Loop)
    np.testing.assert_allclose(quiet(large, make()).metrics["f"], loop.metrics["f"], rtol=1e-5)


def test_averages_weighted_by_rows_are_those_of_pooled_gradients():
    problem = make(weights="rows")
    w = quiet(fl.FedAvg(0.3, 1, 3), problem, rounds=1).state.w[0]
    inputs, target = (torch.cat(x) for x in zip(*CLIENTS, strict=True))
    module = network()
    cross_entropy(module(inputs), target).backward()
    step = torch.cat([(p - 0.3 * p.grad).detach().flatten() for p in module.parameters()])
    torch.testing.assert_close(w, step)


def test_problems_pickle():
    problem = pickle.loads(pickle.dumps(make()))
    assert torch.equal(problem.mean_losses(problem.w0), make().mean_losses(problem.w0))


def test_a_loss_without_slope_is_warned_of():
    def rate(rows):
        return rows.mean((rows.output.argmax(1) == rows.target).float())

    with pytest.warns(UserWarning, match="the gradient of constraint 'rate' is zero"):
        make(constraint=rate)


def test_padding_is_found_where_the_start_is_symmetric():
    module = fl.models.linear(5, 2)  # at zero, where every row has one loss

    def plain(rows):
        return cross_entropy(rows.output, rows.target)

    with pytest.raises(ValueError, match="'plain' must not count padding rows"):
        problems.from_clients(CLIENTS, module=module, objective=plain)


def test_dropout_trains_with_coins_and_measures_without():
    module = network(nn.Dropout(0.5))
    problem = make(module, measures={"accuracy": accuracy})
    plain = make()
    w = problem.w0
    torch.testing.assert_close(problem.metrics(w, problem)["f"], plain.metrics(w, plain)["f"])
    batch = problem.rows_of_client(torch.tensor(2))
    losses = torch.stack([problem.losses(w + k * 1e-6, batch)[0] for k in range(200)])
    assert torch.equal(losses[0], problem.losses(w, batch)[0])  # the same model, the same coins
    assert losses.unique().numel() > 190
    module.train()
    torch.manual_seed(0)  # noqa: TID251  nn.Dropout draws from torch's own generator
    x, y = CLIENTS[2]
    with torch.no_grad():
        expected = torch.stack([cross_entropy(module(x), y) for _ in range(200)])
    assert losses.mean().item() == pytest.approx(expected.mean().item(), rel=0.03)
    assert losses.std().item() == pytest.approx(expected.std().item(), rel=0.3)
    trace = quiet(FEDAVG, problem, rounds=15, seeds=(0, 1))
    assert (trace.metrics["f"][:, -1] < 0.9 * trace.metrics["f"][:, 0]).all()


def test_coins_of_dropout_fall_in_the_share_that_was_asked_for():
    layer = fl.models.HashedDropout(0.2)
    rows = torch.randn(2000, 5, generator=RNG)
    layer.coins = fl.models.row_hashes(torch.ones(3), rows)
    dropped = (layer(torch.ones(2000, 50)) == 0).double()
    assert dropped.mean().item() == pytest.approx(0.2, abs=0.01)
    assert dropped.mean(0).max() < 0.25
    assert np.abs(np.corrcoef(dropped.T)[np.triu_indices(50, 1)]).max() < 0.11
    assert layer(torch.ones(2000, 50)).max().item() == 1.25


def distance_from_one(output):
    """A constraint on one output."""
    return lambda rows: rows.mean((rows.output[:, output] - 1) ** 2)


def test_the_largest_of_several_constraints_is_the_one_that_counts():
    problem = make(constraint=[distance_from_one(0), distance_from_one(1)])
    values = problem.mean_losses(problem.w0)[1:]
    assert values.max() > 0.5
    method = fl.FedSGM(0.1, 1, 3, tolerance=0.5)
    several = quiet(method, problem, rounds=1)
    largest = make(constraint=distance_from_one(int(values.argmax())))
    alone = quiet(method, largest, rounds=1)
    assert torch.equal(several.state.w, alone.state.w)
    assert several.metrics["g"][0, 0] == pytest.approx(values.max().item())
    for name in ("bits_up", "bits_down"):  # one value more each way, three clients
        assert several.info[name] - alone.info[name] == 3 * 32
    end = quiet(method, problem, rounds=60).metrics
    assert end["g_1"][0, -1] < 0.6
    assert end["g_2"][0, -1] < 0.6


def test_a_schedule_multiplies_the_step_size():
    problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    rates = (0.1, 0.2)
    grid = [fl.FedAvg(lr, 1, 4) for lr in rates]
    options = {"rounds": 3, "seeds": (0, 1), "progress": False}
    traces = fl.run(grid, problem, schedules={"lr": fl.PowerLaw(1.0, 1.0)}, **options)
    gradient = torch.func.grad(lambda u: problem.mean_losses(u)[0])
    for lr, trace in zip(rates, traces, strict=True):
        w = problem.w0
        for t in (1, 2, 3):
            w = w - lr / t * gradient(w)
        torch.testing.assert_close(trace.state.w, w.expand(2, 2))
        described = {"type": "PowerLaw", "scale": 1.0, "exponent": 1.0}
        assert trace.config["schedules"]["lr"] == described
    with pytest.raises(ValueError, match=r"schedules of FedAvg must be one of .*, got 'rate'"):
        fl.run(grid, problem, schedules={"rate": lambda t: 1 / t}, **options)


def squared_error(column, scale):
    """An objective on one column of outputs and targets."""
    return lambda rows: scale * rows.mean((rows.output[:, column] - rows.target[:, column]) ** 2)


def share_left(problem, lr):
    """What is left of the second objective after some rounds."""
    method = fl.FedCMOO(lr, 2, 3, weights=fl.FindWeights(0.01, 50))
    curve = quiet(method, problem, rounds=40).metrics["f_2"][0]
    return curve[-1] / curve[0]


def test_objectives_are_brought_to_one_scale():
    clients = [(x, x[:, :2]) for x, _ in CLIENTS]
    module = fl.models.linear(5, 2)
    objective = [squared_error(0, 1.0), squared_error(1, 100.0)]
    problem = problems.from_clients(clients, module=module, objective=objective)
    scaled = problem.scaled()
    torch.testing.assert_close(scaled.mean_losses(problem.w0), torch.ones(2))
    assert scaled.config["scales"] == pytest.approx(problem.mean_losses(problem.w0).tolist())
    assert share_left(scaled, 0.2) < 0.2 < share_left(problem, 0.002)
