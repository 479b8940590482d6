"""A checkpoint or a trace is taken by the run that made it, and by no other."""

import json
import sys
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

import fedlib as fl
from fedlib import models, problems
from fedlib.engine.identity import digest_of, sketch
from fedlib.problems import from_clients, quadratics
from tests.helpers.randoms import normal, numbers

AVG = fl.FedAvg(0.1, 2, 3)
ROWS = [(numbers(9, 4, seed=j), numbers(9, seed=j + 9)) for j in range(3)]


def squares(rows):
    return rows.mean((rows.output.squeeze(-1) - rows.target) ** 2)


def scaled(rows, *, factor=1.0):
    return factor * squares(rows)


def powers(power):
    return lambda rows: rows.mean((rows.output.squeeze(-1) - rows.target).abs() ** power)


def closing(factor):
    table = {"factor": factor}
    return lambda rows: table["factor"] * squares(rows)


@dataclass(frozen=True)
class Weighted:
    """An objective that is an object."""

    factor: float

    def __call__(self, rows):
        return self.factor * squares(rows)


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, rows):
        return self.factor * squares(rows)


def from_source(source, **space):
    """The objective of a notebook's cell, which may be edited and run again."""
    space |= {"squares": squares, "__name__": "cell"}
    exec(source, space)
    return space["objective"]


def reading(value):
    """A function that reads a global."""
    return from_source("def objective(rows): return FACTOR * squares(rows)", FACTOR=value)


def helped(value):
    """A function that calls another of its module, which reads a global."""
    helper = "def helper(x): return FACTOR * x\n"
    objective = "def objective(rows): return helper(squares(rows))"
    return from_source(helper + objective, FACTOR=value)


def with_module(value):
    """A function that calls a function of a module of people's own."""
    mine = ModuleType("mine")
    exec(f"def helper(x): return {value} * x", vars(mine))
    return from_source("def objective(rows): return mine.helper(squares(rows))", mine=mine)


class Half(nn.Module):
    def forward(self, x):
        return x / 2


class Third(nn.Module):
    def forward(self, x):
        return x / 3


class Factor(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


def layers(inner):
    return nn.Sequential(*models.mlp((4, 3)), inner, *models.mlp((3, 1)))


def hooked(sign):
    """A network with a hook on the output of a layer."""
    module = layers(nn.Tanh())
    module[0].register_forward_hook(lambda _, __, output: sign * output)
    return module


def made(objective=squares, module=None, rows=ROWS, **options):
    module = module or layers(nn.Tanh())
    return from_clients(rows, module=module, objective=objective, **options)


def with_objective(make):
    return lambda value: made(make(value))


def with_layer(make):
    return lambda value: made(module=layers(make(value)))


def with_first_client(change):
    """The first client's rows and targets are changed."""
    return lambda value: made(rows=[change(value, *ROWS[0]), *ROWS[1:]])


def itself(value):
    return value


def new(layer):
    return layer()


def host_measure(factor):
    return made(measures={"m": lambda rows: factor * float(squares(rows))})


def heldout(sign):
    x, y = ROWS[0]
    return made(heldout=(sign * x, y), measures={"mse": squares})


SAME = torch.arange(9)
SWAPPED = torch.tensor([1, 0, *range(2, 9)])
ONE_FLIPPED = torch.tensor([-1, *[1] * 8])
#: name -> the maker of a problem, and two values with which it makes problems that differ
PAIRS = {
    "another constant in a closure": (with_objective(powers), 2, 2.5),
    "another constant in code": (
        with_objective(itself),
        lambda rows: 2 * squares(rows),
        lambda rows: 3 * squares(rows),
    ),
    "another keyword": (with_objective(lambda x: partial(scaled, factor=x)), 1.0, 2.0),
    "another field": (with_objective(Weighted), 1.0, 2.0),
    "another slot": (with_objective(Slotted), 1.0, 2.0),
    "another entry of a dict": (with_objective(closing), 1.0, 2.0),
    "another tensor": (with_objective(closing), torch.tensor(1.0), torch.tensor(1.001)),
    "another array": (with_objective(closing), np.float64(1), np.float64(2)),
    "another global": (with_objective(reading), 1, 2),
    "another global of a helper": (with_objective(helped), 1, 2),
    "another function of a module": (with_objective(with_module), 1, 2),
    "another option of a layer": (with_layer(nn.LeakyReLU), 0.1, 0.2),
    "another forward": (with_layer(new), Half, Third),
    "another attribute of a module": (with_layer(Factor), 1.0, 2.0),
    "another mode": (with_layer(lambda mode: nn.Dropout(0.5).train(mode)), True, False),
    "another hook": (lambda sign: made(module=hooked(sign)), 1, -1),
    "another order of rows": (with_first_client(lambda k, x, y: (x[k], y[k])), SAME, SWAPPED),
    "another target": (with_first_client(lambda k, x, y: (x, k * y)), 1, ONE_FLIPPED),
    "another start": (lambda shift: replace(made(), w0=made().w0 + shift), 0.0, 1e-3),
    "other weights": (lambda weights: made().weighted(weights), (1, 1, 1), (1, 1, 2)),
    "another measure": (lambda power: made(measures={"m": powers(power)}), 2, 3),
    "a host measure": (host_measure, 1, 2),
    "other rows that are held out": (heldout, 1, -1),
    "another constraint": (lambda power: made(constraint=powers(power)), 2, 3),
    "another dtype": (
        lambda dtype: made(module=layers(nn.Tanh()).to(dtype)),
        torch.float32,
        torch.float64,
    ),
    "another scale": (lambda change: change(made()), itself, lambda problem: problem.scaled()),
    "another client's row": (lambda order: quadratics(normal(9, 2)[order]), SAME, SWAPPED),
}


@pytest.mark.parametrize(("make", "value", "changed"), PAIRS.values(), ids=PAIRS)
def test_a_checkpoint_and_a_trace_of_another_problem_are_refused(tmp_path, make, value, changed):
    path = tmp_path / "c"
    trace = fl.run(AVG, make(value), rounds=4, checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint c must belong to this run, but it was wri"):
        fl.run(AVG, make(changed), rounds=4, checkpoint=path)
    with pytest.raises(ValueError, match="run: start must be a trace of this"):
        fl.run(AVG, make(changed), rounds=5, start=trace)
    built_anew = make(value)
    finished = fl.run(AVG, built_anew, rounds=4, checkpoint=path)
    assert torch.equal(finished.state.w, trace.state.w)
    assert fl.run(AVG, built_anew, rounds=5, start=trace).rounds[-1] == 5


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        (fl.PowerLaw(1.0, 0.5), fl.PowerLaw(1.0, 0.6)),
        (lambda t: 1 / t, lambda t: 1 / t**0.5),
        (lambda _: 1.0, lambda t: 0.5 if t == 4 else 1.0),
        (None, lambda _: 1.0),
    ],
    ids=["another law", "another function", "another round", "none"],
)
def test_a_checkpoint_and_a_trace_of_another_schedule_are_refused(tmp_path, rule, changed):
    def run(factor, **options):
        schedules = {} if factor is None else {"lr": factor}
        return fl.run(AVG, quadratics(), schedules=schedules, **options)

    path = tmp_path / "c"
    trace = run(rule, rounds=4, checkpoint=path)
    with pytest.raises(ValueError, match=r"was written with another schedules\['lr'\]"):
        run(changed, rounds=4, checkpoint=path)
    with pytest.raises(ValueError, match=r"got .another schedules\['lr'\]"):
        run(changed, rounds=4, start=trace)
    resumed = run(rule, rounds=9, checkpoint=path)
    continued = run(rule, rounds=9, start=trace)
    assert torch.equal(resumed.state.w, continued.state.w)


