"""A trace is kept as one sealed file and comes back as it was."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.core import files
from fedlib.core.trace import LARGEST_MODEL, Trace
from fedlib.problems import from_clients, quadratics
from fedlib.provenance import versions
from tests.helpers.expect import refuses
from tests.helpers.problems import double
from tests.helpers.randoms import numbers


@pytest.fixture(scope="module")
def trace():
    problem = quadratics(double([4.0, 1.0], [2.0, 3.0]), double([0, 0], [0, 0]), level=2.0)
    method = fl.FedSGM(lr=0.1, local_steps=2, participants=1, tolerance=0.0)
    return fl.run(
        method,
        problem,
        rounds=5,
        seeds=[3, 1],
        evaluate_every=2,
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.json"


def test_what_is_saved_is_loaded(trace, path):
    trace.save(path)
    loaded = Trace.load(path)
    curves = trace.metrics | trace.info
    assert (loaded.metrics | loaded.info).keys() == curves.keys()
    for name, values in (loaded.metrics | loaded.info).items():
        np.testing.assert_array_equal(values, curves[name])
    assert loaded.rounds.tolist() == trace.rounds.tolist()
    assert loaded.seeds == (3, 1)
    assert loaded.config == trace.config
    assert loaded.provenance == {**versions(), **trace.provenance}
    np.testing.assert_array_equal(loaded.state, trace.state.w)
    np.testing.assert_array_equal(loaded.output, np.asarray(trace.output))
    text = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == text


@pytest.mark.parametrize(
    ("dim", "kept"),
    [(LARGEST_MODEL, True), (LARGEST_MODEL + 1, False)],
)
def test_a_large_model_is_left_out(trace, path, dim, kept):
    fields = {**vars(trace), "state": torch.zeros(2, dim), "output": None}
    with nullcontext() if kept else pytest.warns(UserWarning, match="1001 parameters"):
        Trace(**fields).save(path)
    loaded = Trace.load(path)
    assert (loaded.state is not None) == kept
    assert loaded.output is None


def test_a_file_of_another_kind_is_refused(path):
    files.write_json(path, files.Format("run", 1).sealed({}))
    refuses("Trace.load: a.json must be written by Trace.save*'run'", Trace.load, path)


def rename_rounds(content):
    return {**content, "at": content["rounds"]}


def rename_back(content):
    return {**content, "rounds": content.pop("at")}


def test_a_trace_of_an_older_version_is_migrated(trace, path, monkeypatch):
    trace.save(path)
    newer = files.Format("trace", 3, {1: rename_rounds, 2: rename_back})
    monkeypatch.setattr("fedlib.core.trace.FORMAT", newer)
    migrated = Trace.load(path)
    assert migrated.rounds.tolist() == trace.rounds.tolist()
    assert migrated.config == trace.config


def test_late_is_the_mean_of_the_last_starts_of_rounds(trace):
    curve = np.arange(12.0).reshape(1, 12)
    counted = Trace(
        {"f": curve},
        {},
        np.arange(12),
        (0,),
        {},
        {},
        None,
        None,
    )
    assert counted.of_rounds("f").tolist() == [list(range(11))]
    assert counted.late("f").tolist() == [9.5]  # two of eleven
    assert counted.late("f", 0.01).tolist() == [10.0]


def test_seeds_may_be_numbers_of_numpy(trace):
    assert torch.equal(trace.model(np.int64(3)), trace.model(3))
    refuses("Trace: seed must be one of 3, 1, got 3.0", trace.model, np.float64(3))
    refuses("Trace: seed must be one of 3, 1, got True", trace.model, True)


class Tied(torch.nn.Module):
    """Two layers with one weight; the second also has a frozen bias."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3, bias=False)
        self.second = torch.nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.second.bias.requires_grad_(False)
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))) + self.shift


def squares(rows):
    return rows.mean(((rows.output - rows.target) ** 2).sum(1))


def test_a_module_with_tied_weights_is_restored_under_every_name(tmp_path):
    module = Tied()
    x = numbers(6, 3)
    problem = from_clients([(x, x)] * 2, module=module, objective=squares)
    assert problem.dim == 9
    trained = fl.run(fl.FedAvg(0.1, 2, 2), problem, rounds=4)
    state = trained.state_dict(module)
    assert {*state} == {"first.weight", "second.weight", "second.bias", "shift"}
    assert torch.equal(state["first.weight"].flatten(), trained.model())
    assert not torch.equal(state["first.weight"], module.first.weight)
    torch.save(state, tmp_path / "model.pt")
    restored = Tied()
    restored.load_state_dict(torch.load(tmp_path / "model.pt"))
    assert restored.first.weight is restored.second.weight
    torch.testing.assert_close(restored(x), trained.load_into(module)(x))
