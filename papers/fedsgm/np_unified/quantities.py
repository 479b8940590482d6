"""The quantities of study F: measures of every run, tuned settings, differences, predictions."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations, product

import numpy as np
import torch
from numpy.typing import NDArray

from fedlib.core import Problem, Trace
from fedlib.core.trace import Array
from papers.fedsgm import curves
from papers.fedsgm.common import disjoint, without_splits
from papers.fedsgm.curves import FEASIBLE, START, band, halves, jitter, oscillation, over_limit
from papers.fedsgm.multiverse import shares
from papers.fedsgm.np_unified.runs import (
    CLIENTS,
    LIMIT,
    MODES,
    OPEN_BETAS,
    PENALTY,
    defaults,
    open_starts,
    problem,
)
from papers.fedsgm.skewness import client_gradients, final_models, multiplier, skewness
from papers.kit.numbers import Number, exact, mean, share
from papers.kit.quantities import (
    Defaults,
    Labels,
    Quantities,
    Row,
    labels_of,
    name_of,
    of_runs,
    row,
    run_of,
    sweep,
)
from papers.kit.rules import State, of
from papers.kit.study import Params, Traces

SPREAD = 200  # the largest penalty over the smallest whose spread is set against that of beta
PARTS = 5  # into which the splits of a run are divided for null data
GOOD = 1.25  # a penalty is right if its late f is at most this times that of soft FedSGM
EARLY = 50  # first rounds, in which the runs still descend
WEIGHT = 4.0  # of the excess in the merit: more than every multiplier
#: Runs along a grid by the value there; the grids of sharpnesses and of penalties by their label.
Grids = Mapping[str, Mapping[float, Trace]]


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities of some runs."""
    measured = without_splits(traces, "further")  # which serve open settings alone
    tolerance = p["tolerance"]
    usual = defaults(p)
    betas = sweep(measured, usual, "beta", switch="soft")
    grids = {
        "beta": {beta: run for beta, run in betas.items() if beta < LIMIT},
        "rho": sweep(measured, usual, "rho", **PENALTY),
    }
    tables = [
        of_runs(measured, partial(measures, tolerance, "seeds")),
        of_runs(measured, partial(violated, tolerance)),
        best_settings(at_best_steps(measured, usual, tolerance), tolerance),
        sharper(measured, p),
        limits(measured, p),
        means_of_three(measured, p),
        spreads(grids),
        null_data(measured["hard"], tolerance),
        gradients(measured["hard"]),
        predictions(measured, usual, tolerance),
    ]
    if p["many"]:
        tables.append(less_stable(traces, usual))
    return Quantities.of(tables, usual)


def every_round(trace: Trace) -> bool:
    """Whether a run was evaluated in every round."""
    return bool(trace.rounds[1] == 1)


def measures(tolerance: float, counted: str, trace: Trace) -> dict[str, Number]:
    """Late values and falls of one run, and its course where every round was evaluated.

    `counted` is what a seed is called.
    """
    f = trace.late("f")
    g = trace.late("g")
    numbers = {
        "f": mean(f),
        "g": mean(g),
        "f_fall": mean(START - f),
        "g_fall": mean(START - g),
        "infeasible": share(g > FEASIBLE * tolerance, f"of {counted}"),
    }
    if every_round(trace):
        numbers |= course(tolerance, trace)
    return numbers


