"""The example's methods, all ends in one process, against a simulation in the same bytes."""

import pytest

from fedlib import Vectorized
from fedlib.flower.server import Server
from tests.helpers.real_federation import InBytes, methods, simulated
from tests.helpers.wires import Wires, apart, job_of

ROUNDS = 3


@pytest.mark.parametrize("name", [name for name in methods() if name != "cartpole"])
def test_a_federation_is_the_simulation_whose_messages_go_through_the_same_bytes(name):
    method, make_problem = methods()[name]
    problem = make_problem()
    job = job_of(method, problem, ROUNDS)
    wires = Wires(job, problem.num_clients)
    models = []
    Server(job, wires).run(lambda _, state: models.append(state.w))
    for engine, most in ((InBytes, 1e-12), (Vectorized, 1e-6)):
        simulated_models = simulated(method, problem, ROUNDS, engine)
        assert max(map(apart, models, simulated_models)) < most
