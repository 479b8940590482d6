"""Rules that judge claims: parts that decide, observations that do not, and their words.

>>> rule = Rule({"f is small": of("hard.f") < 0.2, "g kept": of("hard.g") <= 0.1},
...             measured=f"f {stat('hard.f')}")
>>> rule.words
'(1) `hard.f` below 0.2; (2) `hard.g` at most 0.1.'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from fedlib import checks
from papers.kit.conditions import (
    Condition,
    Numbers,
    State,
    Term,
    alike,
    all_of,
    any_of,
    average,
    between,
    falls,
    least,
    most,
    near,
    of,
    point,
    rises,
    scaled,
    told_together,
    value,
    within,
)
from papers.kit.intervals import seeds_for
from papers.kit.numbers import Number, exact

__all__ = [
    "EXCHANGED",
    "VERDICTS",
    "Condition",
    "Control",
    "Numbers",
    "Outcome",
    "Part",
    "Rule",
    "Size",
    "Term",
    "Verdict",
    "alike",
    "all_of",
    "any_of",
    "average",
    "between",
    "falls",
    "least",
    "most",
    "near",
    "of",
    "point",
    "rises",
    "stat",
    "stat_value",
    "value",
    "within",
]

#: `reproduced` is said of what was measured; a theorem is `proved`, and what follows from the
#: definition of a message, a set or a count is `counted`.
Verdict = Literal[
    "not reproduced", "partly", "undecided", "reproduced", "counted", "proved", "not judged"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Parts = Mapping[str, Condition | Mapping[str, Condition]]

STATES: dict[State, str] = {True: "holds", False: "fails", None: "undecided"}
PRIMARY = 3  # parts that may decide a claim
FEW = 4  # printed sizes that a sentence lists
TOKEN = re.compile(r"\{([^{}|]+)\|(=?)([^{}]*)\}")


@dataclass(frozen=True)
class Part:
    """What became of one condition: its name, `holds`, `fails` or `undecided`, if it decides."""

    name: str
    state: str
    primary: bool


@dataclass(frozen=True)
class Outcome:
    """What a rule says of the numbers: the verdict, what was measured, why, and each part.

    `control` says what the rule gives of its negative control, `size` whether the printed size of
    an effect is ours; both are empty where there is none. `seeds` is how many would decide the
    undecided parts, 0 where none is undecided or its scatter over seeds is not known.
    """

    verdict: Verdict
    measured: str
    reason: str = ""
    parts: tuple[Part, ...] = ()
    control: str = ""
    size: str = ""
    seeds: int = 0

    @property
    def share(self) -> str:
        """How many of the deciding parts hold, such as `7 of 9`; empty if nothing was judged."""
        deciding = [part.state for part in self.parts if part.primary]
        return f"{deciding.count('holds')} of {len(deciding)}" if deciding else ""

    @property
    def label(self) -> str:
        """The verdict as it is shown: `partly` never stands without its share."""
        return f"{self.verdict} ({self.share})" if self.verdict == "partly" else self.verdict


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

    def __post_init__(self) -> None:
        checks.fields(self)

    def of(self, numbers: Numbers) -> dict[str, Number]:
        """The numbers with those of the control in their places."""
        found = {key: self._read(self._key(key), numbers) for key in numbers}
        sign = -1.0 if self.negated else 1.0
        return {key: scaled(sign, x) for key, x in found.items() if x is not None}

    def _read(self, key: str | float, numbers: Numbers) -> Number | None:
        return numbers.get(key) if isinstance(key, str) else exact(key)

    def _key(self, key: str) -> str | float:
        if key in self.instead:
            return self.instead[key]
        runs = [run for run in self.instead if key.startswith(f"{run}.")]
        if not runs:
            return key
        run = max(runs, key=len)
        return f"{self.instead[run]}{key.removeprefix(run)}"


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

    def __post_init__(self) -> None:
        checks.fields(self)

    def word(self, numbers: Numbers) -> str:
        """Whether the printed value lies in our interval."""
        ours = numbers[self.key]
        there = ours.low <= self.printed <= ours.high
        return "size undecided" if ours.once else "size as printed" if there else "another size"

    def both(self, numbers: Numbers) -> str:
        """The printed value and ours."""
        return f"printed {self.printed:g} ({self.place}), ours {numbers[self.key].text()}"


def sizes_say(sizes: tuple[Size, ...], numbers: Numbers) -> str:
    """How many of the printed sizes are ours, with some of them; empty where none is printed."""
    if not sizes:
        return ""
    words = [size.word(numbers) for size in sizes]
    count = f" in {words.count('size as printed')} of {len(sizes)}" if len(sizes) > 1 else ""
    listed = "; ".join(size.both(numbers) for size in sizes[:FEW])
    more = f"; and {len(sizes) - FEW} more" if len(sizes) > FEW else ""
    return f"{'size as printed' if count else words[0]}{count}: {listed}{more}"


@dataclass(frozen=True)
class Rule:
    """When the verdict on a claim is what.

    Reproduced if every primary part holds, partly if some hold and some fail, not reproduced if
    some fail and none holds, undecided where none fails and some are undecided. The parts of a
    group count one by one. A rule that its control passes too has no power: nothing is judged.

    Attributes
    ----------
    primary : one to three parts that decide: what each says in the paper's words -> its condition,
        or a group of conditions where one sentence is about several cells.
    measured : what was measured, a text with numbers by `stat`, or a function of the numbers.
    note : what a reader must know of the rule beside its conditions; empty where nothing.
    observations : parts that are shown beside the verdict and do not count.
    proviso : what must hold for the rule to be a judgement at all, such as that a bound is one that
        a run could break: why it is none otherwise -> the condition. Then nothing is judged.
    control : numbers that the rule must not pass.
    sizes : the printed sizes of the effect, judged beside its direction.
    """

    primary: Parts
    measured: str | Callable[[Numbers], str]
    note: str = ""
    observations: Parts = field(default_factory=dict)
    proviso: Mapping[str, Condition] = field(default_factory=dict)
    control: Control | None = None
    sizes: tuple[Size, ...] = ()

    def __post_init__(self) -> None:
        checks.fields(self)

    def __call__(self, numbers: Numbers) -> Outcome:
        """The verdict, what was measured, and the parts that fail or are undecided."""
        deciding = [Part(name, STATES[c.holds(numbers)], True) for name, c in _leaves(self.primary)]
        seen = [
            Part(name, STATES[c.holds(numbers)], False) for name, c in _leaves(self.observations)
        ]
        idle = [why for why, c in self.proviso.items() if c.holds(numbers) is not True]
        control = self.controlled(numbers)
        if control == "reproduced":
            idle.append("it is no test: its negative control passes as well")
        return Outcome(
            "not judged" if idle else _verdict([part.state for part in deciding]),
            self._measured(numbers),
            f"not judged, because {'; '.join(idle)}" if idle else _reason(deciding),
            (*deciding, *seen),
            f"{self.control.what}: {control or 'not among these runs'}" if self.control else "",
            sizes_say(self.sizes, numbers),
            self._seeds(numbers),
        )

    def _seeds(self, numbers: Numbers) -> int:
        """How many seeds see effects of the printed size, else of the measured one, at 90 %."""
        printed = {size.key: size.printed for size in self.sizes}
        needed = [0]
        for _, c in _leaves(self.primary):
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
        rule = replace(self, control=None, sizes=(), observations={}, measured="")
        try:
            return rule(self.control.of(numbers)).verdict
        except KeyError:
            return None

    @property
    def words(self) -> str:
        """The rule as sentences, made from its conditions; those of one form stand together."""
        given = f"Judged only given that {_sentence(self.proviso)}" if self.proviso else ""
        return " ".join(filter(None, [_sentence(self.primary), given, self.note]))

    @property
    def observed(self) -> str:
        """The observations as a sentence; empty where there are none."""
        return _sentence(self.observations) if self.observations else ""

    @property
    def names(self) -> str:
        """What the primary parts say, in the paper's words."""
        return "; ".join(
            name if isinstance(part, Condition) else f"{name} ({', '.join(part)})"
            for name, part in self.primary.items()
        )

    def conditions(self) -> list[Condition]:
        """All conditions, those in groups, the observations and the proviso included."""
        every = (self.primary, self.observations, self.proviso)
        return [c for parts in every for _, c in _leaves(parts)]

    def _measured(self, numbers: Numbers) -> str:
        def replaced(token: re.Match[str]) -> str:
            key, bare, spec = token.groups()
            found: Number = numbers[key]
            return format(found.value, spec) if bare else found.text(spec)

        if callable(self.measured):
            return self.measured(numbers)
        return TOKEN.sub(replaced, self.measured)


