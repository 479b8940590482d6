"""Fair classification: pooled gaps, their sign, groups that are missing, Adult and its stand-in."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from expect import refuses
from fairlearn.metrics import MetricFrame, demographic_parity_difference

import fedlib as fl
from fedlib import data, models
from fedlib.core.sampling import seeded
from fedlib.core.types import Batch, pullback
from fedlib.data import census as adult
from fedlib.problems import fairness
from fedlib.problems.fairness import combine_gaps, group_gap, group_statistics, network
from papers import STUDIES
from papers.fedsgm.curves import tuned
from papers.fedsgm.fairness import clients_table
from papers.fedsgm.fairness.local_adam import AdamFedAvg, AdamFedSGM
from papers.fedsgm.fairness.readings import meant_table
from papers.kit.numbers import exact

SIZES = (5, 4, 3, 1)


def people(rows, seed=0, men=0.6):
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(rows, SIZES[0], generator=g, dtype=torch.float64)
    group = (torch.rand(rows, generator=g) < men).double()
    y = (X[:, 0] + group + torch.randn(rows, generator=g) > 0.5).double()
    return adult.Rows(X, y, group)


def task(clients=4, **options):
    return fairness(people(160), people(80, seed=1), clients=clients, hidden=SIZES[1:-1], **options)


def outputs(w, X):
    """The network by hand, layer by layer."""
    at = 0
    for i, (a, b) in enumerate(pairwise(SIZES)):
        A, c = w[at : at + a * b].view(b, a), w[at + a * b : at + a * b + b]
        at += a * b + b
        X = X @ A.T + c
        X = X if i == len(SIZES) - 2 else X * (X > 0)
    return 1 / (1 + torch.exp(-X[:, 0]))


def gap(p, group):
    """Mean of group 1 minus mean of group 0, zero if one is missing."""
    if group.sum() in (0, len(group)):
        return 0 * p.sum()
    return p[group == 1].mean() - p[group == 0].mean()


def entropy(p, y):
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()


def real_rows(problem, j):
    return problem.rows[j, : problem.sizes[j]]


def test_gaps_of_opposite_sign_cancel_when_pooled():
    answers = torch.tensor([[3.0, 4.0, 1.0, 4.0], [1.0, 4.0, 3.0, 4.0]])  # gaps +0.5 and -0.5
    own = [combine_gaps(row.unsqueeze(0))[0] for row in answers]
    assert sum(own) / 2 == 0.5  # the mean of the clients' gaps
    assert combine_gaps(answers) == (0.0, 0.0)


def test_the_pooled_gap_counts_people_not_clients():
    answers = torch.tensor([[10.0, 10.0, 0.0, 10.0], [0.0, 1.0, 1.0, 1.0]])
    value, sign = combine_gaps(answers)
    assert value.item() == pytest.approx(10 / 11 - 1 / 11)
    assert sign == 1
    value, sign = combine_gaps(answers[:, [2, 3, 0, 1]])
    assert (value.item(), sign) == (pytest.approx(9 / 11), -1)


def test_the_network_is_the_one_of_models():
    w, apply = models.ravel(models.mlp(SIZES, rng=seeded(3, "split")))
    X = people(20).X
    expected = apply(w.double(), X).squeeze(-1)
    torch.testing.assert_close(network(w.double(), X, SIZES), expected, rtol=0, atol=1e-14)
    torch.testing.assert_close(torch.sigmoid(expected), outputs(w.double(), X))
    assert task().dim == len(w) == 5 * 4 + 4 + 4 * 3 + 3 + 3 + 1


@pytest.mark.parametrize("sign", ["pooled", "client"])
@pytest.mark.parametrize("men", [0.5, 0.0, 1.0])
def test_the_closed_gradient_is_that_of_autograd(sign, men):
    problem = task(sign=sign)
    w = problem.w0 + 0.3 * torch.randn(problem.dim, generator=seeded(1, "split")).double()
    rows = people(30, seed=5, men=men)
    batch = Batch((*rows, torch.ones(30).double()), torch.full((30,), 1 / 30).double())
    for weights in ((1.0, 0.0), (0.0, 1.0), (0.3, -0.7)):
        weights = torch.tensor(weights).double()
        closed = problem.gradient(w, batch, weights)
        general = pullback(problem.losses, None, w, batch, weights)
        torch.testing.assert_close(closed, general, atol=1e-14, rtol=1e-10)
    constraint = problem.gradient(w, batch, torch.tensor([0.0, 1.0]).double())
    assert (constraint.norm() > 0) == (men == 0.5)  # no gap without both groups


def test_the_signed_gap_falls_along_its_gradient_and_the_sign_turns_it():
    problem = task(clients=1)
    w, constraint = problem.w0, torch.tensor([0.0, 1.0]).double()
    pool = Batch((*people(160), torch.ones(160).double()), torch.full((160,), 1 / 160).double())
    step = problem.gradient(w, pool, constraint)
    before, after = (problem.losses(u, pool)[1] for u in (w, w - 0.05 * step))
    assert after < before
    own = task(clients=1, sign="client")
    value = own.losses(w, pool)[1]
    assert value == before.abs()
    assert torch.equal(own.gradient(w, pool, constraint), before.sign() * step)


def test_statistics_count_real_rows_only_and_minibatches_stand_for_their_client():
    problem = task(alpha=0.7)
    assert len(set(problem.sizes)) > 1
    whole = problem.all_clients()
    for j, size in enumerate(problem.sizes):
        own = Batch(tuple(x[j] for x in whole.data), whole.weight[j])
        four = group_statistics(problem.w0, own, SIZES)
        group = problem.data[2][real_rows(problem, j)]
        assert four[1].item() == pytest.approx(float(group.sum()))
        assert (four[1] + four[3]).item() == pytest.approx(size)
        some = real_rows(problem, j)[:5]
        batch = Batch(tuple(x[some] for x in problem.data), torch.full((5,), 0.2).double())
        four = group_statistics(problem.w0, batch, SIZES)
        assert (four[1] + four[3]).item() == pytest.approx(size)


def one_group_client():
    """Four clients, the first of whom has women only."""
    problem = task()
    women = (problem.data[2] == 0).nonzero().squeeze(1)
    rows = problem.rows.clone()
    rows[0] = women[torch.arange(rows.shape[1]) % len(women)]
    return replace(problem, rows=rows)


@pytest.mark.parametrize("participants", [[0], [0, 2], [0, 1, 2, 3]])
def test_a_client_without_a_group_gives_no_nan(participants):
    problem = one_group_client()
    method = fl.FedSGM(
        lr=0.5, local_steps=3, participants=len(participants), tolerance=0.001, batch_size=3
    )
    draw = method.draw(problem, seeded(0, "rounds"))._replace(
        participants=torch.tensor(participants)
    )
    state, info = method.round(fl.Vectorized(problem), method.init(problem), draw)
    assert torch.isfinite(state.w).all()
    assert torch.isfinite(info["g_hat"])
    assert (info["g_hat"] == 0) == (participants == [0])
    assert torch.isfinite(torch.stack(list(problem.metrics(state.w, problem).values()))).all()


def plain_direction(problem, u, rows, a, b):
    """Gradient of a * entropy + b * signed gap on some rows, by autograd on the plain formulas."""
    X, y, group, _ = (x[rows] for x in problem.data)
    v = u.clone().requires_grad_()
    p = outputs(v, X)
    return torch.autograd.grad(a * entropy(p, y) + b * gap(p, group), v)[0]


def plain_pooled(problem, w, clients):
    rows = torch.cat([real_rows(problem, int(j)) for j in clients])
    signed = gap(outputs(w, problem.data[0][rows]), problem.data[2][rows])
    return signed.abs(), signed.sign()


@pytest.mark.parametrize("kind", ["hard", "soft", "penalty", "client"])
def test_pooled_switching_equals_its_plain_twin(kind):
    common = {"lr": 0.5, "local_steps": 2, "participants": 3, "tolerance": 0.03, "batch_size": 12}
    problem = task(sign="client" if kind == "client" else "pooled")
    if kind == "penalty":
        method = fl.PenaltyFedAvg(**common, rho=2.0)
    else:
        method = fl.FedSGM(**common, switch=fl.Soft(30.0) if kind == "soft" else fl.Hard())
    w, rng = 4 * problem.w0, seeded(0, "rounds")
    state = method.init(problem)._replace(w=w, **({} if kind == "penalty" else {"x": w}))
    signs, sigmas = set(), set()
    for _ in range(30):
        draw = method.draw(problem, rng)
        state, info = method.round(fl.Vectorized(problem), state, draw)
        value, sign = plain_pooled(problem, w, draw.participants)
        sigma = (1 + 30 * (value - 0.03)).clamp(0, 1) if kind == "soft" else (value > 0.03).double()
        ends = []
        for i, j in enumerate(draw.participants):
            u = w
            for tau in range(2):
                rows = problem.rows[j, draw.batches[i, tau]]
                X, _, group, _ = (x[rows] for x in problem.data)
                turn = gap(outputs(u, X), group).sign() if kind == "client" else sign
                a, b = (1, 2 * sigma * turn) if kind == "penalty" else (1 - sigma, sigma * turn)
                u = u - 0.5 * plain_direction(problem, u, rows, a, b)
            ends.append(u)
        w = sum(ends) / 3
        signs.add(float(sign))
        sigmas.add(float(sigma))
        torch.testing.assert_close(state.w, w, atol=1e-7, rtol=0)
        assert info["sigma"].item() == pytest.approx(float(sigma))
    assert signs == {-1.0, 1.0}, "a test of the sign must see both"
    assert len(sigmas) > 1


def torch_adam(problem, w, batches, a, b):
    """Where a client ends: torch's own Adam on `a f + b signed gap`, batch after batch."""
    u = w.clone().requires_grad_()
    optimizer = torch.optim.Adam([u], lr=0.1, foreach=False)
    for rows in batches:
        u.grad = plain_direction(problem, u.detach(), rows, a, b)
        optimizer.step()
    return u.detach()


