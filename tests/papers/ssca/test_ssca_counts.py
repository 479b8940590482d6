"""What the study of SSCA counts: messages, bits, the server's work."""

from collections import Counter

import torch

from fedlib.core import Vectorized
from fedlib.core.sampling import seeded
from fedlib.testing.contract import messages
from papers.ssca import common
from papers.ssca.convergence import counts

TINY = {"data": "digits", "clients": 4, "hidden": 3, "evaluate": 50}


def test_the_table_of_messages_by_hand():
    """Two clients with 3 and 2 features, J = 4, L = 5, B = 6."""
    expected = Counter(
        {
            ("server", "client 1", 5 * 4 + 4 * 3, 6): 1,
            ("server", "client 2", 5 * 4 + 4 * 2, 6): 1,
            ("client 1", "client 2", 24, 0): 1,
            ("client 2", "client 1", 24, 0): 1,
            ("client 1", "server", 12, 0): 1,
            ("client 2", "server", 8, 0): 1,
            ("client 1", "server", 20, 0): 1,
        }
    )
    assert (
        counts.table(
            (3, 2),
            4,
            5,
            6,
            limited=False,
        )
        == expected
    )
    changed = expected - Counter([("client 1", "server", 20, 0)])
    changed["client 1", "server", 21, 0] += 1
    assert (
        counts.table(
            (3, 2),
            4,
            5,
            6,
            limited=True,
        )
        == changed
    )


def test_messages_are_those_of_the_table_and_others_are_found(monkeypatch):
    wrong = [row.number.value for row in counts.counted() if row.measure == "wrong_messages"]
    assert wrong == [0, 0, 0, 0]
    monkeypatch.setattr(counts, "messages", lambda *a: messages(*a)[:-1])
    assert counts.wrong_messages("features", limited=False) == 1
    monkeypatch.setattr(counts, "table", lambda *_: Counter())
    assert counts.wrong_messages("features", limited=True) > 1
    monkeypatch.setattr(
        counts,
        "algorithm",
        lambda *_: common.constrained("samples", 10, 0.5),
    )
    assert counts.wrong_messages("samples", limited=False) == 1


def test_bits_between_clients_and_to_the_server_are_those_of_the_messages():
    fed = Vectorized(counts.by_features(8))
    log = messages(counts.algorithm("features", True), fed, seeded(0, "rounds"))
    across = sum(m.floats for m in log if "server" not in (m.sender, m.receiver))
    assert counts.between(counts.CLIENTS, 40, 8) == 32 * across
    params = {"data": "digits", "clients": 4, "hidden": 3}
    task = common.vertical_problem(0, **TINY)
    method = common.constrained("features", 10, 0.6, clients=4)
    log = messages(method, Vectorized(task), seeded(0, "rounds"))
    up = sum(m.floats for m in log if m.receiver == "server")
    down = sum(m.floats + m.indices for m in log if m.sender == "server")
    assert counts.up_and_down("features", True, params, 40) == (32 * up, 32 * down)
    d = common.digits_problem(0, **TINY).dim
    assert counts.up_and_down(
        "samples",
        True,
        params,
        0,
    ) == (32 * 4 * (d + 1), 32 * 4 * d)


def test_written_numbers_are_counted_and_views_are_not():
    x = torch.ones(7)
    with counts.Written() as work:
        assert (x * 2).view(7, 1).T.shape == (1, 7)
    assert work.numbers == 7
    three = torch.ones(3, 5)
    with counts.Written() as work:
        torch.func.vmap(lambda u: u + 1)(three)
    assert work.numbers == 15
