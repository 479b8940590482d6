"""What people bring: modules as they are, rows as they are, runs that go on, the way back."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import fedlib as fl
from fedlib import problems
from fedlib.problems import GroupGap

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
    first, relu, last = fl.models.mlp((5, 8, 2))
    return nn.Sequential(first, *middle, relu, last)


def make(module=None, clients=CLIENTS, **options):
    module = network() if module is None else module
    return problems.from_clients(clients, module=module, objective=loss, **options)


def quiet(method, problem, rounds=4, **options):
    return fl.run(method, problem, rounds=rounds, progress=False, **options)


FEDAVG = fl.FedAvg(0.3, 2, 3)


def test_frozen_parameters_stay_and_do_not_count():
    module = network()
    module[0].requires_grad_(False)
    before = module[0].weight.clone()
    problem = make(module)
    assert problem.dim == sum(p.numel() for p in module[-1].parameters())
    trace = quiet(FEDAVG, problem)
    trace.load_into(module)
    assert torch.equal(module[0].weight, before)
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


@pytest.mark.parametrize("part", [nn.BatchNorm1d(8), nn.Dropout(0.5)])
def test_layers_in_eval_mode_are_taken(part):
    assert quiet(FEDAVG, make(network(part).eval())).metrics["f"].shape == (1, 5)


@pytest.mark.parametrize("form", ["datasets", "loaders", "arrays", "dicts"])
def test_rows_come_in_the_forms_that_people_have(form):
    sets = [TensorDataset(x, y) for x, y in CLIENTS]
    clients = {
        "datasets": sets,
        "loaders": [DataLoader(s, batch_size=4, shuffle=True) for s in sets],
        "arrays": [(x.numpy(), y.numpy()) for x, y in CLIENTS],
        "dicts": [{"image": x.numpy(), "label": y.tolist()} for x, y in CLIENTS],
    }[form]
    found, plain = quiet(FEDAVG, make(clients=clients)), quiet(FEDAVG, make())
    np.testing.assert_array_equal(found.metrics["f"], plain.metrics["f"])


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


def test_a_run_goes_on_as_if_it_had_not_stopped():
    first = quiet(FEDAVG, make(), rounds=3)
    on, whole = quiet(FEDAVG, make(), rounds=6, start=first), quiet(FEDAVG, make(), rounds=6)
    np.testing.assert_array_equal(on.metrics["f"], whole.metrics["f"])
    assert torch.equal(on.state.w, whole.state.w)


def test_a_callback_stops_a_run():
    seen = []

    def stop(round_, metrics, state):
        seen.append(round_)
        return round_ == 2

    trace = quiet(FEDAVG, make(), rounds=9, callback=stop)
    assert (seen, trace.rounds.tolist()) == ([0, 1, 2], [0, 1, 2])


def test_measures_may_be_of_plain_numbers():
    from sklearn.metrics import f1_score

    def f1(rows):
        return f1_score(rows.target.numpy(), rows.output.argmax(1).numpy(), zero_division=0)

    held = CLIENTS[2]
    module = network()
    trace = quiet(FEDAVG, make(module, measures={"f1": f1}, heldout=held))
    trace.load_into(module)
    by_hand = f1_score(held[1].numpy(), module(held[0]).argmax(1).numpy())
    assert trace.metrics["f1"][0, -1] == pytest.approx(by_hand)


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


def test_a_gap_between_groups_is_pooled():
    groups = [torch.zeros(3), torch.ones(12), torch.arange(40) % 2.0]
    clients = [(x, y, g) for (x, y), g in zip(CLIENTS, groups, strict=True)]
    layer = fl.models.mlp((5, 1))
    problem = problems.from_clients(
        clients,
        module=layer,
        objective=lambda rows: rows.mean(rows.output.squeeze(-1) ** 2),
        constraint=GroupGap("group"),
    )
    x, g = torch.cat([c[0] for c in clients]), torch.cat(groups)
    p = torch.sigmoid(layer(x)).squeeze(-1).detach()
    by_hand = (p[g == 1].mean() - p[g == 0].mean()).abs()
    torch.testing.assert_close(problem.metrics(problem.w0, problem)["g"], by_hand)


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
        torchs = torch.stack([cross_entropy(module(x), y) for _ in range(200)])
    assert losses.mean().item() == pytest.approx(torchs.mean().item(), rel=0.03)
    assert losses.std().item() == pytest.approx(torchs.std().item(), rel=0.3)
    trace = quiet(FEDAVG, problem, rounds=40, seeds=(0, 1))
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


def test_the_largest_of_several_constraints_is_the_one_that_counts():
    def constraint(k):
        return lambda rows: rows.mean((rows.output[:, k] - 1) ** 2)

    one = make(constraint=[constraint(0), constraint(1)])
    method = fl.FedSGM(0.1, 1, 3, tolerance=0.5)
    values = one.mean_losses(one.w0)[1:]
    largest = int(values.argmax())
    assert values.max() > 0.5
    alone = make(constraint=constraint(largest))
    both = [quiet(method, p, rounds=1) for p in (one, alone)]
    assert torch.equal(both[0].state.w, both[1].state.w)
    assert both[0].metrics["g"][0, 0] == pytest.approx(values.max().item())
    up, down = (both[0].info[k] - both[1].info[k] for k in ("bits_up", "bits_down"))
    assert (up, down) == (3 * 32, 3 * 32)  # one value more each way, three clients
    end = quiet(method, one, rounds=100).metrics
    assert max(end["g_1"][0, -1], end["g_2"][0, -1]) < 0.6


def test_a_schedule_multiplies_the_step_size():
    problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    grid = [fl.FedAvg(lr, 1, 4) for lr in (0.1, 0.2)]
    options = {"rounds": 3, "seeds": (0, 1), "progress": False}
    both = fl.run(grid, problem, schedules={"lr": fl.PowerLaw(1.0, 1.0)}, **options)
    for lr, trace in zip((0.1, 0.2), both, strict=True):
        w = problem.w0
        for t in (1, 2, 3):
            w = w - lr / t * torch.func.grad(lambda u: problem.mean_losses(u)[0])(w)
        torch.testing.assert_close(trace.state.w, w.expand(2, 2))
        assert trace.config["schedules"]["lr"] == {
            "type": "PowerLaw",
            "scale": 1.0,
            "exponent": 1.0,
        }
    with pytest.raises(ValueError, match=r"schedules of FedAvg must be one of .*, got 'rate'"):
        fl.run(grid, problem, schedules={"rate": lambda t: 1 / t}, **options)
    with pytest.raises(
        ValueError, match=r"schedules\['lr'\]\(1\) must be a finite number, got inf"
    ):
        fl.run(grid, problem, schedules={"lr": lambda _: float("inf")}, **options)


def test_objectives_are_brought_to_one_scale():
    def task(k, scale):
        return lambda rows: scale * rows.mean((rows.output[:, k] - rows.target[:, k]) ** 2)

    clients = [(x, torch.stack([x[:, 0], x[:, 1]], 1)) for x, _ in CLIENTS]
    module, objective = fl.models.linear(5, 2), [task(0, 1.0), task(1, 100.0)]
    problem = problems.from_clients(clients, module=module, objective=objective)
    scaled = problem.scaled()
    torch.testing.assert_close(scaled.mean_losses(problem.w0), torch.ones(2))
    assert scaled.config["scales"] == pytest.approx(problem.mean_losses(problem.w0).tolist())

    def left(problem, lr):
        way = fl.FedCMOO(lr, 2, 3, weights=fl.FindWeights(0.01, 50))
        metrics = quiet(way, problem, rounds=40).metrics
        return metrics["f_2"][0, -1] / metrics["f_2"][0, 0]

    assert left(scaled, 0.2) < 0.2 < left(problem, 0.002)
