"""Many clients with large models are mapped some at a time, with the same result."""

import pytest
import torch
from torch.func import vmap
from torch.utils import _pytree as pytree

import fedlib as fl
from fedlib.core import federation
from fedlib.core.federation import copy_mapped_rows
from fedlib.testing.examples import examples
from tests.helpers.randoms import generator


def ends(algorithm, problem, seeds):
    trace = fl.run(algorithm, problem, rounds=3, seeds=seeds, progress=False)
    return pytree.tree_leaves(trace.state), trace.info


@pytest.mark.parametrize(
    ("name", "seeds"),
    [*((name, (0, 1)) for name in sorted(examples())), ("FedSGM", (0,)), ("FedCMOO", (0,))],
)
def test_some_clients_at_a_time_give_the_same_round(name, seeds, monkeypatch):
    for algorithm, problem in examples()[name]:
        expected, info = ends(algorithm, problem, seeds)
        with monkeypatch.context() as patch:
            patch.setattr(federation, "LARGE_ROUND", 0)
            patch.setattr(federation, "CACHED", 3 * problem.dim)  # three clients at a time
            assert federation.clients_at_once(10, problem.dim) == 3
            actual, actual_info = ends(algorithm, problem, seeds)
        for x, y in zip(actual, expected, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-6)
        for key in ("bits_up", "bits_down"):
            assert (actual_info[key] == info[key]).all()


def test_rows_are_gathered_for_some_clients_at_a_time(monkeypatch):
    gathered = []
    data_at = fl.core.Problem.data_at

    def noted(problem, rows):
        gathered.append(tuple(rows.shape))
        return data_at(problem, rows)

    mapped = []

    def noted_in_map(data, rows):
        mapped.append(tuple(rows.shape))
        return copy_mapped_rows(data, rows)

    monkeypatch.setattr(federation, "LARGE_ROUND", 0)
    monkeypatch.setattr(fl.core.Problem, "data_at", noted)
    monkeypatch.setattr(federation, "copy_mapped_rows", noted_in_map)
    problem = fl.problems.pareto(
        torch.randn(8, 5, 1, 4, generator=torch.Generator().manual_seed(0))
    )
    monkeypatch.setattr(federation, "CACHED", 2 * problem.dim)
    fl.run(fl.FedAvg(0.1, 1, 8, batch_size=3), problem, rounds=1, progress=False)
    assert (8, 1, 3) not in gathered
    assert set(mapped) == {(1, 3)}  # of one client, for those that are mapped together


TABLES = {
    "pictures": torch.randint(255, (6, 2, 3), dtype=torch.uint8, generator=generator()),
    "targets": torch.arange(6),
    "masks": torch.arange(12).view(6, 2) % 3 > 0,
    "half precision": torch.arange(12).view(6, 2).half(),
}


@pytest.mark.parametrize("name", TABLES)
def test_rows_in_a_map_are_those_of_the_table(name):
    table = TABLES[name]
    rows = torch.tensor([[[0, 3]], [[5, 5]]])
    copied = vmap(lambda numbers: copy_mapped_rows(table, numbers))(rows)
    assert torch.equal(copied, table[rows])
    tables = torch.stack([table, table.flip(0)])
    both = vmap(copy_mapped_rows)(tables, rows)
    assert torch.equal(both, torch.stack([table[rows[0]], table.flip(0)[rows[1]]]))
