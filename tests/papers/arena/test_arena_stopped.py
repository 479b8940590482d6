"""A method that rests once it has diverged."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import fedlib as fl
from fedlib import FedAvg, FedSGM, problems
from papers.arena.reference import FAR, Stopped


def toy():
    return problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)


@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Loop])
def test_what_does_not_diverge_runs_as_it_is(engine):
    method = FedSGM(0.1, 2, 3, tolerance=0.05)
    alone = fl.run(
        method,
        toy(),
        rounds=7,
        progress=False,
        engine=engine,
    )
    stopped = fl.run(
        Stopped(method),
        toy(),
        rounds=7,
        progress=False,
        engine=engine,
    )
    assert_close(stopped.state.w, alone.state.w)
    np.testing.assert_array_equal(stopped.info["bits_up"], alone.info["bits_up"])


def test_what_diverges_rests_where_it_was():
    method = FedAvg(lr=50.0, local_steps=1, participants=4)
    with pytest.raises(FloatingPointError, match="not finite"):
        fl.run(method, toy(), rounds=200, progress=False)
    stopped = fl.run(Stopped(method), toy(), rounds=200, progress=False)
    assert 1 < stopped.state.w.abs().max() <= FAR
    np.testing.assert_array_equal(stopped.metrics["f"][:, -1], stopped.metrics["f"][:, -2])
