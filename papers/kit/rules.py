"""Rules that judge claims: conditions on numbers, the parts that decide, and their words.

A condition compares terms, a term reads something of a `Number`; both keep what they say beside
what they do. An interval decides: a statement holds if all of the interval satisfies it, fails if
all of it contradicts it, and is undecided in between.

>>> statement = of("soft.f") < 0.2
>>> [statement.holds({"soft.f": Number(0.15, low, high, ())})
...  for low, high in ((0.1, 0.19), (0.1, 0.3), (0.21, 0.3))]
[True, None, False]
>>> rule = Rule({"f is small": of("hard.f") < 0.2, "g kept": of("hard.g") <= 0.1},
...             measured=f"f {stat('hard.f')}")
>>> rule.words
'(1) `hard.f` below 0.2; (2) `hard.g` at most 0.1.'
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isclose, isnan
from typing import Literal, get_args

import numpy as np

from papers.kit.numbers import Number, exact, mean, seeds_for

Numbers = Mapping[str, Number]
#: Whether a statement holds; None where the numbers do not decide.
State = bool | None
#: What counts as no difference, as a share of the effect that it is held against.
MARGIN = 0.25
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "below": operator.lt,
    "at most": operator.le,
    "above": operator.gt,
    "at least": operator.ge,
}

#: `reproduced` is said of what was measured; a theorem is `proved`, and what follows from the
#: definition of a message, a set or a count is `counted`.
Verdict = Literal[
    "not reproduced", "partly", "undecided", "reproduced", "counted", "proved", "not judged"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Parts = Mapping[str, "Condition | Mapping[str, Condition]"]

STATES: dict[State, str] = {True: "holds", False: "fails", None: "undecided"}
AS_PRINTED = "The printed size lies in our interval"
NOT_AS_PRINTED = "The printed size lies outside our interval"
TOKEN = re.compile(r"\{([^{}|]+)\|(=?)([^{}]*)\}")


@dataclass(frozen=True)
class Condition:
    """Something that holds of the numbers, does not, or is undecided.

    `words` say it, `keys` are the numbers that it reads, `gap` is what a comparison compares with
    zero.
    """

    words: str
    keys: tuple[str, ...]
    holds: Callable[[Numbers], State]
    gap: Callable[[Numbers], Number] | None = None

    def __and__(self, other: Condition) -> Condition:
        return all_of(self, other)


@dataclass(frozen=True)
class Term:
    """A value with its interval, read from the numbers; comparing terms is a condition.

    Two terms of the same seeds are compared seed by seed: the interval is that of the mean of
    their differences (a paired t test). Others are compared by the ends of their intervals.
    """

    words: str
    keys: tuple[str, ...]
    read: Callable[[Numbers], Number]

    def __lt__(self, other: Term | float) -> Condition:
        return _compare(self, "below", other)

    def __le__(self, other: Term | float) -> Condition:
        return _compare(self, "at most", other)

    def __gt__(self, other: Term | float) -> Condition:
        return _compare(self, "above", other)

    def __ge__(self, other: Term | float) -> Condition:
        return _compare(self, "at least", other)

    def __rmul__(self, factor: float) -> Term:
        words = self.words if len(self.keys) == 1 else f"({self.words})"
        return Term(f"{factor:.6g} times {words}", self.keys, lambda n: factor * self.read(n))

    def __sub__(self, other: Term) -> Term:
        words, keys = f"{self.words} minus {other.words}", self.keys + other.keys
        return Term(words, keys, lambda n: _subtract(self.read(n), other.read(n)))

    def __abs__(self) -> Term:
        return Term(f"size of {self.words}", self.keys, lambda n: abs(self.read(n)))


def of(key: str) -> Term:
    """A number with its interval."""
    return Term(f"`{key}`", (key,), lambda n: n[key])


def value(key: str) -> Term:
    """The value alone, whatever its interval: for what is exact, or a sentence about means."""
    return Term(f"value of `{key}`", (key,), lambda n: exact(n[key].value))


def most(key: str) -> Term:
    """The largest value of any seed."""
    return Term(f"largest `{key}` of any seed", (key,), lambda n: exact(max(n[key].per_seed)))


def least(key: str) -> Term:
    """The smallest value of any seed."""
    return Term(f"smallest `{key}` of any seed", (key,), lambda n: exact(min(n[key].per_seed)))


def alike(one: Term, other: Term, effect: Term) -> Condition:
    """Whether two terms differ by at most a quarter (`MARGIN`) of the size of an effect.

    The effect is what the compared methods achieve, such as the fall of a loss from its start, not
    a level that is mostly irreducible.
    """
    return abs(one - other) <= MARGIN * abs(effect)


def between(key: str, bottom: float, top: float) -> Condition:
    """Whether a value lies in `[bottom, top]`."""
    return _inside(key, bottom, top, f"between {bottom:.6g} and {top:.6g}")


def near(key: str, target: float, margin: float) -> Condition:
    """Whether a value is `target` but for a margin: equivalence, which a wide interval never is."""
    return _inside(key, target - margin, target + margin, f"within {margin:.6g} of {target:.6g}")


def holds(key: str, target: float) -> Condition:
    """Whether a value's interval holds the target: nothing seen contradicts it."""
    words = f"the interval of `{key}` holds {target:.6g}"
    return Condition(words, (key,), lambda n: bool(n[key].low <= target <= n[key].high))


