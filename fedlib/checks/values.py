"""Argument checks with one form of error sentence.

Every check takes `who` (the class or function the user called), `name` (the argument) and the
value, and raises one sentence: who, which argument, what is required, what was given, and the
remedy if one is known:

    FedSGM: participants must lie in 1..20 (the problem's clients), got 25.

Number checks let a 0-d `torch.Tensor` pass: the run loop stacks hyperparameters that were checked
when each record was made into tensors, and under `vmap` a tensor cannot be branched on. A tensor is
no count and no flag. A bool is never a number here, and NaN and infinities fail every number check.
"""

import math
from collections.abc import Collection
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor


def number(who: str, name: str, value: object) -> None:
    """Require a finite real number; raises TypeError for another type, ValueError for NaN or inf.

    Args:
        who: class or function named in the error.
        name: argument named in the error.
        value: number to check; a tensor passes unchecked.
    """
    _number(who, name, value, "be a finite number")


def positive(who: str, name: str, value: object) -> None:
    """Require a finite number above 0; raises as `number` does, and ValueError otherwise."""
    x = _number(who, name, value, "be positive")
    if x is not None and x <= 0:
        raise ValueError(sentence(who, name, "be positive", value))


def nonnegative(who: str, name: str, value: object) -> None:
    """Require a finite number not below 0; raises as `number` does, and ValueError otherwise."""
    at_least(who, name, value, 0, "be nonnegative")


def at_least(who: str, name: str, value: object, low: float, rule: str = "") -> None:
    """Require a finite number not below `low`; raises as `number` does, and ValueError otherwise.

    Args:
        who: class or function named in the error.
        name: argument named in the error.
        value: number to check; a tensor passes unchecked.
        low: smallest value allowed.
        rule: words of the requirement, default "be at least LOW".
    """
    rule = rule or f"be at least {low:g}"
    x = _number(who, name, value, rule)
    if x is not None and x < low:
        raise ValueError(sentence(who, name, rule, value))


def in_range(
    who: str,
    name: str,
    value: object,
    low: float,
    high: float,
    *,
    open_low: bool = False,
    open_high: bool = False,
    note: str = "",
) -> None:
    """Require a finite number between two ends; raises as `number` does, and ValueError otherwise.

    Args:
        who: class or function named in the error.
        name: argument named in the error.
        value: number to check; a tensor passes unchecked.
        low: lower end, allowed unless `open_low`.
        high: upper end, allowed unless `open_high`.
        open_low: whether the lower end itself is refused.
        open_high: whether the upper end itself is refused.
        note: words in brackets after the range, for instance "the problem's clients".
    """
    left, right = "(" if open_low else "[", ")" if open_high else "]"
    whole = isinstance(low, int) and isinstance(high, int) and not (open_low or open_high)
    ends = f"{low}..{high}" if whole else f"{left}{low:g}, {high:g}{right}"
    rule = f"lie in {ends}{f' ({note})' if note else ''}"
    x = _number(who, name, value, rule)
    if x is None:
        return
    above = x > low if open_low else x >= low
    below = x < high if open_high else x <= high
    if not (above and below):
        raise ValueError(sentence(who, name, rule, value))


def count(
    who: str, name: str, value: object, low: int = 1, high: int | None = None, note: str = ""
) -> None:
    """Require a whole number from `low` (default 1) on, up to `high` if given.

    Args:
        who: class or function named in the error.
        name: argument named in the error.
        value: number to check.
        low: smallest value allowed.
        high: largest value allowed, None for no limit.
        note: words in brackets after the range, for instance "the problem's clients".

    Raises:
        TypeError: `value` is not an integer (a bool, a tensor or a float such as 3.0 is none).
        ValueError: `value` is out of range.
    """
    if type(value) is int and low <= value and (high is None or value <= high):
        return  # draws ask this several times a round
    ends = f"{low}..{high}" if high is not None else f"at least {low}"
    extra = f" ({note})" if note else ""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(sentence(who, name, f"be a whole number, {ends}{extra}", value))
    if int(value) < low or (high is not None and int(value) > high):
        verb = "lie in" if high is not None else "be"
        raise ValueError(sentence(who, name, f"{verb} {ends}{extra}", value))


def counts(who: str, **given: object) -> None:
    """Require whole numbers from 1 on; raises as `count` does."""
    for name, value in given.items():
        count(who, name, value)


