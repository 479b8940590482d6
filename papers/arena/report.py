"""Tables and sentences of the arena's page, all made from its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from papers.arena.methods import METHODS, applies, form_of, grid, label_of
from papers.arena.problems import NAMES
from papers.arena.rules import BUDGETS
from papers.kit.numbers import Number

__all__ = [
    "entries",
    "in_short",
    "optima",
    "problems",
    "standings",
    "tuning",
    "verdicts",
]

Numbers = Mapping[str, Number]

TOP = 3  # methods that a sentence names as the nearest
FORMS = {
    "constraint": "constraint function",
    "pooled": "constraint function, all rows in one place",
    "objectives": "second objective",
    "set": "set",
}


def taking_part(numbers: Numbers, problem: str, budget: str) -> list[str]:
    """The methods with numbers, best test objective first, those that are out last."""
    found = [m for m in METHODS if f"{problem}_{m}_{budget}.behind" in numbers]
    at = {m: f"{problem}_{m}_{budget}" for m in found}
    return sorted(
        found,
        key=lambda m: (numbers[f"{at[m]}.out"].value, numbers[f"{at[m]}.test_gap"].value),
    )


def problems(numbers: Numbers) -> list[str]:
    """The problems with numbers."""
    return [p for p in NAMES if f"{p}_reference.f" in numbers]


def by_distance(numbers: Numbers, problem: str, budget: str) -> list[str]:
    """The methods, the nearest to the optimum on the training rows first."""
    found = taking_part(numbers, problem, budget)
    return sorted(found, key=lambda m: numbers[f"{problem}_{m}_{budget}.off"].value)


def winner(numbers: Numbers, problem: str, budget: str) -> str:
    """The method that wins."""
    return next(m for m in METHODS if flag(numbers, f"{problem}_{m}_{budget}.wins"))


def flag(numbers: Numbers, key: str) -> bool:
    """Whether a number is there and 1."""
    return key in numbers and numbers[key].value == 1


def standing(numbers: Numbers, problem: str, method: str, budget: str) -> str:
    """Where a method stands: first, as good, behind, or out."""
    name = f"{problem}_{method}_{budget}"
    if flag(numbers, f"{name}.wins"):
        return "first"
    if flag(numbers, f"{name}.out"):
        return "violates"
    return "behind" if numbers[f"{name}.behind"].low > 0 else "as good"


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
    rows = {}
    for method in taking_part(numbers, problem, budget):
        name = f"{problem}_{method}_{budget}"
        measures = {"behind, 1/1000": "behind", "above optimum, 1/1000": "test_gap"}
        measures["violation, %"] = "test_excess"
        if budget == "grads":
            measures |= {"in training, %": "train_excess", "off, %": "off"}
            measures |= {"off the front, 1/1000": "stationary"}
        row = {"": standing(numbers, problem, method, budget)}
        keys = {text: f"{name}.{k}" for text, k in measures.items()}
        row |= {
            text: brief(numbers[k], 1000 if "1000" in text else 1, 1)
            for text, k in keys.items()
            if k in numbers
        }
        if budget == "bits":
            row["rounds"] = f"{numbers[f'{name}.rounds'].value:.0f}"
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
    rows = {}
    for problem in problems(numbers):
        name = f"{problem}_reference"
        rows[NAMES[problem]] = {
            "f": brief(numbers[f"{name}.f"]),
            "multiplier": brief(numbers[f"{name}.multiplier"]),
            "residual": f"{numbers[f'{name}.residual'].value:.0e}",
            "test f": brief(numbers[f"{name}.test_f"]),
            "violation, %": brief(numbers[f"{name}.test_excess"]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def tuning(numbers: Numbers, side: int) -> pd.DataFrame:
    """Shares of usable and of nearly best configurations, best and worst, per problem."""
    rows = {}
    for method, entry in METHODS.items():
        row = {}
        for problem in problems(numbers):
            name = f"{problem}_{method}_tuning"
            if f"{name}.near" not in numbers:
                continue
            at = {k: numbers[f"{name}.{k}"].value for k in ("feasible", "near", "best", "worst")}
            row[NAMES[problem]] = (
                f"{at['feasible']:.0f}, {at['near']:.0f}; {at['best']:.3g} to {at['worst']:.3g}"
            )
        if row:
            row["configurations"] = str(len(grid(entry, side)))
            rows[entry.label] = row
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def listed(names: Sequence[str]) -> str:
    """Names as a reader lists them."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def labels(methods: Sequence[str], problem: str = "") -> str:
    """Methods' names, listed, as they are called on a problem."""
    return listed([label_of(m, problem) for m in methods])


