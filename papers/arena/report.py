"""Tables and sentences of the arena's page, all made from its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from papers.arena.methods import METHODS, applies, form_of, grid, label_of
from papers.arena.problems import NAMES
from papers.arena.rules import BUDGETS
from papers.kit.numbers import Number

Numbers = Mapping[str, Number]

OTHERS = {
    "as good": "Not to be told from it",
    "behind": "Behind it, by {:.2g} to {:.2g}",
    "violates": "Shown to violate",
}
TUNING = ("feasible", "near", "best", "worst")
TOP = 3  # methods that a sentence names as the nearest
TESTED = {
    "behind, 1/1000": "behind",
    "above optimum, 1/1000": "test_gap",
    "violation, %": "test_excess",
}
TRAINED = {"in training, %": "train_excess", "off, %": "off", "off the front, 1/1000": "stationary"}
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
    budget: str

    def of(self, method: str, measure: str) -> Number:
        """A method's measure."""
        return self.numbers[f"{self.problem}_{method}_{self.budget}.{measure}"]

    def flag(self, method: str, measure: str) -> bool:
        """Whether a number is there and 1."""
        key = f"{self.problem}_{method}_{self.budget}.{measure}"
        return key in self.numbers and self.numbers[key].value == 1

    def methods(self) -> list[str]:
        """The methods with numbers, best test objective first, those that are out last."""
        there = f"{self.problem}_{{}}_{self.budget}.behind"
        found = [m for m in METHODS if there.format(m) in self.numbers]
        return sorted(found, key=lambda m: [self.of(m, k).value for k in ("out", "test_gap")])

    def nearest(self) -> list[str]:
        """The methods, the nearest to the optimum on the training rows first."""
        return sorted(self.methods(), key=lambda m: self.of(m, "off").value)

    def winner(self) -> str:
        """The method that wins."""
        return next(m for m in METHODS if self.flag(m, "wins"))

    def standing(self, method: str) -> str:
        """Where a method stands: first, as good, behind, or out."""
        if self.flag(method, "wins"):
            return "first"
        if self.flag(method, "out"):
            return "violates"
        return "behind" if self.of(method, "behind").low > 0 else "as good"


def problems(numbers: Numbers) -> list[str]:
    return [p for p in NAMES if Place(numbers, p, "grads").methods()]


