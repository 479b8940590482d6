"""Checks of tensors, seeds and generators, in the one form of error sentence.

A jaxtyping annotation, `Float[Tensor, "N d"]`, asks for a tensor of such entries and so many axes;
that two arguments share an axis is not looked at here.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from fedlib.checks import values

SEEDS = 2**63  # a generator takes twice a seed and one


def seed(who: str, name: str, value: object) -> None:
    """Require a whole number that a generator can be seeded with."""
    if isinstance(value, Tensor):
        raise TypeError(values.sentence(who, name, "be a whole number of Python", value))
    values.count(who, name, value, 0, SEEDS - 1)


def generator(who: str, name: str, value: object) -> None:
    """Require a `torch.Generator` on the CPU."""
    if not isinstance(value, torch.Generator) or value.device.type != "cpu":
        raise TypeError(values.sentence(who, name, "be a torch.Generator on the CPU", value))


def float_type(who: str, name: str, value: object) -> None:
    """Require torch.float32 or torch.float64."""
    if not isinstance(value, torch.dtype) or value not in (torch.float32, torch.float64):
        raise TypeError(values.sentence(who, name, "be torch.float32 or torch.float64", value))


def shaped(who: str, name: str, value: object, annotation: Any) -> None:
    """Require a tensor as a jaxtyping annotation says; raises TypeError or ValueError."""
    if isinstance(value, annotation):
        return
    if not isinstance(value, Tensor):
        raise TypeError(values.sentence(who, name, f"be {words(annotation)}", value))
    error = ValueError if _fits(value, annotation.__name__.partition("[")[0]) else TypeError
    raise error(f"{who}: {name} must be {words(annotation)}, got {told(value)}.")


def words(annotation: Any) -> str:
    """`Float[Tensor, "N d"]` in words: "a tensor of floats of shape [N, d]"."""
    kind = KINDS[annotation.__name__.partition("[")[0]]
    axes = annotation.dim_str.split()
    return kind if axes == ["..."] else f"{kind} of shape [{', '.join(axes)}]"


def equally_long(who: str, **parts: Shaped[Tensor, "..."]) -> None:
    """Require tensors with equally many rows; raises ValueError, by the name of the second."""
    (first, x), *others = parts.items()
    for name, y in others:
        if len(y) != len(x):
            rule = f"have a row for each of the {len(x)} of {first}"
            raise ValueError(values.sentence(who, name, rule, len(y)))


def below(who: str, name: str, value: Shaped[Tensor, "*b"], count: int, note: str) -> None:
    """Require whole numbers in 0..count - 1; raises ValueError and shows the first that is not."""
    wrong = value[(value < 0) | (value >= count)]
    if len(wrong):
        rule = f"lie in 0..{count - 1} ({note})"
        raise ValueError(values.sentence(who, name, rule, wrong[0].item()))


def as_long(who: str, name: str, value: Shaped[Tensor, "d"], length: int, note: str) -> None:
    """Require a vector of so many entries; raises ValueError otherwise."""
    if value.shape != (length,):
        rule = f"have {length} entries ({note})"
        raise ValueError(values.sentence(who, name, rule, list(value.shape)))


def vector(who: str, name: str, value: object, dim: int | None = None) -> None:
    """Require a vector of floats, not empty, of `dim` entries if given; nothing looks at values.

    Shapes are known under `vmap` and while a round is recorded, so methods may ask for them.
    """
    fits = isinstance(value, Tensor) and value.ndim == 1 and value.is_floating_point()
    if not fits or len(value) == 0 or dim not in (None, len(value)):  # type: ignore[arg-type]
        size = "of shape [d]" if dim is None else f"of {dim} entries"
        error = ValueError if isinstance(value, Tensor) else TypeError
        raise error(f"{who}: {name} must be a vector of floats {size}, got {told(value)}.")


def matrix(who: str, name: str, value: object) -> None:
    """Require a matrix of floats, not empty; nothing looks at values."""
    fits = isinstance(value, Tensor) and value.ndim == 2 and value.is_floating_point()
    if not fits or value.numel() == 0:  # type: ignore[attr-defined]
        error = ValueError if isinstance(value, Tensor) else TypeError
        raise error(f"{who}: {name} must be a matrix of floats, got {told(value)}.")


def drawing(who: str, rng: object, count: object, **sizes: object) -> None:
    """Require how many are asked for, or none, their sizes, and a generator to draw them from."""
    values.count(who, "count", count, 0)
    values.counts(who, **sizes)
    generator(who, "rng", rng)


def told(value: object) -> str:
    """A tensor by its dtype and shape; other things by their short form."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return values.short(value)


def _fits(value: Tensor, kind: str) -> bool:
    if kind == "Float":
        return value.is_floating_point()
    whole = not (value.is_floating_point() or value.is_complex() or value.dtype == torch.bool)
    return kind == "Shaped" or whole


KINDS = {
    "Float": "a tensor of floats",
    "Int": "a tensor of whole numbers",
    "Integer": "a tensor of whole numbers",
    "UInt8": "a tensor of bytes",
    "Real": "a tensor of numbers",
    "Bool": "a tensor of truth values",
    "Shaped": "a tensor",
}
