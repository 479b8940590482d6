"""Bad calls of what records do: vectors, matrices, counts and generators of a wrong kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import torch
from good_records import composite
from judging import Case

import fedlib as fl
from fedlib import models, policy
from fedlib.compress.sketches import Columns
from fedlib.sets.blocks import Blocks
from fedlib.sets.vertices import Corner, OneEntry, RankOne, Several
from fedlib.vertical import contiguous, vertical

SETS = (fl.Ball(1.0), fl.Box(1.0), fl.L1Ball(1.0), fl.Simplex(1.0), fl.NuclearBall(1.0, 2, 2))
SETS += (Blocks((fl.Ball(1.0), fl.Box(1.0)), (2, 2)),)
COMPRESSORS = (fl.Identity(), fl.TopK(0.5), fl.RandK(0.5), fl.Rounding(3))
FORMATS = (OneEntry(1.0), Corner(-1.0, 1.0), RankOne(2, 2), Several((OneEntry(1.0),), (4,)))
SKETCHES = (fl.Exact(), fl.Largest(), fl.Masked(), fl.LowRank(), Columns(fl.TopK(0.5)))
SCHEDULES = (fl.Convex(), fl.Nonconvex(9), fl.Stochastic(), fl.Fixed(0.5))

RNG = torch.Generator()
NO_TENSOR = ["x", None, 1.0, [1.0, 2.0], (), np.ones(4), object()]
NO_VECTOR = [*NO_TENSOR, torch.ones(2, 2), torch.ones(()), torch.ones(0), torch.ones(4).int()]
NO_MATRIX = [*NO_TENSOR, torch.ones(4), torch.ones(1, 2, 2), torch.ones(2, 2).bool()]
NO_COUNT = ["4", None, 4.0, 0, -1, True, (4,), np.array([4]), torch.tensor(4), Fraction(4), 1j]
NO_RNG = [None, 0, "rng", np.random.default_rng(0), torch.Generator]
NO_FLOATS = [*NO_TENSOR, torch.ones(4).int(), torch.ones(4, dtype=torch.complex64)]

Method = Callable[..., object]


def each(
    what: str, call: Method, name: str, values: Iterable[Any], also: str = ""
) -> Iterator[Case]:
    """One case a value of one argument."""
    for value in values:
        shown = f"{what}({name}={value!r})".replace("\n", " ")
        yield Case(shown, partial(call, **{name: value}), tuple(n for n in (name, also) if n))


def calls() -> Iterator[Case]:
    """All of them."""
    yield from of_sets()
    yield from of_compressors()
    yield from of_sketches()
    yield from of_rules()
    yield from of_policies()
    yield from of_models()
    yield from of_vertical()


def of_sets() -> Iterator[Case]:
    """Points of their dimension, tolerances, dimensions."""
    for convex in SETS:
        who = type(convex).__name__
        sized = isinstance(convex, (fl.NuclearBall, Blocks))
        wrong = [*NO_VECTOR, *([torch.ones(3)] if sized else [])]
        for method, name in (("project", "x"), ("contains", "x"), ("lmo", "direction")):
            yield from each(f"{who}.{method}", getattr(convex, method), name, wrong, "x")
        inside = partial(convex.contains, torch.zeros(4))
        yield from each(f"{who}.contains", inside, "tol", ["x", None, -1.0, float("nan"), True])
        for method in ("diameter", "wire"):
            if hasattr(convex, method):
                dims = [*NO_COUNT, *([3] if sized else [])]
                yield from each(f"{who}.{method}", getattr(convex, method), "dim", dims)
        if hasattr(convex, "gauge"):
            yield from each(f"{who}.gauge", convex.gauge, "x", wrong)


def of_compressors() -> Iterator[Case]:
    """Vectors, counts and generators; noise where there must be some."""
    for compressor in (*COMPRESSORS, *FORMATS):
        who = type(compressor).__name__
        for method in ("bits", "contraction", "variance"):
            yield from each(f"{who}.{method}", getattr(compressor, method), "dim", NO_COUNT)
        yield from each(f"{who}.encode", compressor.encode, "x", NO_VECTOR)
        yield from each(f"{who}()", compressor, "x", NO_VECTOR)
        yield from drawing(who, compressor.draw, count=2, dim=4)
    for noise in ((), None, "noise"):
        case = partial(fl.RandK(0.5), torch.ones(4), noise)
        yield Case(f"RandK()(noise={noise!r})", case, ("noise",))


def drawing(who: str, draw: Method, **counts: int) -> Iterator[Case]:
    """Of a method that draws."""
    for name in counts:
        others = {other: value for other, value in counts.items() if other != name}
        wrong = [value for value in NO_COUNT if value != 0 or name != "count"]  # none may be asked
        yield from each(f"{who}.draw", partial(draw, rng=RNG, **others), name, wrong)
    yield from each(f"{who}.draw", partial(draw, **counts), "rng", NO_RNG)


def of_sketches() -> Iterator[Case]:
    """Jacobians, counts, generators."""
    for sketch in SKETCHES:
        who = type(sketch).__name__
        yield from each(f"{who}()", partial(sketch, noise=()), "x", NO_MATRIX)
        yield from each(f"{who}.encode", sketch.encode, "x", NO_MATRIX)
        yield from each(f"{who}.bits", partial(sketch.bits, tasks=2), "dim", NO_COUNT)
        yield from each(f"{who}.bits", partial(sketch.bits, dim=4), "tasks", NO_COUNT)
        yield from drawing(who, sketch.draw, count=2, tasks=2, dim=4)
    for estimate in (fl.OneWay(), fl.TwoWay(), fl.MeanOfGrams()):
        yield from drawing(type(estimate).__name__, estimate.draw, count=2, tasks=2, dim=4)


def of_rules() -> Iterator[Case]:
    """Switches, schedules and weights."""
    for switch in (fl.Hard(), fl.Soft(2.0)):
        yield from each(f"{type(switch).__name__}()", switch, "z", NO_FLOATS)
    yield from each("PowerLaw()", fl.PowerLaw(0.5), "t", ["1", None, 0, -1, True, float("nan"), []])
    t = torch.tensor(1.0)
    for schedule in SCHEDULES:
        who = type(schedule).__name__
        for method in ("eta", "growth", "rho"):
            yield from each(f"{who}.{method}", getattr(schedule, method), "t", NO_FLOATS)
        for method in ("eta", "growth"):
            call = partial(getattr(schedule, method), t)
            yield from each(f"{who}.{method}", call, "share", ["x", None, [1.0], 1j])
    two, three = torch.ones(2), torch.ones(3)
    wrong = [*NO_MATRIX, torch.ones(2, 3)]
    for rule in (fl.FindWeights(), fl.MinNorm()):
        who = type(rule).__name__
        yield from each(f"{who}()", partial(rule, before=two), "gram", wrong)
        starts = [*NO_TENSOR, torch.ones(2, 2), torch.ones(2).int()]
        more = [three] if isinstance(rule, fl.FindWeights) else []
        yield from each(f"{who}()", partial(rule, torch.eye(2)), "before", [*starts, *more])
    wanted = fl.Preference(ratios=(1.0, 2.0))
    yield from each("Preference()", partial(wanted, losses=two), "gram", wrong)
    yield from each("Preference()", partial(wanted, torch.eye(2)), "losses", [*NO_TENSOR, three])
    yield Case("Preference()(3 losses)", partial(wanted, torch.eye(3), three), ("ratio",))
    yield from each("Least()", fl.Least(), "weights", [*NO_TENSOR, torch.ones(2, 2)])


def of_policies() -> Iterator[Case]:
    """Outputs of a network, quantiles, actions."""
    outputs, number = torch.zeros(3, 2), torch.full((3,), 0.5)
    pairs = {"outputs": outputs, "old": outputs, "new": outputs, "v": outputs}
    good = {**pairs, "u": number, "action": number}
    of = {"sample": ("outputs", "u"), "log_prob": ("outputs", "action"), "kl": ("old", "new")}
    of["fisher"] = ("outputs", "v")
    for head in (policy.Gaussian(), policy.Logits()):
        for method, names in of.items():
            for name in names:
                others = {other: good[other] for other in names if other != name}
                wrong = [*NO_FLOATS, *([torch.zeros(3)] if name in pairs else [])]
                call = partial(getattr(head, method), **others)
                yield from each(f"{type(head).__name__}.{method}", call, name, wrong)


def of_models() -> Iterator[Case]:
    """Networks."""
    yield from each("linear", partial(models.linear, out=2), "in_", NO_COUNT)
    yield from each("linear", partial(models.linear, 2), "out", NO_COUNT)
    yield from each("linear", partial(models.linear, 2, 2), "bias", ["no", 0, None])
    yield from each("linear", partial(models.linear, 2, 2), "rng", NO_RNG[1:])
    sizes = [(), (2,), (2, 0), (2.0, 3), "ab", None, 3, (True, 2)]
    yield from each("mlp", models.mlp, "sizes", sizes)
    yield from each("mlp", partial(models.mlp, (2, 2)), "activation", ["relu", 3])
    yield from each("mlp", partial(models.mlp, (2, 2)), "rng", NO_RNG[1:])
    yield from each("ravel", models.ravel, "module", [None, "x", torch.nn.Linear, lambda x: x])
    _, apply = models.ravel(torch.nn.Linear(2, 1))
    yield from each("apply", lambda w: apply(w, torch.ones(2)), "w", [*NO_TENSOR, torch.ones(4)])
    for name in ("channels", "side", "classes"):
        yield from each("picture_cnn", partial(models.picture_cnn, RNG), name, NO_COUNT)
    yield from each("picture_cnn", models.picture_cnn, "rng", NO_RNG)


def of_vertical() -> Iterator[Case]:
    """Blocks of features."""
    yield from each("contiguous", partial(contiguous, clients=2), "size", [*NO_COUNT, 1], "clients")
    yield from each("contiguous", partial(contiguous, 4), "clients", [*NO_COUNT, 5])
    yield from each("vertical", partial(vertical, composite=composite()), "problem", ["x", None, 3])
    problem = fl.problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    yield from each("vertical", partial(vertical, problem), "composite", ["x", None, type])