def falls(*keys: str) -> Condition:
    """Whether values fall, from each to the next."""
    return _ordered("fall", [of(b) < of(a) for a, b in pairwise(keys)], keys)


def rises(*keys: str) -> Condition:
    """Whether values rise, from each to the next."""
    return _ordered("rise", [of(b) > of(a) for a, b in pairwise(keys)], keys)


def all_of(*conditions: Condition) -> Condition:
    """Whether all hold: one that fails decides, else one that is undecided."""
    return _join(" and ", False, conditions)


def any_of(*conditions: Condition) -> Condition:
    """Whether any holds: one that does decides, else one that is undecided."""
    return _join(" or ", True, conditions)


def _ordered(how: str, steps: Sequence[Condition], keys: tuple[str, ...]) -> Condition:
    words = f"values {how}: {', '.join(f'`{key}`' for key in keys)}"

    def gap(n: Numbers) -> Number:
        """That of the step which is least clear."""
        gaps = [step.gap(n) for step in steps if step.gap]
        return min(gaps, key=lambda x: abs(x.value) / ((x.high - x.low) or 1e-300))

    return replace(all_of(*steps), words=words, keys=keys, gap=gap)


def _join(word: str, decisive: bool, conditions: Sequence[Condition]) -> Condition:
    def decide(n: Numbers) -> State:
        states = [c.holds(n) for c in conditions]
        return decisive if decisive in states else None if None in states else not decisive

    keys = tuple(key for c in conditions for key in c.keys)
    return Condition(word.join(c.words for c in conditions), keys, decide)


def _compare(a: Term, how: str, b: Term | float) -> Condition:
    other = b if isinstance(b, Term) else Term(f"{b:.6g}", (), lambda _: exact(b))

    def gap(n: Numbers) -> Number:
        return _subtract(a.read(n), other.read(n))

    def decide(n: Numbers) -> State:
        x = gap(n)
        ends = {COMPARISONS[how](end, 0.0) for end in (x.low, x.high)}
        return None if isnan(x.low) or isnan(x.high) or len(ends) > 1 else ends.pop()

    return Condition(f"{a.words} {how} {other.words}", a.keys + other.keys, decide, gap)


def _inside(key: str, bottom: float, top: float, words: str) -> Condition:
    def decide(n: Numbers) -> State:
        x = n[key]
        if bottom <= x.low and x.high <= top:
            return True
        return False if x.low > top or x.high < bottom else None

    return Condition(f"`{key}` {words}", (key,), decide)


def _subtract(a: Number, b: Number) -> Number:
    if _is_mean(a) and _is_mean(b) and len(a.per_seed) == len(b.per_seed):
        return mean(np.subtract(a.per_seed, b.per_seed))
    if b.low == b.high:
        return a.shifted(-b.value)
    return Number(a.value - b.value, a.low - b.high, a.high - b.low, ())


def _is_mean(x: Number) -> bool:
    """Whether a number is the mean of its values per seed (a ratio of means is not)."""
    several = len(x.per_seed) > 1
    return several and isclose(float(np.mean(x.per_seed)), x.value, rel_tol=1e-4, abs_tol=1e-12)


