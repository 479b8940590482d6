"""Tables of the arena's page, all made from its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from papers.arena.aggregates import BOTH, GROUPS
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
TESTED = {"behind, %": "behind", "above optimum, %": "test_gap", "violation, %": "test_excess"}
TRAINED = {"off, %": "off"}
ITERATES = {"grads": "last", "grads_mean": "average", "grads_own": "own output"}
FORMS = {
    "constraint": "constraint function",
    "pooled": "constraint function, all rows in one place",
    "objectives": "second objective",
    "set": "set",
}


@dataclass(frozen=True)
class Place:
    """A problem under a budget and at an iterate, as its numbers have it."""

    numbers: Numbers
    problem: str
    place: str = "grads"

    def of(self, method: str, measure: str) -> Number:
        """A method's measure."""
        return self.numbers[f"{self.problem}_{method}_{self.place}.{measure}"]

    def has(self, method: str, measure: str) -> bool:
        """Whether the measure is there."""
        return f"{self.problem}_{method}_{self.place}.{measure}" in self.numbers

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

    def nearest(self) -> list[str]:
        """The methods, the nearest to the optimum on the training rows first."""
        return sorted(self.methods(), key=lambda m: self.of(m, "off").value)


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
    """All methods at equal gradients: the last iterate, how its average stands, what is wrong."""
    at, mean = Place(numbers, problem), Place(numbers, problem, "grads_mean")
    rows = {}
    for method in at.methods():
        row = {"": WORDS[at.standing(method)]} | cells(at, method, TESTED)
        if mean.has(method, "standing"):
            row["average"] = WORDS[mean.standing(method)]
        row |= cells(at, method, TRAINED)
        if (found := health.get(at.run(method))) and found.wrong:
            row["not healthy"] = found.wrong
        rows[label_of(method, problem)] = row
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def cells(at: Place, method: str, columns: Mapping[str, str]) -> dict[str, str]:
    """What of some measures there is, in short."""
    return {
        text: brief(at.of(method, k), 1000 if "1000" in text else 1)
        for text, k in columns.items()
        if at.has(method, k)
    }


def brief(n: Number, scale: float = 1, places: int = 9) -> str:
    """Value and interval times `scale`, in two digits or all before the point, on one line."""
    value, low, high = (digits(round(scale * x, places)) for x in (n.value, n.low, n.high))
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


def outputs(numbers: Numbers) -> pd.DataFrame:
    """Objective and violation of the last iterate beside the own output of those that have one."""
    rows = {}
    for problem in problems(numbers):
        for method in Place(numbers, problem, "grads_own").methods():
            row = {}
            for place in ("grads", "grads_own"):
                at = Place(numbers, problem, place)
                gap, violation = (brief(at.of(method, k)) for k in ("test_gap", "test_excess"))
                text = ITERATES[place]
                row[f"{text}: above, %"], row[f"{text}: violation, %"] = gap, violation
            rows[f"{NAMES[problem]}: {label_of(method, problem)}"] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def together(numbers: Numbers, group: str) -> pd.DataFrame:
    """Interquartile means of a group of problems, and who improves on the best how probably."""
    rows: dict[str, dict[str, str]] = {}
    key = f"{group}_{{}}_{{}}.{{}}"
    there = [m for m in METHODS if key.format(m, BOTH[0], "iqm") in numbers]
    there.sort(key=lambda m: -numbers[key.format(m, BOTH[0], "iqm")].value)
    for method in there:
        row = {}
        for place in BOTH:
            text = ITERATES[place]
            row[f"{text}: interquartile mean"] = score(numbers[key.format(method, place, "iqm")])
            p = numbers[key.format(method, place, "better")]
            row[f"{text}: P(better than the best)"] = score(p) if p.value != 0.5 else "itself"
        rows[label_of(method, GROUPS[group][0])] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def score(n: Number) -> str:
    """Three digits after the point."""
    told = f"{n.value:.3f} [{n.low:.3f}, {n.high:.3f}]"
    return told.replace(" ", "\N{NO-BREAK SPACE}").replace("-", "\N{MINUS SIGN}")


def oracles(numbers: Numbers) -> pd.DataFrame:
    """Seconds that the oracles of matrix completion take in a tuned run, and how far it gets."""
    rows = {}
    at = Place(numbers, "rank")
    for method in at.methods():
        clients = 10 if METHODS[method].second[0] == "lambda" else 1
        name = "lmo" if clients > 1 else "project"
        took = numbers[f"rank_oracle.{name}"].value if f"rank_oracle.{name}" in numbers else np.nan
        calls = at.of(method, "rounds").value
        rows[label_of(method, "rank")] = {
            "oracle": "Lanczos, at every client" if clients > 1 else "SVD, at the server",
            "ms a call": f"{took:.2g}",
            "calls one after another": f"{calls:.0f}",
            "s, clients at the same time": f"{calls * took / 1e3:.2g}",
            "s, one after another": f"{clients * calls * took / 1e3:.2g}",
            "off, %": brief(at.of(method, "off")),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def listed(names: Sequence[str]) -> str:
    """Names as a reader writes them."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def labels(methods: Sequence[str], problem: str = "") -> str:
    """The methods' names."""
    return listed([label_of(m, problem) for m in methods])
