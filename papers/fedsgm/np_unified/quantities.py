"""The quantities of study F: measures of every run, tuned settings, differences, predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import combinations
from math import log

import numpy as np
import pandas as pd
import torch

from fedlib import data
from fedlib.core import Problem, Trace
from fedlib.core.trace import Array
from fedlib.problems import neyman_pearson
from papers.fedsgm.curves import FEASIBLE, band, oscillation
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
START = log(2)  # f and g at w = 0
PARTS = 5  # into which the splits of a run are divided for null data
GOOD = 1.25  # a penalty is right if its late f is at most this times that of soft FedSGM
EARLY = 50  # first rounds, in which the runs still descend
WEIGHT = 4.0  # of the excess in the merit: more than every multiplier
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
    measured = {
        name: trace for name, trace in traces.items() if kit.labels_of(trace)["splits"] != "further"
    }
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


def measures(frame: pd.DataFrame, tolerance: float) -> pd.DataFrame:
    """Late values, feasibility, speed and oscillation of every run and seed.

    Those of single rounds are of runs that were evaluated in every round.
    """
    late = {name: per_seed(kit.late(frame, name), name, ["run"]) for name in ("f", "g", "g_max")}
    values = pd.DataFrame(late)
    values["f_fall"] = START - values["f"]
    values["g_fall"] = START - values["g"]
    values["infeasible"] = values["g"] > FEASIBLE * tolerance
    second_round = frame.groupby("run")["round"].transform(lambda rounds: rounds.unique()[1])
    rows = kit.starts(frame[second_round == 1], "g")
    rounds = rows.groupby("run")["round"].transform("max") + 1
    rows = rows.assign(
        excess=np.maximum(rows["g"] - tolerance, 0), violations=rows["g"] > tolerance
    )
    rows["merit"] = rows["f"] + WEIGHT * rows["excess"]
    rows["early"] = rows["f"] + rows["excess"]
    seeds = ["run", "seed"]
    half = rows[rows["round"] >= rounds // 2]
    values["violations"] = rows.groupby(seeds)["violations"].sum().astype(float)
    change = half.groupby(seeds)["g"].diff().abs()
    values["oscillation"] = 1e3 * change.groupby([half["run"], half["seed"]]).mean()
    last_fifth = rows[rows["round"] >= rounds - rounds // 5]
    values["scatter"] = 1e3 * last_fifth.groupby(seeds)["g"].std(ddof=0)
    values["excess"] = 1e3 * half.groupby(seeds)["excess"].mean()
    values["merit"] = rows.groupby(seeds)["merit"].mean()
    values["early"] = rows[rows["round"] < EARLY].groupby(seeds)["early"].mean()
    return values


def tuned(values: pd.DataFrame, tolerance: float, usual: kit.Defaults) -> pd.DataFrame:
    """Each method at its best step size: both ways of switching, and every penalty.

    The best has the smallest mean late f of those with mean late g of at most 1.05 times the
    tolerance; if there is none, the smallest mean late g. Training rows only.
    """
    sweeps = [along(values, ["lr"], usual, switch=mode).reset_index() for mode in MODES]
    with_penalty = along(values, ["rho", "lr"], usual, **PENALTY).reset_index()
    sweeps += [rows for _, rows in with_penalty.groupby("rho")]
    chosen = []
    for rows in sweeps:
        means = rows.groupby("lr")[["f", "g"]].mean()
        feasible = means[means["g"] <= FEASIBLE * tolerance]
        lr = feasible["f"].idxmin() if len(feasible) else means["g"].idxmin()
        chosen.append(rows[rows["lr"] == lr])
    best = pd.concat(chosen)
    soft = best[best["switch"] == "soft"].set_index("seed")
    bound = GOOD * best["seed"].map(soft["f"])
    feasible = best["g"] <= FEASIBLE * tolerance
    return best.assign(right=feasible & (best["f"] <= bound), setting="tuned")


def best_settings(best: pd.DataFrame) -> Iterator[Row]:
    """Each method at its best step size: the step size, late values, and how often it is right."""
    for labels in (["method", "switch", "setting"], ["method", "rho", "setting"]):
        rows = best.dropna(subset=labels).set_index([*labels, "seed"])
        yield from estimates(rows[["f", "g", "infeasible", "right"]], UNITS)
        for values, group in rows.groupby(level=labels):
            yield row("lr", exact(group["lr"].iloc[0]), **dict(zip(labels, values, strict=True)))


def right_penalties(best: pd.DataFrame) -> Row:
    """How many of the penalties are right on a split."""
    penalties = best[best["method"] == PENALTY["method"]]
    shares = penalties.groupby("seed")["right"].mean()
    return row("right", mean(shares, "of penalties"), setting="tuned", **PENALTY)


def sharper(values: pd.DataFrame, usual: kit.Defaults) -> list[Row]:
    """Late f and g of soft switching at other sharpnesses, minus those at the paper's."""
    rows = along(values, ["participants", "beta"], usual, method="FedSGM", switch="soft")
    late = rows[["f", "g"]].unstack("beta").stack(0)
    beta = usual["beta"]
    differences = late.drop(columns=[beta, LIMIT]).sub(late[beta], axis=0).stack().unstack(-2)
    return estimates(differences.add_suffix("_more"), switch="soft")


