"""Bad arguments, drawn from what fields and arguments declare.

For every record, function and method of `good_calls` and every annotated argument: values of a
wrong type or out of range must be refused in a sentence that names it, and other forms of good
values (numpy's numbers, whole numbers for floats) must be taken by records. What an annotation
takes is read here apart from the code that checks it; `ALSO` has what no annotation says.
"""

from __future__ import annotations

import inspect
import types
import typing
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal, Union

import numpy as np
import torch
from good_calls import Call, calls
from good_records import records
from jaxtyping import AbstractArray
from judging import Case, Outcome, judge

import fedlib as fl
from fedlib import checks
from fedlib.algorithms.feddr import Relaxation
from fedlib.algorithms.ssca import Growth
from fedlib.steps.schedules import Averaging
from fedlib.weights.rules import Rest
from papers.fedsgm.theory import Chance

NAN, INF = float("nan"), float("inf")
A, I4 = torch.arange(8.0).view(4, 2), torch.arange(4)
COMMON: list[Any] = [1j, [1], {}, object(), np.array([1.0]), torch.ones(2), b"1", Ellipsis]
NO_COUNT = ["3", True, None, NAN, INF, 3.0, (), -1, int, Fraction(1, 2), torch.tensor(3), *COMMON]
NO_NUMBER = ["0.1", True, None, NAN, -INF, (), float, torch.tensor(True), *COMMON]
NO_FLAG = ["no", "True", 0, 1, None, 0.0, bool, torch.tensor(True), *COMMON]
NO_TEXT = [3, None, True, str, ("f",), *COMMON]
NO_FUNCTION = ["f", 3, None, True, (), *COMMON]
NO_INGREDIENT = ["name", 3, None, True, (), lambda x: x, torch.nn.ReLU(), print, *COMMON]
NO_RNG = [None, 0, "rng", np.random.default_rng(0), torch.Generator]
NO_TENSOR = ["x", 3, None, [1.0], np.ones(2), object(), torch.Tensor]
#: Of the ingredients, one or more fit no field that takes another kind.
STRANGERS = (fl.Hard(), fl.TopK(0.5), fl.LowRank(), fl.Ball(1.0), fl.OneWay(), fl.MinNorm())
STRANGERS += (fl.Convex(), fl.PowerLaw(0.5), fl.FedAvg(0.1, 1, 1))
#: What is out of range, by what the annotation is, and other good values.
RANGES: list[tuple[Any, list[Any], list[Any]]] = [
    (checks.Positive, [0, 0.0, -1.0, INF], [1, 0.5, np.float32(0.5), Fraction(1, 2)]),
    (checks.Nonnegative, [-1.0, -1e-9, INF], [0, 1, 0.5, np.int64(2)]),
    (checks.Share, [0, 0.0, 1.5, -1.0, INF], [1, 0.5, np.float64(0.25)]),
    (checks.Fraction, [1.5, -1.0, INF], [0, 1, 0.5, np.float32(0.5)]),
    (checks.Threshold, [], [0, -1, INF, np.float64("inf"), 0.5]),
    (checks.Number, [INF], [0, -1.5]),
    (Relaxation, [0, 2, -1.0], [1, 1.9]),
    (Growth, [0.5, 0, -1], [1, 2.0]),
    (Rest, [1, -0.1], [0, 0.5]),
    (Chance, [0, 1, 2.0], [0.5]),
]
#: What is bad beyond the annotation, by `WHO.argument` or by the argument alone.
ALSO: dict[str, list[Any]] = {
    "Rounding.mantissa_bits": [0, 23],
    "Network.side": [3],
    "Network.kind": ["other"],
    "CartPole.steps": [10],
    "CartPole.head_name": ["other"],
    "Box.low": [3.0, 4.0],
    "Box.high": [-1.0, 0.25],
    "Blocks.sets": [(), (fl.Ball(1.0),)],
    "Blocks.sizes": [(), (1,), (0, 1)],
    "PerClient.of": [(0, 0), (0, 2), (-1, 0)],
    "Spec.seeds": [(0, 0), (-1,), (0.0,)],
    "Problem.data": [(), (A, A[:3]), (A / 0,), (torch.tensor(1.0),)],
    "Problem.rows": [A.long(), I4[:3], I4.view(4, 1) + 1, I4.view(4, 1) - 1, I4.int().view(4, 1)],
    "Problem.sizes": [(1,) * 3, (1,) * 5, (0, 1, 1, 1), (2, 1, 1, 1), (True,) * 4],
    "Problem.w0": [torch.zeros(0), torch.zeros(2, 1), torch.zeros(2) / 0, torch.zeros(2).int()],
    "Problem.heldout": [(A / 0,)],
    "Problem.lengths": [torch.ones(3).long(), torch.ones(4), torch.tensor([1, 1, 1, 2])],
    "Problem.name": [""],
    "Problem.config": [{"a": object()}, {"a": torch.ones(2)}, {"a": {1, 2}}],
    "quadratics.a": [A / 0, A[:3]],
    "centres": [torch.ones(3, 2, 2, 2) / 0],
    "curvature": [torch.zeros(2, 2), -torch.ones(2, 2), torch.ones(2, 3)],
    "X": [A / 0, A[:3]],
    "neyman_pearson.clients": [25],
    "stratified_iid.clients": [25],
    "dirichlet.clients": [25],
    "k_labels.k": [3],
    "run.rounds": [0],
    "run.evaluate_every": [0, "often"],
    "run.seeds": [[], [0, 0], [-1], ["0"], 2**64, [NAN], range(0)],
    "run.device": ["tpu", "cuda:x", "cuda:99", ""],
    "run.algorithms": [[], [fl.FedAvg(0.1, 1, 1), None]],
    "dim": [0],
    "tasks": [0],
    "labels": [I4.double(), I4.view(2, 2)],
}
#: Words that may stand for an argument in the sentence.
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "low": ("low", "high", "radius"),
    "high": ("high", "low"),
    "rows": ("rows", "sizes", "data"),
    "sizes": ("sizes", "rows"),
    "data": ("data", "name", "pictures"),
    "X": ("X", "y"),
    "a": ("a", "b", "data", "w0"),
    "centres": ("centres", "data"),
    "b": ("b", "a", "data"),
    "w0": ("w0", "b", "data"),
    "clients": ("clients", "client", "labels", "features"),
    "direction": ("direction", "x"),
    "constrained": ("constrained", "client"),
    "classes": ("classes", "y"),
    "network": ("network", "swish_network"),
    "scale": ("scale", "vertical"),
    "losses": ("losses", "ratio"),
}
#: Fields that are good in pairs only.
IN_PAIRS = ("outer_pullback", "inner_pullback")


