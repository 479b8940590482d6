"""Rules that judge claims: conditions on numbers, written once, evaluated and put in words.

A condition compares terms, a term reads something of a `Number`; both keep what they say beside
what they do, so that the sentence on the page cannot differ from the verdict:

>>> rule = Rule({"f is small": high("hard.f") < 0.2, "g kept": high("hard.g") <= 0.1},
...             measured=f"f {told('hard.f')}")
>>> rule.words
'(1) interval of `hard.f` below 0.2; (2) interval of `hard.g` at most 0.1.'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from papers.kit.numbers import Number
from papers.kit.wording import ABOVE, AT_LEAST, AT_MOST, BELOW, compared, together

Verdict = Literal["reproduced", "partly", "not reproduced", "not judged"]
VERDICTS: tuple[Verdict, ...] = ("not reproduced", "partly", "reproduced", "not judged")
Numbers = Mapping[str, Number]

TOKEN = re.compile(r"\{([^{}|]+)\|(=?)([^{}]*)\}")


@dataclass(frozen=True)
class Outcome:
    """What a rule says of the numbers: the verdict, what was measured, and why."""

    verdict: Verdict
    measured: str
    reason: str = ""


@dataclass(frozen=True)
class Condition:
    """Something that holds of the numbers or does not.

    `form` says it with `{}` in the place of each key (or of all in a row); conditions of one form
    are told together, also those of which a condition consists (`inner`).
    """

    form: str
    keys: tuple[str, ...]
    holds: Callable[[Numbers], bool]
    inner: tuple[Condition, ...] = ()

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
    """A value read from the numbers; comparing it with a number or another term is a condition."""

    kind: str
    form: str
    keys: tuple[str, ...]
    read: Callable[[Numbers], float]

    def __lt__(self, other: Term | float) -> Condition:
        return _compared(self, BELOW, other, lambda a, b: a < b)

    def __le__(self, other: Term | float) -> Condition:
        return _compared(self, AT_MOST, other, lambda a, b: a <= b)

    def __gt__(self, other: Term | float) -> Condition:
        return _compared(self, ABOVE, other, lambda a, b: a > b)

    def __ge__(self, other: Term | float) -> Condition:
        return _compared(self, AT_LEAST, other, lambda a, b: a >= b)

    def __rmul__(self, factor: float) -> Term:
        form = f"{factor:.3g} times {self.form if self.kind else f'({self.form})'}"
        return Term("", form, self.keys, lambda n: factor * self.read(n))

    def __sub__(self, other: Term) -> Term:
        form, keys = f"{self.form} minus {other.form}", self.keys + other.keys
        return Term("", form, keys, lambda n: self.read(n) - other.read(n))

    def __abs__(self) -> Term:
        return Term("", f"size of {self.form}", self.keys, lambda n: abs(self.read(n)))


def value(key: str) -> Term:
    """The value of a number: a mean, a ratio of means."""
    return Term("value", "{}", (key,), lambda n: n[key].value)


def low(key: str) -> Term:
    """The lower end of its interval."""
    return Term("lower end", "lower end of {}", (key,), lambda n: n[key].low)


def high(key: str) -> Term:
    """The upper end of its interval."""
    return Term("upper end", "upper end of {}", (key,), lambda n: n[key].high)


def most(key: str) -> Term:
    """The largest value of any seed."""
    return Term("largest", "largest {} of any seed", (key,), lambda n: max(n[key].per_seed))


def least(key: str) -> Term:
    """The smallest value of any seed."""
    return Term("smallest", "smallest {} of any seed", (key,), lambda n: min(n[key].per_seed))


def average(*keys: str) -> Term:
    """The mean of some values."""
    form = f"mean of {', '.join(['{}'] * len(keys))}"
    return Term("", form, keys, lambda n: sum(n[k].value for k in keys) / len(keys))


def meets(key: str, bottom: float, top: float) -> Condition:
    """Whether the interval has a point in `[bottom, top]`."""
    form = f"interval of {{}} meets [{bottom:.3g}, {top:.3g}]"
    return Condition(form, (key,), lambda n: n[key].high >= bottom and n[key].low <= top)


def within(key: str, target: float, share: float) -> Condition:
    """Whether the value is within a share of a target."""
    form = f"{{}} within {100 * share:.3g} % of {target:.3g}"
    return Condition(form, (key,), lambda n: abs(n[key].value - target) <= share * abs(target))


def inside(key: str, bottom: float, top: float) -> Condition:
    """Whether the whole interval lies in `[bottom, top]`."""
    form = f"interval of {{}} within [{bottom:.3g}, {top:.3g}]"
    return Condition(form, (key,), lambda n: n[key].low >= bottom and n[key].high <= top)


def falls(*keys: str) -> Condition:
    """Whether the values fall strictly, from each to the next."""
    return _ordered("fall", keys, lambda a, b: b < a)


def rises(*keys: str) -> Condition:
    """Whether the values rise strictly, from each to the next."""
    return _ordered("rise", keys, lambda a, b: b > a)


def same_order(one: Sequence[str], other: Sequence[str]) -> Condition:
    """Whether two lists of numbers have their values in the same order."""
    form = " and ".join(", ".join(["{}"] * len(keys)) for keys in (one, other))

    def order(n: Numbers, keys: Sequence[str]) -> list[int]:
        return sorted(range(len(keys)), key=[n[k].value for k in keys].__getitem__)

    return Condition(
        f"values in the same order: {form}",
        (*one, *other),
        lambda n: order(n, one) == order(n, other),
    )


def all_of(*conditions: Condition) -> Condition:
    return _joined(" and ", conditions, all)


def any_of(*conditions: Condition) -> Condition:
    return _joined(" or ", conditions, any)


def told(key: str, spec: str = ".3g") -> str:
    """In the text of what was measured: a number with its interval and unit."""
    return f"{{{key}|{spec}}}"


def told_value(key: str, spec: str = ".3g") -> str:
    """In the text of what was measured: a value alone."""
    return f"{{{key}|={spec}}}"


@dataclass(frozen=True)
class Rule:
    """When the verdict on a claim is what.

    Reproduced if all parts hold, not reproduced if none does, partly otherwise; the reason names
    those that fail.

    Attributes
    ----------
    parts : what each part says in the paper's words -> its condition, or a group of such parts.
    measured : what was measured, a text with `told` numbers, or a function of the numbers.
    note : what a reader must know of the rule beside its conditions; empty where nothing.
    """

    parts: Mapping[str, Condition | Mapping[str, Condition]]
    measured: str | Callable[[Numbers], str]
    note: str = ""

    def __call__(self, numbers: Numbers) -> Outcome:
        """The verdict, what was measured, and what fails."""
        found = [c.holds(numbers) for c in self.conditions()]
        verdict: Verdict = (
            "reproduced" if all(found) else "partly" if any(found) else "not reproduced"
        )
        failing = self._failing(numbers)
        reason = f"does not hold: {'; '.join(failing)}" if failing else ""
        return Outcome(verdict, self._measured(numbers), reason)

    @property
    def words(self) -> str:
        """The rule as sentences, made from its conditions; those of one form stand together."""
        told = told_together(self.conditions())
        if len(told) > 1:
            told = [f"({i}) {text}" for i, text in enumerate(told, 1)]
        return " ".join([f"{'; '.join(told)}.", self.note]).strip()

    @property
    def names(self) -> str:
        """What the parts say, in the paper's words."""
        return "; ".join(
            name if isinstance(part, Condition) else f"{name} ({', '.join(part)})"
            for name, part in self.parts.items()
        )

    def conditions(self) -> list[Condition]:
        """All conditions, those in groups included."""
        whole: list[Condition] = []
        for part in self.parts.values():
            whole += [part] if isinstance(part, Condition) else part.values()
        return whole

    def _failing(self, numbers: Numbers) -> list[str]:
        failing = []
        for name, part in self.parts.items():
            if isinstance(part, Condition):
                failing += [] if part.holds(numbers) else [name]
            elif inner := [text for text, c in part.items() if not c.holds(numbers)]:
                failing.append(f"{name} ({', '.join(inner)})")
        return failing

    def _measured(self, numbers: Numbers) -> str:
        def replaced(token: re.Match[str]) -> str:
            key, bare, spec = token.groups()
            found: Number = numbers[key]
            return format(found.value, spec) if bare else found.text(spec)

        if callable(self.measured):
            return self.measured(numbers)
        return TOKEN.sub(replaced, self.measured)


def _compared(
    a: Term, how: str, b: Term | float, holds: Callable[[float, float], bool]
) -> Condition:
    if isinstance(b, Term):
        form, keys = f"{a.form} {how} {b.form}", a.keys + b.keys
        return Condition(form, keys, lambda n: bool(holds(a.read(n), b.read(n))))
    form = compared(a.kind, a.form, how, b)
    return Condition(form, a.keys, lambda n: bool(holds(a.read(n), b)))


def _ordered(word: str, keys: Sequence[str], holds: Callable[[float, float], bool]) -> Condition:
    form = f"values {word}: {{}}"
    return Condition(
        form,
        tuple(keys),
        lambda n: all(holds(a, b) for a, b in pairwise([n[k].value for k in keys])),
    )


def _joined(
    word: str, conditions: Sequence[Condition], how: Callable[[list[bool]], bool]
) -> Condition:
    keys = tuple(key for c in conditions for key in c.keys)
    form = word.join(c.form for c in conditions)
    inner = [part for c in conditions for part in c.inner or (c,)] if how is all else []
    return Condition(form, keys, lambda n: how([c.holds(n) for c in conditions]), (*inner,))


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
