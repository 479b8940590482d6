"""A checkpoint or a trace is taken by the run that made it, and by no other."""

import json
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

import fedlib as fl
from fedlib import models, problems
from fedlib.core.problem import Problem
from fedlib.engine.identity import digest_of, identify, sketch
from fedlib.problems import from_clients
from tests.helpers.randoms import normal

AVG = fl.FedAvg(0.1, 2, 3)
ROWS = [(normal(9, 4, seed=j).float(), normal(9, seed=j + 9).float()) for j in range(3)]
OPTIONS = {"rounds": 4, "progress": False}


def squares(rows):
    return rows.mean((rows.output.squeeze(-1) - rows.target) ** 2)


def powers(power):
    return lambda rows: rows.mean((rows.output.squeeze(-1) - rows.target).abs() ** power)


def scaled(rows, factor=1.0):
    return factor * squares(rows)


def softened(rows, *, softness=1.0):
    return rows.mean(softness * torch.nn.functional.softplus(rows.output.squeeze(-1)))


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


def closing(table):
    return lambda rows: table["factor"] * squares(rows)


def from_source(source, name="objective"):
    """A function from a notebook's cell, which may be edited and run again."""
    space = {
        "squares": squares,
        "torch": torch,
        "np": np,
        "__name__": "cell",
    }
    exec(source, space)
    return space[name]


def reading(value):
    """A function that reads a global."""
    source = f"FACTOR = {value}\ndef objective(rows): return FACTOR * squares(rows)"
    return from_source(source)


def helped(value):
    """A function that calls another of its module, which reads a global."""
    source = (
        f"FACTOR = {value}\ndef helper(x): return FACTOR * x\n"
        "def objective(rows): return helper(squares(rows))"
    )
    return from_source(source)


def with_module(value):
    """A function that calls a function of a module of people's own."""
    mine = ModuleType("mine")
    exec(f"def helper(x): return {value} * x", vars(mine))
    function = from_source("def objective(rows): return mine.helper(squares(rows))")
    function.__globals__["mine"] = mine
    return function


def layers(*inner):
    return nn.Sequential(*models.mlp((4, 3)), *inner, *models.mlp((3, 1)))


class Half(nn.Module):
    def forward(self, x):
        return x / 2


class Third(nn.Module):
    def forward(self, x):
        return x / 3


