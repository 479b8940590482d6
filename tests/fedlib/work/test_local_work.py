"""A method that a newcomer writes on `LocalWork` with the names of the tutorial, here FedProx."""

from dataclasses import dataclass, replace

import pytest
import torch

import fedlib as fl
from fedlib import problems
from fedlib.checks import Count, Nonnegative, Positive
from fedlib.protocols import LocalWork, Model


@dataclass(frozen=True)
class FedProx(LocalWork):
    """Federated averaging whose clients stay near the server's model."""

    lr: Positive
    local_steps: Count
    participants: Count
    mu: Nonnegative = 0.1
    batch_size: Count | None = None

    def local_update(self, client, w):
        weights = client.objective_weights(w)

        def gradient(u, step):
            return client.gradient(u, client.batch(step), weights) + self.mu * (u - w)

        return self.local(w, gradient, self.local_steps, self.lr)

    def round(self, fed, state, draw):
        clients = fed.clients(draw)
        models = fed.ask(self.local_update, clients, state.w)
        return Model(fed.project(fed.mean(models, clients))), fed.info()


METHOD = FedProx(lr=0.1, local_steps=3, participants=4)
SETTINGS = {"rounds": 5, "seeds": (0, 1), "progress": False}


def test_it_passes_the_test_of_every_method():
    fl.check_algorithm(METHOD, problems.quadratics())


def test_without_the_proximal_term_it_is_federated_averaging():
    problem = problems.quadratics()
    averaging = fl.run(fl.FedAvg(0.1, 3, 4), problem, **SETTINGS)
    proximal = fl.run(replace(METHOD, mu=0.0), problem, **SETTINGS)
    torch.testing.assert_close(proximal.state.w, averaging.state.w)


@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_its_steps_are_those_worked_out_by_hand(mu):
    # each client has one row
    centres = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    problem = problems.quadratics(torch.ones_like(centres), centres, level=100.0)
    end = fl.run(FedProx(0.1, 2, 2, mu), problem, rounds=1, progress=False)
    w = problem.w0
    gradient = torch.func.grad(lambda u, rows: problem.losses(u, rows)[0])
    models = []
    for client in range(2):
        rows = problem.rows_of_client(torch.tensor(client))
        u = w - 0.1 * gradient(w, rows)
        u = u - 0.1 * (gradient(u, rows) + mu * (u - w))
        models.append(u)
    torch.testing.assert_close(end.state.w[0], torch.stack(models).mean(0))