def limits(frame: pd.DataFrame, p: Params, usual: kit.Defaults) -> Iterator[Row]:
    """The largest difference in any round between hard switching and soft, very sharp switching."""
    index = ["participants", "round"]
    hard = along(frame, index, usual, method="FedSGM", switch="hard")[["f", "g"]]
    for beta in (LIMIT, max(p["betas"])):
        soft = along(frame, index, usual, method="FedSGM", switch="soft", beta=beta)[["f", "g"]]
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
    lr_used = float(p["lr"])
    slowest = float(min(p["lrs"]))
    for mode in MODES:
        settings = dict.fromkeys(
            [(participants, lr_used), (CLIENTS, lr_used), (participants, slowest)]
        )
        for participants, lr in settings:
            labels = {"switch": mode, "participants": participants, "lr": lr}
            run = along(values, [], usual, method="FedSGM", **labels)
            g = run["g"].to_numpy()
            means = np.array([*combinations(g, min(3, len(g)))]).mean(1)
            feasible = exact((means <= FEASIBLE * tolerance).mean(), "of means over three seeds")
            yield row("of_three", feasible, **labels)


def spreads(values: pd.DataFrame, p: Params, usual: kit.Defaults) -> Iterator[Row]:
    """How far late f and g move along a grid of sharpnesses, and of penalties, at one step size.

    The penalties are those of the upper part of the grid: from end to end a factor 200, as the
    sharpnesses.
    """
    soft = along(values, ["beta"], usual, method="FedSGM", switch="soft")
    soft = soft[soft.index.get_level_values("beta") < LIMIT]
    penalty = along(values, ["rho"], usual, **PENALTY)
    penalty = penalty[penalty.index.get_level_values("rho") >= max(p["rhos"]) / SPREAD]
    for knob, rows in (("beta", soft), ("rho", penalty)):
        groups = rows[["f", "g"]].groupby(level="seed")
        spread = (groups.max() - groups.min()).add_prefix("spread_")
        yield from estimates(spread, knob=knob)
        half = len(spread) // 2
        for number in range(2):
            rows_of_half = spread.iloc[number * half : (number + 1) * half]
            yield from estimates(rows_of_half, knob=knob, half=number)


def null_data(by_run: pd.DataFrame) -> Iterator[Row]:
    """The measures of hard switching on disjoint sets of splits: between them is no effect."""
    hard = by_run.loc["hard"]
    size = len(hard) // PARTS
    if size == 0:
        return
    for part in range(PARTS):
        rows = hard.iloc[part * size : (part + 1) * size]
        for measure in ("f", "g", "merit", "early", "oscillation", "scatter"):
            yield row(measure, mean(rows[measure]), part=part)