class Slower(fl.FedAvg):
    def round(self, fed, state, draw):
        next_state, info = super().round(fed, state, draw)
        return next_state._replace(w=(state.w + next_state.w) / 2), info


SLOWER = Slower


class Slower(fl.FedAvg):
    """The class of that name, edited."""

    def round(self, fed, state, draw):
        next_state, info = super().round(fed, state, draw)
        return next_state._replace(w=(state.w + 3 * next_state.w) / 4), info


def test_a_method_whose_code_was_edited_is_another(tmp_path):
    edited = Slower(0.1, 1, 4)
    problem = problems.quadratics()
    trace = fl.run(SLOWER(0.1, 1, 4), problem, rounds=4, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="with other algorithm"):
        fl.run(edited, problem, rounds=4, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="must be a trace of this run, got 'another algorithm'"):
        fl.run(edited, problem, rounds=4, start=trace)


def digests():
    """Digests of objectives, of a set, whose order depends on the process, and of a class."""
    subjects = [frozenset("abcdef"), SLOWER, closing({"a", "b", ("d", 1)})]
    subjects.append(made(module=hooked(1)).losses)
    subjects += [make(value).losses for make, value, _ in list(PAIRS.values())[:12]]
    return [digest_of(subject) for subject in subjects]


def test_the_digest_of_a_function_is_that_of_another_process(other_process):
    report = json.loads((other_process / "report.json").read_text(encoding="utf-8"))
    assert report["digests"] == digests()


def test_a_comment_a_docstring_and_the_place_of_a_function_say_nothing():
    plain = "def objective(rows):\n    return squares(rows)"
    worded = "\n\n# a comment\ndef objective(rows):\n    'Words.'\n    return squares(rows)"
    assert digest_of(from_source(plain)) == digest_of(from_source(worded))


def test_what_holds_itself_or_cannot_be_read_has_a_digest():
    ring = [1]
    ring.append(ring)
    deep = ()
    for _ in range(5000):
        deep = (deep,)
    assert len({digest_of(x) for x in (ring, deep, iter("ab"), sys.stdout, object())}) >= 4


def test_rounding_is_no_other_data_but_one_other_entry_in_a_million_is():
    x = normal(10**6).float()
    original = sketch(x)
    limit = 0.9 * float(original[-1] * original[-2])

    def distance(y):
        return float((original - sketch(y))[:3].abs().max())

    assert distance(x * (1 + 1e-7)) < limit
    changed = x.clone()
    changed[123_456] += 3.0
    assert distance(changed) > limit
    exchanged = x.clone()
    exchanged[[5, 500_005]] = x[[500_005, 5]]
    assert distance(exchanged) > limit
