"""The measures of study `np_protocol`, and its null data: one run on disjoint sets of splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from math import log
from typing import Any

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.curves import FEASIBLE, jitter, oscillation, over_limit
from papers.kit.numbers import Number, exact, mean, measured, share
from papers.kit.study import Params, Traces

START = log(2)  # f and g at w = 0
MERIT = 4.0  # the weight of the excess of g in `merit`, more than every multiplier
EARLY = 50  # rounds
SLACK = 0.05  # of the fall from the start: what counts as no difference
LEVEL_SLACK = 1.25  # the earlier rule's slack of C10, a factor on the level
PARTS = 5  # into which the splits of a run are divided for null data


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Measures of every run, right penalties and sharpnesses, spreads, and null data."""
    tolerance = float(p["tolerance"])
    judged = {name: t for name, t in traces.items() if not name.startswith("tuning_")}
    numbers: dict[str, Number] = {}
    for name, trace in judged.items():
        numbers |= measures(name, trace, tolerance)
    for k, part in enumerate(disjoint(judged["hard"])):
        numbers |= measures(f"null{k}", part, tolerance)
    for run in ("hard", "soft", *runs_of("penalty_rho", p["rhos"])):
        numbers[f"{run}.of_three"] = share_of_threes(judged[run], tolerance)
    numbers |= tuned_steps(traces, p, tolerance)
    numbers |= right(judged, p)
    return numbers | spreads(judged, p)


def runs_of(start: str, values: Iterable[float]) -> tuple[str, ...]:
    """The names of the runs of a sweep."""
    return tuple(f"{start}{x:g}" for x in values)


def measures(name: str, trace: Trace, tolerance: float) -> dict[str, Number]:
    """Late values and falls of one run, and its course where every round was evaluated."""
    found: dict[str, Any] = {
        "f": lambda t: t.late("f"),
        "g": lambda t: t.late("g"),
        "f_fall": lambda t: START - t.late("f"),
        "g_fall": lambda t: START - t.late("g"),
        "infeasible": (lambda t: t.late("g") > FEASIBLE * tolerance, "of splits"),
    }
    if trace.rounds[1] == 1:
        found |= {
            "oscillation": (oscillation, "1e-3"),
            "scatter": (lambda t: jitter(t, t.rounds[-1] // 5), "1e-3"),
            "merit": lambda t: over_limit(t, tolerance, MERIT).mean(1),
            "early": lambda t: over_limit(t, tolerance, 1.0)[:, :EARLY].mean(1),
        }
    return measured({name: trace}, found)


def disjoint(trace: Trace) -> list[Trace]:
    """A run on disjoint sets of its splits, equal in size: between them there is no effect."""
    size = len(trace.seeds) // PARTS
    return [
        some_splits(trace, slice(k * size, (k + 1) * size)) for k in range(PARTS if size else 0)
    ]


def some_splits(trace: Trace, rows: slice) -> Trace:
    """A run on some of its splits."""
    metrics = {name: x[rows] for name, x in trace.metrics.items()}
    return replace(
        trace, metrics=metrics, info={}, seeds=trace.seeds[rows], state=None, output=None
    )


def share_of_threes(trace: Trace, tolerance: float) -> Number:
    """The share of all choices of three splits whose mean late g is feasible."""
    late = trace.late("g")
    choices = np.array([*combinations(range(len(late)), min(3, len(late)))])
    feasible = late[choices].mean(1) <= FEASIBLE * tolerance
    return exact(feasible.mean(), "of means over three splits")


def tuned_steps(traces: Traces, p: Params, tolerance: float) -> dict[str, Number]:
    """The step that the tuning splits pick for each penalty, by the rule that the paper's runs had.

    It is the step with the smallest late f among those with a feasible mean late g, and with the
    smallest late g where none is feasible.
    """
    found: dict[str, Number] = {}
    for rho in p["rhos"]:
        tried = {x: traces[f"tuning_rho{rho:g}_lr{x:g}"] for x in p["lrs"]}
        feasible = {x: t for x, t in tried.items() if t.late("g").mean() <= FEASIBLE * tolerance}
        measure = "f" if feasible else "g"
        best = min(feasible or tried, key=lambda x: float(tried[x].late(measure).mean()))
        found[f"tuning_rho{rho:g}.lr"] = exact(best)
    return found


def right(traces: Traces, p: Params) -> dict[str, Number]:
    """On which splits a penalty, or a sharpness, is right: feasible, and as good as soft FedSGM.

    `right` allows a late f that is above by a share of the fall from the start; `right_level`
    allows a factor.
    """
    soft = traces["soft"].late("f")
    bounds = {"right": soft + SLACK * (START - soft), "right_level": LEVEL_SLACK * soft}
    groups = {
        "penalty": runs_of("penalty_rho", p["rhos"]),
        "beta": ("soft", *runs_of("soft_beta", p["betas"])),
    }
    found: dict[str, Number] = {}
    for (key, bound), (group, names) in [(b, g) for b in bounds.items() for g in groups.items()]:
        flags = {name: is_right(traces[name], bound, p) for name in names}
        found |= {f"{name}.{key}": share(x, "of splits") for name, x in flags.items()}
        found[f"{group}.{key}"] = mean(np.mean([*flags.values()], axis=0), f"of {group} values")
    return found


def is_right(trace: Trace, bound: Array, p: Params) -> Array:
    """On which splits a run ends feasible with a late f within the bound."""
    feasible = trace.late("g") <= FEASIBLE * float(p["tolerance"])
    return np.asarray(feasible & (trace.late("f") <= bound))


def spreads(traces: Traces, p: Params) -> dict[str, Number]:
    """How far late f and g move along the grid of sharpnesses, and of penalties.

    The penalties are those of the upper part of the grid, a factor 200 from end to end as the
    sharpnesses. `spread_half0` and `spread_half1` are of disjoint halves of the splits.
    """
    rhos = [rho for rho in p["rhos"] if rho >= max(p["rhos"]) / 200]
    grids = {
        "beta": ("soft", *runs_of("soft_beta", p["betas"])),
        "rho": runs_of("penalty_rho", rhos),
    }
    half = len(traces["soft"].seeds) // 2
    sets: Mapping[str, slice] = {
        "spread": slice(None),
        "spread_half0": slice(half),
        "spread_half1": slice(half, 2 * half),
    }
    found: dict[str, Number] = {}
    for name, rows in sets.items():
        for knob, names in grids.items():
            for k in "fg":
                late = np.array([traces[n].late(k) for n in names])
                found[f"{name}.{knob}_{k}"] = mean(np.ptp(late, axis=0)[rows])
    return found
