"""Conditions on numbers: statements about true values that hold, fail, or are undecided.

A condition compares terms, a term reads something of a `Number`; both keep what they say beside
what they do. An interval decides: a statement holds if all of the interval satisfies it, fails if
all of it contradicts it, and is undecided in between.

>>> statement = of("soft.f") < 0.2
>>> [statement.holds({"soft.f": Number(0.15, low, high, ())})
...  for low, high in ((0.1, 0.19), (0.1, 0.3), (0.21, 0.3))]
[True, None, False]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from math import isclose

import numpy as np

from papers.kit.numbers import Number, mean
from papers.kit.wording import ABOVE, AT_LEAST, AT_MOST, BELOW, compared, together

Numbers = Mapping[str, Number]
#: Whether a statement holds; None where the numbers do not decide.
State = bool | None
#: What counts as no difference, as a share of the effect that it is held against.
MARGIN = 0.25


@dataclass(frozen=True)
class Condition:
    """Something that holds of the numbers, does not, or is undecided.

    `form` says it with `{}` in the place of each key (or of all in a row); conditions of one form
    are told together, also those of which a condition consists (`inner`). `gap` is what a
    comparison compares with zero.
    """

    form: str
    keys: tuple[str, ...]
    holds: Callable[[Numbers], State]
    inner: tuple[Condition, ...] = ()
    gap: Callable[[Numbers], Number] | None = None

    def __and__(self, other: Condition) -> Condition:
        return all_of(self, other)

    def __or__(self, other: Condition) -> Condition:
        return any_of(self, other)

    @property
    def words(self) -> str:
        """The condition with its keys."""
        return " and ".join(told_together(self.inner)) or together(self.form, [self.keys])


@dataclass(frozen=True)
class Term:
    """A value with its interval, read from the numbers; comparing terms is a condition.

    Two terms of the same seeds are compared seed by seed: the interval is that of the mean of
    their differences (a paired t test). Others are compared by the ends of their intervals.
    """

    kind: str
    form: str
    keys: tuple[str, ...]
    read: Callable[[Numbers], Number]

    def __lt__(self, other: Term | float) -> Condition:
        return _compared(self, BELOW, other)

    def __le__(self, other: Term | float) -> Condition:
        return _compared(self, AT_MOST, other)

    def __gt__(self, other: Term | float) -> Condition:
        return _compared(self, ABOVE, other)

    def __ge__(self, other: Term | float) -> Condition:
        return _compared(self, AT_LEAST, other)

    def __rmul__(self, factor: float) -> Term:
        form = f"{factor:.6g} times {self.form if len(self.keys) == 1 else f'({self.form})'}"
        return Term("", form, self.keys, lambda n: scaled(factor, self.read(n)))

    def __sub__(self, other: Term) -> Term:
        form, keys = f"{self.form} minus {other.form}", self.keys + other.keys
        return Term("", form, keys, lambda n: _minus(self.read(n), other.read(n)))

    def __abs__(self) -> Term:
        return Term("", f"size of {self.form}", self.keys, lambda n: _size(self.read(n)))


def of(key: str) -> Term:
    """A number with its interval."""
    return Term("", "{}", (key,), lambda n: n[key])


def value(key: str) -> Term:
    """The value alone, whatever its interval: for what is exact, or a sentence about means."""
    return Term("value", "value of {}", (key,), lambda n: point(n[key].value))


def most(key: str) -> Term:
    """The largest value of any seed."""
    form = "largest {} of any seed"
    return Term("largest", form, (key,), lambda n: point(max(n[key].per_seed)))


def least(key: str) -> Term:
    """The smallest value of any seed."""
    form = "smallest {} of any seed"
    return Term("smallest", form, (key,), lambda n: point(min(n[key].per_seed)))


def average(*keys: str) -> Term:
    """The mean of some values, seed by seed where they have the same seeds."""
    form = f"mean of {', '.join(['{}'] * len(keys))}"

    def read(n: Numbers) -> Number:
        whole = reduce(lambda a, b: _minus(a, scaled(-1.0, b)), [n[k] for k in keys])
        return scaled(1 / len(keys), whole)

    return Term("", form, keys, read)


def alike(one: Term, other: Term, effect: Term) -> Condition:
    """Whether two terms differ by at most a quarter (`MARGIN`) of the size of an effect.

    The effect is what the compared methods achieve, such as the fall of a loss from its start, not
    a level that is mostly irreducible.
    """
    return abs(one - other) <= MARGIN * abs(effect)


def between(key: str, bottom: float, top: float) -> Condition:
    """Whether a value lies in `[bottom, top]`."""
    form = f"{{}} between {bottom:.6g} and {top:.6g}"
    return Condition(form, (key,), lambda n: _inside(n[key], bottom, top))


def holds(key: str, target: float) -> Condition:
    """Whether a value's interval holds the target: nothing seen contradicts it."""
    form = f"the interval of {{}} holds {target:.6g}"
    return Condition(form, (key,), lambda n: bool(n[key].low <= target <= n[key].high))


