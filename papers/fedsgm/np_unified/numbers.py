"""The derived numbers of study F."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import torch

from fedlib import data
from fedlib.core import Problem, Trace
from fedlib.core.trace import Array
from fedlib.problems import neyman_pearson
from papers.fedsgm import multiverse
from papers.fedsgm.curves import (
    FEASIBLE,
    excess,
    jitter,
    oscillation,
    tuned,
    violations,
)
from papers.fedsgm.skewness import client_gradients, multiplier, skewness
from papers.kit.numbers import Number, exact, mean, measured, share
from papers.kit.study import Params, Traces

PENALTIES = 200  # the largest penalty over the smallest whose spread is set against that of beta
GOOD = 1.25  # a penalty is right if its late f is at most this times that of soft FedSGM


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Measures of every run, tuned settings, paired differences, skewness and prediction P3."""
    in_all = multiverse.unified(traces) if p["many"] else {}
    traces = {name: trace for name, trace in traces.items() if name not in multiverse.UNIFIED}
    tolerance = float(p["tolerance"])
    numbers: dict[str, Number] = in_all
    for name, trace in traces.items():
        numbers |= _measures(name, trace, tolerance)
    for group in ("", "_all"):
        hard, soft = traces[f"hard{group}"], traces[f"soft{group}"]
        for beta in p["betas"]:
            run = f"soft{group}_beta{beta:g}"
            for k in "fg":
                numbers[f"{run}.{k}_more"] = mean(traces[run].late(k) - soft.late(k))
        for key, beta in {"limit": 1e9, "control": max(p["betas"])}.items():
            sharp = traces[f"soft{group}_beta{beta:g}"]
            gaps = [np.abs(sharp.metrics[k] - hard.metrics[k]).max(1) for k in "fg"]
            numbers[f"{key}{group}.gap"] = mean(np.maximum(*gaps))
    starts = {f"penalty_rho{rho:g}": f"penalty_rho{rho:g}_" for rho in p["rhos"]}
    starts |= {f"{mode}_tuned": f"{mode}_lr" for mode in ("hard", "soft")}
    best = {}
    for name, start in starts.items():
        names = [n for n in traces if n == start.removesuffix("_lr") or n.startswith(start)]
        best[name] = traces[tuned(traces, names, tolerance)]
        numbers |= _measures(name, best[name], tolerance)
        numbers[f"{name}.lr"] = exact(best[name].config["algorithm"]["lr"])
    for mode in ("hard", "soft"):
        for run in (mode, f"{mode}_all", f"{mode}_lr{min(p['lrs']):g}"):
            numbers[f"{run}.of_three"] = _of_three(traces[run], tolerance)
    numbers |= _right(best, p) | _spreads(traces, p)
    return numbers | _skewness(traces["hard"]) | _penalty_prediction(traces, p)


def _of_three(trace: Trace, tolerance: float) -> Number:
    """The share of all choices of three seeds whose mean late g is feasible."""
    late = np.array([*combinations(trace.late("g"), min(3, len(trace.seeds)))]).mean(1)
    return exact((late <= FEASIBLE * tolerance).mean(), "of means over three seeds")


def _right(best: Traces, p: Params) -> dict[str, Number]:
    """The share of penalties that are right on a split, and of splits on which a penalty is.

    Right is feasible, with a late f of at most 1.25 times that of soft FedSGM, all tuned.
    """
    bound = GOOD * best["soft_tuned"].late("f")
    right = {
        f"penalty_rho{rho:g}": (t.late("g") <= FEASIBLE * p["tolerance"]) & (t.late("f") <= bound)
        for rho, t in ((rho, best[f"penalty_rho{rho:g}"]) for rho in p["rhos"])
    }
    found = {f"{name}.right": share(x, "of splits") for name, x in right.items()}
    return found | {"penalty.right": mean(np.mean([*right.values()], 0), "of penalties")}