@dataclass(frozen=True)
class Outcome:
    """What a rule says of the numbers: the verdict, what was measured, why, and each part's state.

    `control` says what the rule gives of its negative control, `size` whether the printed size of
    an effect is ours; both are empty where there is none. `seeds` is how many would decide the
    undecided parts, 0 where none is undecided or its scatter over seeds is not known.
    """

    verdict: Verdict
    measured: str
    reason: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    control: str = ""
    size: str = ""
    seeds: int = 0

    def told(self, where: str) -> Outcome:
        """The outcome, saying in what setting it was come to."""
        if not self.measured:
            return replace(self, reason=f"{where} {self.reason}")
        return replace(self, measured=f"{where}: {self.measured}")

    @property
    def label(self) -> str:
        """The verdict as it is shown: `partly` never stands without its share."""
        states = [*self.parts.values()]
        share = f" ({states.count('holds')} of {len(states)})"
        return self.verdict + share * (self.verdict == "partly")


@dataclass(frozen=True)
class Control:
    """A negative control: other numbers, which a rule must not pass.

    Attributes
    ----------
    what : what stands in the place of what, such as `hard switching in the place of soft`.
    instead : run, or key of a number -> the run, the key or the value that is read in its place.
    negated : whether every number is read with the other sign, which exchanges the two sides of
        every difference and turns every order round.
    """

    what: str
    instead: Mapping[str, str | float] = field(default_factory=dict)
    negated: bool = False

    def of(self, numbers: Numbers) -> dict[str, Number]:
        """The numbers with those of the control in their places."""
        found = {}
        for key in numbers:
            runs = (run for run in self.instead if key.startswith(f"{run}."))
            run = max(runs, key=len, default="")
            renamed = f"{self.instead[run]}{key.removeprefix(run)}" if run else key
            other = self.instead.get(key, renamed)
            x = numbers.get(other) if isinstance(other, str) else exact(other)
            if x is not None:
                found[key] = -1.0 * x if self.negated else x
        return found


@dataclass(frozen=True)
class Size:
    """The size of an effect as the paper prints it, beside the verdict on its direction.

    Attributes
    ----------
    key : the number that measures it.
    printed : the paper's value.
    place : where the paper prints it.
    """

    key: str
    printed: float
    place: str

    def word(self, ours: Number) -> str:
        """Whether the printed value lies in our interval."""
        known = AS_PRINTED if ours.low <= self.printed <= ours.high else NOT_AS_PRINTED
        return "One seed cannot test the printed size" if ours.once else known


def compare_sizes(sizes: tuple[Size, ...], numbers: Numbers) -> str:
    """Whether a printed size is ours, or how many of several; empty where none is printed."""
    words = [size.word(numbers[size.key]) for size in sizes]
    if len(sizes) != 1:
        as_printed = f"{words.count(AS_PRINTED)} of {len(sizes)}"
        return f"{as_printed} printed sizes lie in our intervals" if sizes else ""
    (size,) = sizes
    ours = numbers[size.key].text()
    return f"{words[0]}: the paper prints {size.printed:g} ({size.place}), and ours is {ours}."


