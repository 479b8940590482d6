"""The table of the arena's page, made from its numbers."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from papers.arena.contest import STANDINGS
from papers.arena.methods import METHODS, form_of, label_of
from papers.arena.problems import NAMES
from papers.arena.rules import BUDGETS
from papers.kit.numbers import Number
from papers.kit.report import unbroken

Numbers = Mapping[str, Number]

WORDS = {"open": "not decided", "unclear": "violation not decided"}
FORMS = {"constraint": "constraint function", "objectives": "second objective", "set": "set"}


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


def standings(numbers: Numbers, problem: str, health: Mapping[str, str] = {}) -> pd.DataFrame:
    """All methods at equal gradients, the best first, and how they stand at equal bits."""
    rows = {}
    for method in ranked(numbers, problem):
        own = f"{problem}_{method}_grads"
        row = {"takes g as": FORMS[form_of(method, problem)]}
        for budget, text in BUDGETS.items():
            found = standing(numbers, problem, method, budget)
            row[text] = WORDS.get(found, found)
        for text, key in {"behind, %": "behind", "above optimum, %": "test_gap"}.items():
            row[text] = unbroken(numbers[f"{own}.{key}"]) if f"{own}.{key}" in numbers else ""
        row["violation, %"] = unbroken(numbers[f"{own}.test_excess"])
        run = f"{problem}_{method}_{numbers[f'{own}.config'].value:.0f}"
        if wrong := health.get(run):
            row["not healthy"] = wrong
        rows[label_of(method, problem)] = row
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")
