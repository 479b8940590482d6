"""The common checks catch what they are for: a right method, with one line of it made wrong."""

import importlib.util
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

import fedlib as fl
from fedlib.core.sampling import draw_round
from fedlib.engine import draws, grid, start
from fedlib.engine.draws import stack_draws
from fedlib.flower.job import Job, Place, client_problem
from fedlib.testing.contract import CHECKS, findings
from tests.helpers.problems import np_problem

NOTEBOOK = Path(__file__).parents[3] / "notebooks" / "src" / "tutorial_scaffold.py"
SOURCE = '''
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fedlib import checks
from fedlib.core.client import Client, Reply
from fedlib.compress.compressors import Identity, TopK
from fedlib.core.federation import Federation
from fedlib.core.sampling import check_work, draw_round


class State(NamedTuple):
    w: Tensor
    past: Tensor


@dataclass(frozen=True)
class Method:
    """Averaging, a little of the last model kept.

        1  sample n distinct clients
        2  each makes a step: u = w - lr grad f_j(w)
        3  w <- (mean_j u_j + keep past) / (1 + keep)

    lr is the step size, participants n, keep how much of the last model stays.
    """

    lr: float
    participants: int
    keep: float = 0.1

    def init(self, problem):
        check_work("Method", problem, self.participants)
        return State(problem.w0, problem.w0.clone())

    def draw(self, problem, rng):
        return draw_round(problem, rng, participants=self.participants)  # 1

    def step(self, client, w):
        return w - self.lr * client.gradient(w, client.batch(0), client.objective_weights(w))  # 2

    def round(self, fed, state, draw):
        w = state.w
        u = fed.ask(self.step, fed.clients(draw), w)
        mean = u.mean(0)
        w_next = (mean + self.keep * state.past) / (1 + self.keep)  # 3
        return State(w_next, w), fed.info()
'''
ASK = "fed.ask(self.step, fed.clients(draw), w)"
#: name -> (old line, new line, the check that must say so, a part of its sentence, and maybe
#: another old line and its new one)
MISTAKES = {
    "no frozen record": ("frozen=True", "frozen=False", "is a record", "frozen dataclass"),
    "state without w": (
        "    w: Tensor\n    past: Tensor",
        "    past: Tensor\n    w: Tensor",
        "is a record",
        "first field is w, got 'past'",
    ),
    "random numbers": (
        "mean = u.mean(0)",
        "mean = u.mean(0) + 0.01 * torch.randn(u.shape[-1])",
        "is pure",
        "two rounds from one state and one draw must be equal",
    ),
    "random numbers at a client": (
        "return w - self.lr",
        "return w + 0.1 * torch.randn_like(w) - self.lr",
        "runs batched",
        "must not draw random numbers",
    ),
    "in place": (
        "mean = u.mean(0)",
        "state.past.add_(1.0); mean = u.mean(0)",
        "is pure",
        "not change the state that it was given",
    ),
    "branching": (
        "mean = u.mean(0)",
        "mean = u.mean(0) if w.norm() < 1 else w",
        "runs batched",
        "must not branch on a tensor's value",
    ),
    "a number of the last method that started": (
        "        check_work(",
        "        type(self).kept = self.keep\n        check_work(",
        "runs in a grid",
        "a point of a grid must run as it does alone",
        "(mean + self.keep *",
        "(mean + self.kept *",
    ),
    "a draw beside its generator": (
        "participants=self.participants)  # 1",
        "participants=self.participants)._replace(downlink=torch.rand(1))  # 1",
        "draws as one by one",
        "draw from the generator alone",
    ),
    "a wire that does not fit": (
        ASK,
        "fed.ask(self.step, fed.clients(draw), w, wire=TopK(0.1))",
        "engines agree",
        "what is uploaded must be what the wire format",
    ),
    "a report of its own": (
        "fed.info()",
        "{'bits_up': torch.tensor(8.0), 'bits_down': torch.tensor(8.0)}",
        "counts its bits",
        "must hold bits_up as counted",
    ),
    "a model that nobody sent": (
        ASK,
        "fed.ask(lambda c: self.step(c, c.model), fed.clients(draw, model=w))",
        "both ends agree",
        "a client nothing but its own data and its messages",
    ),
    "the server reads rows": (
        "mean = u.mean(0)",
        "mean = w - self.lr * torch.func.grad(lambda v: fed.problem.mean_losses(v)[0])(w)",
        "both ends agree",
        "server must use nothing but uploads",
    ),
    "the server goes on with reports": (
        f"u = {ASK}",
        "_, _, u = fed.ask(lambda c, w: Reply(w[:1], (), self.step(c, w)), fed.clients(draw), w)",
        "both ends agree",
        "server must use nothing but uploads",
    ),
    "a sum for a mean": ("u.mean(0)", "w + (u - w).sum(0)", "averages", "take the mean"),
    "its own derivative": (
        "client.gradient(w, client.batch(0), client.objective_weights(w))",
        "torch.func.grad(lambda v: 2 * client.losses(v, client.batch(0))[0])(w) * "
        "(1.0 if client.gradient_function is None else 0.5)",
        "uses the gradient given",
        "must give the same model",
    ),
    "a wrong sign": ("w - self.lr *", "w + self.lr *", "improves", "wrong sign"),
}


