"""Rounds of Frank-Wolfe methods by hand: schedules of one's own, a lone client, who computes."""

from dataclasses import dataclass, replace

import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Draw
from fedlib.core.sampling import seeded
from tests.helpers.expect import close
from tests.helpers.problems import centred


@dataclass(frozen=True)
class ByShare:
    """A schedule whose step and penalty depend on the round and on the share of clients."""

    def eta(self, t, share):
        return share / (t + 1)

    def growth(self, t, share):
        return share * t

    def rho(self, t):
        return 1 / t


TASK = centred(fl.L1Ball(0.5))
CLIENTS = TASK.num_clients
CENTRES = TASK.data[0][TASK.rows][:, :, 0].mean(1)


def answers(w):
    """Each client's extreme point for its gradient at w."""
    return torch.stack([TASK.set.lmo(w - centre) for centre in CENTRES])


def round_with(method, coins):
    """The state after a round with these coins."""
    chance = torch.tensor(coins, dtype=torch.float64)
    draw = Draw(torch.arange(CLIENTS), chance=chance)
    state, _ = method.round(fl.Vectorized(TASK), method.init(TASK), draw)
    return state


COINS = [0.1, 0.9, 0.3, 0.9, 0.9]
PART = {"participation": 0.6, "schedule": ByShare()}


def test_naive_frank_wolfe_takes_the_step_of_all_clients():
    state = round_with(fl.NaiveFW(schedule=ByShare()), COINS)
    step = 1 / 2
    close(state.w, (1 - step) * TASK.w0 + step * answers(TASK.w0).mean(0))


@pytest.mark.parametrize(
    "method", [fl.FedFW(0.1, **PART), fl.FedFWPlus(0.1, **PART), fl.FedFWReset(0.1, **PART)]
)
def test_the_others_take_the_step_of_a_share_of_clients(method):
    """The first models are equal, so there is no penalty yet."""
    state = round_with(method, COINS)
    step = 0.6 / 2
    ends = (1 - step) * TASK.w0 + step * answers(TASK.w0)
    if isinstance(method, fl.FedFWReset):
        close(state.w, (ends[0] + ends[2]) / 2)
    else:
        close(state.x[[0, 2]], ends[[0, 2]])


def test_the_model_of_a_lone_client_becomes_the_servers():
    method = fl.FedFWReset(0.1, participation=0.5)
    state = round_with(method, [0.9, 0.9, 0.2, 0.9, 0.9])
    close(state.w, answers(TASK.w0)[2])  # the first step of `Convex()` is 1


@pytest.mark.parametrize(("clients", "all_compute"), [(1000, True), (1001, False)])
def test_up_to_a_thousand_clients_all_compute(clients, all_compute):
    many = replace(TASK, rows=TASK.rows[:1].repeat(clients, 1), sizes=TASK.sizes[:1] * clients)
    method = fl.FedFW(0.1, participation=0.01)
    draw = method.draw(many, seeded(0, "rounds"))
    assert (len(draw.participants) == clients) == all_compute