@dataclass(frozen=True)
class Rule:
    """When the verdict on a claim is what.

    Reproduced if every part holds, partly if some hold and some fail, not reproduced if some fail
    and none holds, undecided where none fails and some are undecided. The parts of a group count
    one by one. A rule that its control passes too has no power: nothing is judged.

    Attributes
    ----------
    primary : one to three parts that decide: what each says in the paper's words -> its condition,
        or a group of conditions where one sentence is about several cells.
    measured : what was measured, a text with numbers by `stat`, or a function of the numbers.
    note : what a reader must know of the rule beside its conditions; empty where nothing.
    proviso : what must hold for the rule to be a judgement at all, such as that a bound is one that
        a run could break: why it is none otherwise -> the condition. Then nothing is judged.
    control : numbers that the rule must not pass.
    sizes : the printed sizes of the effect, judged beside its direction.
    """

    primary: Parts
    measured: str | Callable[[Numbers], str]
    note: str = ""
    proviso: Mapping[str, Condition] = field(default_factory=dict)
    control: Control | None = None
    sizes: tuple[Size, ...] = ()

    def __call__(self, numbers: Numbers) -> Outcome:
        """The verdict, what was measured, and the parts that fail or are undecided."""
        parts = {name: STATES[c.holds(numbers)] for name, c in flatten(self.primary).items()}
        idle = [why for why, c in self.proviso.items() if c.holds(numbers) is not True]
        control = self.controlled(numbers)
        if control == "reproduced":
            idle.append("its negative control passes as well")
        return Outcome(
            "not judged" if idle else _verdict({*parts.values()}),
            self._measured(numbers),
            f"not judged, because {'; '.join(idle)}" if idle else _reason(self.primary, parts),
            parts,
            f"{self.control.what}: {control or 'not among these runs'}" if self.control else "",
            compare_sizes(self.sizes, numbers),
            self._seeds(numbers),
        )

    def _seeds(self, numbers: Numbers) -> int:
        """How many seeds see effects of the printed size, else of the measured one, at 90 %."""
        printed = {size.key: size.printed for size in self.sizes}
        needed = [0]
        for c in flatten(self.primary).values():
            if c.holds(numbers) is None and c.gap:
                gap = c.gap(numbers)
                effect = printed.get(c.keys[0], gap.value)
                if len(gap.per_seed) > 1 and np.isfinite(gap.per_seed).all() and effect:
                    needed.append(seeds_for(np.asarray(gap.per_seed), effect))
        return max(needed)

    def controlled(self, numbers: Numbers) -> Verdict | None:
        """The verdict on the negative control; None where its runs are not among these."""
        if self.control is None:
            return None
        rule = replace(self, control=None, sizes=(), measured="")
        try:
            return rule(self.control.of(numbers)).verdict
        except KeyError:
            return None

    @property
    def words(self) -> str:
        """The rule as sentences, made from its conditions."""
        told = [
            "; ".join(c.words for c in flatten({"": x}).values()) for x in self.primary.values()
        ]
        if len(told) > 1:
            told = [f"({i}) {text}" for i, text in enumerate(told, 1)]
        given = "; ".join(c.words for c in self.proviso.values())
        only = f" Judged only given that {given}." if given else ""
        return f"{'; '.join(told)}.{only} {self.note}".rstrip()

    def keys(self) -> set[str]:
        """The numbers that it reads."""
        every = [*flatten(self.primary).values(), *self.proviso.values()]
        return {key for c in every for key in c.keys}

    def _measured(self, numbers: Numbers) -> str:
        def replaced(token: re.Match[str]) -> str:
            key, bare, spec = token.groups()
            found: Number = numbers[key]
            return format(found.value, spec) if bare else found.text(spec)

        if callable(self.measured):
            return self.measured(numbers)
        return TOKEN.sub(replaced, self.measured)


def flatten(parts: Parts) -> dict[str, Condition]:
    """Conditions by name, those of groups one by one."""
    found: dict[str, Condition] = {}
    for name, part in parts.items():
        if isinstance(part, Condition):
            found[name] = part
        else:
            found |= {f"{name}, {cell}" if name else cell: c for cell, c in part.items()}
    return found


#: The control of rules about differences and orders.
EXCHANGED = Control("all comparisons reversed", negated=True)


def stat(key: str, spec: str = ".3g") -> str:
    """In the text of what was measured: a number with its interval and unit."""
    return f"{{{key}|{spec}}}"


def stat_value(key: str, spec: str = ".3g") -> str:
    """In the text of what was measured: a value alone."""
    return f"{{{key}|={spec}}}"


def _verdict(states: set[str]) -> Verdict:
    if states == {"holds"}:
        return "reproduced"
    if "fails" in states:
        return "partly" if "holds" in states else "not reproduced"
    return "undecided"


def _reason(primary: Parts, states: Mapping[str, str]) -> str:
    """The parts that fail or are undecided; of a group its cells, unless all of them do."""
    told: list[str] = []
    for state, words in (("fails", "does not hold"), ("undecided", "undecided")):
        names = []
        for label, part in primary.items():
            if isinstance(part, Condition):
                names += [label] * (states[label] == state)
                continue
            keys = dict(zip(part, flatten({label: part}), strict=True))
            cells = [cell for cell, key in keys.items() if states[key] == state]
            some = "; ".join(cells)
            if label:
                some = f"{label} ({some})" if len(cells) < len(part) else label
            names += [some] * bool(cells)
        if names:
            words = words.capitalize() if told else words
            told.append(f"{words}: {'; '.join(names)}")
    return ". ".join(told)
