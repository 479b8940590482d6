"""What `from_frame` and `from_clients` are given, each mistake one sentence with its column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from fedlib import checks
from fedlib.core.problem import TAKEN
from fedlib.problems.client_rows import Function

Functions = Function | Sequence[Function]
Rows = tuple[Shaped[Tensor, "m ..."], ...]


def check_functions(
    who: str, objective: object, constraint: object, measures: object
) -> tuple[tuple[Function, ...], tuple[Function, ...]]:
    """The objectives and the constraints, as tuples; TypeError for what is no function."""
    found: list[tuple[Function, ...]] = []
    for name, given in (("objective", objective), ("constraint", constraint)):
        several = isinstance(given, (list, tuple))
        each: tuple[Any, ...] = tuple(given) if several else (given,)  # type: ignore[arg-type]
        for one in each:
            if not callable(one) or isinstance(one, type):
                rule = "be a function of ClientRows, or a list of such"
                raise TypeError(checks.sentence(who, name, rule, one))
        found.append(each)
    if not isinstance(measures, (Mapping, type(None))):
        rule = "be a mapping of names to functions"
        raise TypeError(checks.sentence(who, "measures", rule, measures))
    for label, one in (measures or {}).items():
        if not callable(one) or isinstance(one, type):
            rule = "be a function of ClientRows"
            raise TypeError(checks.sentence(who, f"measures[{label!r}]", rule, one))
    return found[0], found[1]


def check_measures(
    who: str, measures: Mapping[str, Function], objectives: int, constraints: int
) -> None:
    """Raise ValueError or TypeError for a measure without a name of its own."""
    taken = ["f", *(["g"] if constraints else []), *TAKEN]
    for letter, count in (("f", objectives), ("g", constraints)):
        taken += [f"{letter}_{k + 1}" for k in range(count) if count > 1]
    for label in measures:
        checks.value(who, "the name of a measure", label, str)
        if not label or label in taken:
            rule = f"be none of {', '.join(taken)}, nor empty"
            raise ValueError(checks.sentence(who, "the name of a measure", rule, label))


def check_frame(who: str, name: str, frame: object) -> None:
    """Raise TypeError unless it is a data frame, ValueError unless it has rows."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise TypeError(checks.sentence(who, name, "be a pandas DataFrame", frame))
    if not len(frame):
        raise ValueError(f"{who}: {name} must have rows, it has none.")


def check_labels(who: str, **lists: Iterable[Hashable]) -> None:
    """Raise unless each is a list of labels, none of them twice."""
    for name, labels in lists.items():
        if isinstance(labels, (str, bytes, Mapping)) or not isinstance(labels, Iterable):
            raise TypeError(checks.sentence(who, name, "be a list of columns", labels))
        for label in labels:
            if not isinstance(label, Hashable):
                raise TypeError(checks.sentence(who, name, "hold names of columns", label))
        for label, count in Counter(labels).items():
            if count > 1:
                raise ValueError(f"{who}: {name} must name {label!r} once, got it {count} times.")


def check_apart(
    who: str, client: Hashable, target: Hashable, features: Any, columns: Sequence[Hashable]
) -> None:
    """Raise ValueError for a column that is named for two things."""
    places: list[tuple[str, list[Hashable]]] = [("client", [client]), ("target", [target])]
    places += [("features", [*features]), ("columns", [*columns])]
    seen: dict[Hashable, str] = {}
    for name, labels in places:
        for label in labels:
            if not isinstance(label, Hashable):
                raise TypeError(checks.sentence(who, name, "be the name of a column", label))
            if label in seen:
                raise ValueError(
                    f"{who}: {name} must not name {label!r}, which is named as {seen[label]} "
                    "already; a column serves one purpose."
                )
            seen[label] = name


def check_columns(
    who: str,
    frame: Any,
    there: Sequence[Hashable],
    numeric: Sequence[Hashable],
    called: str = "the frame",
) -> None:
    """Raise unless the columns are there, once, and hold finite numbers where they must."""
    import pandas as pd

    for column in there:
        if column not in frame.columns:
            near = get_close_matches(str(column), [str(c) for c in frame.columns], n=3)
            remedy = f"nearest: {', '.join(map(repr, near))}" if near else ""
            rule = f"hold the column {column!r}"
            raise ValueError(checks.sentence(who, called, rule, list(frame.columns), remedy))
        count = list(frame.columns).count(column)
        if count > 1:
            rule = f"hold one column {column!r}"
            raise ValueError(checks.sentence(who, called, rule, count, "rename the others"))
    where = "" if called == "the frame" else f" of {called}"
    for column in numeric:
        values = frame[column]
        if not pd.api.types.is_numeric_dtype(values) or values.dtype.kind == "c":
            raise TypeError(
                f"{who}: column {column!r}{where} must hold numbers, got {values.dtype}; encode "
                "it, or leave it out of features."
            )
        floats = torch.from_numpy(values.to_numpy(dtype="float64", na_value=float("nan")).copy())
        remedy = "drop or impute these rows"
        checks.finite(who, f"column {column!r}{where}", floats, remedy)


