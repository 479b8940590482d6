"""Features split over clients: who sends what, and what it is made from."""

from dataclasses import fields, replace

import pytest
import torch

from fedlib.core import Vectorized
from fedlib.core.sampling import seeded
from fedlib.testing.contract import messages
from fedlib.vertical import Partition
from tests.helpers.divided import ALL, FREE, NORM, B, J, K, L, by_name, general, tapped, task
from tests.helpers.rounds import walk


@pytest.mark.parametrize("algorithm", ALL, **by_name)
@pytest.mark.parametrize("head", [1, 4])
def test_the_messages_of_a_round_are_those_of_the_table(algorithm, head):
    problem = task(5)
    clients = range(1, 6)
    features = {
        1: 13,
        2: 13,
        3: 13,
        4: 13,
        5: 12,
    }
    table = [  # the paper's rows: sender, receiver, floats, indices
        *(("server", f"client {i}", L * J + J * features[i], B) for i in clients),
        *((f"client {i}", f"client {j}", B * J, 0) for i in clients for j in clients if i != j),
        *((f"client {i}", "server", J * features[i], 0) for i in clients),
        (f"client {head}", "server", L * J + (algorithm is NORM), 0),
    ]
    sent = messages(replace(algorithm, head=head), Vectorized(problem), seeded(0, "rounds"))
    assert [(m.sender, m.receiver, m.floats, m.indices) for m in sent] == table
    assert len({m.name for m in sent}) == 4
    assert all(m.bits == 32 * (m.floats + m.indices) for m in sent)


@pytest.mark.parametrize("algorithm", ALL, **by_name)
def test_bits(algorithm):
    problem = task(5)
    ((*_, info),) = walk(algorithm, problem, 1)
    assert info["bits_down"] == 32 * (5 * (L * J + B) + K * J)
    assert info["bits_up"] == 32 * (problem.dim + (algorithm is NORM))
    assert info["bits_between"] == 32 * 5 * 4 * B * J


def test_a_client_of_its_own_sends_to_nobody_else():
    sent = messages(FREE, Vectorized(task(1)), seeded(0, "rounds"))
    assert [(m.sender, m.receiver) for m in sent] == [
        ("server", "client 1"),
        ("client 1", "server"),
        ("client 1", "server"),
    ]


def test_constraints_of_the_problem_send_their_values_and_the_objective_none():
    problem = general(3)
    method = replace(NORM, objective="problem", levels=0.0, batch_size=5)
    sent = messages(method, Vectorized(problem), seeded(0, "rounds"))
    up = [m.floats for m in sent if m.receiver == "server"]
    assert up == [3 * 6, 3 * 4, 3 * 4, 3 * 6 + 2]  # three losses: gradients of each, two values
    all_three = replace(method, objective="norm", levels=0.5)
    assert messages(all_three, Vectorized(problem), seeded(0, "rounds"))[-1].floats == 3 * 6 + 3


@pytest.mark.parametrize("algorithm", ALL, **by_name)
def test_nothing_of_another_client_enters_what_a_client_sends_to_others(algorithm):
    """Client 2's features and parameters become NaN: what 1 and 3 say of themselves is the same."""
    drawn_for = task(3)
    draw = algorithm.draw(drawn_for, seeded(0, "rounds"))
    X, *others = drawn_for.data
    problem = replace(drawn_for, data=(X.double(), *others))
    poisoned_X = X.double()
    poisoned_X[:, problem.composite.features.parts[1]] = torch.nan
    poisoned_w = problem.w0.clone()
    poisoned_w[problem.composite.parameters.parts[2]] = torch.nan
    poisoned = problem.with_tensors({"data": (poisoned_X, *others)})
    clean_messages = tapped(problem, algorithm, problem.w0, draw)
    messages_of_poisoned = tapped(poisoned, algorithm, poisoned_w, draw)
    assert clean_messages.keys() == messages_of_poisoned.keys()
    for key, tensors in clean_messages.items():
        sender, receiver, content = key
        from_server = sender == "server" and receiver != "client 2"
        from_others = content == "embeddings" and sender != "client 2"
        if from_server or from_others:
            for x, y in zip(tensors, messages_of_poisoned[key], strict=True):
                assert torch.equal(x, y), key
    embeddings = messages_of_poisoned["client 2", "client 1", "embeddings"]
    assert embeddings[0].isnan().all()


def test_a_client_reaches_its_own_block_and_the_labels_of_the_batch_only():
    problem = task(3)
    samples = torch.tensor([4, 0, 250])
    rows = problem.rows[0][samples]
    party = problem.party(2, samples)
    number, block, labels = (getattr(party, f.name) for f in fields(party) if f.name != "form")
    assert number == 2
    assert torch.equal(block, problem.data[0][rows][:, 22:43])
    assert len(labels) == 1
    assert torch.equal(labels[0], problem.data[1][rows])
    for f in fields(party.form):  # the form itself holds numbers of features, no data
        value = getattr(party.form, f.name)
        assert callable(value) or value is None or isinstance(value, Partition)
