"""Argument checks: what passes, what is refused, and the one form of the sentence."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypedDict, runtime_checkable

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

import fedlib as fl
from fedlib import checks
from fedlib.checks import SOME, Count, Nonnegative, Positive, Share, Takes, Threshold, Whole
from fedlib.compress.sketches import Columns, Wire
from fedlib.core.algorithm import Algorithm
from fedlib.core.problem import ConvexSet
from fedlib.sets.blocks import Blocks, PerClient
from fedlib.sets.vertices import Corner, OneEntry, RankOne, Several
from fedlib.steps.switching import Switch
from fedlib.testing.examples import divided_features, examples
from fedlib.weights.rules import Weights
from tests.helpers.expect import refuses


class Named(TypedDict):
    a: int


class Weak(Protocol):
    def __call__(self, z: int) -> int: ...


@runtime_checkable
class Sized(Protocol):
    size: int

    def grow(self, by: int, *, fast: bool = False) -> int: ...


GOOD: list[tuple[Any, list[Any]]] = [
    (bool, [True, False, np.True_]),
    (int, [0, -3, np.int8(2)]),
    (float, [0, 1.5, np.float32(2), Fraction(1, 2), torch.tensor(math.nan)]),
    (str, ["", "a", np.str_("b")]),
    (Any, [None, object(), int]),
    (object, [None, int]),
    (Positive, [1, 1e-300, np.float16(1)]),
    (Nonnegative, [0]),
    (Share, [1, 0.1]),
    (Threshold, [math.inf, -5, np.float64("inf"), torch.tensor(1.0)]),
    (Count, [1, np.uint8(1)]),
    (Whole, [0]),
    (Count | None, [None, 3]),
    (float | tuple[float, ...], [1, (), (1.0, 2)]),
    (Literal["a", 1], ["a", 1]),
    (tuple[int, str], [(1, "a")]),
    (tuple[()], [()]),
    (tuple, [(), (1, "a")]),
    (Annotated[tuple[int, ...], SOME], [(1,)]),
    (Annotated[float, "a note"], [1.0]),
    (list[int], [[], [1]]),
    (set[str], [{"a"}]),
    (Sequence[int], [[1], (1,), range(3)]),
    (Mapping[str, int], [{}, {"a": 1}]),
    (dict, [{1: 2}]),
    (Callable[[int], int], [abs, int, lambda: None, fl.Hard()]),
    (type[int], [int]),
    (np.ndarray, [np.ones(1)]),
    (torch.Generator, [torch.Generator()]),
    (Float[Tensor, "N d"], [torch.ones(2, 3), torch.ones(0, 1).double()]),
    (Int[Tensor, "N"] | tuple[()], [(), torch.ones(2).long()]),
    (Switch, [fl.Hard(), fl.Soft(1.0)]),
    (Weights, [fl.MinNorm(), fl.FindWeights()]),
    (ConvexSet, [fl.Ball(1.0)]),
    (Algorithm, [fl.FedAvg(0.1, 1, 1)]),
    (Named, [{"a": 1}, 3]),  # not looked at
    (Weak, [3]),
]

BAD: list[tuple[Any, str, list[Any]]] = [
    (bool, "be True or False", [0, 1, "no", None, torch.tensor(True), bool]),
    (int, "be a whole number", [1.0, True, "1", None, torch.tensor(1), int]),
    (float, "be a number", [True, "1", None, 1j, torch.ones(2), torch.tensor(True), np.array(1.0)]),
    (float, "be a finite number", [math.nan, math.inf, -math.inf, np.float64("nan")]),
    (str, "be a text", [None, 3, b"a", str]),
    (Positive, "be a number", ["1", None, True]),
    (Positive, "be positive, got", [0, np.float32(-1)]),
    (Positive, "be positive and finite, got", [math.inf, math.nan]),
    (Threshold, "be a number", ["inf", True, None]),
    (Threshold, "be a finite number", [math.nan, -math.inf]),
    (Count, "be a whole number", [1.0, "1", None, torch.tensor(1), True, math.nan]),
    (Count, "be at least 1", [0, -1, np.int64(0)]),
    (Count | None, "be a whole number or None", ["x", ()]),
    (Count | None, "be at least 1", [0]),
    (float | tuple[float, ...], "be a number or a tuple", ["x", None, [1.0]]),
    (float | tuple[float, ...], "b[1] must be a finite number", [(1.0, math.nan)]),
    (Literal["a", 1], "be one of 'a', 1", ["b", True, None, ["a"]]),
    (Literal["a"] | None, "be one of 'a' or None", ["b", 0]),
    (Count | Literal["a"], "be a whole number or one of 'a'", ["b", None]),
    (tuple[int, str], "have 2 entries", [(), (1,)]),
    (tuple[int, str], "b[1] must be a text", [(1, 2)]),
    (tuple[()], "have 0 entries", [(1,)]),
    (tuple[int, ...], "be a tuple", [[1], 1, "abc", None]),
    (tuple[int, ...], "b[0] must be a whole number", [("a",)]),
    (Annotated[tuple[int, ...], SOME], "not be empty", [()]),
    (Annotated[tuple[int, ...], SOME], "be a tuple", [None, 3]),
    (list[int], "b[1] must be a whole number", [[1, 2.0]]),
    (Sequence[int], "be a Sequence of whole numbers", ["abc", {1}, 3, None]),
    (Sequence[int], "call .tolist()", [np.arange(2), torch.arange(2)]),
    (Sequence[int], "pass list(...)", [{1}, iter([1])]),
    (Sequence[int], "pass list(....values())", [{"a": 1}]),
    (tuple[int, ...], "be a tuple of whole numbers*pass tuple(...)", [[1], {1}]),
    (Literal["a"] | Sequence[float], "b[1] must be a number, got True.", [[1, True]]),
    (Mapping[str, int] | None, "every key of b must be a text, got 1.", [{1: 1}]),
    (
        Mapping[str, Callable[[int], int]] | None,
        "b['a'] must be a function, got 0.5.",
        [{"a": 0.5}],
    ),
    (Mapping[str, int], "be a Mapping", [[], None]),
    (Mapping[str, int], "every key of b must be a text", [{1: 1}]),
    (Mapping[str, int], "b['a'] must be a whole number", [{"a": "b"}]),
    (Callable[[int], int], "be a function", ["abs", None, 3]),
    (type[int], "be a class", [3, "int", None]),
    (np.ndarray, "be a ndarray", [[1.0], None]),
    (Float[Tensor, "N d"], "a tensor of floats of shape [N, d]", [[1.0], torch.ones(2), None]),
    (Float[Tensor, "N d"], "got int64 [1, 2]", [torch.ones(1, 2).long()]),
    (Switch, "be a Switch", [None, "hard", abs, lambda z: z, torch.nn.ReLU(), fl.MinNorm()]),
    (Switch, "write Hard(...)", [fl.Hard]),
    (Switch, "it lacks __call__(z)", [fl.Identity(), fl.Least()]),
    (Weights, "it lacks __call__(gram, before)", [fl.Preference(), fl.Hard()]),
    (ConvexSet, "be a ConvexSet", [None, "ball", fl.Hard(), torch.ones(2)]),
    (fl.PowerLaw, "be a PowerLaw", [0.1, None]),
    (fl.PowerLaw, "write PowerLaw(scale, exponent), or derive a frozen", [0.1, lambda t: 1 / t]),
    (fl.PowerLaw, "write PowerLaw(...)", [fl.PowerLaw]),
    (Algorithm, "be an Algorithm", ["FedAvg", fl.Ball(1.0)]),
]


Refused = (TypeError, ValueError)


@pytest.mark.parametrize(("annotation", "values"), GOOD, ids=map(str, range(len(GOOD))))
def test_takes(annotation, values):
    for value in values:
        assert checks.value("A", "b", value, annotation) is None


@pytest.mark.parametrize(("annotation", "words", "values"), BAD, ids=map(str, range(len(BAD))))
def test_refuses(annotation, words, values):
    for value in values:
        refuses(f"A: *{words}", checks.value, "A", "b", value, annotation, error=Refused)


@dataclass(frozen=True)
class Record:
    lr: Positive
    steps: Count = 1
    flag: bool = False
    levels: tuple[float, ...] = ()
    made: int = field(init=False, default="not looked at")  # type: ignore[assignment]
    kind: ClassVar[int] = "nor this"  # type: ignore[assignment]

    def __post_init__(self):
        checks.fields(self)


class TestFields:
    def test_names_class_and_field(self):
        refuses("Record: lr must be positive, got -1.", Record, -1)
        refuses("Record: levels[1] must be a number", Record, 1, levels=(0, "x"), error=TypeError)

    def test_numbers_of_numpy_become_those_of_python(self):
        record = Record(np.float32(0.5), np.int64(3), np.True_, (np.float32(1), 2))
        assert (record.lr, record.steps, record.flag, record.levels) == (0.5, 3, True, (1.0, 2))
        kinds = [type(x) for x in (record.lr, record.steps, record.flag, *record.levels)]
        assert kinds == [float, int, bool, float, int]
        assert type(Record(Fraction(1, 4)).lr) is float
        assert type(Record(np.float64(0.25)).lr) is float

    def test_what_is_python_s_stays_what_it_is(self):
        levels = (1.0, 2)
        lr = torch.tensor(0.5)
        record = Record(lr, levels=levels)
        assert record.lr is lr
        assert [*map(type, record.levels)] == [float, int]
        assert type(Record(1).lr) is int  # the key of a stored run tells 1 from 1.0

    def test_under_vmap(self):
        def scaled(lr):
            return 2 * replace(Record(1.0), lr=lr).lr

        assert torch.func.vmap(scaled)(torch.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]

    def test_a_name_that_is_unknown_there_leaves_the_others(self):
        Local = int

        @dataclass
        class Odd:
            a: "Local"
            b: "Count"

            def __post_init__(self):
                checks.fields(self)

        assert Odd("anything", 1).a == "anything"
        refuses("Odd: b must be at least 1", Odd, "anything", 0)


class TestArguments:
    @staticmethod
    def mean(x: Float[Tensor, "d"], more: Count = 1, plain=None) -> float:
        checks.arguments(TestArguments.mean, locals())
        return float(x.mean()) + more

    def test_takes(self):
        assert self.mean(torch.ones(2), 3, plain="anything") == 4

    def test_refuses(self):
        name = "TestArguments.mean"
        refuses(f"{name}: x must be a tensor", self.mean, [1.0], error=TypeError)
        refuses(f"{name}: more must be at least 1, got 0.", self.mean, torch.ones(2), 0)


def test_a_mark_of_one_s_own():
    def even(who, name, value):
        if value % 2:
            raise ValueError(checks.sentence(who, name, "be even", value))

    checks.value("A", "b", 2, Annotated[int, Takes(even)])
    refuses("A: b must be even, got 3.", checks.value, "A", "b", 3, Annotated[int, Takes(even)])
    assert repr(Takes(even, "Even")) == "Even"


SENTENCES = [
    ("n must lie in 1..20 (the clients), got 25.", checks.count, ("n", 25, 1, 20, "the clients")),
    ("n must lie in [1, 20], got 25.", checks.in_range, ("n", 25, 1, 20)),
    ("n must be at least 1, got 0.", checks.count, ("n", 0)),
    ("n must be a whole number, got 3.0.", checks.count, ("n", 3.0)),
    ("lr must be positive, got 0.", checks.positive, ("lr", 0)),
    ("lr must be positive, got -1.0.", checks.positive, ("lr", np.float32(-1))),
    ("lr must be a number, got '1'.", checks.positive, ("lr", "1")),
    ("x must be nonnegative, got -0.5.", checks.nonnegative, ("x", -0.5)),
    ("x must be a finite number, got nan.", checks.number, ("x", math.nan)),
    ("mode must be one of 'a', 'b', got 'c'.", checks.one_of, ("mode", "c", ("a", "b"))),
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
    with pytest.raises(Refused) as caught:
        check("A", *arguments)
    assert str(caught.value) == f"A: {text}"


def test_ends_of_a_range():
    for value in (0, 1, np.float32(0.5), torch.tensor(7.5)):  # a tensor is not looked at
        checks.in_range("A", "x", value, 0, 1)
    checks.in_range("A", "x", 0.5, 0, 1, open_low=True, open_high=True)
    for value in (-1e-12, 1 + 1e-12, math.nan):
        refuses("must lie in [0, 1]", checks.in_range, "A", "x", value, 0, 1)
    refuses("must lie in (0, 1]", checks.in_range, "A", "x", 0, 0, 1, open_low=True)
    refuses("must lie in [0, 1)", checks.in_range, "A", "x", 1.0, 0, 1, open_high=True)
    checks.count("A", "n", 4, 1, 4)
    checks.count("A", "n", 0, low=0)


@pytest.mark.parametrize("shape", [(2, 2, 2), (0,), (3,)])
def test_vectors(shape):
    checks.vector("A", "w", torch.ones(2), 2)
    refuses("A: w must", checks.vector, "A", "w", torch.ones(shape), 2)


COMPOSITE = divided_features().composite
RECORDS = [
    *(listed[0].algorithm for listed in examples().values()),
    *(fl.TopK(0.5), fl.RandK(0.5), fl.Rounding(3), fl.LowRank(), fl.Largest(), fl.Masked()),
    *(Columns(), Wire(fl.Exact(), 2), fl.OneWay(), fl.TwoWay(), fl.FindWeights(), fl.Least()),
    *(fl.Ball(1.0), fl.Box(0.25, 3.0), fl.L1Ball(1.0), fl.Simplex(1.0), fl.NuclearBall(1.0, 2, 2)),
    *(OneEntry(1.0), Corner(-1.0, 1.0), RankOne(2, 2), Several((OneEntry(1.0),), (4,))),
    Blocks((fl.Ball(1.0), fl.Box(1.0)), (2, 3)),
    PerClient((fl.Ball(1.0), fl.Box(1.0)), of=(0, 1, 0)),
    *(fl.PowerLaw(0.5, 0.5), fl.Convex(), fl.Nonconvex(10), fl.Stochastic(), fl.Fixed(0.5)),
    *(fl.Soft(2.0), fl.Adam(), fl.FixedWeights((1.0, 2.0)), fl.Preference(ratios=(1.0, 2.0))),
    *(COMPOSITE, COMPOSITE.features),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_every_field_of_a_record_is_checked_by_name(record):
    owner = type(record).__name__
    for name in (f.name for f in fields(record) if f.init):
        refuses(f"{owner}: {name} must be*", replace, record, **{name: object()}, error=Refused)
        assert replace(record, **{name: getattr(record, name)}) is not None