def final_models(trace: Trace) -> list[tuple[Problem, torch.Tensor]]:
    """The problem and the final model of each seed."""
    table = data.breast_cancer()
    models = torch.as_tensor(trace.state, dtype=torch.float32)
    split = partial(neyman_pearson, table.X, table.y, clients=CLIENTS, train_fraction=0.8)
    return [(split(seed=seed), w) for seed, w in zip(trace.seeds, models, strict=True)]


def gradients(trace: Trace) -> list[Row]:
    """How skew the gradients of the clients are at the final models of a run."""
    per_split = []
    for problem, w in final_models(trace):
        objective, constraint = client_gradients(problem, w)
        norms = skewness(objective, constraint)
        cosine = torch.cosine_similarity(objective.mean(0), constraint.mean(0), dim=0)
        per_split.append(
            {
                "skewness_ratio": float(norms.local / norms.glob),
                "bound_to_difference": float(norms.bound / norms.difference),
                "cosine": float(cosine),
            }
        )
    seeds = pd.Index(trace.seeds, name="seed")
    return estimates(pd.DataFrame(per_split, index=seeds), switch="hard")


def predictions(
    values: pd.DataFrame, soft: Trace, tolerance: float, usual: kit.Defaults
) -> list[Row]:
    """P3: how often a fixed penalty is feasible just if it exceeds the multiplier of its split.

    The multiplier comes from the soft run with all clients, feasibility from the penalty run.
    """
    multipliers = [multiplier(problem, w) for problem, w in final_models(soft)]
    of_split = pd.Series(multipliers, pd.Index(soft.seeds, name="seed"))
    labels: Mapping[str, Label] = {**PENALTY, "participants": CLIENTS}
    late = along(values, ["rho"], usual, **labels)["g"].unstack("rho").loc[[*soft.seeds]]
    rho = late.columns.to_numpy()
    feasible = late <= FEASIBLE * tolerance
    ratio = 1 / of_split.to_numpy()[:, None] * rho
    hits = feasible == (ratio >= 1)
    clear = (ratio < 1 / 2) | (ratio > 2)
    count = clear.sum(axis=1)
    share = np.where(count > 0, (hits & clear).sum(axis=1) / np.maximum(count, 1), 1.0)
    numbers = {
        "predicted": mean(hits.mean(axis=1), "of penalties"),
        "predicted_clear": mean(share, "of penalties"),
        "feasible": mean(feasible.mean(axis=1), "of penalties"),
        "multiplier": mean(of_split),
    }
    return [row(name, number, **labels) for name, number in numbers.items()]


#: What may be less stable, by seed.
UNSTEADY: dict[str, Callable[[Trace], Array]] = {
    "f_change": lambda trace: oscillation(trace, "f"),
    "f_band": lambda trace: band(trace, "f"),
    "f_change_of_level": lambda trace: oscillation(trace, "f") / trace.late("f"),
    "f_band_of_level": lambda trace: band(trace, "f") / trace.late("f"),
    "g_change": oscillation,
}


def less_stable(traces: Traces, usual: kit.Defaults) -> Iterator[Row]:
    """By each measure, the share of open settings in which beta = 20 is less stable than 40.

    Null data are beta = 40 on two disjoint halves of the seeds.
    """
    larger = of("low") > of("high")
    for name, measure in UNSTEADY.items():
        states: list[State] = []
        null: list[State] = []
        for start in open_starts():
            runs = (run_of(traces, usual, switch="soft", beta=beta, **start) for beta in OPEN_BETAS)
            low, high = (measure(run) for run in runs)
            half = len(high) // 2
            halves = {"low": mean(high[:half]), "high": mean(high[half : 2 * half])}
            states.append(larger.holds({"low": mean(low), "high": mean(high)}))
            null.append(larger.holds(halves))
        yield row(f"less_stable_{name}", share_of(states))
        yield row(f"less_stable_{name}_null", share_of(null))