class Branching(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


def made(objective=squares, module=None, rows=ROWS, **options):
    module = layers(nn.Tanh()) if module is None else module
    return from_clients(rows, module=module, objective=objective, **options)


def flipped(rows, client=0, row=0):
    """The rows with another sign of one target."""
    changed = [(x.clone(), y.clone()) for x, y in rows]
    changed[client][1][row] *= -1
    return changed


def exchanged(rows):
    """The rows of one client in another order."""
    (x, y), *further = rows
    order = [1, 0, *range(2, len(x))]
    return [(x[order], y[order]), *further]


def hooked(sign):
    """A network with a hook on the output of a layer."""
    module = layers(nn.Tanh())
    module[0].register_forward_hook(lambda _, __, output: sign * output)
    return module


def heldout(sign):
    return {"heldout": (sign * ROWS[0][0], ROWS[0][1]), "measures": {"mse": squares}}


#: name -> two makers of problems that differ
PAIRS = {
    "another function": (lambda: made(), lambda: made(powers(3))),
    "another constant in a closure": (lambda: made(powers(2)), lambda: made(powers(2.5))),
    "another constant in code": (
        lambda: made(lambda r: 2 * squares(r)),
        lambda: made(lambda r: 3 * squares(r)),
    ),
    "another default": (lambda: made(scaled), lambda: made(partial(scaled, factor=2.0))),
    "another keyword": (
        lambda: made(partial(softened, softness=1.0)),
        lambda: made(partial(softened, softness=2.0)),
    ),
    "another field": (lambda: made(Weighted(1.0)), lambda: made(Weighted(2.0))),
    "another slot": (lambda: made(Slotted(1.0)), lambda: made(Slotted(2.0))),
    "another entry of a dict": (
        lambda: made(closing({"factor": 1.0})),
        lambda: made(closing({"factor": 2.0})),
    ),
    "another tensor in a closure": (
        lambda: made(closing({"factor": torch.tensor(1.0)})),
        lambda: made(closing({"factor": torch.tensor(1.001)})),
    ),
    "another array in a closure": (
        lambda: made(closing({"factor": np.float64(1)})),
        lambda: made(closing({"factor": np.float64(2)})),
    ),
    "another global": (lambda: made(reading(1)), lambda: made(reading(2))),
    "another global of a helper": (lambda: made(helped(1)), lambda: made(helped(2))),
    "another function of a module": (lambda: made(with_module(1)), lambda: made(with_module(2))),
    "another activation": (lambda: made(), lambda: made(module=layers(nn.ReLU()))),
    "another option of a layer": (
        lambda: made(module=layers(nn.LeakyReLU(0.1))),
        lambda: made(module=layers(nn.LeakyReLU(0.2))),
    ),
    "another forward": (lambda: made(module=layers(Half())), lambda: made(module=layers(Third()))),
    "another attribute of a module": (
        lambda: made(module=layers(Branching(1.0))),
        lambda: made(module=layers(Branching(2.0))),
    ),
    "another hook": (lambda: made(module=hooked(1)), lambda: made(module=hooked(-1))),
    "another mode": (
        lambda: made(module=layers(nn.Dropout(0.5))),
        lambda: made(module=layers(nn.Dropout(0.5)).eval()),
    ),
    "another order of rows": (lambda: made(), lambda: made(rows=exchanged(ROWS))),
    "another target": (lambda: made(), lambda: made(rows=flipped(ROWS))),
    "another start": (
        lambda: made(),
        lambda: replace(made(), w0=made().w0 + 1e-3),
    ),
    "other weights": (lambda: made(), lambda: made().weighted((1, 1, 2))),
    "another measure": (
        lambda: made(measures={"m": squares}),
        lambda: made(measures={"m": powers(3)}),
    ),
    "a host measure": (
        lambda: made(measures={"m": lambda r: float(squares(r))}),
        lambda: made(measures={"m": lambda r: 2 * float(squares(r))}),
    ),
    "other rows that are held out": (lambda: made(**heldout(1)), lambda: made(**heldout(-1))),
    "another constraint": (
        lambda: made(constraint=powers(2)),
        lambda: made(constraint=powers(3)),
    ),
    "another dtype": (
        lambda: made(),
        lambda: made(module=layers(nn.Tanh()).double()),
    ),
    "another scale": (lambda: made(), lambda: made().scaled()),
    "other quadratics": (
        lambda: problems.quadratics(normal(4, 2)),
        lambda: problems.quadratics(normal(4, 2) + 1),
    ),
    "another client's row": (
        lambda: problems.quadratics(normal(4, 2)),
        lambda: problems.quadratics(normal(4, 2)[[1, 0, 2, 3]]),
    ),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_checkpoint_and_a_trace_of_another_problem_are_refused(tmp_path, pair):
    make_first, make_second = pair
    path = tmp_path / "c"
    trace = fl.run(AVG, make_first(), checkpoint=path, **OPTIONS)
    second = make_second()
    with pytest.raises(ValueError, match="checkpoint c must belong to this run, but it was wri"):
        fl.run(AVG, second, checkpoint=path, **OPTIONS)
    more = OPTIONS | {"rounds": 5}
    with pytest.raises(ValueError, match="run: start must be a trace of this"):
        fl.run(AVG, second, start=trace, **more)
    built_anew = make_first()
    finished = fl.run(AVG, built_anew, checkpoint=path, **OPTIONS)
    assert torch.equal(finished.state.w, trace.state.w)
    continued = fl.run(AVG, built_anew, start=trace, **more)
    assert continued.rounds[-1] == 5


#: name -> two schedules that differ, maybe not in the rounds that describe them
SCHEDULES = {
    "another law": (fl.PowerLaw(1.0, 0.5), fl.PowerLaw(1.0, 0.6)),
    "another function": (lambda t: 1 / t, lambda t: 1 / t**0.5),
    "another round": (lambda _: 1.0, lambda t: 0.5 if t == 4 else 1.0),
    "none": (None, lambda _: 1.0),
}


@pytest.mark.parametrize("pair", SCHEDULES.values(), ids=SCHEDULES)
def test_a_checkpoint_and_a_trace_of_another_schedule_are_refused(tmp_path, pair):
    problem = problems.quadratics()
    schedules_before, second = ({} if rule is None else {"lr": rule} for rule in pair)
    trace = fl.run(AVG, problem, checkpoint=tmp_path / "c", schedules=schedules_before, **OPTIONS)
    for schedules in (second, {"lr": lambda _: 2.0}):
        with pytest.raises(ValueError, match=r"was written with another schedules\['lr'\]"):
            fl.run(AVG, problem, checkpoint=tmp_path / "c", schedules=schedules, **OPTIONS)
        with pytest.raises(ValueError, match=r"got .another schedules\['lr'\]"):
            fl.run(AVG, problem, start=trace, schedules=schedules, **OPTIONS)
    same = {**OPTIONS, "rounds": 9, "schedules": schedules_before}
    again = fl.run(AVG, problem, checkpoint=tmp_path / "c", **same)
    np.testing.assert_array_equal(again.state.w, fl.run(AVG, problem, start=trace, **same).state.w)


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
    problem = problems.quadratics()
    trace = fl.run(SLOWER(0.1, 1, 4), problem, checkpoint=tmp_path / "c", **OPTIONS)
    with pytest.raises(ValueError, match="with other algorithm"):
        fl.run(Slower(0.1, 1, 4), problem, checkpoint=tmp_path / "c", **OPTIONS)
    with pytest.raises(ValueError, match="must be a trace of this run, got 'another algorithm'"):
        fl.run(Slower(0.1, 1, 4), problem, start=trace, **OPTIONS)


def digests():
    """Digests of objectives, of a set, whose order depends on the process, and of a class."""
    table = {"factor": 1, "set": {"a", "b", "c", ("d", 1)}}
    functions = [made(closing(table), module=hooked(1)).losses]
    functions += [pair[0]().losses for pair in list(PAIRS.values())[:12]]
    return [digest_of(subject) for subject in (*functions, frozenset("abcdef"), SLOWER)]


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
    limit = 0.9 * float(sketch(x)[-1] * sketch(x)[-2])

    def far(y):
        return float((sketch(x) - sketch(y))[:3].abs().max())

    assert far(x * (1 + 1e-7)) < limit
    changed = x.clone()
    two = x.clone()
    changed[123_456] += 3.0
    two[[5, 500_005]] = x[[500_005, 5]]
    assert far(changed) > limit < far(two)


def test_an_identity_takes_milliseconds():
    problem = made()
    began = time.perf_counter()
    for _ in range(10):
        identify([AVG], problem, [*problem.data], {})
    assert (time.perf_counter() - began) / 10 < 0.05
    assert isinstance(problem, Problem)
