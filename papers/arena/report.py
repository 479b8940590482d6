"""Tables and sentences of the arena's page, all made from its numbers."""

from __future__ import annotations

from collections.abc import Mapping

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
FORMS = {
    "constraint": "constraint function",
    "objectives": "second objective",
    "set": "set",
}


def problems(numbers: Numbers) -> list[str]:
    """The problems on which somebody took part."""
    return [p for p in NAMES if ranked(numbers, p)]


def standing(numbers: Numbers, problem: str, method: str, budget: str = "grads") -> str:
    """How a method stands, one of `STANDINGS`."""
    return STANDINGS[int(numbers[f"{problem}_{method}_{budget}.standing"].value)]


def ranked(numbers: Numbers, problem: str) -> list[str]:
    """The methods on a problem, those that keep the constraint first, then by test objective."""
    last = STANDINGS.index("behind")

    def place(method: str) -> tuple[int, float]:
        own = f"{problem}_{method}_grads"
        return max(last, int(numbers[f"{own}.standing"].value)), numbers[f"{own}.test_gap"].value

    return sorted((m for m in METHODS if f"{problem}_{m}_grads.standing" in numbers), key=place)


def standings(
    numbers: Numbers, problem: str, health: Mapping[str, Health] | None = None
) -> pd.DataFrame:
    """All methods at equal gradients, the best first, and how they stand at equal bits."""
    rows = {}
    for method in ranked(numbers, problem):
        own = f"{problem}_{method}_grads"
        row = {"takes g as": FORMS[form_of(method, problem)]}
        row["equal gradients"] = WORDS[standing(numbers, problem, method)]
        for text, key in {"behind, %": "behind", "above optimum, %": "test_gap"}.items():
            row[text] = brief(numbers[f"{own}.{key}"]) if f"{own}.{key}" in numbers else ""
        row["violation, %"] = brief(numbers[f"{own}.test_excess"])
        row["equal bits"] = WORDS[standing(numbers, problem, method, "bits")]
        if found := (health or {}).get(f"{problem}_{method}_{numbers[f'{own}.config'].value:.0f}"):
            row["run"] = found.text
        rows[label_of(method, problem)] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def absent() -> str:
    """Who does not take part where, and why."""
    lines = [
        f"- {entry.label} on {NAMES[problem]}: {why}"
        for method, entry in METHODS.items()
        for problem in NAMES
        if (why := applies(method, problem))
    ]
    return "\n".join(lines)


def optima(numbers: Numbers) -> pd.DataFrame:
    """The optimum of every problem, how exact it is, and what it does on other rows."""
    measures = {"f": "f", "residual": "residual", "test f": "test_f"}
    measures |= {"violation on test rows, %": "test_excess", "on validation rows, %": "val_excess"}
    rows = {}
    for problem in problems(numbers):
        found = {text: numbers[f"{problem}_reference.{k}"] for text, k in measures.items()}
        rows[NAMES[problem]] = {text: brief(x) for text, x in found.items()}
        rows[NAMES[problem]]["residual"] = f"{found['residual'].value:.0e}"
    return pd.DataFrame.from_dict(rows, orient="index")


def in_short(numbers: Numbers) -> str:
    """Who is first on which problem, and who is not told apart."""
    lines = []
    for problem in problems(numbers):
        first, *others = ranked(numbers, problem)
        how = standing(numbers, problem, first)
        if how not in ("winner", "first"):
            lines.append(f"- **{NAMES[problem]}**: no method is shown to keep the constraint.")
            continue
        gap = brief(numbers[f"{problem}_{first}_grads.test_gap"])
        won = "wins" if how == "winner" else "is first"
        line = (
            f"- **{NAMES[problem]}**: {label_of(first, problem)} {won}, {gap} % above the optimum."
        )
        near = [m for m in others if standing(numbers, problem, m) in ("equivalent", "open")]
        if near:
            names = ", ".join(label_of(m, problem) for m in near)
            line += f" Not shown to be behind: {names}."
        lines.append(line)
    return "\n".join(lines)


def brief(n: Number) -> str:
    """Value and interval, in two digits or all before the point, on one line."""
    value, low, high = (digits(x) for x in (n.value, n.low, n.high))
    text = value if n.low == n.high or np.isnan(n.low) else f"{value} [{low}, {high}]"
    return text.replace(" ", "\N{NO-BREAK SPACE}").replace("-", "\N{MINUS SIGN}")


def digits(x: float) -> str:
    """Two digits, or all before the point; what is below a thousandth is 0."""
    return f"{x:.0f}" if abs(x) >= 10 else f"{round(x, 3) + 0:.2g}"
