"""Features split over clients: who sends what, and what it is made from."""

import itertools
from dataclasses import fields, replace

import pytest
import torch

from fedlib.core import Vectorized
from fedlib.core.sampling import seeded
from fedlib.testing.contract import messages
from fedlib.vertical import Partition
from tests.helpers.divided import ALL, FREE, NORM, B, J, L, by_name, general, tapped, task


def sent_by(method, problem):
    return messages(method, Vectorized(problem), seeded(0, "rounds"))


@pytest.mark.parametrize("method", ALL, **by_name)
@pytest.mark.parametrize("head", [1, 4])
def test_the_messages_of_a_round_are_those_of_the_table(method, head):
    """The paper's rows: sender, receiver, floats, indices."""
    features = {
        "client 1": 13,
        "client 2": 13,
        "client 3": 13,
        "client 4": 13,
        "client 5": 12,
    }
    pairs = itertools.permutations(features, 2)
    table = [("server", name, L * J + J * width, B) for name, width in features.items()]
    table += [(sender, receiver, B * J, 0) for sender, receiver in pairs]
    table += [(name, "server", J * width, 0) for name, width in features.items()]
    table.append((f"client {head}", "server", L * J + (method is NORM), 0))
    sent = sent_by(replace(method, head=head), task(5))
    assert [(m.sender, m.receiver, m.floats, m.indices) for m in sent] == table
    assert all(m.bits == 32 * (m.floats + m.indices) for m in sent)


def test_a_client_of_its_own_sends_to_nobody_else():
    sent = sent_by(FREE, task(1))
    up = ("client 1", "server")
    assert [(m.sender, m.receiver) for m in sent] == [("server", "client 1"), up, up]


@pytest.mark.parametrize(("objective", "level", "values"), [("problem", 0.0, 2), ("norm", 0.5, 3)])
def test_constraints_of_the_problem_send_their_values_and_the_objective_none(
    objective, level, values
):
    method = replace(NORM, objective=objective, levels=level)
    up = [m.floats for m in sent_by(method, general(3)) if m.receiver == "server"]
    assert up == [
        3 * 6,
        3 * 4,
        3 * 4,
        3 * 6 + values,
    ]  # three losses: gradients of each


@pytest.mark.parametrize("method", ALL, **by_name)
def test_nothing_of_another_client_enters_what_a_client_sends_to_others(method):
    """Client 2's features and parameters become NaN: what 1 and 3 say of themselves is the same."""
    problem = task(3)
    draw = method.draw(problem, seeded(0, "rounds"))
    X, *columns = problem.data
    clean = replace(problem, data=(X.double(), *columns))
    X = X.double()
    X[:, clean.composite.features.parts[1]] = torch.nan
    poisoned = clean.with_tensors({"data": (X, *columns)})
    w = clean.w0.clone()
    w[clean.composite.parameters.parts[2]] = torch.nan
    expected = tapped(clean, method, clean.w0, draw)
    seen = tapped(poisoned, method, w, draw)
    for (sender, receiver, content), tensors in expected.items():
        from_server = sender == "server" and receiver != "client 2"
        from_others = content == "embeddings" and sender != "client 2"
        if from_server or from_others:
            tensors_of_poisoned = seen[sender, receiver, content]
            torch.testing.assert_close(tensors_of_poisoned, tensors, atol=0, rtol=0)
    (embeddings,) = seen["client 2", "client 1", "embeddings"]
    assert embeddings.isnan().all()


def test_a_client_reaches_its_own_block_and_the_labels_of_the_batch_only():
    problem = task(3)
    samples = torch.tensor([4, 0, 250])
    rows = problem.rows[0][samples]
    party = problem.party(2, samples)
    number, block, (labels,) = (getattr(party, f.name) for f in fields(party) if f.name != "form")
    assert number == 2
    assert torch.equal(block, problem.data[0][rows][:, 22:43])
    assert torch.equal(labels, problem.data[1][rows])
    for f in fields(party.form):  # the form itself holds numbers of features, no data
        value = getattr(party.form, f.name)
        assert callable(value) or value is None or isinstance(value, Partition)
