"""Argument checks: what passes, what is refused, and the one form of the sentence."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Protocol, TypedDict

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

import fedlib as fl
from fedlib import checks
from fedlib.checks import SOME, Count, Positive, Share, Takes, Threshold
from fedlib.core.algorithm import Algorithm
from fedlib.sets.blocks import Blocks, PerClient
from fedlib.steps.switching import Switch
from fedlib.testing.examples import divided_features, examples, wire_formats
from tests.helpers.expect import refuses


class Named(TypedDict):
    a: int


class Weak(Protocol):
    def __call__(self, z: int) -> int: ...


TWO = torch.ones(2)
NOT_A_NUMBER = [
    True,
    "1",
    None,
    1j,
    TWO,
    torch.tensor(True),
    np.array(1.0),
]
GOOD = [
    (bool, [np.True_]),
    (int, [-3, np.int8(2)]),
    (float, [1, np.float32(2), Fraction(1, 2), torch.tensor(math.nan)]),
    (str, ["", np.str_("b")]),
    (Share, [1]),
    (Threshold, [math.inf, np.float64("inf")]),
    (Count | None, [None, np.uint8(1)]),
    (float | tuple[float, ...], [1, ()]),
    (Literal["a", 1], [1]),
    (tuple[()], [()]),
    (tuple, [(1, "a")]),
    (Annotated[float, "a note"], [1.0]),
    (Sequence[int], [[1], range(3)]),
    (Callable[[int], int], [abs, int, fl.Hard()]),
    (type[int], [int]),
    (Float[Tensor, "N d"], [torch.ones(0, 1).double()]),
    (Int[Tensor, "N"] | tuple[()], [(), TWO.long()]),
    (Named, [3]),  # not looked at
    (Weak, [3]),
]
BAD = [
    (bool, "be True or False", [0, "no", None, torch.tensor(True)]),
    (int, "be a whole number", [1.0, True, "1", None, torch.tensor(1)]),
    (float, "be a number", NOT_A_NUMBER),
    (float, "be a finite number", [math.nan, -math.inf, np.float64("nan")]),
    (str, "be a text", [None, 3, b"a"]),
    (Positive, "be a number", NOT_A_NUMBER),
    (Positive, "be positive, got", [0, np.float32(-1)]),
    (Positive, "be positive and finite, got", [math.inf, math.nan]),
    (Threshold, "be a finite number", [math.nan, -math.inf]),
    (Count, "be a whole number", [1.0, "1", None, torch.tensor(1), True]),
    (Count, "be at least 1", [0, np.int64(0)]),
    (Count | None, "be a whole number or None", ["x", ()]),
    (float | tuple[float, ...], "be a number or a tuple", ["x", None, [1.0]]),
    (float | tuple[float, ...], "b[1] must be a finite number", [(1.0, math.nan)]),
    (Literal["a", 1], "be one of 'a', 1", ["b", True, ["a"]]),
    (Literal["a"] | None, "be one of 'a' or None", ["b", 0]),
    (Count | Literal["a"], "be a whole number or one of 'a'", ["b", None]),
    (Literal["a"] | Sequence[float], "b[1] must be a number, got True.", [[1, True]]),
    (tuple[int, str], "have 2 entries", [(1,)]),
    (tuple[int, str], "b[1] must be a text", [(1, 2)]),
    (tuple[int, ...], "be a tuple of whole numbers*pass tuple(...)", [[1], {1}]),
    (tuple[int, ...], "be a tuple", ["abc", None]),
    (Annotated[tuple[int, ...], SOME], "not be empty", [()]),
    (Sequence[int], "be a Sequence of whole numbers", ["abc", 3]),
    (Sequence[int], "call .tolist()", [np.arange(2), torch.arange(2)]),
    (Sequence[int], "pass list(...)", [{1}, iter([1])]),
    (Sequence[int], "pass list(....values())", [{"a": 1}]),
    (Mapping[str, int], "be a Mapping", [[], None]),
    (Mapping[str, int] | None, "every key of b must be a text, got 1.", [{1: 1}]),
    (Mapping[str, Callable] | None, "b['a'] must be a function, got 0.5.", [{"a": 0.5}]),
    (type[int], "be a class of int", [3, None]),
    (Callable[[int], int], "be a function", ["abs", None]),
    (Float[Tensor, "N d"], "a tensor of floats of shape [N, d]", [[1.0], TWO, None]),
    (Float[Tensor, "N d"], "got int64 [1, 2]", [torch.ones(1, 2).long()]),
    (
        Switch,
        "be a Switch",
        [
            None,
            abs,
            lambda z: z,
            torch.nn.ReLU(),
            fl.MinNorm(),
        ],
    ),
    (Switch, "write Hard(...)", [fl.Hard]),
    (Switch, "it lacks __call__(z)", [fl.Identity()]),
    (fl.PowerLaw, "write PowerLaw(scale, exponent), or derive a frozen", [0.1, lambda t: 1 / t]),
    (Algorithm, "be an Algorithm", ["FedAvg", fl.Ball(1.0)]),
]
ERRORS = (TypeError, ValueError)


@pytest.mark.parametrize(("annotation", "values"), GOOD)
def test_takes(annotation, values):
    for value in values:
        assert checks.value("A", "b", value, annotation) is None


@pytest.mark.parametrize(("annotation", "words", "values"), BAD)
def test_refuses(annotation, words, values):
    for value in values:
        refuses(f"A: *{words}", checks.value, "A", "b", value, annotation, error=ERRORS)


@dataclass(frozen=True)
class Record:
    lr: Positive
    steps: Count = 1
    flag: bool = False
    levels: tuple[float, ...] = ()
    made: int = field(init=False, default="not looked at")  # type: ignore[assignment]
    size: ClassVar[int] = "nor this"  # type: ignore[assignment]

    def __post_init__(self):
        checks.fields(self)


def test_numbers_of_numpy_in_fields_become_those_of_python():
    record = Record(np.float32(0.5), np.int64(3), np.True_, (np.float32(1), 2))
    assert record == Record(0.5, 3, True, (1.0, 2))
    values = (record.lr, record.steps, record.flag, *record.levels)
    assert [*map(type, values)] == [float, int, bool, float, int]
    assert type(Record(Fraction(1, 4)).lr) is float


def test_what_is_python_s_stays_what_it_is():
    lr = torch.tensor(0.5)
    record = Record(lr, levels=(1.0, 2))
    assert record.lr is lr
    assert [*map(type, record.levels)] == [float, int]
    assert type(Record(1).lr) is int  # the key of a stored run tells 1 from 1.0


def test_fields_under_vmap():
    doubled = torch.func.vmap(lambda lr: 2 * replace(Record(1.0), lr=lr).lr)
    assert doubled(torch.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_a_name_that_is_unknown_there_leaves_the_others():
    Local = int

    @dataclass
    class Odd:
        a: "Local"
        b: "Count"

        def __post_init__(self):
            checks.fields(self)

    assert Odd("anything", 1).a == "anything"
    refuses("Odd: b must be at least 1", Odd, "anything", 0)


class Own:
    @staticmethod
    def mean(x: Float[Tensor, "d"], further: Count = 1, plain=None) -> float:
        checks.arguments(Own.mean, locals())
        return float(x.mean()) + further


def test_arguments_of_a_function():
    assert Own.mean(TWO, 3, plain="anything") == 4
    refuses("Own.mean: x must be a tensor", Own.mean, [1.0], error=TypeError)
    refuses("Own.mean: further must be at least 1, got 0.", Own.mean, TWO, 0)


def test_a_mark_of_one_s_own():
    def even(subject, name, value):
        checks.require(value % 2 == 0, subject, name, "be even", value)

    mark = Takes(even, "Even")
    checks.value("A", "b", 2, Annotated[int, mark])
    refuses("A: b must be even, got 3.", checks.value, "A", "b", 3, Annotated[int, mark])
    assert repr(mark) == "Even"


SENTENCES = [
    (
        "n must lie in 1..20 (the clients), got 25.",
        checks.count,
        ("n", 25, 1, 20, "the clients"),
    ),
    ("x must be one of 1, 7, got True.", checks.one_of, ("x", True, (1, 7))),
    (
        "X must be finite, got 2 of 3 entries NaN or infinite; impute them.",
        checks.finite,
        ("X", torch.tensor([1.0, math.nan, math.inf]), "impute them"),
    ),
    (
        "y must be 0 or 1, got [0, 1, 2]; choose a class.",
        checks.labels01,
        ("y", torch.tensor([0, 1, 2]), "choose a class"),
    ),
]


@pytest.mark.parametrize(("text", "check", "arguments"), SENTENCES)
def test_sentence(text, check, arguments):
    with pytest.raises(ERRORS) as caught:
        check("A", *arguments)
    assert str(caught.value) == f"A: {text}"


RANGES = [
    ("[0, 1]", -1e-12, {}),
    ("[0, 1]", 1 + 1e-12, {}),
    ("[0, 1]", math.nan, {}),
    ("(0, 1]", 0, {"open_low": True}),
    ("[0, 1)", 1.0, {"open_high": True}),
]


@pytest.mark.parametrize(("interval", "value", "ends"), RANGES)
def test_beyond_the_ends_of_a_range(interval, value, ends):
    refuses(f"must lie in {interval}", checks.in_range, "A", "x", value, 0, 1, **ends)


def test_the_ends_belong_to_a_range():
    for value in (0, 1, np.float32(0.5), torch.tensor(7.5)):  # a tensor is not looked at
        checks.in_range("A", "x", value, 0, 1)
    checks.count("A", "n", 4, 1, 4)
    checks.count("A", "n", 0, low=0)


@pytest.mark.parametrize("shape", [(2, 2, 2), (0,), (3,)])
def test_vectors(shape):
    checks.vector("A", "w", TWO, 2)
    refuses("A: w must", checks.vector, "A", "w", torch.ones(shape), 2)


def records_in(value):
    """A record and those in its fields, or those in a tuple."""
    entries = ()
    if is_dataclass(value):
        yield value
        entries = [getattr(value, f.name) for f in fields(value)]
    elif isinstance(value, (tuple, list)):
        entries = value
    for entry in entries:
        yield from records_in(entry)


EXAMPLES = [
    [(e.algorithm, e.problem.set) for listed in examples().values() for e in listed],
    [example.wire for example in wire_formats()],
    divided_features().composite,
    Blocks((fl.Ball(1.0),), (2,)),
    PerClient((fl.Ball(1.0),), of=(0,)),
    (fl.Nonconvex(10), fl.Fixed(0.5), fl.Adam(), fl.FixedWeights((1.0, 2.0))),
]
RECORDS = {type(record).__name__: record for record in records_in(EXAMPLES)}


@pytest.mark.parametrize("owner", RECORDS)
def test_every_field_of_a_record_is_checked_by_name(owner):
    record = RECORDS[owner]
    names = [f.name for f in fields(record) if f.init]
    for name in names:
        refuses(f"{owner}: {name} must be*", replace, record, **{name: object()}, error=ERRORS)