def _spreads(traces: Traces, p: Params) -> dict[str, Number]:
    """How far late f and g move along a grid of sharpnesses, and of penalties, at one step size.

    The penalties are those of the upper part of the grid: from end to end a factor 200, as the
    sharpnesses.
    """
    rhos = [rho for rho in p["rhos"] if rho >= max(p["rhos"]) / PENALTIES]
    grids = {
        "beta": ["soft", *(f"soft_beta{b:g}" for b in p["betas"])],
        "rho": [f"penalty_rho{rho:g}_lr{p['lr']:g}" for rho in rhos],
    }
    return {
        f"spread.{knob}_{k}": mean(np.ptp([traces[n].late(k) for n in names], axis=0))
        for knob, names in grids.items()
        for k in "fg"
    }


def _measures(name: str, trace: Trace, tolerance: float) -> dict[str, Number]:
    """Late values, feasibility, speed and oscillation of one run."""
    found: dict[str, Any] = {
        "f": lambda t: t.late("f"),
        "g": lambda t: t.late("g"),
        "infeasible": (lambda t: t.late("g") > FEASIBLE * tolerance, "of seeds"),
    }
    if trace.rounds[1] == 1:  # evaluated every round
        found |= {
            "violations": (lambda t: violations(t, tolerance), "rounds"),
            "oscillation": (oscillation, "1e-3"),
            "scatter": (lambda t: jitter(t, t.rounds[-1] // 5), "1e-3"),
            "excess": (lambda t: excess(t, tolerance), "1e-3"),
            "merit": lambda t: over_limit(t, tolerance, 4.0).mean(1),
            "early": lambda t: over_limit(t, tolerance, 1.0)[:, :50].mean(1),
        }
    if "g_max" in trace.metrics:
        found["g_max"] = lambda t: t.late("g_max")
    return measured({name: trace}, found)


def over_limit(trace: Trace, tolerance: float, weight: float) -> Array:
    """Per seed and round, f plus a weight times what g exceeds the tolerance by."""
    return np.asarray(
        trace.of_rounds("f") + weight * np.maximum(trace.of_rounds("g") - tolerance, 0)
    )


def _final(trace: Trace) -> list[tuple[Problem, torch.Tensor]]:
    """Each seed's problem and final model."""
    table, w = data.breast_cancer(), torch.as_tensor(trace.state, dtype=torch.float32)
    split = partial(neyman_pearson, table.X, table.y, clients=20, train_fraction=0.8)
    return [*zip((split(seed=s) for s in trace.seeds), w, strict=True)]


def _skewness(trace: Trace) -> dict[str, Number]:
    """Skewness of the clients' gradients at the final models of a run."""
    rows = []
    for task, w in _final(trace):
        a, b = client_gradients(task, w)
        cosine = torch.cosine_similarity(a.mean(0), b.mean(0), dim=0)
        local, glob, difference, bound = (float(x) for x in skewness(a, b))
        rows.append((local / glob, bound / difference, float(cosine)))
    names = ("local_to_global", "bound_to_difference", "cosine")
    return {f"skewness.{n}": mean(c) for n, c in zip(names, np.array(rows).T, strict=True)}


def _penalty_prediction(traces: Traces, p: Params) -> dict[str, Number]:
    """P3: how often a fixed penalty is feasible just if it exceeds the multiplier of its split.

    The multiplier comes from the soft run with all clients, feasibility from the penalty run.
    """
    lam = np.array([multiplier(task, w) for task, w in _final(traces["soft_all"])])
    late = [traces[f"penalty_all_rho{rho:g}"].late("g") for rho in p["rhos"]]
    rho = np.array(p["rhos"])[:, None]  # [rhos, 1]
    hits = (np.array(late) <= FEASIBLE * p["tolerance"]) == (rho >= lam)
    far = (rho < lam / 2) | (rho > 2 * lam)
    share = np.where(far.any(0), (hits & far).sum(0) / np.maximum(far.sum(0), 1), 1.0)
    feasible = np.array(late) <= FEASIBLE * p["tolerance"]
    return {
        "control.feasible": mean(feasible.mean(0), "of penalties"),
        "control.one": exact(1.0),
        "multiplier": mean(lam),
        "penalty.predicted": mean(hits.mean(0), "of penalties"),
        "penalty.predicted_clear": mean(share, "of penalties"),
    }
