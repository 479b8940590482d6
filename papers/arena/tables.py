"""The tables of the arena: who takes part on a problem, and how each stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from papers.arena.methods import METHODS, form_of, grid, label_of
from papers.arena.problems import NAMES
from papers.arena.quantities import BUDGETS, STANDINGS
from papers.arena.runs import DEFAULTS
from papers.kit.quantities import Query, name_of
from papers.kit.rules import Numbers

if TYPE_CHECKING:
    import pandas as pd

WORDS = {"open": "not decided", "unclear": "violation not decided"}
FORMS = {"constraint": "constraint function", "objectives": "second objective", "set": "set"}
MEASURES = {"behind, %": "behind", "above optimum, %": "test_gap", "violation, %": "test_excess"}


def problems(numbers: Numbers) -> list[str]:
    """The problems on which somebody took part."""
    return [problem for problem in NAMES if ranked(numbers, problem)]


def query(
    measure: str,
    problem: str,
    method: str,
    budget: str = "grads",
) -> Query:
    """A quantity of a method."""
    return Query.of(measure, problem=problem, method=method, budget=budget)


def standing(
    numbers: Numbers,
    problem: str,
    method: str,
    budget: str = "grads",
) -> str:
    """How a method stands, one of `STANDINGS`."""
    number = numbers[query("standing", problem, method, budget)]
    return STANDINGS[int(number.value)]


def ranked(numbers: Numbers, problem: str) -> list[str]:
    """The methods on a problem, those that keep the constraint first, then by test objective."""
    keeping = STANDINGS[: STANDINGS.index("behind") + 1]

    def place(method: str) -> tuple[int, float]:
        word = standing(numbers, problem, method)
        group = 0 if word in keeping else STANDINGS.index(word)
        return group, numbers[query("test_gap", problem, method)].value

    present = [method for method in METHODS if query("standing", problem, method) in numbers]
    return sorted(present, key=place)


def on_edges(numbers: Numbers, count: int) -> tuple[int, int, int]:
    """How many chosen configurations have two parameters, lie on an edge, and in a corner.

    `count` is the number of configurations of every grid, as in `grid`.
    """
    at_ends = []
    for problem in problems(numbers):
        for method in ranked(numbers, problem):
            points = np.array(grid(METHODS[method], count), float)
            if len({*points[:, 1]}) < 2:
                continue
            config = int(numbers[query("config", problem, method)].value)
            point = points[config - 1]
            is_least = point == points.min(0)
            is_most = point == points.max(0)
            at_ends.append(is_least | is_most)
    edges = sum(at_end.any() for at_end in at_ends)
    corners = sum(at_end.all() for at_end in at_ends)
    return len(at_ends), int(edges), int(corners)


def table(numbers: Numbers, problem: str, health: Mapping[str, str] = {}) -> pd.DataFrame:
    """All methods at equal gradients, the best first, and how they stand at equal bits."""
    import pandas as pd

    from papers.kit.report import unbroken

    rows = {}
    for method in ranked(numbers, problem):
        row = {"takes g as": FORMS[form_of(method, problem)]}
        for budget, title in BUDGETS.items():
            word = standing(numbers, problem, method, budget)
            row[title] = WORDS.get(word, word)
        for title, measure in MEASURES.items():
            key = query(measure, problem, method)
            row[title] = unbroken(numbers[key]) if key in numbers else ""
        config = numbers[query("config", problem, method)].value
        run = name_of(
            {"problem": problem, "method": method, "config": config},
            DEFAULTS,
        )
        if health.get(run):
            row["not healthy"] = health[run]
        rows[label_of(method, problem)] = row
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")
