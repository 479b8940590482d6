"""The quantities of study F: measures of every run, tuned settings, differences, predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import combinations, product

import numpy as np
import pandas as pd
import torch

from fedlib import data
from fedlib.core import Problem, Trace
from fedlib.core.trace import Array
from fedlib.problems import neyman_pearson
from papers.fedsgm.curves import FEASIBLE, START, band, halves, oscillation
from papers.fedsgm.multiverse import share_of
from papers.fedsgm.np_unified.runs import CLIENTS, LIMIT, MODES, OPEN_BETAS, defaults, open_starts
from papers.fedsgm.skewness import client_gradients, multiplier, skewness
from papers.kit import quantities as kit
from papers.kit.numbers import exact, mean
from papers.kit.quantities import (
    Label,
    Quantities,
    Row,
    along,
    estimates,
    per_seed,
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
SEEDS = ["run", "seed"]
PENALTY: dict[str, Label] = {"method": "Penalty-FedAvg"}
UNITS = {
    "infeasible": "of seeds",
    "violations": "rounds",
    "oscillation": "1e-3",
    "scatter": "1e-3",
    "excess": "1e-3",
    "right": "of splits",
}


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities of some runs."""
    measured = {name: trace for name, trace in traces.items() if is_measured(trace)}
    frame = kit.curves(measured)
    tolerance = float(p["tolerance"])
    usual = defaults(p)
    by_run = measures(frame, tolerance)
    values = kit.with_labels(by_run, measured)
    best = tuned(values, tolerance, usual)
    with_all = sweep(measured, usual, "participants", method="FedSGM", switch="soft")[CLIENTS]
    tables: list[Iterable[Row]] = [
        kit.labelled(estimates(by_run, UNITS), measured),
        best_settings(best),
        sharper(values, usual),
        limits(frame, p, usual),
        means_of_three(values, p, tolerance, usual),
        [right_penalties(best)],
        spreads(values, p, usual),
        null_data(by_run),
        gradients(measured["hard"]),
        predictions(values, with_all, tolerance, usual),
    ]
    if p["many"]:
        tables.append(less_stable(traces, usual))
    return Quantities.of(tables, usual)


def is_measured(trace: Trace) -> bool:
    """Whether a run is measured by itself: those on further splits serve open settings alone."""
    return kit.labels_of(trace)["splits"] != "further"


def measures(frame: pd.DataFrame, tolerance: float) -> pd.DataFrame:
    """Late values, feasibility, speed and oscillation of every run and seed.

    Those of single rounds are of runs that were evaluated in every round.
    """
    late = {name: per_seed(kit.late(frame, name), name, ["run"]) for name in ("f", "g", "g_max")}
    values = pd.DataFrame(late)
    values["f_fall"] = START - values["f"]
    values["g_fall"] = START - values["g"]
    values["infeasible"] = values["g"] > FEASIBLE * tolerance
    return values.join(course(every_round(frame), tolerance))