def cases() -> Iterator[tuple[str, str, Callable[..., Any], Any, bool]]:
    """Owner, argument, what takes it by keyword, a value, and whether it must be taken."""
    for record in records():
        hints = typing.get_type_hints(type(record), include_extras=True)
        for f in (f for f in fields(record) if f.init):
            who, good = type(record).__name__, getattr(record, f.name)
            bad, other = kind(hints[f.name], good)
            other = [] if f.name in IN_PAIRS else other
            if (who, f.name) == ("FedCMOO", "weights"):  # a list of numbers is good
                bad = [value for value in bad if repr(value) != "[1]"]
            for value in (*bad, *ALSO.get(f"{who}.{f.name}", ())):
                yield who, f.name, partial(replace, record), value, False
            for value in (good, *other):
                yield who, f.name, partial(replace, record), value, True
    for call in calls():
        for name, bad in bad_of(call):
            for value in bad:
                yield call.who, name, call.with_changes, value, False


def bad_of(call: Call) -> Iterator[tuple[str, list[Any]]]:
    """The arguments of a function or method and what is bad for each."""
    function = inspect.unwrap(call.function)
    hints = checks.hints(function)
    for name in inspect.signature(function).parameters:
        if name in hints and name not in ("noise", "share", *call.skip):
            bad = kind(hints[name], call.good.get(name, 1))[0]
            more = ALSO.get(f"{call.who}.{name}", ALSO.get(name, []) if name in call.good else [])
            bad = [value for value in (*bad, *more) if not (name == "count" and repr(value) == "0")]
            if hasattr(call.function, "cache_info"):  # a cache's key
                bad = [value for value in bad if is_hashable(value)]
            yield name, bad


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def kind(annotation: Any, good: Any) -> tuple[list[Any], list[Any]]:
    """Bad values for an annotation, and good ones beside the one that is known."""
    for ranged, bad, taken in RANGES:
        if annotation == ranged:
            return [*NO_NUMBER, *bad], taken
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated and parts[0] is int:
        low = 0 if annotation in (checks.Whole, checks.Seed) else 1
        large = [2**63] if annotation == checks.Seed else []
        other = [np.int64(good), np.int32(good)] if isinstance(good, int) and good else []
        return [*NO_COUNT, *range(low), *large], other
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
    plain: dict[Any, tuple[list[Any], list[Any]]] = {
        bool: (NO_FLAG, [True, False, np.True_]),
        int: (NO_COUNT, []),
        float: ([*NO_NUMBER, INF], [1, 0.5, np.float32(0.5), np.int64(1)]),
        str: (NO_TEXT, []),
        torch.Generator: (NO_RNG, []),
        torch.dtype: ([*NO_TENSOR, "float32", float, torch.int64, torch.float16], []),
        Any: ([], []),
        type(None): ([*NO_COUNT], []),
    }
    if annotation in plain:
        return plain[annotation]
    if Callable in (annotation, origin):
        return NO_FUNCTION, [lambda *_: None] if good is None else [good]
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
    wrong = kind(parts[0], entry)[0] if parts else []
    return [*bad, {}, *((value,) for value in wrong[:6])], []


def _instance(annotation: Any, good: Any) -> tuple[list[Any], list[Any]]:
    """What is no instance, the class of a good one among them; of tensors other dtypes and axes."""
    if inspect.isclass(annotation) and issubclass(annotation, AbstractArray):
        bad: list[Any] = [*NO_TENSOR]
        if isinstance(good, torch.Tensor):
            bad += [] if {"...", "*"} & {*annotation.dim_str} else [good.unsqueeze(0).unsqueeze(0)]
            entries = annotation.__name__.partition("[")[0]
            bad += {"Float": [good.int(), good + 1j], "Int": [good + 0.5]}.get(entries, [])
        return bad, []
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


def outcome(who: str, name: str, take: Callable[..., Any], value: Any, taken: bool) -> Outcome:
    """What becomes of one value of one argument."""
    what = f"{who}({name}={value!r})".replace("\n", " ")[:120]
    attempt = partial(take, **{name: value})
    if not taken:
        return judge(Case(what, attempt, OTHER_NAMES.get(name, (name,))))
    try:
        attempt()
    except Exception as error:
        return Outcome(f"{what} is good", "obscure", f"{type(error).__name__}: {error}")
    return Outcome(what, "good")


def outcomes() -> Iterator[Outcome]:
    """All of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about a complex number that becomes real
        yield from (outcome(*case) for case in cases())


def short(found: Collection[Outcome]) -> list[str]:
    """What fell short, as lines."""
    return [f"{each.kind} {each.name}: {each.said}" for each in found if each.kind != "good"]