@pytest.mark.parametrize("kind", ["hard", "soft", "dropped"])
def test_adam_at_the_clients_equals_its_plain_twin(kind):
    common = {"lr": 0.1, "local_steps": 3, "participants": 3, "tolerance": 0.03, "batch_size": 12}
    problem, sigmas = task(), set()
    switch = fl.Soft(30.0) if kind == "soft" else fl.Hard()
    uplink = fl.TopK(0.2) if kind == "dropped" else fl.Identity()
    method, rng = AdamFedSGM(**common, switch=switch, uplink=uplink), seeded(0, "rounds")
    w = x = 4 * problem.w0
    state = method.init(problem)._replace(w=w, x=x)
    kept = torch.zeros(4, problem.dim, dtype=w.dtype)
    for _ in range(12):
        draw = method.draw(problem, rng)
        state, info = method.round(fl.Vectorized(problem), state, draw)
        value, sign = plain_pooled(problem, w, draw.participants)
        sigma = (1 + 30 * (value - 0.03)).clamp(0, 1) if kind == "soft" else (value > 0.03).double()
        sent = []
        for i, j in enumerate(draw.participants):
            batches = problem.rows[j, draw.batches[i]]
            end = torch_adam(problem, w, batches, 1 - sigma, sigma * sign)
            whole = kept[j] + (w - end) / 0.1
            sent.append(uplink(whole, ()))
            kept[j] = whole - sent[-1]
        w = w - 0.1 * sum(sent) / 3
        sigmas.add(float(sigma))
        torch.testing.assert_close(state.w, w, atol=1e-7, rtol=0)
        assert info["sigma"].item() == pytest.approx(float(sigma))
    assert len(sigmas) > 1


