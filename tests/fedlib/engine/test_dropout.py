"""Masks of dropout are drawn: rounding, engines and other seeds do not change them."""

import numpy as np
import pytest
import torch
from torch import nn

import fedlib as fl
from fedlib import models
from fedlib.core.sampling import draw_with_coin, seeded
from fedlib.problems import from_clients
from tests.helpers.randoms import normal
from tests.helpers.weekly import further_weekly


def squares(k):
    return lambda rows: rows.mean((rows.output[:, k] - rows.target) ** 2)


def made(sizes=(12, 12, 12), objective=None, **options):
    """Clients with a network of two layers of dropout."""
    clients = [
        (normal(m, 4, seed=j).float(), normal(m, seed=j + 9).float()) for j, m in enumerate(sizes)
    ]
    hidden = models.mlp((4, 16))
    output = models.mlp((16, 2))
    module = nn.Sequential(nn.Dropout(0.2), *hidden, nn.ReLU(), nn.Dropout(0.5), *output)
    return from_clients(clients, module=module, objective=objective or squares(0), **options)


BATCHES = {
    "lr": 0.03,
    "local_steps": 3,
    "participants": 2,
    "batch_size": 4,
}
CASES = {
    "batches": (fl.FedAvg(**BATCHES), made()),
    "all rows": (fl.FedAvg(0.03, 3, 3), made()),
    "unequal clients": (fl.FedAvg(0.03, 3, 2), made((2, 5, 90))),
    "a constraint": (fl.FedSGM(**BATCHES, tolerance=0.05), made(constraint=squares(1))),
    "objectives": (fl.FedCMOO(0.03, 2, 2, batch_size=4), made(objective=[squares(0), squares(1)])),
    "several updates": (fl.FSMGDA(0.03, 2, 2), made(objective=[squares(0), squares(1)])),
    "one scale": (fl.FedAvg(**BATCHES), made().scaled()),
}


def end(method, problem, seeds, **options):
    options = {
        "rounds": 12,
        "evaluate_every": 6,
        "progress": False,
        **options,
    }
    trace = fl.run(method, problem, seeds=seeds, **options)
    return trace.metrics["f"], trace.state.w


@pytest.mark.parametrize("name", further_weekly(CASES, ["unequal clients", "objectives"]))
def test_a_seed_has_the_masks_that_it_has_alone_and_in_every_engine(name):
    method, problem = CASES[name]
    alone, w = end(method, problem, [1])
    among, all_w = end(method, problem, [0, 1, 2])
    in_turn, w_in_turn = end(method, problem, [1], engine=fl.Sequential)
    np.testing.assert_allclose(among[1], alone[0], rtol=1e-3)
    np.testing.assert_allclose(in_turn[0], alone[0], rtol=1e-3)
    torch.testing.assert_close(all_w[1], w[0], rtol=1e-2, atol=1e-4)
    torch.testing.assert_close(w_in_turn, w, rtol=1e-2, atol=1e-4)
    assert (all_w[0] - all_w[1]).abs().max() > 1e-2


def test_the_masks_of_clients_steps_rounds_and_rows_differ():
    problem = made((200, 200, 200))
    method = fl.FedAvg(0.0001, 3, 3)
    fed = fl.Loop(problem)
    rng = seeded(0, "rounds")
    draws = [draw_with_coin(method, problem, rng) for _ in range(2)]
    coins = set()
    client_rows = problem.rows_of_client(torch.tensor(0))
    for draw in draws:
        fed.clients(draw)
        for number in range(3):
            losses = fed.client(
                fed.clients(draw)._replace(number=torch.tensor(number))
            ).loss_function
            for _ in range(3):
                losses(problem.w0, client_rows)
                coins.add(int(losses.coin + 15_485_863 * losses.evaluations))
    assert len(coins) == 2 * 3 * 3
    values = [
        float(problem.losses(problem.w0, client_rows, coin=torch.tensor(c))[0]) for c in coins
    ]
    assert len(set(values)) == len(coins)
    plain = problem.losses(problem.w0, client_rows, train=False)[0]
    assert all(value != float(plain) for value in values)
    assert fl.Vectorized(problem).coin is None


def test_masks_keep_the_share_that_was_asked_for():
    layer = models.HashedDropout(0.3)
    apply = models.ravel(nn.Sequential(nn.Dropout(0.3), *models.mlp((50, 1))))[1]
    assert apply.dropout == ("0",)
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
    options = {"seeds": (0, 1), "progress": False, "evaluate_every": 4}
    uninterrupted = fl.run(method, problem, rounds=30, **options)
    stopped = fl.run(
        method,
        problem,
        rounds=30,
        checkpoint=tmp_path / "c",
        callback=lambda t, *_: t >= 8,
        **options,
    )
    assert stopped.rounds[-1] == 8
    again = fl.run(method, problem, rounds=30, checkpoint=tmp_path / "c", **options)
    continued = fl.run(method, problem, rounds=30, start=stopped, **options)
    for trace in (again, continued):
        assert torch.equal(trace.state.w, uninterrupted.state.w)


def test_the_common_checks_hold_with_dropout():
    fl.check_algorithm(fl.FedAvg(0.05, 2, 3), made())
