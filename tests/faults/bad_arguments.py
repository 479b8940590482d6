"""Bad values in the fields of records and in the calls of their methods, made by the field's kind.

For every record of `good_records` and every field: values of a wrong type or out of range must be
refused in a sentence that names the class and the field, and other forms of good values (numpy's
numbers, whole numbers for floats) must be taken. `bad_calls` has the methods. How a field says what
it takes is read here from its annotation, apart from the code that checks it.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Annotated, Any, Literal, Union

import numpy as np
import torch
from bad_calls import calls
from good_records import records
from jaxtyping import AbstractArray
from judging import Case, Outcome, judge, main

import fedlib as fl
from fedlib import checks
from fedlib.algorithms.feddr import Relaxation
from fedlib.algorithms.ssca import Growth
from fedlib.steps.schedules import Averaging
from fedlib.weights.rules import Rest
from papers.fedsgm.theory import Chance

NAN, INF = float("nan"), float("inf")
COMMON: list[Any] = [1j, [1], {}, object(), np.array([1.0]), torch.ones(2), b"1", Ellipsis]
NO_COUNT = ["3", True, None, NAN, INF, 3.0, (), -1, int, Fraction(1, 2), torch.tensor(3), *COMMON]
NO_NUMBER = ["0.1", True, None, NAN, -INF, (), float, 10**400, torch.tensor(True), *COMMON]
NO_FLAG = ["no", "True", 0, 1, None, 0.0, bool, torch.tensor(True), *COMMON]
NO_TEXT = [3, None, True, str, ("f",), *COMMON]
NO_FUNCTION = ["f", 3, None, True, (), *COMMON]
NO_INGREDIENT = ["name", 3, None, True, (), lambda x: x, torch.nn.ReLU(), print, *COMMON]
#: Of the ingredients, one or more fit no field that takes another kind.
STRANGERS = (fl.Hard(), fl.TopK(0.5), fl.LowRank(), fl.Ball(1.0), fl.OneWay(), fl.MinNorm())
STRANGERS += (fl.Convex(), fl.PowerLaw(0.5), fl.FedAvg(0.1, 1, 1))
#: What is out of range, by what the annotation is; the classes of fields in brackets.
RANGES: list[tuple[Any, list[Any], list[Any]]] = [
    (checks.Positive, [0, 0.0, -1.0, INF], [1, 0.5, np.float32(0.5), Fraction(1, 2)]),
    (checks.Nonnegative, [-1.0, -1e-9, INF], [0, 1, 0.5, np.int64(2)]),
    (checks.Share, [0, 0.0, 1.5, -1.0, INF], [1, 0.5, np.float64(0.25)]),
    (checks.Fraction, [1.5, -1.0, INF], [0, 1, 0.5, np.float32(0.5)]),
    (checks.Threshold, [], [0, -1, INF, np.float64("inf"), 0.5]),
    (Relaxation, [0, 2, -1.0], [1, 1.9]),
    (Growth, [0.5, 0, -1], [1, 2.0]),
    (Rest, [1, -0.1], [0, 0.5]),
    (Chance, [0, 1, 2.0], [0.5]),
]
#: Fields that take less than their kind, or are given in the sentence by another name.
ALSO: dict[tuple[str, str], list[Any]] = {
    ("Rounding", "mantissa_bits"): [0, 23],
    ("Network", "side"): [3],
    ("Network", "kind"): ["other"],
    ("CartPole", "steps"): [10],
    ("CartPole", "head_name"): ["other"],
    ("Box", "low"): [3.0, 4.0],
    ("Box", "high"): [-1.0, 0.25],
    ("Blocks", "sets"): [(), (fl.Ball(1.0),)],
    ("Blocks", "sizes"): [(), (1,), (0, 1)],
    ("PerClient", "of"): [(0, 0), (0, 2), (-1, 0)],
    ("Spec", "seeds"): [(0, 0), (-1,), (0.0,)],
    ("PolicyFedSGM", "kl_limit"): [0, -1.0],
}
#: Fields that are good in pairs only.
TOGETHER = ("outer_pullback", "inner_pullback")
OTHER_NAMES = {"low": ("low", "high", "radius"), "high": ("high", "low"), "name": ("name",)}


def field_cases() -> Iterator[tuple[Any, str, Any, bool]]:
    """Every record, field and value, and whether the value must be taken."""
    for record in records():
        hints = typing.get_type_hints(type(record), include_extras=True)
        for f in fields(record):
            if f.init:
                good = getattr(record, f.name)
                bad, other = kind(hints[f.name], good)
                other = [] if f.name in TOGETHER else other
                bad = [*bad, *ALSO.get((type(record).__name__, f.name), ())]
                yield from ((record, f.name, value, False) for value in bad)
                yield from ((record, f.name, value, True) for value in (good, *other))


def kind(annotation: Any, good: Any) -> tuple[list[Any], list[Any]]:
    """Bad values for an annotation, and good ones beside the one that is known."""
    for ranged, bad, taken in RANGES:
        if annotation == ranged:
            return [*NO_NUMBER, *bad], taken
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated and parts[0] is int:
        low = 0 if annotation == checks.Whole else 1
        return [*NO_COUNT, *range(low)], [np.int64(good), np.int32(good)] if good else []
    if origin is Annotated:
        empty = [()] if checks.SOME in parts else []
        more: list[Any] = [fl.PowerLaw(2.0)] if annotation == Averaging else []
        bad, taken = kind(parts[0], good)
        return [*bad, *empty, *more], taken
    if origin in (Union, types.UnionType):
        return _union(parts, good)
    if origin is Literal:
        words = [word for word in ("", parts[0].upper(), "none") if word not in parts]
        return [*NO_TEXT, *words], list(parts)
    if annotation is bool:
        return NO_FLAG, [True, False, np.True_]
    if annotation is float:
        return [*NO_NUMBER, INF], [1, 0.5, np.float32(0.5), np.int64(1)]
    if annotation is str:
        return NO_TEXT, []
    if Callable in (annotation, origin):
        return NO_FUNCTION, [lambda *_: None]
    if origin in (tuple, Sequence, Mapping, dict):
        return _collection(origin, parts, good)
    return _instance(annotation, good)


def _union(parts: tuple[Any, ...], good: Any) -> tuple[list[Any], list[Any]]:
    """What is bad for all of them."""
    each = [kind(part, good) for part in parts if part is not type(None)]
    first = each[0][0]
    others = [[repr(value) for value in bad] for bad, _ in each[1:]]
    bad = [value for value in first if all(repr(value) in other for other in others)]
    none = type(None) in parts
    bad = [value for value in bad if not (none and value is None)]
    return bad, [value for _, taken in each for value in taken] + [None] * none


def _collection(origin: Any, parts: tuple[Any, ...], good: Any) -> tuple[list[Any], list[Any]]:
    bad: list[Any] = ["abc", 3, None, True, 1j, object(), tuple, Ellipsis, b"1", torch.ones(2)]
    if origin in (Mapping, dict):
        return [*bad, (), [1], [("a", 1)]], [{}]
    entry = good[0] if isinstance(good, tuple) and good else 1
    wrong = kind(parts[0], entry)[0]
    return [*bad, {}, *((value,) for value in wrong[:6])], []


def _instance(annotation: Any, good: Any) -> tuple[list[Any], list[Any]]:
    """What is no instance, the class of a good one among them."""
    if inspect.isclass(annotation) and issubclass(annotation, AbstractArray):
        return [[1.0], 3, None, "x", np.ones(2)], []
    others = [value for value in STRANGERS if not fits(value, annotation)]
    return [*NO_INGREDIENT, type(good), *others], []


def fits(value: Any, annotation: Any) -> bool:
    """Whether an ingredient is of a kind, by hand: protocols with one method take any other."""
    known = {
        "Switch": fl.Hard,
        "Weights": fl.MinNorm,
        "Compressor": fl.TopK,
        "Sketch": fl.LowRank,
        "ConvexSet": fl.Ball,
        "GramEstimate": fl.OneWay,
        "Schedule": fl.Convex,
        "PowerLaw": fl.PowerLaw,
        "Algorithm": fl.FedAvg,
        **dict.fromkeys(("Probed", "Trained", "Alone"), fl.FedCMOO),
    }
    return isinstance(value, known.get(annotation.__name__, annotation))


def outcome(record: Any, name: str, value: Any, taken: bool) -> Outcome:
    """What becomes of one value in one field."""
    who = type(record).__name__
    what = f"{who}({name}={value!r})".replace("\n", " ")[:120]

    def attempt() -> object:
        return replace(record, **{name: value})

    if not taken:
        found = judge(Case(what, attempt, OTHER_NAMES.get(name, (name,))))
        named = found.kind != "good" or f"{who}: " in found.said
        return found if named else Outcome(what, "unnamed", found.said)
    try:
        attempt()
    except Exception as error:
        return Outcome(f"{what} is good", "obscure", f"{type(error).__name__}: {error}")
    return Outcome(what, "good")


def outcomes(options: argparse.Namespace | None = None) -> Iterator[Outcome]:
    """All of them."""
    del options
    yield from (outcome(*case) for case in field_cases())
    yield from map(judge, calls())


def short(found: Collection[Outcome]) -> list[str]:
    """What fell short, as lines."""
    return [f"{each.kind} {each.name}: {each.said}" for each in found if each.kind != "good"]


if __name__ == "__main__":
    sys.exit(main("Bad arguments of records and their methods", outcomes))
