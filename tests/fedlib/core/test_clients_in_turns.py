"""Many clients with large models are mapped some at a time, with the same result."""

import pytest
import torch
from torch.func import vmap

import fedlib as fl
from fedlib.core import federation
from fedlib.core.federation import copy_mapped_rows
from fedlib.problems import pareto
from fedlib.testing.examples import examples
from tests.helpers.randoms import generator, numbers


@pytest.fixture
def at_once(monkeypatch):
    """A function that sets how many clients with a model of some size are mapped together."""

    def clients(count, dim):
        monkeypatch.setattr(federation, "LARGE_ROUND", 0)
        monkeypatch.setattr(federation, "CACHED", count * dim)
        assert federation.clients_at_once(10, dim) == count

    return clients


CASES = [(name, (0, 1)) for name in sorted(examples())]


@pytest.mark.parametrize(
    ("name", "seeds"),
    [*CASES, ("FedSGM", (0,)), ("FedCMOO", (0,))],
)
def test_some_clients_at_a_time_give_the_same_round(name, seeds, at_once):
    pairs = examples()[name]
    expected = [fl.run(*pair, rounds=3, seeds=seeds) for pair in pairs]
    for (algorithm, problem), trace in zip(pairs, expected, strict=True):
        at_once(3, problem.dim)
        actual = fl.run(algorithm, problem, rounds=3, seeds=seeds)
        torch.testing.assert_close(
            tuple(actual.state),
            tuple(trace.state),
            rtol=1e-5,
            atol=1e-6,
        )
        for key in ("bits_up", "bits_down"):
            assert (actual.info[key] == trace.info[key]).all()


def test_rows_are_gathered_for_some_clients_at_a_time(at_once, monkeypatch):
    gathered = set()

    def noted(subject, name):
        function = getattr(subject, name)

        def call(data, rows):
            gathered.add((name, tuple(rows.shape)))
            return function(data, rows)

        monkeypatch.setattr(subject, name, call)

    noted(fl.core.Problem, "data_at")
    noted(federation, "copy_mapped_rows")
    problem = pareto(numbers(8, 5, 1, 4))
    at_once(2, problem.dim)
    fl.run(fl.FedAvg(0.1, 1, 8, batch_size=3), problem, rounds=1)
    assert ("data_at", (8, 1, 3)) not in gathered
    mapped = {shape for name, shape in gathered if name == "copy_mapped_rows"}
    assert mapped == {(1, 3)}  # of one client, for those that are mapped together


TABLES = {
    "pictures": torch.randint(255, (6, 2, 3), dtype=torch.uint8, generator=generator()),
    "targets": torch.arange(6),
    "masks": torch.arange(12).view(6, 2) % 3 > 0,
    "half precision": torch.arange(12).view(6, 2).half(),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_rows_in_a_map_are_those_of_the_table(table):
    rows = torch.tensor([[[0, 3]], [[5, 5]]])
    copied = vmap(lambda places: copy_mapped_rows(table, places))(rows)
    assert torch.equal(copied, table[rows])
    turned = table.flip(0)
    both = vmap(copy_mapped_rows)(torch.stack([table, turned]), rows)
    assert torch.equal(both, torch.stack([table[rows[0]], turned[rows[1]]]))
