"""What a reader changed in the experiment of a page: code, data, parameters.

A stored run is found by its configuration, which names classes and says what a problem says of
itself. That does not tell a pasted class from the library's, nor ten features from thirty. So what
a page is given is compared with what its study declares: algorithms by their classes and fields,
problems by all that they hold, of every seed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch

from fedlib.core import Problem
from fedlib.core.describe import describe
from fedlib.engine.identity import Walk
from papers.kit.health import differences
from papers.kit.snapshot import PACKAGES
from papers.kit.store import Spec

SHOWN = 2  # differences that a line names


def of_runs(theirs: Mapping[str, Spec], ours: Mapping[str, Spec]) -> dict[str, str]:
    """The runs that are not as their study declares them, each with what differs in words."""
    of_problems: dict[tuple[Any, ...], list[str]] = {}
    changed = {}
    for name, spec in theirs.items():
        key = (id(spec.problem), repr(ours[name].maker()), spec.seeds)
        if key not in of_problems:
            of_problems[key] = of_problem(spec, ours[name])
        words = of_algorithm(spec.algorithm, ours[name].algorithm) + of_problems[key]
        if words:
            changed[name] = "; ".join(words[:SHOWN])
    return changed


def of_algorithm(theirs: Any, ours: Any) -> list[str]:
    """What differs between two algorithms, in words; nothing where both are one."""
    if is_same(theirs, ours):
        return []
    foreign = [f"code: {named(part)}" for part in parts_of(theirs) if is_foreign(part)]
    entries = differences(describe(theirs), describe(ours))
    changed = [f"parameter: {place} {value!r}, not {usual!r}" for place, (value, usual) in entries]
    return foreign or changed or [f"code: {named(theirs)}"]


def of_problem(theirs: Spec, ours: Spec) -> list[str]:
    """What differs between the problems of two runs, in words.

    One function with equal arguments makes one problem, and no data are needed to see that. Another
    function is asked for its problem of every seed.
    """
    if _function(theirs.problem) is _function(ours.problem):
        usual = ours.arguments()
        return [
            f"code: {named(value)}"
            if is_foreign(value)
            else f"data: {name} {value!r}, not {usual[name]!r}"
            for name, value in theirs.arguments().items()
            if not is_same(value, usual[name])
        ]
    for seed in ours.seeds:
        problem = theirs.problem(seed)
        usual_problem = _made_anew(ours.problem, seed)
        for field in fields(usual_problem):
            value = getattr(problem, field.name)
            if not is_same(value, getattr(usual_problem, field.name)):
                _forget(ours.problem)
                if callable(value):
                    return [f"code: problem.{field.name}"]
                return [f"data: problem.{field.name} of seed {seed}"]
    return []


def is_same(theirs: Any, ours: Any) -> bool:
    """Whether two values hold the same: tensors to the last bit, functions by their code.

    Records are compared field by field: it makes no difference whether two fields share an object.
    """
    if is_dataclass(ours) and not isinstance(ours, type):
        if type(theirs) is not type(ours):
            return False
        names = [field.name for field in fields(ours) if field.compare]
        return all(is_same(getattr(theirs, name), getattr(ours, name)) for name in names)
    walks = []
    for value in (theirs, ours):
        walk = Walk()
        walk.add(value)
        walks.append(walk)
    their_walk, our_walk = walks
    if their_walk.sha.digest() != our_walk.sha.digest():
        return False
    pairs = zip(their_walk.tensors, our_walk.tensors, strict=True)
    return all(torch.equal(their_tensor, our_tensor) for their_tensor, our_tensor in pairs)


def parts_of(record: Any) -> Iterator[Any]:
    """A record and the records in its fields."""
    yield record
    for field in fields(record) if is_dataclass(record) else ():
        yield from parts_of(getattr(record, field.name))


def is_foreign(value: Any) -> bool:
    """Whether the class of a value is neither ours nor Python's own."""
    package = type(value).__module__.partition(".")[0]
    return package not in (*PACKAGES, "builtins")


def named(value: Any) -> str:
    """The class of a value, and where it is from."""
    code = type(value)
    where = "this notebook" if code.__module__ == "__main__" else code.__module__
    return f"{code.__qualname__} of {where}"


def _function(problem: Callable[[int], Problem]) -> Any:
    """The function of a problem, without the arguments that `partial` binds."""
    return getattr(problem, "func", problem)


def _made_anew(problem: Callable[[int], Problem], seed: int) -> Problem:
    """The problem of a seed without a cache, whose tensors a reader may have changed in place."""
    plain: Callable[..., Problem] = inspect.unwrap(_function(problem))
    arguments = getattr(problem, "args", ())
    return plain(*arguments, seed, **getattr(problem, "keywords", {}))


def _forget(problem: Callable[[int], Problem]) -> None:
    """Empty the cache of a study's problems, so that its own runs do not use a reader's data."""
    function = _function(problem)
    if hasattr(function, "cache_clear"):
        function.cache_clear()