def test_averaging_with_adam_at_the_clients_equals_its_plain_twin():
    method = AdamFedAvg(lr=0.1, local_steps=3, participants=3, batch_size=12)
    problem = task()
    state, rng = method.init(problem), seeded(0, "rounds")
    w = state.w
    for _ in range(3):
        draw = method.draw(problem, rng)
        state, _ = method.round(fl.Vectorized(problem), state, draw)
        batches = [problem.rows[j, draw.batches[i]] for i, j in enumerate(draw.participants)]
        w = sum(torch_adam(problem, w, b, 1, 0) for b in batches) / 3
        torch.testing.assert_close(state.w, w, atol=1e-7, rtol=0)


@pytest.mark.parametrize("rho", [None, 3.0])
def test_centralized_steps_take_fresh_batches_for_values_and_gradients(rho):
    problem = task(clients=1)
    work = {"lr": 0.5, "tolerance": 0.05, "steps": 3, "batch_size": 10, "value_batch_size": 40}
    method = fl.SGM(**work) if rho is None else fl.PenaltySGM(rho=rho, **work)
    w, rng = 4 * problem.w0, seeded(0, "rounds")
    state = method.init(problem)._replace(w=w)
    worked = set()
    for _ in range(15):
        draw = method.draw(problem, rng)
        state, _ = method.round(fl.Vectorized(problem), state, draw)
        for step in range(3):
            rows = problem.rows[0, draw.values[0, 40 * step : 40 * (step + 1)]]
            signed = gap(outputs(w, problem.data[0][rows]), problem.data[2][rows])
            on = (signed.abs() > 0.05).double()
            worked.add(float(on))
            a, b = (1 - on, on) if rho is None else (1.0, rho * on)
            rows = problem.rows[0, draw.batches[0, step]]
            w = w - 0.5 * plain_direction(problem, w, rows, a, b * signed.sign())
        torch.testing.assert_close(state.w, w, atol=1e-8, rtol=0)
    assert worked == {0.0, 1.0}