def course(tolerance: float, trace: Trace) -> dict[str, Number]:
    """What is read off single rounds: steadiness, and progress that counts violations."""
    merit = over_limit(trace, tolerance, WEIGHT)
    early = over_limit(trace, tolerance, 1.0)[:, :EARLY]
    return {
        "oscillation": mean(oscillation(trace), "1e-3"),
        "scatter": mean(jitter(trace, trace.rounds[-1] // 5), "1e-3"),
        "merit": mean(merit.mean(1)),
        "early": mean(early.mean(1)),
    }


def violated(tolerance: float, trace: Trace) -> dict[str, Number]:
    """The number of violating rounds, and the late constraint of the worst client."""
    numbers = {}
    if every_round(trace):
        numbers["violations"] = mean(curves.violations(trace, tolerance), "rounds")
    if "g_max" in trace.metrics:
        numbers["g_max"] = mean(trace.late("g_max"))
    return numbers


def null_data(trace: Trace, tolerance: float) -> Iterator[Row]:
    """The measures of a run on disjoint sets of its splits: between them there is no effect."""
    for number, subset in enumerate(disjoint(trace, PARTS)):
        late = {"f": mean(subset.late("f")), "g": mean(subset.late("g"))}
        for name, measured in {**late, **course(tolerance, subset)}.items():
            yield row(name, measured, part=number)


def at_best_steps(traces: Traces, usual: Defaults, tolerance: float) -> dict[str, Trace]:
    """Each method at its best step size, by run: both ways of switching, and every penalty."""
    kinds: list[Labels] = [{"switch": mode} for mode in MODES]
    kinds += [{**PENALTY, "rho": rho} for rho in sweep(traces, usual, "rho", **PENALTY)]
    best = {}
    for labels in kinds:
        steps = sweep(traces, usual, "lr", **labels)
        step = curves.tuned(steps, tolerance)
        best[name_of({**labels, "lr": step}, usual)] = steps[step]
    return best


def best_settings(best: Traces, tolerance: float) -> Iterator[Row]:
    """Each method at its best step size: the step size, late values, and how often it is right."""
    soft = next(run for run in best.values() if labels_of(run).get("switch") == "soft")
    bound = GOOD * soft.late("f")
    flags = []
    for trace in best.values():
        labels = {k: x for k, x in labels_of(trace).items() if k in ("method", "switch", "rho")}
        labels["setting"] = "tuned"
        late = measures(tolerance, "seeds", trace)
        for name in ("f", "g", "infeasible"):
            yield row(name, late[name], **labels)
        right = is_right(trace, bound, tolerance)
        yield row("right", share(right, "of splits"), **labels)
        yield row("lr", exact(float(labels_of(trace)["lr"])), **labels)
        if "rho" in labels:
            flags.append(right)
    yield row(
        "right",
        mean(np.mean(flags, axis=0), "of penalties"),
        setting="tuned",
        **PENALTY,
    )


def is_right(trace: Trace, bound: Array, tolerance: float) -> Array:
    """On which splits a run ends feasible with a late f within the bound."""
    feasible = trace.late("g") <= FEASIBLE * tolerance
    return np.asarray(feasible & (trace.late("f") <= bound))


def sharper(traces: Traces, p: Params) -> Iterator[Row]:
    """Late f and g of soft switching at other sharpnesses, minus those at the paper's."""
    for participants in {p["participants"], CLIENTS}:
        labels = {"switch": "soft", "participants": participants}
        runs = sweep(traces, defaults(p), "beta", **labels)
        usual = runs[p["beta"]]
        for beta, run in runs.items():
            if beta not in (p["beta"], LIMIT):
                for curve in ("f", "g"):
                    difference = run.late(curve) - usual.late(curve)
                    yield row(f"{curve}_more", mean(difference), **labels, beta=beta)


def limits(traces: Traces, p: Params) -> Iterator[Row]:
    """The largest difference in any round between hard switching and soft, very sharp switching."""
    for participants in {p["participants"], CLIENTS}:
        run = partial(run_of, traces, defaults(p), participants=participants)
        hard = run(switch="hard").metrics
        for beta in (LIMIT, max(p["betas"])):
            labels = {"switch": "soft", "beta": beta}
            soft = run(**labels).metrics
            gaps = [np.abs(soft[curve] - hard[curve]).max(1) for curve in ("f", "g")]
            gap = np.max(gaps, axis=0)
            yield row("gap", mean(gap), **labels, participants=participants)


def means_of_three(traces: Traces, p: Params) -> Iterator[Row]:
    """The share of all choices of three seeds whose mean late g is feasible.

    At the paper's setting, with all clients, and at the smallest step size.
    """
    participants = p["participants"]
    slowest = min(p["lrs"])
    settings = {(participants, p["lr"]), (CLIENTS, p["lr"]), (participants, slowest)}
    for mode, (count, lr) in product(MODES, settings):
        labels = {"switch": mode, "participants": count, "lr": lr}
        run = run_of(traces, defaults(p), **labels)
        share_of_feasible = share_of_threes(run, p["tolerance"])
        yield row("of_three", exact(share_of_feasible, "of means over three seeds"), **labels)


def share_of_threes(trace: Trace, tolerance: float) -> float:
    """The share of all choices of three seeds whose mean late g is feasible."""
    g = trace.late("g")
    choices = np.array([*combinations(g, min(3, len(g)))])
    feasible = choices.mean(1) <= FEASIBLE * tolerance
    return float(feasible.mean())


def spreads(grids: Grids) -> Iterator[Row]:
    """How far late f and g move along the grid of sharpnesses, and of penalties.

    The penalties are those of the upper part of the grid, a factor 200 from end to end as the
    sharpnesses. Label `half` is of disjoint halves of the splits.
    """
    for knob, runs in grids.items():
        smallest = max(runs) / SPREAD if knob == "rho" else 0.0
        upper = [trace for x, trace in runs.items() if x >= smallest]
        for curve in ("f", "g"):
            spread = np.ptp([trace.late(curve) for trace in upper], axis=0)
            yield row(f"spread_{curve}", mean(spread), knob=knob)
            for number, half in enumerate(halves(spread)):
                yield row(f"spread_{curve}", mean(half), knob=knob, half=number)


def gradients(trace: Trace) -> Iterator[Row]:
    """How skew the gradients of the clients are at the final models of a run."""
    values = [gradients_at(task, w) for task, w in final_models(trace, problem)]
    for name in values[0]:
        yield row(name, mean([of_seed[name] for of_seed in values]), switch="hard")


def gradients_at(task: Problem, w: torch.Tensor) -> dict[str, float]:
    """How skew the gradients of the clients are at one model."""
    objective, constraint = client_gradients(task, w)
    norms = skewness(objective, constraint)
    cosine = torch.cosine_similarity(objective.mean(0), constraint.mean(0), dim=0)
    return {
        "skewness_ratio": float(norms.local / norms.glob),
        "bound_to_difference": float(norms.bound / norms.difference),
        "cosine": float(cosine),
    }


def predictions(traces: Traces, usual: Defaults, tolerance: float) -> list[Row]:
    """P3: how often a fixed penalty is feasible just if it exceeds the multiplier of its split.

    The multiplier comes from the soft run with all clients, feasibility from the penalty run.
    """
    soft = run_of(traces, usual, switch="soft", participants=CLIENTS)
    multipliers = np.array([multiplier(task, w) for task, w in final_models(soft, problem)])
    labels: Labels = {**PENALTY, "participants": CLIENTS}
    penalties = sweep(traces, usual, "rho", **labels)
    late_g = np.stack([trace.late("g") for trace in penalties.values()], axis=1)  # [S, rho]
    feasible = late_g <= FEASIBLE * tolerance
    ratio = np.array([*penalties]) / multipliers[:, None]
    hits = feasible == (ratio >= 1)
    shares = {
        "predicted": hits.mean(1),
        "predicted_clear": share_of_clear(hits, ratio),
        "feasible": feasible.mean(1),
    }
    return [row(name, mean(x, "of penalties"), **labels) for name, x in shares.items()]


def share_of_clear(hits: NDArray[np.bool_], ratio: Array) -> Array:
    """Per split the share of hits among the penalties a factor 2 off the multiplier; 1 of none."""
    clear = (ratio < 1 / 2) | (ratio > 2)
    clear_hits = (hits & clear).sum(1)
    count = clear.sum(1)
    return np.where(count > 0, clear_hits / np.maximum(count, 1), 1.0)


def change_of_level(trace: Trace) -> Array:
    """The oscillation of f over its late value, by seed."""
    return oscillation(trace, "f") / trace.late("f")


def band_of_level(trace: Trace) -> Array:
    """The distance of f from the median curve over its late value, by seed."""
    return band(trace, "f") / trace.late("f")


#: What may be less stable, by seed.
UNSTEADY: dict[str, Callable[[Trace], Array]] = {
    "f_change": partial(oscillation, name="f"),
    "f_band": partial(band, name="f"),
    "f_change_of_level": change_of_level,
    "f_band_of_level": band_of_level,
    "g_change": oscillation,
}


def less_stable(traces: Traces, usual: Defaults) -> Iterator[Row]:
    """By each measure, the share of open settings in which beta = 20 is less stable than 40.

    Null data are beta = 40 on two disjoint halves of the seeds.
    """
    for name, measure in UNSTEADY.items():
        settings = []
        for start in open_starts():
            gentle, usual_run = (
                measure(run_of(traces, usual, switch="soft", beta=beta, **start))
                for beta in OPEN_BETAS
            )
            null = is_larger(*halves(usual_run))
            settings.append((is_larger(gentle, usual_run), null))
        yield from shares(settings, f"less_stable_{name}", f"less_stable_{name}_null")


def is_larger(values: Array, smaller: Array) -> State:
    """Whether the mean of some values is larger; None if the seeds leave it open."""
    rule = of("excess") > 0
    return rule.holds({"excess": mean(values - smaller)})