def entries() -> pd.DataFrame:
    """Who takes part, how, and where not, with the reason."""
    rows = {}
    for method, entry in METHODS.items():
        reasons: dict[str, list[str]] = {}
        for problem, text in NAMES.items():
            if why := applies(method, problem):
                reasons.setdefault(why, []).append(text)
        ways = {FORMS[form_of(method, p)] for p in NAMES if not applies(method, p)}
        takes = "; ".join(sorted(ways))
        if method == "fedavg":
            takes = "not at all; as a set on Sparse regression"
        rows[entry.label] = {
            "takes g as": takes,
            "parameter beside the step size": entry.second[0] or "none",
            "not on": "; ".join(f"{', '.join(where)}: {why}" for why, where in reasons.items()),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def standings(numbers: Numbers, problem: str, budget: str) -> pd.DataFrame:
    """All methods on a problem, from the first to those that are out.

    At equal bits rounds and uploads stand in place of what the training rows say.
    """
    at = Place(numbers, problem, budget)
    rows = {}
    for method in at.methods():
        row = {"": at.standing(method)} | {
            text: brief(at.of(method, k), 1000 if "1000" in text else 1, 1)
            for text, k in (TESTED if budget == "bits" else TESTED | TRAINED).items()
            if f"{problem}_{method}_{budget}.{k}" in numbers
        }
        if budget == "bits":
            row["rounds"] = f"{at.of(method, 'rounds').value:.0f}"
            row["kB a round"] = f"{numbers[f'{problem}_{method}_round.upload'].value:.2g}"
        rows[label_of(method, problem)] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def brief(n: Number, scale: float = 1, places: int = 9) -> str:
    """Value and interval times `scale`, in two digits or all before the point, on one line."""
    value, low, high = (digits(round(scale * x, places)) for x in (n.value, n.low, n.high))
    return f"{value} [{low}, {high}]".replace(" ", "\N{NO-BREAK SPACE}").replace(
        "-", "\N{MINUS SIGN}"
    )


def digits(x: float) -> str:
    """Two digits, or all before the point."""
    return f"{x:.0f}" if abs(x) >= 10 else f"{x + 0:.2g}"


def optima(numbers: Numbers) -> pd.DataFrame:
    """The optimum of every problem, how exact it is, and what it does on test rows."""
    told = {"f": "f", "multiplier": "multiplier", "residual": "residual", "test f": "test_f"}
    told["violation, %"] = "test_excess"
    rows = {}
    for problem in problems(numbers):
        found = {text: numbers[f"{problem}_reference.{k}"] for text, k in told.items()}
        rows[NAMES[problem]] = {text: brief(x) for text, x in found.items()}
        rows[NAMES[problem]]["residual"] = f"{found['residual'].value:.0e}"
    return pd.DataFrame.from_dict(rows, orient="index")


def tuning(numbers: Numbers, side: int) -> pd.DataFrame:
    """Shares of usable and of nearly best configurations, best and worst, per problem."""

    def cell(problem: str, method: str) -> str:
        at = {k: numbers[f"{problem}_{method}_tuning.{k}"].value for k in TUNING}
        return "{feasible:.0f}, {near:.0f}; {best:.3g} to {worst:.3g}".format(**at)

    rows = {}
    for method, entry in METHODS.items():
        there = [p for p in problems(numbers) if f"{p}_{method}_tuning.near" in numbers]
        if there:
            row = {NAMES[problem]: cell(problem, method) for problem in there}
            rows[entry.label] = row | {"configurations": str(len(grid(entry, side)))}
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def labels(methods: Sequence[str], problem: str = "") -> str:
    return listed([label_of(m, problem) for m in methods])


def verdicts(numbers: Numbers, problem: str) -> str:
    """Who wins on a problem under both budgets and by how much, as a list in Markdown."""
    return "\n".join(verdict(Place(numbers, problem, budget)) for budget in BUDGETS)


def verdict(at: Place) -> str:
    """Who wins, who is as good or behind, who violates, and who is nearest to the optimum."""
    first = at.winner()
    gap, violation = (brief(at.of(first, k)) for k in ("test_gap", "test_excess"))
    line = (
        f"- **At {BUDGETS[at.budget]}** {label_of(first, at.problem)} is first: its test objective "
        f"differs from the optimum's by {gap}, its violation is {violation} %."
    )
    if at.flag(first, "out"):
        line += " All are shown to violate; it does so least."
    where: dict[str, list[str]] = {}
    for method in at.methods():
        where.setdefault(at.standing(method), []).append(method)
    for kind, text in OTHERS.items():
        if kind in where:
            by = [at.of(m, "behind").value for m in where[kind]]
            text = text.format(min(by), max(by))
            line += f" {text}: {labels(where[kind], at.problem)}."
    near = [f"{label_of(m, at.problem)} ({brief(at.of(m, 'off'))} %)" for m in at.nearest()[:TOP]]
    return f"{line} Nearest to the optimum on the training rows: {listed(near)}."


def in_short(numbers: Numbers) -> str:
    """The page in a few sentences."""
    found = problems(numbers)
    if not found:
        return "In short: nothing was run."
    goes = "the first place goes to" if len(found) == 1 else "the first places go to"
    both = [
        f"{goes} {'; '.join(places(numbers, found, budget, Place.winner))}" for budget in BUDGETS
    ]
    parts = [f"At {text} {each}." for text, each in zip(BUDGETS.values(), both, strict=True)]
    if both[0] == both[1]:
        parts = [f"At {' and at '.join(BUDGETS.values())} {both[0]}."]
    near = places(numbers, found, "grads", lambda at: at.nearest()[0])
    parts.append(
        "By the distance to the optimum of the training rows, which no violation makes smaller, "
        f"the nearest at equal gradients {'is' if len(near) == 1 else 'are'} {'; '.join(near)}."
    )
    return " ".join(["In short:", *parts, tied(numbers, found), easiest(numbers, found)])


def places(
    numbers: Numbers, found: Sequence[str], budget: str, pick: Callable[[Place], str]
) -> list[str]:
    """Which method is picked on which problems."""
    where: dict[str, list[str]] = {}
    for problem in found:
        label = label_of(pick(Place(numbers, problem, budget)), problem)
        where.setdefault(label, []).append(NAMES[problem])
    return [f"{label} on {listed(names)}" for label, names in where.items()]


def tied(numbers: Numbers, found: Sequence[str]) -> str:
    """Who is most often first or as good, and who violates and is never among the best."""
    where: dict[str, list[str]] = {}
    for at in (Place(numbers, problem, "grads") for problem in found):
        for method in at.methods():
            where.setdefault(method, []).append(at.standing(method))
    good = {m: sum(x in ("first", "as good") for x in each) for m, each in where.items()}
    most = max(good.values())
    best = [m for m in where if good[m] == most]
    never = [m for m in where if "violates" in where[m] and good[m] == 0]
    text = (
        f"Counting methods that the seeds cannot tell from the first, {labels(best)} "
        f"{'is' if len(best) == 1 else 'are'} among the best on {most} of {len(found)} problems"
    )
    if never:
        text += f", and {labels(never)} on none, shown to violate on at least one"
    return f"{text}."


def easiest(numbers: Numbers, found: Sequence[str]) -> str:
    """Which grids hold the largest and the smallest share of configurations near the tuned one."""
    shares = {}
    for method, entry in METHODS.items():
        keys = [f"{p}_{method}_tuning.near" for p in found]
        own = [numbers[k].value for k in keys if k in numbers]
        if own and entry.family != "none":
            shares[method] = float(np.mean(own))
    if len(shares) < 2:
        return ""
    ends = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    high, low = (f"{METHODS[m].label} ({shares[m]:.0f} %)" for m in ends)
    return (
        "The share of a grid that meets the constraint and comes within 10 % of the grid's best is "
        f"largest for {high} and smallest for {low}."
    )