def test_metrics_are_those_of_fairlearn():
    problem = task()
    w = 3 * problem.w0
    w[-1] -= network(w, problem.heldout[0], SIZES).median()  # so that decisions differ
    found = problem.metrics(w, problem)
    X, y, group = (x.numpy() for x in problem.heldout)
    p = outputs(w, torch.from_numpy(X)).numpy()
    decisions = (p > 0.5).astype(int)
    apart = demographic_parity_difference(y, decisions, sensitive_features=group)
    assert found["test_decision_gap"].item() == pytest.approx(apart, abs=1e-12)
    assert apart > 0.01
    means = MetricFrame(
        metrics=lambda _, out: float(np.mean(out)), y_true=y, y_pred=p, sensitive_features=group
    )
    assert found["test_gap"].item() == pytest.approx(means.difference(), abs=1e-12)
    assert found["test_accuracy"].item() == pytest.approx((decisions == y).mean())
    X, y, group, _ = problem.data
    p = outputs(w, X)
    assert found["f"].item() == pytest.approx(float(entropy(p, y)))
    assert found["g"].item() == pytest.approx(abs(float(gap(p, group))))
    rows = [real_rows(problem, j) for j in range(4)]
    each = [float(entropy(p[r], y[r])) for r in rows]
    assert found["f_clients"].item() == pytest.approx(sum(each) / 4)
    assert found["f_clients"].item() == pytest.approx(float(problem.mean_losses(w)[0]))
    assert abs(found["f_clients"] - found["f"]) > 1e-4


def test_all_rows_belong_to_one_client_and_seeds_of_unequal_sizes_run_together():
    problems = [task(seed=s) for s in range(2)]
    assert problems[0].sizes != problems[1].sizes
    for p in problems:
        rows = torch.cat([real_rows(p, j) for j in range(4)])
        assert rows.sort().values.tolist() == list(range(160))
    method = fl.FedSGM(lr=0.2, local_steps=1, participants=2, tolerance=0.02, batch_size=4)
    both = fl.run(method, problems.__getitem__, rounds=5, seeds=[0, 1], progress=False)
    alone = fl.run(method, problems.__getitem__, rounds=5, seeds=[1], progress=False)
    np.testing.assert_allclose(both.metrics["g"][1], alone.metrics["g"][0], atol=1e-12)


def test_refusals():
    good, bad = people(40), people(40)._replace(group=torch.ones(40).double())
    with pytest.raises(ValueError, match="both groups"):
        fairness(bad, good, clients=2)
    with pytest.raises(ValueError, match="sign must be one of 'pooled', 'client'"):
        fairness(good, good, clients=2, sign="mine")
    with pytest.raises(ValueError, match=r"train\.y must be 0 or 1"):
        fairness(good._replace(y=2 * good.y), good, clients=2)
    with pytest.raises(ValueError, match="alpha must leave every client a row"):
        fairness(good, good, clients=20, alpha=0.01)


@pytest.mark.skipif(
    not data.available("adult"), reason="Adult's files are not in the cache; set FEDLIB_DATA"
)
def test_adult_as_the_study_uses_it():
    train, test, columns = adult.official()
    assert train.X.shape == (30162, 87)
    assert test.X.shape == (15060, 87)
    rates = [float(train.y[train.group == k].mean()) for k in (1, 0)]
    assert rates == pytest.approx([0.314, 0.114], abs=5e-4)
    torch.testing.assert_close(train.X[:, :5].mean(0), torch.zeros(5), atol=1e-4, rtol=0)
    assert train.X[:, 5:].unique().tolist() == [0, 1]
    assert (train.X[:, 5:].sum(1) == len(adult.CATEGORIES)).all()
    male = columns.index("sex=Male")
    assert torch.equal(train.X[:, male], train.group)
    raw = data.adult("train")
    for name, levels in adult.LEVELS.items():
        assert set(raw.dropna()[name].unique()) == set(levels)
    generated = adult.stand_in(100)
    assert list(generated.columns) == list(raw.columns)
    assert generated.dtypes.equals(raw.dtypes)
    assert adult.prepared(generated, generated).columns == columns