def flag(who: str, name: str, value: object) -> None:
    """Require True or False, of Python or numpy; raises TypeError otherwise."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(sentence(who, name, "be True or False", value))


def instance(who: str, name: str, value: object, kind: type) -> None:
    """Require an instance of a class or a runtime protocol; raises TypeError, also for a class."""
    if isinstance(value, type):
        remedy = f"write {value.__name__}(...)" if issubclass(value, kind) else ""
        raise TypeError(sentence(who, name, f"be {named(kind)}", value, remedy))
    if not isinstance(value, kind):
        raise TypeError(sentence(who, name, f"be {named(kind)}", value))


def one_of(who: str, name: str, value: object, options: Collection[object]) -> None:
    """Require one of a few options (by equality); raises ValueError otherwise."""
    if not any(type(value) is type(option) and value == option for option in options):
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(sentence(who, name, f"be one of {listed}", value))


def key(who: str, name: str, value: object, options: Collection[str]) -> None:
    """Require one of many names; the ValueError shows those that come nearest."""
    if not isinstance(value, str) or value not in options:
        near = get_close_matches(str(value), options, n=3)
        known = f"nearest: {', '.join(near)}" if near else f"known: {', '.join([*options][:6])}"
        raise ValueError(sentence(who, name, "be one that is there", value, known))


def finite(who: str, name: str, tensor: Shaped[Tensor, "..."], remedy: str = "") -> None:
    """Require a tensor without NaN and infinities.

    Args:
        who: class or function named in the error.
        name: argument named in the error.
        tensor: any shape and dtype; not under `vmap`, because its values are looked at.
        remedy: what to do about it, added to the sentence.

    Raises:
        TypeError: not a tensor.
        ValueError: some entry is NaN or infinite; the sentence counts them.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(sentence(who, name, "be a torch.Tensor", tensor))
    bad = int((~torch.isfinite(tensor)).sum())
    if bad:
        got = f"{bad} of {tensor.numel()} entries NaN or infinite"
        raise ValueError(_join(f"{who}: {name} must be finite, got {got}", remedy))


def labels01(who: str, name: str, labels: Shaped[Tensor, "..."], remedy: str = "") -> None:
    """Require labels in {0, 1}.

    Args:
        who: class or function named in the error.
        name: argument named in the error.
        labels: any shape; integer, bool or float entries.
        remedy: what to do about it, added to the sentence.

    Raises:
        TypeError: not a tensor.
        ValueError: some entry is neither 0 nor 1; the sentence shows the first values found.
    """
    if not isinstance(labels, Tensor):
        raise TypeError(sentence(who, name, "be a torch.Tensor", labels))
    found = sorted(set(labels.flatten().tolist()))
    if not all(value in (0, 1) for value in found):
        shown = ", ".join(f"{value:g}" for value in found[:6]) + (", ..." if found[6:] else "")
        raise ValueError(_join(f"{who}: {name} must be 0 or 1, found values {{{shown}}}", remedy))


def named(kind: type) -> str:
    """A class, as a sentence names it: "a FedSGM", "an Algorithm"."""
    article = "an" if kind.__name__[0] in "AEI" else "a"
    return f"{article} {kind.__name__}"


def folder(who: str, name: str, path: str | None) -> None:
    """Require the name of a folder, there or not yet there; None and the empty text pass.

    Raises
    ------
    ValueError
        for the name of a file, or the home of nobody (`~someone`).
    """
    try:
        found = Path(path or ".").expanduser()
    except RuntimeError:
        raise ValueError(sentence(who, name, "name a folder", path)) from None
    if found.is_file():
        raise ValueError(sentence(who, name, "be a folder, not a file", path))


def require(fits: object, who: str, name: str, rule: str, value: object, remedy: str = "") -> None:
    """Raise ValueError with one `sentence` unless the value fits."""
    if not fits:
        raise ValueError(sentence(who, name, rule, value, remedy))


def sentence(who: str, name: str, rule: str, value: object, remedy: str = "") -> str:
    """One error sentence, `WHO: NAME must RULE, got VALUE; REMEDY`, with its full stop."""
    return _join(f"{who}: {name} must {rule}, got {short(value)}", remedy)


def _number(who: str, name: str, value: object, rule: str) -> float | None:
    """The value as a float, None for a 0-d tensor (which passes unchecked)."""
    if isinstance(value, Tensor) and value.ndim == 0 and value.dtype != torch.bool:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(sentence(who, name, _of_a_number(rule), value))
    try:
        x = float(value)
    except OverflowError:  # of an int or a fraction
        x = math.inf
    if not math.isfinite(x):
        raise ValueError(sentence(who, name, rule, value))
    return x


def _of_a_number(rule: str) -> str:
    """The rule in words that say that a number is meant."""
    verb, _, rest = rule.partition(" ")
    if "number" in rest:
        return rule
    if verb == "lie":
        return f"be a number {rest}"
    return f"be a number, {rest}" if rest.startswith("at ") else f"be a {rest} number"


def _join(text: str, remedy: str) -> str:
    return f"{text}; {remedy.rstrip('.')}." if remedy else f"{text}."


def short(value: object) -> str:
    """A short form of the value; a long one is cut so that the error stays one sentence."""
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."
