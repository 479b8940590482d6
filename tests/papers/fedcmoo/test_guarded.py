"""FedCMOO-Pref with the guard of its authors' code: when the model is set back, and on what."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.core import Sequential
from fedlib.core.problem import Batch
from fedlib.core.sampling import seeded
from fedlib.testing.contract import CHECKS
from papers.fedcmoo.guarded import GuardedFedCMOOPref, with_plain_values
from tests.helpers.expect import close, near
from tests.helpers.problems import objectives, three_objectives

WORK = {"lr": 0.05, "local_steps": 3, "participants": 4}
GUARD = {"judges": 3, "judge_rows": 2}
ENGINES = pytest.mark.parametrize("engine", [fl.Vectorized, Sequential, fl.Loop])


def one_round(method, problem, engine=fl.Vectorized, **state):
    start = method.init(problem)._replace(**state)
    draw = method.draw(problem, seeded(0, "rounds"))
    return start, *method.round(engine(problem), start, draw)


def loss_at(problem, w, judges=3, rows=2):
    """The mean loss on the first rows of the first clients, by a plain loop."""
    weight = torch.full((rows,), 1 / rows).to(w)
    losses = []
    for j in range(judges):
        chosen = problem.rows[j, :rows]
        batch = Batch(tuple(x[chosen] for x in problem.data), weight)
        losses.append(problem.losses(w, batch).mean())
    return torch.stack(losses).mean()


@ENGINES
def test_a_round_that_is_accepted_is_one_of_the_parent(engine):
    problem = three_objectives()
    method = GuardedFedCMOOPref(**WORK, **GUARD)
    _, reached, info = one_round(method, problem, engine)
    parent, _ = one_round(fl.FedCMOOPref(**WORK), problem, engine)[1:]
    close(reached.w, parent.w, 1e-14)
    assert info["rejected"] == 0
    expected = float(loss_at(problem, reached.w))
    near(float(reached.accepted), expected)
    assert float(info["accepted"]) == float(reached.accepted)


@ENGINES
@pytest.mark.parametrize("slack", [0.999, 1.001])
def test_the_model_is_set_back_where_the_loss_has_grown_by_more_than_the_ratio(engine, slack):
    problem = three_objectives()
    method = GuardedFedCMOOPref(**WORK, **GUARD, ratio=1.25)
    new = loss_at(problem, one_round(method, problem)[1].w)
    start, reached, info = one_round(
        method,
        problem,
        engine,
        accepted=slack * new / 1.25,
    )
    if slack < 1:
        assert info["rejected"] == 1
        assert torch.equal(reached.w, start.w)
        assert torch.equal(reached.accepted, start.accepted)
    else:
        assert info["rejected"] == 0
        assert not torch.equal(reached.w, start.w)
        close(reached.accepted, new, 1e-12)


def test_a_model_that_is_not_finite_is_never_accepted():
    problem = objectives(noise=0.1, rows=4)
    method = GuardedFedCMOOPref(lr=1e200, local_steps=3, participants=4, **GUARD)
    start, reached, info = one_round(method, problem)
    assert info["rejected"] == 1
    assert torch.equal(reached.w, start.w)
    trace = fl.run(method, problem, rounds=5, progress=False)
    assert trace.info["rejected"].tolist() == [[1.0] * 5]
    with pytest.raises(fl.Diverged):
        fl.run(
            fl.FedCMOOPref(lr=1e200, local_steps=3, participants=4),
            problem,
            rounds=5,
        )


def test_values_and_guard_are_plain_and_gradients_are_not():
    problem = three_objectives()
    doubled = replace(problem, losses=lambda w, batch: 2 * problem.losses(w, batch))
    both = with_plain_values(doubled, problem)
    assert both.config["values"] == "plain"
    method = GuardedFedCMOOPref(**WORK, **GUARD)
    _, reached, info = one_round(method, both)
    parent = fl.FedCMOOPref(**WORK)
    _, trained, parent_info = one_round(parent, doubled)
    close(reached.w, trained.w, 1e-13)  # mu does not see a factor
    close(info["mu"], parent_info["mu"], 1e-13)
    near(float(reached.accepted), float(loss_at(problem, reached.w)))


def test_preferences_are_of_the_plain_values():
    problem = three_objectives()
    factors = torch.tensor([1, 1, 9])
    skewed = replace(problem, losses=lambda w, b: problem.losses(w, b) * factors)
    method = GuardedFedCMOOPref(**WORK, **GUARD)
    mu = one_round(method, with_plain_values(problem, skewed))[2]["mu"]
    parent = fl.FedCMOOPref(**WORK)
    close(mu, one_round(parent, skewed)[2]["mu"], 1e-13)
    assert abs(float(mu - one_round(parent, problem)[2]["mu"])) > 0.01


def test_a_round_is_the_same_on_all_engines_and_with_every_client_twice():
    problem = three_objectives()
    method = GuardedFedCMOOPref(**WORK, **GUARD)
    for name in ("is pure", "engines agree", "both ends agree"):
        CHECKS[name](method, problem)


def test_the_guard_counts_its_messages():
    problem = three_objectives()
    method = GuardedFedCMOOPref(**WORK, **GUARD)
    guarded = one_round(method, problem)[2]
    parent = one_round(fl.FedCMOOPref(**WORK), problem)[2]
    assert float(guarded["bits_down"] - parent["bits_down"]) == 32 * 3 * problem.dim
    assert float(guarded["bits_up"] - parent["bits_up"]) == 32 * 3 * problem.num_objectives