def every_round(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the runs that were evaluated in every round, without the final models."""
    second_round = frame.groupby("run")["round"].transform(lambda rounds: rounds.unique()[1])
    return kit.starts(frame[second_round == 1], "g")


def course(rows: pd.DataFrame, tolerance: float) -> pd.DataFrame:
    """The measures that are read off single rounds, of every run and seed."""
    excess = np.maximum(rows["g"] - tolerance, 0)
    rows = rows.assign(
        violation=rows["g"] > tolerance,
        excess=excess,
        merit=rows["f"] + WEIGHT * excess,
        early=rows["f"] + excess,
    )
    rounds = rows.groupby("run")["round"].transform("max") + 1
    second_half = rows[rows["round"] >= rounds // 2]
    change = second_half.groupby(SEEDS)["g"].diff().abs()
    second_half = second_half.assign(change=change)
    last_fifth = rows[rows["round"] >= rounds - rounds // 5]
    first_rounds = rows[rows["round"] < EARLY]

    of_all = rows.groupby(SEEDS)
    of_half = second_half.groupby(SEEDS)
    of_fifth = last_fifth.groupby(SEEDS)
    of_first = first_rounds.groupby(SEEDS)
    measured = {
        "violations": of_all["violation"].sum().astype(float),
        "oscillation": 1e3 * of_half["change"].mean(),
        "scatter": 1e3 * of_fifth["g"].std(ddof=0),
        "excess": 1e3 * of_half["excess"].mean(),
        "merit": of_all["merit"].mean(),
        "early": of_first["early"].mean(),
    }
    return pd.DataFrame(measured)


def tuned(values: pd.DataFrame, tolerance: float, usual: kit.Defaults) -> pd.DataFrame:
    """Each method at its best step size: both ways of switching, and every penalty."""
    grids = [along(values, ["lr"], usual, switch=mode).reset_index() for mode in MODES]
    penalties = along(values, ["rho", "lr"], usual, **PENALTY).reset_index()
    grids += [grid for _, grid in penalties.groupby("rho")]
    best = pd.concat([at_best_step(grid, tolerance) for grid in grids])
    soft = best[best["switch"] == "soft"].set_index("seed")
    bound = GOOD * best["seed"].map(soft["f"])
    feasible = best["g"] <= FEASIBLE * tolerance
    right = feasible & (best["f"] <= bound)
    return best.assign(right=right, setting="tuned")


def at_best_step(grid: pd.DataFrame, tolerance: float) -> pd.DataFrame:
    """The rows of a grid of step sizes that belong to the best.

    The best has the smallest mean late f of those with mean late g of at most 1.05 times the
    tolerance; if there is none, the smallest mean late g. Training rows only.
    """
    means = grid.groupby("lr")[["f", "g"]].mean()
    feasible = means[means["g"] <= FEASIBLE * tolerance]
    best_step = means["g"].idxmin() if feasible.empty else feasible["f"].idxmin()
    return grid[grid["lr"] == best_step]


def best_settings(best: pd.DataFrame) -> Iterator[Row]:
    """Each method at its best step size: the step size, late values, and how often it is right."""
    for labels in (["method", "switch", "setting"], ["method", "rho", "setting"]):
        rows = best.dropna(subset=labels).set_index([*labels, "seed"])
        late = rows[["f", "g", "infeasible", "right"]]
        yield from estimates(late, UNITS)
        best_steps = rows.groupby(level=labels)["lr"].first()
        for setting, step in best_steps.items():
            names = dict(zip(labels, setting, strict=True))
            yield row("lr", exact(step), **names)


def right_penalties(best: pd.DataFrame) -> Row:
    """How many of the penalties are right on a split."""
    penalties = best[best["method"] == PENALTY["method"]]
    right = penalties.groupby("seed")["right"].mean()
    share = mean(right, "of penalties")
    return row("right", share, setting="tuned", **PENALTY)


def sharper(values: pd.DataFrame, usual: kit.Defaults) -> list[Row]:
    """Late f and g of soft switching at other sharpnesses, minus those at the paper's."""
    beta = usual["beta"]
    rows = along(values, ["participants", "beta"], usual, method="FedSGM", switch="soft")
    by_beta = rows[["f", "g"]].unstack("beta").stack(0)
    others = by_beta.drop(columns=[beta, LIMIT])
    differences = others.sub(by_beta[beta], axis=0)
    by_measure = differences.stack().unstack(-2)
    return estimates(by_measure.add_suffix("_more"), switch="soft")


def limits(frame: pd.DataFrame, p: Params, usual: kit.Defaults) -> Iterator[Row]:
    """The largest difference in any round between hard switching and soft, very sharp switching."""
    rounds = partial(along, frame, ["participants", "round"], usual, method="FedSGM")
    hard = rounds(switch="hard")[["f", "g"]]
    for beta in (LIMIT, max(p["betas"])):
        soft = rounds(switch="soft", beta=beta)[["f", "g"]]
        apart = (soft - hard).abs().max(axis=1).dropna()
        gap = apart.groupby(level=["participants", "seed"]).max()
        yield from estimates(gap.to_frame("gap"), switch="soft", beta=beta)


def means_of_three(
    values: pd.DataFrame, p: Params, tolerance: float, usual: kit.Defaults
) -> Iterator[Row]:
    """The share of all choices of three seeds whose mean late g is feasible.

    At the paper's setting, with all clients, and at the smallest step size.
    """
    participants = p["participants"]
    lr = float(p["lr"])
    slowest = float(min(p["lrs"]))
    settings = dict.fromkeys([(participants, lr), (CLIENTS, lr), (participants, slowest)])
    for mode, (participants, lr) in product(MODES, settings):
        labels = {"switch": mode, "participants": participants, "lr": lr}
        run = along(values, [], usual, method="FedSGM", **labels)
        share = share_of_threes(run["g"].to_numpy(), tolerance)
        yield row("of_three", exact(share, "of means over three seeds"), **labels)


def share_of_threes(g: Array, tolerance: float) -> float:
    """The share of all choices of three values of g whose mean is feasible."""
    size = min(3, len(g))
    choices = np.array([*combinations(g, size)])
    feasible = choices.mean(1) <= FEASIBLE * tolerance
    return float(feasible.mean())


def spreads(values: pd.DataFrame, p: Params, usual: kit.Defaults) -> Iterator[Row]:
    """How far late f and g move along a grid of sharpnesses, and of penalties, at one step size.

    The penalties are those of the upper part of the grid: from end to end a factor 200, as the
    sharpnesses.
    """
    betas = along(values, ["beta"], usual, method="FedSGM", switch="soft")
    finite = betas.index.get_level_values("beta") < LIMIT
    rhos = along(values, ["rho"], usual, **PENALTY)
    large = rhos.index.get_level_values("rho") >= max(p["rhos"]) / SPREAD
    for knob, grid in {"beta": betas[finite], "rho": rhos[large]}.items():
        by_seed = grid[["f", "g"]].groupby(level="seed")
        spread = by_seed.max() - by_seed.min()
        spread = spread.add_prefix("spread_")
        yield from estimates(spread, knob=knob)
        for number, half in enumerate(halves(spread)):
            yield from estimates(half, knob=knob, half=number)


def null_data(by_run: pd.DataFrame) -> Iterator[Row]:
    """The measures of hard switching on disjoint sets of splits: between them is no effect."""
    hard = by_run.loc["hard"]
    size = len(hard) // PARTS
    if size == 0:
        return
    for part in range(PARTS):
        start = part * size
        splits = hard.iloc[start : start + size]
        for measure in ("f", "g", "merit", "early", "oscillation", "scatter"):
            yield row(measure, mean(splits[measure]), part=part)


def final_models(trace: Trace) -> list[tuple[Problem, torch.Tensor]]:
    """The problem and the final model of each seed."""
    table = data.breast_cancer()
    models = torch.as_tensor(trace.state, dtype=torch.float32)
    split = partial(neyman_pearson, table.X, table.y, clients=CLIENTS, train_fraction=0.8)
    return [(split(seed=seed), w) for seed, w in zip(trace.seeds, models, strict=True)]


def gradients(trace: Trace) -> list[Row]:
    """How skew the gradients of the clients are at the final models of a run."""
    rows = [gradients_at(problem, w) for problem, w in final_models(trace)]
    seeds = pd.Index(trace.seeds, name="seed")
    return estimates(pd.DataFrame(rows, index=seeds), switch="hard")


def gradients_at(problem: Problem, w: torch.Tensor) -> dict[str, float]:
    """How skew the gradients of the clients are at one model."""
    objective, constraint = client_gradients(problem, w)
    norms = skewness(objective, constraint)
    cosine = torch.cosine_similarity(objective.mean(0), constraint.mean(0), dim=0)
    return {
        "skewness_ratio": float(norms.local / norms.glob),
        "bound_to_difference": float(norms.bound / norms.difference),
        "cosine": float(cosine),
    }


def predictions(
    values: pd.DataFrame, soft: Trace, tolerance: float, usual: kit.Defaults
) -> list[Row]:
    """P3: how often a fixed penalty is feasible just if it exceeds the multiplier of its split.

    The multiplier comes from the soft run with all clients, feasibility from the penalty run.
    """
    multipliers = np.array([multiplier(problem, w) for problem, w in final_models(soft)])
    labels: Mapping[str, Label] = {**PENALTY, "participants": CLIENTS}
    late = along(values, ["rho"], usual, **labels)
    late_g = late["g"].unstack("rho").loc[[*soft.seeds]]
    feasible = late_g <= FEASIBLE * tolerance
    rho = late_g.columns.to_numpy()
    ratio = 1 / multipliers[:, None] * rho
    hits = feasible == (ratio >= 1)
    numbers = {
        "predicted": mean(hits.mean(axis=1), "of penalties"),
        "predicted_clear": mean(share_of_clear(hits, ratio), "of penalties"),
        "feasible": mean(feasible.mean(axis=1), "of penalties"),
        "multiplier": mean(multipliers),
    }
    return [row(name, number, **labels) for name, number in numbers.items()]


def share_of_clear(hits: pd.DataFrame, ratio: Array) -> Array:
    """Per split the share of hits among the penalties a factor 2 off the multiplier; 1 of none."""
    clear = (ratio < 1 / 2) | (ratio > 2)
    clear_hits = (hits & clear).sum(axis=1)
    count = clear.sum(axis=1)
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


def less_stable(traces: Traces, usual: kit.Defaults) -> Iterator[Row]:
    """By each measure, the share of open settings in which beta = 20 is less stable than 40.

    Null data are beta = 40 on two disjoint halves of the seeds.
    """
    for name, measure in UNSTEADY.items():
        states = []
        null_states = []
        for start in open_starts():
            low, high = (
                measure(run_of(traces, usual, switch="soft", beta=beta, **start))
                for beta in OPEN_BETAS
            )
            states.append(is_larger(low, high))
            null_states.append(is_larger(*halves(high)))
        yield row(f"less_stable_{name}", share_of(states))
        yield row(f"less_stable_{name}_null", share_of(null_states))


def is_larger(first: Array, second: Array) -> State:
    """Whether the mean of the first values is larger; None if the seeds leave it open."""
    rule = of("first") > of("second")
    return rule.holds({"first": mean(first), "second": mean(second)})
