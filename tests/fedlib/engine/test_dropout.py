"""Masks of dropout are drawn: rounding, engines and other seeds do not change them."""

import numpy as np
import pytest
import torch
from torch import nn

import fedlib as fl
from fedlib import models
from fedlib.core.sampling import draw_with_coin, seeded
from fedlib.problems import from_clients
from tests.helpers.randoms import numbers
from tests.helpers.weekly import further_weekly


def squares(k):
    return lambda rows: rows.mean((rows.output[:, k] - rows.target) ** 2)


def made(sizes=(12, 12, 12), objective=None, **options):
    """Clients with a network of two layers of dropout."""
    clients = []
    for j, size in enumerate(sizes):
        clients.append((numbers(size, 4, seed=j), numbers(size, seed=j + 9)))
    module = nn.Sequential(
        nn.Dropout(0.2),
        *models.mlp((4, 16)),
        nn.ReLU(),
        nn.Dropout(0.5),
        *models.mlp((16, 2)),
    )
    return from_clients(
        clients,
        module=module,
        objective=objective or squares(0),
        **options,
    )


SEVERAL = [squares(0), squares(1)]
BATCHES = {"lr": 0.03, "local_steps": 3, "participants": 2, "batch_size": 4}
CASES = {
    "batches": (fl.FedAvg(**BATCHES), made()),
    "unequal clients": (fl.FedAvg(0.03, 3, 2), made((2, 5, 90))),
    "a constraint": (fl.FedSGM(**BATCHES, tolerance=0.05), made(constraint=squares(1))),
    "objectives": (fl.FedCMOO(**BATCHES), made(objective=SEVERAL)),
    "several updates": (fl.FSMGDA(0.03, 2, 2), made(objective=SEVERAL)),
}


@pytest.mark.parametrize("name", further_weekly(CASES, ["unequal clients", "objectives"]))
def test_a_seed_has_the_masks_that_it_has_alone_and_in_every_engine(name):
    method, problem = CASES[name]
    options = {"rounds": 12, "evaluate_every": 6}
    alone = fl.run(method, problem, seeds=[1], **options)
    in_turn = fl.run(
        method,
        problem,
        seeds=[1],
        engine=fl.Sequential,
        **options,
    )
    together = fl.run(method, problem, seeds=[0, 1, 2], **options)
    for trace, seed in ((in_turn, 0), (together, 1)):
        np.testing.assert_allclose(trace.metrics["f"][seed], alone.metrics["f"][0], rtol=1e-3)
        w = trace.state.w[seed]
        torch.testing.assert_close(w, alone.state.w[0], rtol=1e-2, atol=1e-4)
    assert (together.state.w[0] - together.state.w[1]).abs().max() > 1e-2


def test_the_masks_of_clients_steps_and_rounds_differ():
    problem = made((200, 200, 200))
    method = fl.FedAvg(0.0001, 3, 3)
    fed = fl.Loop(problem)
    rng = seeded(0, "rounds")
    rows = problem.rows_of_client(torch.tensor(0))
    values = set()
    for _ in range(2):
        clients = fed.clients(draw_with_coin(method, problem, rng))
        for number in range(3):
            losses = fed.client(clients._replace(number=torch.tensor(number))).loss_function
            for _ in range(3):
                values.add(float(losses(problem.w0, rows)[0]))
    assert len(values) == 2 * 3 * 3
    assert float(problem.losses(problem.w0, rows, train=False)[0]) not in values


def test_masks_keep_the_share_that_was_asked_for():
    layer = models.HashedDropout(0.3)
    shares = []
    for coin in range(20):
        layer.coins = models.mixed(torch.tensor(coin) + torch.arange(100) * 7_919)
        shares.append((layer(torch.ones(100, 50)) == 0).double())
    dropped = torch.stack(shares)
    assert dropped.mean().item() == pytest.approx(0.3, abs=0.01)
    assert (dropped.mean((0, 2)) - 0.3).abs().max() < 0.1  # of every row
    assert (dropped.mean((0, 1)) - 0.3).abs().max() < 0.05  # of every place


def test_a_run_with_dropout_resumes_and_continues_to_the_same_numbers(tmp_path):
    method, problem = CASES["batches"]
    options = {"rounds": 30, "seeds": (0, 1), "evaluate_every": 4}
    path = tmp_path / "c"
    stopped = fl.run(
        method,
        problem,
        checkpoint=path,
        callback=lambda t, *_: t >= 8,
        **options,
    )
    assert stopped.rounds[-1] == 8
    uninterrupted = fl.run(method, problem, **options)
    resumed = fl.run(method, problem, checkpoint=path, **options)
    continued = fl.run(method, problem, start=stopped, **options)
    for trace in (resumed, continued):
        assert torch.equal(trace.state.w, uninterrupted.state.w)


def test_the_common_checks_hold_with_dropout():
    fl.check_algorithm(fl.FedAvg(0.05, 2, 3), made())
