"""Rules that judge claims: conditions on numbers, the parts that decide, and their words.

A condition compares terms, a term reads something of a `Number`; both keep what they say beside
what they do. An interval decides: a statement holds if all of the interval satisfies it, fails if
all of it contradicts it, and is open in between.

>>> statement = of("soft.f") < 0.2
>>> [statement.holds({"soft.f": Number(0.15, low, high, ())})
...  for low, high in ((0.1, 0.19), (0.1, 0.3), (0.21, 0.3))]
[True, None, False]
>>> rule = Rule({"f is small": of("hard.f") < 0.2, "g kept": of("hard.g") <= 0.1})
>>> rule.words
'(1) `hard.f` below 0.2; (2) `hard.g` at most 0.1.'
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from math import inf, isclose, isnan, nan
from typing import Any, Literal, get_args

import numpy as np

from papers.kit.numbers import Number, exact, mean, seeds_for
from papers.kit.quantities import Key, Label, Labels, Quantities, Query

Numbers = Mapping[Any, Number]
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
    "not reproduced", "mixed", "open", "reproduced", "counted", "proved", "not judged"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
#: What a rule asks: each part in the paper's words -> its condition, or one for each of its cases.
Conditions = Mapping[str, "Condition | Mapping[str, Condition]"]

STATES: dict[State, str] = {True: "holds", False: "fails", None: "open"}
#: State of one part -> the word for several.
PLURALS = {"holds": "hold", "fails": "fail", "open": "open"}


@dataclass(frozen=True)
class Statement:
    """A value and the bound that it is to keep.

    Attributes
    ----------
    keys : the numbers that it reads.
    read : what is compared, with its interval: a number, or a difference of two.
    relation : `below`, `at most`, `above`, `at least`, or `between` two bounds.
    bound : what the value is compared with; the lower one of `between`.
    top : the upper bound of `between`; NaN for the other relations.
    """

    keys: tuple[Key, ...]
    read: Callable[[Numbers], Number]
    relation: str
    bound: float
    top: float = nan

    def side(self, x: float) -> int:
        """Where a value lies: 0 if the statement holds of it, else on which side of the bounds."""
        if self.relation == "between":
            if x > self.top:
                return 1
            return -1 if x < self.bound else 0
        compare = COMPARISONS[self.relation]
        return 0 if compare(x, self.bound) else 1

    def state(self, numbers: Numbers) -> State:
        """Whether the statement holds; None where the interval has values of both kinds."""
        x = self.read(numbers)
        if isnan(x.low) or isnan(x.high):
            return None
        side = self.side(x.low)
        if side != self.side(x.high):
            return None
        return side == 0

    def clearness(self, numbers: Numbers) -> float:
        """The distance of the value from the nearest bound, in widths of its interval."""
        x = self.read(numbers)
        distances = np.abs([x.value - self.bound, x.value - self.top])
        distance = float(np.nanmin(distances))
        width = x.high - x.low
        if isnan(width) or isnan(distance):
            return 0.0
        return distance / width if width else inf


@dataclass(frozen=True)
class Condition:
    """Something that holds of the numbers, fails, or is open.

    Attributes
    ----------
    words : the condition in words, with the keys of its numbers.
    keys : the numbers that it reads.
    holds : numbers -> whether the condition holds; None where they do not decide.
    statements : the comparisons that must all hold; empty where the condition is none of those.
    """

    words: str
    keys: tuple[Key, ...]
    holds: Callable[[Numbers], State]
    statements: tuple[Statement, ...] = ()

    def shown(self, numbers: Numbers) -> Statement | None:
        """The comparison that stands for the condition: the least clear of those that decide.

        Where the premise of a condition does not hold, none of its comparisons decides: then the
        least clear of all.
        """
        state = self.holds(numbers)
        deciding = [step for step in self.statements if step.state(numbers) is state]
        steps = deciding or self.statements
        return min(steps, key=lambda step: step.clearness(numbers), default=None)


@dataclass(frozen=True)
class Term:
    """A value with its interval, read from the numbers; comparing terms is a condition.

    Two terms of the same seeds are compared seed by seed: the interval is that of the mean of
    their differences (a paired t test). Others are compared by the ends of their intervals.
    """

    words: str
    keys: tuple[Key, ...]
    read: Callable[[Numbers], Number]

    def __lt__(self, bound: Term | float) -> Condition:
        return _compare(self, "below", bound)

    def __le__(self, bound: Term | float) -> Condition:
        return _compare(self, "at most", bound)

    def __gt__(self, bound: Term | float) -> Condition:
        return _compare(self, "above", bound)

    def __ge__(self, bound: Term | float) -> Condition:
        return _compare(self, "at least", bound)

    def __rmul__(self, factor: float) -> Term:
        words = self.words if len(self.keys) == 1 else f"({self.words})"
        words = f"{factor:.6g} times {words}"
        return Term(words, self.keys, lambda n: factor * self.read(n))

    def __sub__(self, term: Term) -> Term:
        words = f"{self.words} minus {term.words}"
        keys = self.keys + term.keys
        return Term(words, keys, lambda n: _subtract(self.read(n), term.read(n)))

    def __abs__(self) -> Term:
        words = f"size of {self.words}"
        return Term(words, self.keys, lambda n: abs(self.read(n)))


def _term(words: str, key: Key, labels: Labels, read: Callable[[Number], Number]) -> Term:
    """What is read of one number; with labels the key says what is measured of which run."""
    sought = Query.of(str(key), **labels) if labels else key
    words = words.format(f"`{sought}`")
    return Term(words, (sought,), lambda n: read(n[sought]))


def of(key: Key, **labels: Label) -> Term:
    """A number with its interval."""
    return _term("{}", key, labels, lambda number: number)


def value(key: Key, **labels: Label) -> Term:
    """The value alone, whatever its interval: for what is exact, or a sentence about means."""
    return _term("value of {}", key, labels, lambda number: exact(number.value))


def most(key: Key, **labels: Label) -> Term:
    """The largest value of any seed."""

    def read(number: Number) -> Number:
        return exact(max(number.per_seed))

    return _term("largest {} of any seed", key, labels, read)


def least(key: Key, **labels: Label) -> Term:
    """The smallest value of any seed."""

    def read(number: Number) -> Number:
        return exact(min(number.per_seed))

    return _term("smallest {} of any seed", key, labels, read)


def alike(first: Term, second: Term, effect: Term) -> Condition:
    """Whether two terms differ by at most a quarter (`MARGIN`) of the size of an effect.

    The effect is what the compared methods achieve, such as the fall of a loss from its start, not
    a level that is mostly irreducible.
    """
    return abs(first - second) <= MARGIN * abs(effect)


def between(key: Key, bottom: float, top: float, words: str = "") -> Condition:
    """Whether a value lies in `[bottom, top]`."""
    words = words or f"between {bottom:.6g} and {top:.6g}"
    statement = Statement(
        (key,),
        of(key).read,
        "between",
        bottom,
        top,
    )
    return _stated(f"`{key}` {words}", statement)


def near(key: Key, target: float, margin: float) -> Condition:
    """Whether a value is `target` but for a margin: equivalence, which a wide interval never is."""
    words = f"within {margin:.6g} of {target:.6g}"
    return between(key, target - margin, target + margin, words)


def falls(*keys: Key) -> Condition:
    """Whether values fall, from each to the next."""
    steps = [of(later) < of(former) for former, later in pairwise(keys)]
    return _ordered("fall", steps, keys)


def rises(*keys: Key) -> Condition:
    """Whether values rise, from each to the next."""
    steps = [of(later) > of(former) for former, later in pairwise(keys)]
    return _ordered("rise", steps, keys)


def all_of(*conditions: Condition) -> Condition:
    """Whether all hold: one that fails decides, else one that is open."""
    joined = _join(" and ", False, conditions)
    statements: list[Statement] = []
    for condition in conditions:
        if not condition.statements:
            return joined
        statements += condition.statements
    return replace(joined, statements=tuple(statements))


def any_of(*conditions: Condition) -> Condition:
    """Whether any holds: one that does decides, else one that is open."""
    return _join(" or ", True, conditions)


def given(premise: Condition, condition: Condition) -> Condition:
    """The condition where a premise holds; open where it does not."""

    def decide(n: Numbers) -> State:
        return condition.holds(n) if premise.holds(n) else None

    words = f"{condition.words}, judged only given that {premise.words}"
    keys = premise.keys + condition.keys
    return Condition(words, keys, decide, condition.statements)


def _ordered(how: str, steps: Sequence[Condition], keys: tuple[Key, ...]) -> Condition:
    names = ", ".join(f"`{key}`" for key in keys)
    return replace(all_of(*steps), words=f"values {how}: {names}", keys=keys)


def _join(word: str, decisive: bool, conditions: Sequence[Condition]) -> Condition:
    def decide(n: Numbers) -> State:
        states = {condition.holds(n) for condition in conditions}
        if decisive in states:
            return decisive
        return None if None in states else not decisive

    words = word.join(condition.words for condition in conditions)
    keys: tuple[Key, ...] = ()
    for condition in conditions:
        keys += condition.keys
    return Condition(words, keys, decide)


def _stated(words: str, statement: Statement) -> Condition:
    """The condition that a single statement holds."""
    return Condition(words, statement.keys, statement.state, (statement,))


def _compare(a: Term, how: str, b: Term | float) -> Condition:
    if isinstance(b, Term):
        apart = a - b
        statement = Statement(apart.keys, apart.read, how, 0.0)
        return _stated(f"{a.words} {how} {b.words}", statement)
    statement = Statement(a.keys, a.read, how, float(b))
    return _stated(f"{a.words} {how} {b:.6g}", statement)


def _subtract(a: Number, b: Number) -> Number:
    same_seeds = len(a.per_seed) == len(b.per_seed)
    if same_seeds and _is_mean(a) and _is_mean(b):
        return mean(np.subtract(a.per_seed, b.per_seed))
    if b.low == b.high:
        return a.shifted(-b.value)
    value = a.value - b.value
    low = a.low - b.high
    high = a.high - b.low
    return Number(value, low, high, ())


def _is_mean(x: Number) -> bool:
    """Whether a number is the mean of its values per seed (a ratio of means is not)."""
    if len(x.per_seed) < 2:
        return False
    mean_of_seeds = float(np.mean(x.per_seed))
    return isclose(mean_of_seeds, x.value, rel_tol=1e-4, abs_tol=1e-12)


@dataclass(frozen=True)
class Part:
    """A condition of a rule and what the numbers say of it: a row of the table of all parts.

    Attributes
    ----------
    words, case : the part in the paper's terms, and the case of it; empty where it has one alone.
    condition : what is asked of the numbers, and tells whether it holds.
    state : `holds`, `fails` or `open`.
    statement : the comparison that is shown; of several the least clear; None where none can be.
    value : what that compares with its bound, with the interval; None without a statement.
    unit : of the value; empty where the numbers have different ones.
    seeds : the number of seeds behind the value; 0 where no seed changes it.
    control : the state on the numbers of the negative control; empty where it has not all of them,
        or exchanges none.
    """

    words: str
    case: str
    condition: Condition
    state: str
    statement: Statement | None = None
    value: Number | None = None
    unit: str = ""
    seeds: int = 0
    control: str = ""

    @property
    def title(self) -> str:
        """The part with its case."""
        if self.words and self.case:
            return f"{self.words}, {self.case}"
        return self.words or self.case


@dataclass(frozen=True)
class Outcome:
    """What a rule says of the numbers: the verdict, what was measured, why, and all parts.

    `control` says what stands in the place of what, `control_verdict` what the rule gives of that,
    `size` whether the printed size of an effect is ours; they are empty where there is none, and
    the second where the runs of the control are not among these.
    `seeds` is how many would decide the open parts, 0 where none is open or its scatter over seeds
    is not known. `profile` is that of the judged numbers.
    """

    verdict: Verdict
    measured: str
    reason: str = ""
    parts: tuple[Part, ...] = ()
    control: str = ""
    control_verdict: Verdict | Literal[""] = ""
    size: str = ""
    seeds: int = 0
    profile: str = "full"

    @property
    def states(self) -> dict[str, str]:
        """The state of every part by its title."""
        return {part.title: part.state for part in self.parts}

    @property
    def label(self) -> str:
        """The verdict as it is shown: what was measured never stands without its counts."""
        if self.verdict in ("counted", "proved", "not judged"):
            return self.verdict
        if self.verdict == "open":
            count = len(self.parts)
            plural = "part" if count == 1 else "parts"
            return f"open: {count} {plural}"
        counts = count_states(part.state for part in self.parts)
        return f"{self.verdict}: {counts}"


@dataclass(frozen=True)
class Control:
    """A negative control: other numbers, which a rule must not pass.

    Attributes
    ----------
    what : what stands in the place of what, such as `hard switching in the place of soft`.
    instead : key of a number -> the key or the value that is read in its place.
    labels : label -> the value that every number is read with, in place of its own or the default;
        or a mapping of values to those in their places.
    """

    what: str
    instead: Mapping[Any, Key | float] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)

    def of(self, numbers: Numbers) -> Numbers:
        """The numbers with those of the control in their places."""
        assert isinstance(numbers, Quantities)
        return numbers.controlled(self.labels, self.instead)


@dataclass(frozen=True)
class Size:
    """The size of an effect as the paper prints it, beside the verdict on its direction.

    Attributes
    ----------
    key : the number that measures it.
    printed : the paper's value.
    place : where the paper prints it.
    spread : by how much the paper says that its value is uncertain.
    """

    key: Key
    printed: float
    place: str
    spread: float = 0.0

    def lies_in(self, ours: Number) -> bool:
        """Whether the printed value, with its spread, meets our interval."""
        return ours.meets(self.printed, self.spread)


def compare_sizes(sizes: Sequence[Size], numbers: Numbers) -> str:
    """Whether a printed size is ours, or how many of several; empty where none is printed."""
    if not sizes:
        return ""
    if len(sizes) == 1:
        (size,) = sizes
        return compare_size(size, numbers[size.key])
    agreeing = [size for size in sizes if size.lies_in(numbers[size.key])]
    words = f"{len(agreeing)} of {len(sizes)} printed sizes lie in our intervals"
    if any(size.spread for size in sizes):
        words += " with the printed uncertainties"
    return words


def compare_size(size: Size, ours: Number) -> str:
    """Whether a printed size is ours."""
    where = "in" if size.lies_in(ours) else "outside"
    printed = f"{size.printed:g}"
    if size.spread:
        printed += f" ± {size.spread:.2g}"
    return (
        f"The printed size lies {where} our interval: the paper prints {printed} ({size.place}), "
        f"and ours is {ours.text()}."
    )


@dataclass(frozen=True)
class Rule:
    """When the verdict on a claim is what.

    Reproduced if every part holds, not reproduced if some fail and none holds, open if none is
    decided, else mixed. The parts of a group count one by one. A rule that holds and that its
    control passes too has no power: nothing is judged.

    Attributes
    ----------
    primary : one to three parts that decide: what each says in the paper's words -> its condition,
        or a group of conditions where one sentence is about several cells.
    note : what a reader must know of the rule beside its conditions; empty where nothing.
    proviso : what must hold for the rule to be a judgement at all, such as that a bound is one that
        a run could break: why it is none otherwise -> the condition. Then nothing is judged.
    control : numbers that the rule must not pass.
    sizes : the printed sizes of the effect, judged beside its direction.
    """

    primary: Conditions
    note: str = ""
    proviso: Mapping[str, Condition] = field(default_factory=dict)
    control: Control | None = None
    sizes: tuple[Size, ...] = ()

    def __call__(self, numbers: Numbers) -> Outcome:
        """The verdict, what was measured, and every part with its state."""
        parts = self.parts(numbers)
        verdict = _verdict(parts)
        reason = _reason(parts)
        idle = self.unmet(numbers)
        control_verdict = self._judge_control(parts, numbers)
        if verdict == control_verdict == "reproduced":
            idle.append("its negative control passes as well")
        if idle:
            verdict = "not judged"
            reason = f"not judged, because {'; '.join(idle)}"
        return Outcome(
            verdict=verdict,
            measured="; ".join(in_words(part, numbers) for part in parts),
            reason=reason,
            parts=tuple(parts),
            control=self.control.what if self.control else "",
            control_verdict=control_verdict,
            size=compare_sizes(self.sizes, numbers),
            seeds=self.seeds_for(parts, numbers),
        )

    def _judge_control(self, parts: list[Part], numbers: Numbers) -> Verdict | Literal[""]:
        """The verdict on the numbers of the control; writes into `parts` their states on these."""
        verdict: Verdict | Literal[""] = ""
        if self.control is None:
            return verdict
        exchanged = self.control.of(numbers)
        with suppress(KeyError):  # its runs are not among these
            control_parts = self.parts(exchanged)
            unmet = self.unmet(exchanged)
            verdict = "not judged" if unmet else _verdict(control_parts)
            for index, control_part in enumerate(control_parts):
                keys = control_part.condition.keys
                if any(exchanged[key] is not numbers[key] for key in keys):
                    parts[index] = replace(parts[index], control=control_part.state)
        return verdict

    def parts(self, numbers: Numbers) -> list[Part]:
        """Every part with what the numbers say of it."""
        named_conditions = conditions_of(self.primary)
        return [part_of(*named, numbers) for named in named_conditions]

    def unmet(self, numbers: Numbers) -> list[str]:
        """Why the rule is no judgement of these numbers."""
        reasons = []
        for why, condition in self.proviso.items():
            if not condition.holds(numbers):
                reasons.append(why)
        return reasons

    def seeds_for(self, parts: Sequence[Part], numbers: Numbers) -> int:
        """How many seeds see effects of the printed size, else of the measured one, at 90 %."""
        printed: dict[Key, float] = {size.key: size.printed for size in self.sizes}
        most_seeds = 0
        for part in parts:
            gap = open_gap(part, numbers)
            if gap is None:
                continue
            per_seed = np.asarray(gap.per_seed)
            effect = printed.get(part.condition.keys[0], gap.value)
            scatter_known = len(per_seed) > 1 and np.isfinite(per_seed).all()
            if scatter_known and effect:
                most_seeds = max(most_seeds, seeds_for(per_seed, effect))
        return most_seeds

    @property
    def words(self) -> str:
        """The rule as sentences, made from its conditions."""
        sentences = []
        for part in self.primary.values():
            cases = conditions_of({"": part})
            sentences.append("; ".join(condition.words for _, _, condition in cases))
        if len(sentences) > 1:
            sentences = [f"({i}) {text}" for i, text in enumerate(sentences, 1)]
        words = "; ".join(sentences) + "."
        premises = "; ".join(condition.words for condition in self.proviso.values())
        if premises:
            words += f" Judged only given that {premises}."
        return f"{words} {self.note}".rstrip()

    def keys(self) -> set[Key]:
        """The numbers that it reads."""
        conditions = [condition for _, _, condition in conditions_of(self.primary)]
        conditions += self.proviso.values()
        keys: set[Key] = set()
        for condition in conditions:
            keys.update(condition.keys)
        return keys


def open_gap(part: Part, numbers: Numbers) -> Number | None:
    """The distance of an open part from its one bound; None if that is not what is open."""
    statement = part.statement
    if part.state != "open" or part.value is None or statement is None:
        return None
    if statement.relation == "between":
        return None
    if statement.state(numbers) is not None:  # what is open is a premise
        return None
    return part.value.shifted(-statement.bound)


def in_words(part: Part, numbers: Numbers) -> str:
    """A part with the values of the numbers that it reads, and what it compares with its bound."""
    keys = dict.fromkeys(part.condition.keys)
    read = [numbers[key] for key in keys]
    if len(read) == 1:
        return f"{part.title}: {read[0].text()}"
    values = ", ".join(f"{number.value:.3g}" for number in read)
    if part.value is None or part.statement is None:
        return f"{part.title}: {values}"
    return f"{part.title}: {values} (difference {part.value.text()})"


def conditions_of(conditions: Conditions) -> list[tuple[str, str, Condition]]:
    """Each part with its case and its condition, the cases of a part one by one."""
    rows = []
    for words, part in conditions.items():
        cases = {"": part} if isinstance(part, Condition) else part
        rows += [(words, case, condition) for case, condition in cases.items()]
    return rows


def part_of(words: str, case: str, condition: Condition, numbers: Numbers) -> Part:
    """A condition with what the numbers say of it."""
    state = STATES[condition.holds(numbers)]
    part = Part(words, case, condition, state)
    statement = condition.shown(numbers)
    if statement is None:
        return part
    read = [numbers[key] for key in statement.keys]
    units = {number.unit for number in read}
    counts = [len(number.per_seed) for number in read if number.low != number.high]
    return replace(
        part,
        statement=statement,
        value=statement.read(numbers),
        unit=units.pop() if len(units) == 1 else "",
        seeds=min(counts, default=0),
    )


def count_states(states: Iterable[str]) -> str:
    """How many parts are in which state: `4 hold, 1 fails, 7 open`."""
    counts = Counter(states)
    words = []
    for state, plural in PLURALS.items():
        count = counts[state]
        if count:
            words.append(f"{count} {state if count == 1 else plural}")
    return ", ".join(words)


def _verdict(parts: Iterable[Part]) -> Verdict:
    """The word for parts with such states."""
    states = {part.state for part in parts}
    if states == {"holds"}:
        return "reproduced"
    if states == {"open"}:
        return "open"
    return "mixed" if "holds" in states else "not reproduced"


def _reason(parts: Sequence[Part]) -> str:
    """The parts that fail or are open; of a part its cases, unless all of them do."""
    sentences: list[str] = []
    for state, words in (("fails", "does not hold"), ("open", "open")):
        names = _names_in_state(parts, state)
        if names:
            start = words.capitalize() if sentences else words
            sentences.append(f"{start}: {'; '.join(names)}")
    return ". ".join(sentences)


def _names_in_state(parts: Sequence[Part], state: str) -> list[str]:
    """The parts that are in a state, each with those of its cases that are."""
    names = []
    for name, group in groupby(parts, key=lambda part: part.words):
        states = {part.case: part.state for part in group}
        cases = [case for case in states if states[case] == state]
        complete = len(cases) == len(states)
        if name and complete:
            names.append(name)
        elif cases:
            listed = "; ".join(cases)
            names.append(f"{name} ({listed})".lstrip())
    return names