def near(key: str, target: float, margin: float) -> Condition:
    """Whether a value is `target` but for a margin: equivalence, which a wide interval never is."""
    form = f"{{}} within {margin:.6g} of {target:.6g}"
    return Condition(form, (key,), lambda n: _inside(n[key], target - margin, target + margin))


def within(key: str, target: float, share: float) -> Condition:
    """Whether a value is within a share of a target."""
    form, margin = f"{{}} within {100 * share:.6g} % of {target:.6g}", share * abs(target)
    return Condition(form, (key,), lambda n: _inside(n[key], target - margin, target + margin))


def falls(*keys: str) -> Condition:
    """Whether values fall, from each to the next."""
    return _ordered("fall", keys, lambda a, b: of(b) < of(a))


def rises(*keys: str) -> Condition:
    """Whether values rise, from each to the next."""
    return _ordered("rise", keys, lambda a, b: of(b) > of(a))


def all_of(*conditions: Condition) -> Condition:
    return _joined(" and ", conditions, every)


def any_of(*conditions: Condition) -> Condition:
    return _joined(" or ", conditions, some)


def every(states: Iterable[State]) -> State:
    """Whether all hold: one that fails decides, else one that is undecided."""
    found = [*states]
    return False if False in found else None if None in found else True


def some(states: Iterable[State]) -> State:
    """Whether any holds: one that does decides, else one that is undecided."""
    found = [*states]
    return True if True in found else None if None in found else False


def told_together(conditions: Sequence[Condition]) -> list[str]:
    """Conditions in words, those of one form in one sentence."""
    forms: dict[str, list[Condition]] = {}
    for condition in conditions:
        forms.setdefault(condition.form, []).append(condition)
    told = []
    for form, same in forms.items():
        apart = [c.words for c in same if c.inner]
        told.append("; ".join(apart) or together(form, [c.keys for c in same]))
    return told


def _compared(a: Term, how: str, b: Term | float) -> Condition:
    decide = partial(_sign, how)
    if isinstance(b, Term):
        form, keys = f"{a.form} {how} {b.form}", a.keys + b.keys
        other = b

        def apart(n: Numbers) -> Number:
            return _minus(a.read(n), other.read(n))

        return Condition(form, keys, lambda n: decide(apart(n)), gap=apart)
    bound = b
    form = compared(a.kind, a.form, how, bound)

    def above(n: Numbers) -> Number:
        x = a.read(n)
        each = tuple(v - bound for v in x.per_seed)
        return Number(x.value - bound, x.low - bound, x.high - bound, each)

    return Condition(form, a.keys, lambda n: decide(a.read(n), bound), gap=above)


def _sign(how: str, x: Number, bound: float = 0.0) -> State:
    holds = {
        BELOW: x.high < bound,
        AT_MOST: x.high <= bound,
        ABOVE: x.low > bound,
        AT_LEAST: x.low >= bound,
    }
    fails = {
        BELOW: x.low >= bound,
        AT_MOST: x.low > bound,
        ABOVE: x.high <= bound,
        AT_LEAST: x.high < bound,
    }
    return True if holds[how] else False if fails[how] else None


def _inside(x: Number, bottom: float, top: float) -> State:
    if bottom <= x.low and x.high <= top:
        return True
    return False if x.low > top or x.high < bottom else None


def point(x: float) -> Number:
    """A number without an interval."""
    return Number(x, x, x, ())


def scaled(factor: float, x: Number) -> Number:
    """A number times a factor."""
    low, high = sorted((factor * x.low, factor * x.high))
    return Number(factor * x.value, low, high, tuple(factor * v for v in x.per_seed))


def _minus(a: Number, b: Number) -> Number:
    if _single(a) and _single(b) and len(a.per_seed) == len(b.per_seed):
        return mean(np.subtract(a.per_seed, b.per_seed))
    return Number(a.value - b.value, a.low - b.high, a.high - b.low, ())


def _single(x: Number) -> bool:
    """Whether a number is the mean of its values per seed (a ratio of means is not)."""
    some_seeds = len(x.per_seed) > 1
    return some_seeds and isclose(float(np.mean(x.per_seed)), x.value, rel_tol=1e-4, abs_tol=1e-12)


def _size(x: Number) -> Number:
    ends = sorted((abs(x.low), abs(x.high)))
    low = 0.0 if x.low < 0 < x.high else ends[0]
    return Number(abs(x.value), low, ends[1], ())


def _ordered(word: str, keys: Sequence[str], step: Callable[[str, str], Condition]) -> Condition:
    steps = [step(a, b) for a, b in pairwise(keys)]
    return Condition(
        f"values {word}: {{}}", tuple(keys), lambda n: every(c.holds(n) for c in steps)
    )


def _joined(
    word: str, conditions: Sequence[Condition], how: Callable[[Iterable[State]], State]
) -> Condition:
    keys = tuple(key for c in conditions for key in c.keys)
    form = word.join(c.form for c in conditions)
    inner = [part for c in conditions for part in c.inner or (c,)] if how is every else []
    return Condition(form, keys, lambda n: how(c.holds(n) for c in conditions), (*inner,))
