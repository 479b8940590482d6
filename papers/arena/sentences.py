"""Sentences of the arena's page, all made from its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from papers.arena.methods import METHODS, label_of
from papers.arena.problems import NAMES
from papers.arena.report import Numbers, Place, brief, digits, labels, listed, problems
from papers.arena.rules import BUDGETS, PLACES
from papers.kit.health import Health

OTHERS = {
    "equivalent": "Equivalent to it, within 1 %",
    "open": "No clear difference from it",
    "behind": "Shown to be behind, by {} to {} %",
    "unclear": "Not decided whether they keep the constraint",
    "violates": "Shown to violate",
}
TOP = 3  # methods that a sentence names as the nearest


def verdicts(numbers: Numbers, problem: str) -> str:
    """Who wins on a problem under both budgets, last iterate and average, as a list."""
    lines = []
    for budget, text in BUDGETS.items():
        lines.append(f"- **At {text}** {verdict(Place(numbers, problem, budget))}")
        mean = Place(numbers, problem, f"{budget}_mean")
        lines.append(f"  Of the averages {opening(mean)}")
    return "\n".join(lines)


def opening(at: Place) -> str:
    """Who is first, or that nobody is."""
    first = at.first()
    if first is None:
        return "no method is shown to keep the constraint, so there is no first."
    gap, violation = (brief(at.of(first, k)) for k in ("test_gap", "test_excess"))
    won = "wins" if at.standing(first) == "winner" else "is first"
    return (
        f"{label_of(first, at.problem)} {won}: its test objective is above the optimum's by "
        f"{gap} %, its violation is {violation} %."
    )


def verdict(at: Place) -> str:
    """Who is first, who is equivalent, behind or undecided, who violates, who is nearest."""
    line = opening(at)
    for kind, text in OTHERS.items():
        if methods := at.methods(kind):
            if kind == "behind":
                by = [at.of(m, "behind").value for m in methods]
                text = text.format(digits(min(by)), digits(max(by)))
            line += f" {text}: {labels(methods, at.problem)}."
    near = [f"{label_of(m, at.problem)} ({brief(at.of(m, 'off'))} %)" for m in at.nearest()[:TOP]]
    return f"{line} Nearest to the optimum on the training rows: {listed(near)}."


def in_short(numbers: Numbers) -> str:
    """The page in a few sentences."""
    found = problems(numbers)
    if not found:
        return "In short: nothing was run."
    parts = [firsts(numbers, found, budget) for budget in BUDGETS]
    return " ".join(["In short:", *parts, tied(numbers, found), never(numbers, found)]).rstrip()


def firsts(numbers: Numbers, found: Sequence[str], budget: str) -> str:
    """Who wins or is first on which problems under a budget."""
    where: dict[str, list[str]] = {}
    for problem in found:
        at = Place(numbers, problem, budget)
        first = at.first()
        name = "nobody" if first is None else label_of(first, problem)
        won = first is not None and at.standing(first) == "winner"
        where.setdefault(name, []).append(NAMES[problem] + (" (wins)" if won else ""))
    told = "; ".join(f"{name} on {listed(names)}" for name, names in where.items())
    return f"Best at {BUDGETS[budget]} among the methods that keep the constraint: {told}."


def tied(numbers: Numbers, found: Sequence[str]) -> str:
    """How many of all comparisons with the first are decided, and how."""
    kinds = ("behind", "equivalent", "open")
    count = dict.fromkeys(kinds, 0)
    for problem in found:
        at = Place(numbers, problem)
        for kind in kinds:
            count[kind] += len(at.methods(kind))
    total = sum(count.values())
    if not total:
        return ""
    return (
        f"Of {total} comparisons with a first at equal gradients, {count['behind']} show the other "
        f"method behind, {count['equivalent']} show it equivalent, {count['open']} decide nothing."
    )


def never(numbers: Numbers, found: Sequence[str]) -> str:
    """Who keeps the constraint wherever it takes part, and who is shown to violate somewhere."""
    keep, violate = [], []
    for method in METHODS:
        there = [p for p in found if Place(numbers, p).has(method, "standing")]
        stands = {Place(numbers, p).standing(method) for p in there}
        if there and not stands & {"unclear", "violates"}:
            keep.append(method)
        if "violates" in stands:
            violate.append(method)
    told = []
    if keep:
        told.append(f"Shown to keep it wherever they take part: {labels(keep)}.")
    if violate:
        told.append(f"Shown to violate it somewhere: {labels(violate)}.")
    return " ".join(told)


def healthy(numbers: Numbers, health: Mapping[str, Health]) -> str:
    """How many runs are healthy, and which of those that a contest is about are not."""
    ill = {name for name, found in health.items() if found.wrong}
    used = {
        Place(numbers, problem, place).run(method)
        for problem in problems(numbers)
        for place in PLACES
        for method in Place(numbers, problem, place).methods()
    }
    told = (
        f"Of {len(health)} runs {len(ill)} are not healthy: most of these have a step size that is "
        f"too large. Of the {len(used)} that were tuned for some contest "
    )
    bad = sorted(used & ill)
    if not bad:
        return told + "all are healthy."
    return told + f"{len(bad)} are not: {'; '.join(f'{n} ({health[n].wrong})' for n in bad)}."


def easiest(numbers: Numbers) -> str:
    """Which grids hold the largest and the smallest share of configurations near the tuned one."""
    shares = {}
    for method, entry in METHODS.items():
        keys = [f"{p}_{method}_tuning.near" for p in problems(numbers)]
        own = [numbers[k].value for k in keys if k in numbers]
        if own and entry.family != "none":
            shares[method] = float(np.mean(own))
    if len(shares) < 2:
        return ""
    ends = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    high, low = (f"{METHODS[m].label} ({shares[m]:.0f} %)" for m in ends)
    return (
        "The share of a grid that keeps the constraint on validation rows and comes within 10 % of "
        f"the tuned objective is largest for {high} and smallest for {low}."
    )