def verdicts(numbers: Numbers, problem: str) -> str:
    """Who wins on a problem under both budgets and by how much, as a list in Markdown."""
    lines = []
    for budget, text in BUDGETS.items():
        methods = taking_part(numbers, problem, budget)
        first = winner(numbers, problem, budget)
        where = {m: standing(numbers, problem, m, budget) for m in methods}
        gap = brief(numbers[f"{problem}_{first}_{budget}.test_gap"])
        violation = brief(numbers[f"{problem}_{first}_{budget}.test_excess"])
        line = (
            f"- **At {text}** {label_of(first, problem)} is first: its test objective differs from "
            f"the optimum's by {gap}, its violation is {violation} %."
        )
        if where[first] == "first" and flag(numbers, f"{problem}_{first}_{budget}.out"):
            line += " All are shown to violate; it does so least."
        equal = [m for m in methods if where[m] == "as good"]
        behind = [m for m in methods if where[m] == "behind"]
        out = [m for m in methods if where[m] == "violates"]
        if equal:
            line += f" Not to be told from it: {labels(equal, problem)}."
        if behind:
            by = [numbers[f"{problem}_{m}_{budget}.behind"].value for m in behind]
            line += f" Behind it, by {min(by):.2g} to {max(by):.2g}: {labels(behind, problem)}."
        if out:
            line += f" Shown to violate: {labels(out, problem)}."
        near = by_distance(numbers, problem, budget)[:TOP]
        each = [
            f"{label_of(m, problem)} ({brief(numbers[f'{problem}_{m}_{budget}.off'])} %)"
            for m in near
        ]
        lines.append(f"{line} Nearest to the optimum on the training rows: {listed(each)}.")
    return "\n".join(lines)


def in_short(numbers: Numbers) -> str:
    """The page in a few sentences."""
    found = problems(numbers)
    if not found:
        return "In short: nothing was run."
    both = [firsts(numbers, found, budget) for budget in BUDGETS]
    parts = [f"At {text} {each}." for text, each in zip(BUDGETS.values(), both, strict=True)]
    if both[0] == both[1]:
        parts = [f"At {' and at '.join(BUDGETS.values())} {both[0]}."]
    parts += [nearest(numbers, found), tied(numbers, found)]
    parts.append(easiest(numbers, found))
    return " ".join(["In short:", *parts])


def firsts(numbers: Numbers, found: Sequence[str], budget: str) -> str:
    """To whom the first places go."""
    where: dict[str, list[str]] = {}
    for problem in found:
        first = label_of(winner(numbers, problem, budget), problem)
        where.setdefault(first, []).append(NAMES[problem])
    each = [f"{label} on {listed(names)}" for label, names in where.items()]
    return f"the first {'place goes' if len(found) == 1 else 'places go'} to {'; '.join(each)}"


def nearest(numbers: Numbers, found: Sequence[str]) -> str:
    """Who ends nearest to the optimum of the training rows at equal gradients."""
    where: dict[str, list[str]] = {}
    for problem in found:
        first = label_of(by_distance(numbers, problem, "grads")[0], problem)
        where.setdefault(first, []).append(NAMES[problem])
    each = [f"{label} on {listed(names)}" for label, names in where.items()]
    return (
        f"By the distance to the optimum of the training rows, which no violation makes smaller, "
        f"the nearest at equal gradients {'is' if len(each) == 1 else 'are'} {'; '.join(each)}."
    )


def tied(numbers: Numbers, found: Sequence[str]) -> str:
    """Who is most often first or as good, and who violates and is never among the best."""
    where: dict[str, list[str]] = {}
    for problem in found:
        for method in taking_part(numbers, problem, "grads"):
            where.setdefault(method, []).append(standing(numbers, problem, method, "grads"))
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