def check_varies(who: str, clients: Iterable[Rows]) -> None:
    """Raise ValueError if all targets are the same number: there is nothing to learn."""
    whole = torch.cat([own[1].flatten() for own in clients])
    if len(whole) > 1 and (whole == whole[0]).all():
        rule = "take two values at least"
        got = f"{whole[0].item()} in all {len(whole)} rows"
        raise ValueError(f"{who}: target must {rule}, got {got}.")


def check_named(who: str, client: Any) -> None:
    """Raise ValueError unless every row has a client."""
    if client.isna().any():
        count = int(client.isna().sum())
        raise ValueError(f"{who}: client must be named in every row, {count} rows have none.")


def check_held(who: str, clients: object, heldout: object, parts: tuple[str, ...]) -> None:
    """Raise unless clients, and what is held out, are tuples of tensors of one form."""
    if not isinstance(clients, (list, tuple)):
        raise TypeError(checks.sentence(who, "clients", "be a list, one tuple a client", clients))
    if not isinstance(heldout, (list, tuple)):
        raise TypeError(checks.sentence(who, "heldout", "be a tuple of tensors", heldout))
    named = [(f"client {j}", own) for j, own in enumerate(clients)]
    named += [("heldout", heldout)] if heldout else []
    for called, own in named:
        _check_rows(who, called, own, parts)
        for part, x, first in zip(parts, own, named[0][1], strict=True):
            if x.shape[1:] != first.shape[1:]:
                rule = f"have rows of shape {list(first.shape[1:])} as client 0"
                got = list(x.shape[1:])
                raise ValueError(checks.sentence(who, f"{part} of {called}", rule, got))
    if heldout and not len(heldout[0]):
        raise ValueError(f"{who}: heldout must have rows, it has none; leave it out.")


def _check_rows(who: str, called: str, own: object, parts: tuple[str, ...]) -> None:
    """The tensors of one client."""
    kind = isinstance(own, (list, tuple))
    given: list[Any] = [*own] if kind else []  # type: ignore[misc]
    if len(given) != len(parts) or not all(isinstance(x, Tensor) for x in given):
        rule = f"be {len(parts)} tensors: {', '.join(parts)}"
        got = [type(x).__name__ for x in given] if kind else own
        raise TypeError(checks.sentence(who, called, rule, got))
    for part, x in zip(parts, given, strict=True):
        if x.is_complex() or x.dim() == 0 or x.requires_grad or x.device.type != "cpu":
            rule = "be real numbers with an axis of rows, on the CPU and detached"
            kinds = f"{x.dtype} {list(x.shape)} on {x.device}"
            got = f"{kinds} that requires a gradient" if x.requires_grad else kinds
            raise TypeError(f"{who}: {part} of {called} must {rule}, got {got}.")
    if len({len(x) for x in given}) != 1:
        rule = "hold equally many rows in all its tensors"
        raise ValueError(checks.sentence(who, called, rule, [list(x.shape) for x in given]))
    for part, x in zip(parts, given, strict=True):
        checks.finite(who, f"{part} of {called}", x, "drop or impute these rows")


def check_clients(who: str, clients: Mapping[Any, Rows], objectives: tuple[Function, ...]) -> None:
    """Raise ValueError unless there are clients, all with rows, and an objective."""
    for label, own in clients.items():
        if len(own[0]) == 0:
            raise ValueError(
                f"{who}: every client must have rows, client {label!r} has none; leave it out (of "
                "a category: frame[...].cat.remove_unused_categories())."
            )
    if not clients or not objectives:
        missing = "a client" if not clients else "an objective"
        raise ValueError(f"{who}: the problem must have {missing}, it has none.")


def check_parts(
    who: str,
    name: object,
    clients: Mapping[Any, Rows],
    objectives: tuple[Function, ...],
    constraints: tuple[Function, ...],
    measures: Mapping[str, Function],
) -> None:
    """Raise ValueError or TypeError for parts of which no problem can be made."""
    checks.value(who, "name", name, str)
    check_clients(who, clients, objectives)
    check_varies(who, clients.values())
    check_measures(who, measures, len(objectives), len(constraints))
