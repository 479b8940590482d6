"""What people bring: modules as they are, rows as they are, the trained module back."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import fedlib as fl
from fedlib import problems
from tests.fedlib.problems.own import CLIENTS, FEDAVG, accuracy, entropy, network, quiet
from tests.helpers.expect import close


def make(module=None, clients=CLIENTS, objective=entropy, **options):
    module = module or network()
    return problems.from_clients(clients, module=module, objective=objective, **options)


def test_frozen_parameters_stay_and_do_not_count():
    module = network()
    module[0].requires_grad_(False)
    frozen = module[0].weight.clone()
    problem = make(module)
    assert problem.dim == 8 * 2 + 2
    trace = quiet(FEDAVG, problem)
    trace.load_into(module)
    assert torch.equal(module[0].weight, frozen)
    assert not torch.equal(trace.state.w[0], problem.w0)


def test_the_trained_module_is_one_call_away():
    module = network()
    problem = make(module, measures={"accuracy": accuracy})
    trace = quiet(FEDAVG, problem, seeds=(0, 1))
    with pytest.raises(ValueError, match="seed"):
        trace.load_into(module)
    trace.load_into(module, seed=1)
    shares = []
    for x, y in CLIENTS:
        right = module(x).argmax(1) == y
        shares.append(float(right.double().mean()))
    assert trace.metrics["accuracy"][1, -1] == pytest.approx(np.mean(shares), abs=1e-6)


def test_a_batch_may_be_larger_than_a_client():
    large = fl.FedAvg(0.3, 2, 3, batch_size=16)
    mapped = quiet(large, make()).metrics["f"]
    loop = quiet(large, make(), engine=fl.Loop).metrics["f"]
    np.testing.assert_allclose(mapped, loop, rtol=1e-5)


def test_averages_weighted_by_rows_are_those_of_pooled_gradients():
    problem = make(weights="rows")
    state = quiet(fl.FedAvg(0.3, 1, 3), problem, rounds=1).state
    inputs, target = map(torch.cat, zip(*CLIENTS, strict=True))
    module = network()
    cross_entropy(module(inputs), target).backward()
    step = nn.utils.parameters_to_vector(p.grad for p in module.parameters())
    close(state.w[0], problem.w0 - 0.3 * step, 1e-6)


def test_problems_pickle():
    problem = pickle.loads(pickle.dumps(make()))
    close(problem.mean_losses(problem.w0), make().mean_losses(problem.w0), 0)


def test_dropout_trains_with_coins_and_measures_without():
    module = network(nn.Dropout(0.5))
    problem = make(module)
    w = problem.w0
    plain = make()
    close(problem.metrics(w, problem)["f"], plain.metrics(w, plain)["f"], 0)
    batch = problem.rows_of_client(torch.tensor(2))
    near = [w + k * 1e-6 for k in range(200)]
    losses = torch.cat([problem.losses(u, batch) for u in near])
    assert losses[0] == problem.losses(w, batch)  # the same model, the same coins
    assert losses.unique().numel() > 190
    module.train()
    torch.manual_seed(0)  # noqa: TID251  nn.Dropout draws from torch's own generator
    x, y = CLIENTS[2]
    expected = torch.stack([cross_entropy(module(x), y).detach() for _ in near])
    close(losses.mean() / expected.mean(), 1.0, 0.03)
    close(losses.std() / expected.std(), 1.0, 0.3)


def distance_from_one(output):
    """A constraint on one output."""
    return lambda rows: rows.mean((rows.output[:, output] - 1) ** 2)


def test_the_largest_of_several_constraints_is_the_one_that_counts():
    constraints = [distance_from_one(0), distance_from_one(1)]
    problem = make(constraint=constraints)
    values = problem.mean_losses(problem.w0)[1:]
    largest = make(constraint=constraints[values.argmax()])
    method = fl.FedSGM(0.1, 1, 3, tolerance=0.5)
    several = quiet(method, problem, rounds=1)
    alone = quiet(method, largest, rounds=1)
    assert torch.equal(several.state.w, alone.state.w)
    assert several.metrics["g"][0, 0] == pytest.approx(values.max().item())
    for name in ("bits_up", "bits_down"):  # one value more each way, three clients
        assert several.info[name] - alone.info[name] == 3 * 32


def test_objectives_are_brought_to_one_scale():
    def large(rows):
        return 100 * entropy(rows)

    problem = make(objective=[entropy, large])
    scaled = problem.scaled()
    close(scaled.mean_losses(problem.w0), torch.ones(2), 1e-6)
    assert scaled.config["scales"] == pytest.approx(problem.mean_losses(problem.w0).tolist())
