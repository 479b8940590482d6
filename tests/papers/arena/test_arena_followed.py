"""Averages beside a method: the plain sums, the method's own output, what happens to divergence."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib import FedAvg, FedSGM, problems
from fedlib.steps import Hard
from papers.arena.followed import FAR, Followed

ROUNDS = 7


def toy():
    return problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)


def iterates(method, problem, rounds):
    """The models after every round, each by a run of its own."""
    ends = [fl.run(method, problem, rounds=t, progress=False) for t in range(1, rounds + 1)]
    return [end.state.w[0] for end in ends], ends[-1]


@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Loop])
def test_the_average_weights_an_iterate_by_its_round(engine):
    method = FedAvg(lr=0.1, local_steps=2, participants=3)
    w, last = iterates(method, toy(), ROUNDS)
    followed = fl.run(measured(method), toy_twice(), rounds=ROUNDS, progress=False, engine=engine)
    one, mean = followed.state.w[0].view(2, -1)
    by_hand = sum(t * x for t, x in enumerate(w, start=1)) / sum(range(1, ROUNDS + 1))
    torch.testing.assert_close(one, w[-1])
    torch.testing.assert_close(mean, by_hand)
    np.testing.assert_array_equal(followed.info["bits_up"], last.info["bits_up"])


def measured(method, **more):
    return Followed(method, **more)


def toy_twice():
    """The toy problem, which measures the first part of a longer model."""
    problem = toy()

    def metrics(w, of, inner=problem.metrics):
        return inner(w.view(-1, 2)[0], of)

    return replace(problem, metrics=metrics)


def test_the_own_output_is_that_of_the_method():
    method = FedSGM(0.1, 2, 4, tolerance=0.05, switch=Hard())
    alone = fl.run(method, toy(), rounds=ROUNDS, progress=False)
    followed = fl.run(measured(method, own=True), toy_twice(), rounds=ROUNDS, progress=False)
    last, _, own = followed.state.w[0].view(3, -1)
    torch.testing.assert_close(last, alone.state.w[0])
    np.testing.assert_allclose(own, alone.output[0], rtol=1e-6)


def test_an_output_that_is_none_yet_is_the_last_iterate():
    never = FedSGM(1e-6, 1, 4, tolerance=-10.0, switch=Hard())  # no round works on f
    followed = fl.run(measured(never, own=True), toy_twice(), rounds=2, progress=False)
    last, _, own = followed.state.w[0].view(3, -1)
    torch.testing.assert_close(last, own)


def test_what_diverges_rests_where_it_was():
    method = FedAvg(lr=50.0, local_steps=1, participants=4)
    with pytest.raises(FloatingPointError, match="not finite"):
        fl.run(method, toy(), rounds=200, progress=False)
    followed = fl.run(measured(method), toy_twice(), rounds=200, progress=False)
    assert 1 < followed.state.w.abs().max() <= FAR
    assert np.isfinite(followed.metrics["f"]).all()
    np.testing.assert_array_equal(followed.metrics["f"][:, -1], followed.metrics["f"][:, -2])


def test_a_run_goes_on_from_a_checkpoint(tmp_path):
    method, file = measured(FedSGM(0.1, 2, 4, tolerance=0.05), own=True), tmp_path / "half.pt"
    fl.run(method, toy_twice(), rounds=4, progress=False, checkpoint=file)
    whole = fl.run(method, toy_twice(), rounds=4, progress=False, checkpoint=file)
    plain = fl.run(method, toy_twice(), rounds=4, progress=False)
    torch.testing.assert_close(whole.state.w, plain.state.w)