def test_the_stand_in_has_the_schema_and_a_gap():
    train, test, columns = adult.prepared(adult.stand_in(3000), adult.stand_in(1500, seed=1))
    assert len(columns) == 87 == train.X.shape[1] == test.X.shape[1]
    assert len(train.y) < 3000  # some rows lack a value and are dropped
    rates = [float(train.y[train.group == k].mean()) for k in (1, 0)]
    assert rates == pytest.approx([0.31, 0.11], abs=0.03)
    assert adult.stand_in(100).equals(adult.stand_in(100))
    assert not adult.stand_in(100).equals(adult.stand_in(100, seed=1))
    with pytest.raises(ValueError, match="rows must be at least 41"):
        adult.stand_in(40)


def test_a_frame_without_a_column_or_a_row_is_refused():
    frame = adult.stand_in(60)
    with pytest.raises(ValueError, match=r"test must have Adult's columns, it lacks age\."):
        adult.prepared(frame, frame.drop(columns="age"))
    with pytest.raises(ValueError, match="train must have a row"):
        adult.prepared(frame.assign(age=None), frame)


def test_test_rows_are_scaled_with_the_training_statistics():
    train, test = adult.stand_in(200), adult.stand_in(200, seed=1)
    shifted = test.assign(age=test["age"] + 1000)
    moved = adult.prepared(train, shifted).test.X[:, 0] - adult.prepared(train, test).test.X[:, 0]
    std = train.dropna()["age"].std(ddof=0)
    torch.testing.assert_close(moved, torch.full_like(moved, 1000 / std), rtol=1e-4, atol=0)


def test_the_gap_of_nobody_is_zero():
    assert group_gap(torch.tensor([0.0, 0.0, 3.0, 5.0])) == 0
    assert group_gap(torch.zeros(4)) == 0


def test_a_penalty_is_tuned_on_training_curves_alone():
    def trace(f, g):
        curves = {"f": np.full((2, 11), f), "g": np.full((2, 11), g)}
        return fl.Trace(curves, {}, np.arange(11), (0, 1), {})

    traces = {"a": trace(0.3, 0.2), "b": trace(0.36, 0.051), "c": trace(0.38, 0.01)}
    assert tuned(traces, ["a", "b", "c"], 0.05) == "b"
    assert tuned(traces, ["a", "c"], 0.05) == "c"
    assert tuned(traces, ["a", "b"], 0.04) == "b"  # none is feasible: the smallest gap


def test_every_study_of_the_stand_in_says_so():
    study = STUDIES["fairness"]
    quick = study.specs(study.resolve("quick"))["hard"].config()["problem"]
    assert quick["data"] == "generated stand-in"
    assert study.resolve("full")["stand_in_rows"] == 0


def test_the_table_of_clients_is_that_of_the_split():
    study = STUDIES["fairness"]
    params = study.resolve("quick", seeds=[1])
    task = study.specs(params)["hard"].problem(1)
    table = clients_table(params).loc["seed 1"]
    assert table["smallest client"] == f"{min(task.sizes)} rows"
    men = [float(task.data[2][real_rows(task, j)].mean()) for j in range(10)]
    assert table["share of men"] == f"{min(men):.2f} to {max(men):.2f}"
    assert max(men) - min(men) > 0.1


def test_a_reading_can_be_meant_if_all_learn_and_both_keep_the_level():
    good = {"majority": 0.75, "level": 0.05}
    runs = {f"{m}_x.test_accuracy": 0.77 for m in ("fedavg", "hard", "soft")}
    runs |= {f"{m}_x.g": 0.0525 for m in ("hard", "soft")}
    numbers = {k: exact(v) for k, v in (good | runs).items()}
    table = meant_table(numbers, {"x": "x"}, {"tolerance": 0.05})
    assert set(table.loc["x"]) == {"yes"}
    for key, column in {
        "fedavg_x.test_accuracy": "learns without constraint",
        "hard_x.test_accuracy": "hard learns",
        "soft_x.test_accuracy": "soft learns",
        "soft_x.g": "both keep the level",
    }.items():
        worse = 0.0526 if key.endswith("g") else 0.7699
        changed = meant_table(numbers | {key: exact(worse)}, {"x": "x"}, {"tolerance": 0.05})
        wrong = [name for name, answer in changed.loc["x"].items() if answer == "no"]
        assert wrong == [column, "can be meant"]


def test_a_grid_of_conex_is_refused_where_its_steps_and_duals_do_not_pair():
    study = STUDIES["fairness"]
    words = "fairness: conex_duals must have an entry for each of conex_steps, got 1 for 2."
    refuses(words, study.specs, study.resolve("quick", conex_steps=[0.1, 0.2]))
