"""Tables and sentences of the arena's page, all made from its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from papers.arena.contest import STANDINGS
from papers.arena.methods import METHODS, applies, form_of, label_of
from papers.arena.problems import NAMES
from papers.kit.health import Health
from papers.kit.numbers import Number

Numbers = Mapping[str, Number]

WORDS = {
    "winner": "winner",
    "first": "first",
    "equivalent": "equivalent",
    "open": "not decided",
    "behind": "behind",
    "unclear": "violation not decided",
    "violates": "violates",
}
COLUMNS = {"behind, %": "behind", "above optimum, %": "test_gap", "violation, %": "test_excess"}
FORMS = {
    "constraint": "constraint function",
    "pooled": "constraint function, all rows in one place",
    "objectives": "second objective",
    "set": "set",
}


@dataclass(frozen=True)
class Place:
    """A problem under a budget, as its numbers have it."""

    numbers: Numbers
    problem: str
    budget: str = "grads"

    def of(self, method: str, measure: str) -> Number:
        """A method's measure."""
        return self.numbers[f"{self.problem}_{method}_{self.budget}.{measure}"]

    def has(self, method: str, measure: str) -> bool:
        """Whether the measure is there."""
        return f"{self.problem}_{method}_{self.budget}.{measure}" in self.numbers

    def run(self, method: str) -> str:
        """The name of the tuned run."""
        return f"{self.problem}_{method}_{self.of(method, 'config').value:.0f}"

    def rank(self, method: str) -> int:
        """A method's place in `STANDINGS`."""
        return int(self.of(method, "standing").value)

    def standing(self, method: str) -> str:
        """How a method stands, one of `STANDINGS`."""
        return STANDINGS[self.rank(method)]

    def methods(self, *standings: str) -> list[str]:
        """The methods with one of these standings (default any), best test objective first."""
        found = [m for m in METHODS if self.has(m, "standing")]
        found.sort(key=lambda m: (self.tier(m), self.of(m, "test_gap").value))
        return [m for m in found if not standings or self.standing(m) in standings]

    def tier(self, method: str) -> int:
        """0 for those that keep the constraint, then those not decided, then the violators."""
        return max(0, self.rank(method) - STANDINGS.index("behind"))

    def first(self) -> str | None:
        """The method that is first, if one is shown to keep the constraint."""
        return next(iter(self.methods("winner", "first")), None)


def problems(numbers: Numbers) -> list[str]:
    """The problems on which somebody took part."""
    return [p for p in NAMES if Place(numbers, p).methods()]


def entries() -> pd.DataFrame:
    """Who takes part, how, and where not, with the reason."""
    rows = {}
    for method, entry in METHODS.items():
        reasons: dict[str, list[str]] = {}
        for problem, text in NAMES.items():
            if why := applies(method, problem):
                reasons.setdefault(why, []).append(text)
        ways = {FORMS[form_of(method, p)] for p in NAMES if not applies(method, p)}
        takes = "not at all; as a set where it is one" if method == "fedavg" else min(ways)
        rows[entry.label] = {
            "takes g as": takes,
            "not on": "; ".join(f"{', '.join(where)}: {why}" for why, where in reasons.items()),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def standings(
    numbers: Numbers, problem: str, health: Mapping[str, Health] = MappingProxyType({})
) -> pd.DataFrame:
    """All methods at equal gradients, the best first, and how they stand at equal bits."""
    at, bits = Place(numbers, problem), Place(numbers, problem, "bits")
    rows = {}
    for method in at.methods():
        row = {"": WORDS[at.standing(method)]} | cells(at, method, COLUMNS)
        row["at equal bits"] = WORDS[bits.standing(method)]
        if found := health.get(at.run(method)):
            row["run"] = found.text
        rows[label_of(method, problem)] = row
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def cells(at: Place, method: str, columns: Mapping[str, str]) -> dict[str, str]:
    """What of some measures there is, in short."""
    return {text: brief(at.of(method, k)) for text, k in columns.items() if at.has(method, k)}


def brief(n: Number) -> str:
    """Value and interval, in two digits or all before the point, on one line."""
    value, low, high = (digits(x) for x in (n.value, n.low, n.high))
    told = value if n.low == n.high or np.isnan(n.low) else f"{value} [{low}, {high}]"
    return told.replace(" ", "\N{NO-BREAK SPACE}").replace("-", "\N{MINUS SIGN}")


def digits(x: float) -> str:
    """Two digits, or all before the point; what is below a thousandth is 0."""
    return f"{x:.0f}" if abs(x) >= 10 else f"{round(x, 3) + 0:.2g}"


def optima(numbers: Numbers) -> pd.DataFrame:
    """The optimum of every problem, how exact it is, and what it does on other rows."""
    told = {"f": "f", "multiplier": "multiplier", "residual": "residual", "test f": "test_f"}
    told |= {"violation on test rows, %": "test_excess", "on validation rows, %": "val_excess"}
    rows = {}
    for problem in problems(numbers):
        found = {text: numbers[f"{problem}_reference.{k}"] for text, k in told.items()}
        rows[NAMES[problem]] = {text: brief(x) for text, x in found.items()}
        rows[NAMES[problem]]["residual"] = f"{found['residual'].value:.0e}"
    return pd.DataFrame.from_dict(rows, orient="index")


def in_short(numbers: Numbers) -> str:
    """Who is first on which problem, and who is not told apart."""
    lines = []
    for problem in problems(numbers):
        at = Place(numbers, problem)
        first = at.first()
        if first is None:
            lines.append(f"- **{NAMES[problem]}**: no method is shown to keep the constraint.")
            continue
        won = "wins" if at.standing(first) == "winner" else "is first"
        gap = brief(at.of(first, "test_gap"))
        line = (
            f"- **{NAMES[problem]}**: {label_of(first, problem)} {won}, {gap} % above the optimum."
        )
        if near := at.methods("equivalent", "open"):
            names = ", ".join(label_of(m, problem) for m in near)
            line += f" Not shown to be behind: {names}."
        lines.append(line)
    return "\n".join(lines)