@pytest.fixture
def build(tmp_path, monkeypatch):
    """A method from the source of its file."""

    def make(*edits, source=SOURCE, name="Method", **settings):
        for old, new in zip(edits[::2], edits[1::2], strict=True):
            assert old in source
            source = source.replace(old, new)
        path = tmp_path / "own_method.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("own_method", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "own_method", module)
        spec.loader.exec_module(module)
        return getattr(module, name)(lr=0.1, participants=5, **settings)

    return make


def test_a_right_method_passes(build):
    assert findings(build(), np_problem()) == dict.fromkeys(CHECKS, "")
    fl.check_algorithm(build(), np_problem())


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_found(build, mistake):
    old, new, check, sentence, *further = mistake
    with pytest.raises(AssertionError) as caught:
        CHECKS[check](build(old, new, *further), np_problem())
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")


@dataclass(frozen=True)
class Floating:
    """Averaging whose start and draw depend on floats, and with a helper called `sampling`."""

    lr: float
    first: float = 1.0
    noise: float = 0.1

    def init(self, problem):
        return Started(problem.w0, problem.w0.new_full((), self.first))

    def sampling(self):
        return {"participants": 1}

    def draw(self, problem, rng):
        drawn = draw_round(problem, rng, participants=3)
        return drawn._replace(downlink=self.noise * torch.rand(1, generator=rng))

    def step(self, client, w):
        return client.gradient(w, client.batch(0), client.objective_weights(w))

    def round(self, fed, state, draw):
        mean = fed.ask(self.step, fed.clients(draw), state.w).mean(0)
        step = self.lr * (state.factor * mean + draw.downlink)
        return Started(state.w - step, 0.9 * state.factor), fed.info(noise=draw.downlink[0])


class Started(NamedTuple):
    w: torch.Tensor
    factor: torch.Tensor


def last_start(runs, algorithm):
    """`first_states`, faulty: every grid point starts as the last."""
    return plain_start(runs, runs.grid.points[-1])


def by_name(algorithm, problems, rngs, rounds):
    """`draw_many`, faulty: it takes a method called `sampling` for that of `Sampled`."""
    settings = algorithm.sampling()
    pairs = list(zip(problems, rngs, strict=True))
    drawn = [draw_round(p, g, **settings) for _ in range(rounds) for p, g in pairs]
    return stack_draws(drawn, rounds)


plain_start = start.first_states


@pytest.mark.parametrize(
    ("module", "name", "fault", "check"),
    [
        (start, "first_states", last_start, "runs in a grid"),
        (grid, "draws_alike", lambda *_: True, "runs in a grid"),
        (draws, "draw_many", by_name, "draws as one by one"),
    ],
)
def test_a_fault_of_grids_and_draws_is_found(monkeypatch, module, name, fault, check):
    texts = findings(Floating(0.1), np_problem())
    assert texts["runs in a grid"] == texts["draws as one by one"] == ""
    monkeypatch.setattr(module, name, fault)
    assert findings(Floating(0.1), np_problem())[check]


def test_every_check_has_its_mistake():
    assert {check for _, _, check, *_ in MISTAKES.values()} == set(CHECKS)


def test_all_findings_are_listed_and_a_crash_is_one_of_them(build):
    broken = build("* client.gradient(w,", "* client.slope(w,")
    with pytest.raises(AssertionError, match="Method fails") as caught:
        fl.check_algorithm(broken, np_problem())
    assert str(caught.value).splitlines()[1:] == [
        "is pure: a round stops with AttributeError: 'Client' object has no attribute 'slope'"
    ]
    twice = build("u.mean(0)", "w - (u - w).sum(0)")
    with pytest.raises(AssertionError) as caught:
        fl.check_algorithm(twice, np_problem())
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()[1:]] == [
        "averages",
        "improves",
    ]


def test_nothing_is_asked_of_a_round_that_is_not_pure(build):
    noisy = build("mean = u.mean(0)", "mean = u.mean(0) + torch.randn(u.shape[-1])")
    texts = findings(noisy, np_problem())
    assert list(texts) == ["is a record", "is pure"]
    assert texts["is pure"]


def scaffold(build, declaration):
    """The tutorial's SCAFFOLD whose state calls the clients' memory `controls`."""
    source = re.search(r"SOURCE = '''(.*?)'''", NOTEBOOK.read_text(encoding="utf-8"), re.DOTALL)[1]
    source = re.sub(r"    client_state.*\n", "", source)
    source = source.replace("memory: Tensor", "controls: Tensor")
    source = source.replace("state.memory", "state.controls")
    lr = "    lr: Positive\n"
    return build(lr, declaration + lr, source=source, name="Scaffold", local_steps=2)


def test_a_memory_may_have_any_name_and_every_end_carries_its_own_row(build):
    method = scaffold(build, '    client_state = ("controls",)\n')
    problem = np_problem()
    fl.check_algorithm(method, problem)
    ends = [Place(Job(method, partial(client_problem, problem), 1), me) for me in (None, 3)]
    server, client = (end.state.controls for end in ends)
    assert server.isnan().all()
    assert client.isnan().sum() == (problem.num_clients - 1) * problem.dim
    assert client[3].isfinite().all()


def test_a_memory_that_is_not_declared_is_found(build):
    texts = findings(scaffold(build, ""), np_problem())
    (failed,) = filter(None, texts.values())
    assert failed == texts["both ends agree"]
    assert "every end would hold all rows of the state's field controls" in failed
    assert 'client_state: ClassVar[tuple[str, ...]] = ("controls",)' in failed