#: The control of rules about differences and orders.
EXCHANGED = Control("the compared methods exchanged", negated=True)


def stat(key: str, spec: str = ".3g") -> str:
    """In the text of what was measured: a number with its interval and unit."""
    return f"{{{key}|{spec}}}"


def stat_value(key: str, spec: str = ".3g") -> str:
    """In the text of what was measured: a value alone."""
    return f"{{{key}|={spec}}}"


def _verdict(states: list[str]) -> Verdict:
    there = {*states}
    if there == {"holds"}:
        return "reproduced"
    if "fails" in there:
        return "partly" if "holds" in there else "not reproduced"
    return "undecided"


def _reason(parts: list[Part]) -> str:
    told = []
    for state, words in (("fails", "does not hold"), ("undecided", "undecided")):
        if names := [part.name for part in parts if part.state == state]:
            told.append(f"{words}: {'; '.join(names)}")
    return ". ".join(told)


def _leaves(parts: Parts) -> list[tuple[str, Condition]]:
    found: list[tuple[str, Condition]] = []
    for name, part in parts.items():
        if isinstance(part, Condition):
            found.append((name, part))
        else:
            found += [(f"{name}, {cell}" if name else cell, c) for cell, c in part.items()]
    return found


def _sentence(parts: Parts) -> str:
    told = told_together([c for _, c in _leaves(parts)])
    if len(told) > 1:
        told = [f"({i}) {text}" for i, text in enumerate(told, 1)]
    return f"{'; '.join(told)}."
