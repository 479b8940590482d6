"""The derived numbers of study F."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from fedlib import data
from fedlib.metrics import client_gradients, multiplier, skewness
from fedlib.numbers import Number, mean, ratio
from fedlib.problems import neyman_pearson
from fedlib.studies.base import Params, Traces
from fedlib.studies.curves import first_round, oscillation, violations
from fedlib.trace import Trace

__all__ = ["derive", "tuned"]

FEASIBLE = 1.05  # a run counts as feasible if its late mean of g is below this times epsilon


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Measures of every run, tuned settings, paired differences, skewness and prediction P3."""
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        numbers |= {f"{name}.{k}": v for k, v in measures(trace, p).items()}
    for group in ("", "_all"):
        counts = [violations(traces[f"{m}{group}"], p["tolerance"]) for m in ("hard", "soft")]
        numbers[f"ratio{group}.violations"] = ratio(counts[0], counts[1])
        for b in (f"beta{b:g}" for b in p["betas"]):
            numbers |= _against(traces, f"soft{group}_{b}", f"soft{group}")
        limit = traces[f"soft{group}_beta1e+09"]
        gaps = [
            np.abs(limit.metrics[k] - traces[f"hard{group}"].metrics[k]).max(1) for k in ("f", "g")
        ]
        numbers[f"limit{group}.gap"] = mean(np.maximum(*gaps))
    for rho in p["rhos"]:
        candidates = [n for n in traces if n.startswith(f"penalty_rho{rho:g}_")]
        best = tuned(traces, candidates, p["tolerance"])
        for k, v in measures(traces[best], p).items():
            numbers[f"penalty_rho{rho:g}.{k}"] = v
        numbers[f"penalty_rho{rho:g}.lr"] = mean([traces[best].config["algorithm"]["lr"]])
    for mode in ("hard", "soft"):
        candidates = [n for n in traces if n == mode or n.startswith(f"{mode}_lr")]
        best = tuned(traces, candidates, p["tolerance"])
        for k, v in measures(traces[best], p).items():
            numbers[f"{mode}_tuned.{k}"] = v
        numbers[f"{mode}_tuned.lr"] = mean([traces[best].config["algorithm"]["lr"]])
    for name in ("hard", "soft", "hard_all", "soft_all"):
        numbers |= _averaged(name, traces[name])
    return numbers | _skewness(traces["hard"]) | _penalty_prediction(traces, p)


def measures(trace: Trace, p: Params) -> dict[str, Number]:
    """Late values, feasibility, speed and oscillation of one run."""
    tolerance = float(p["tolerance"])
    f, g = trace.late("f"), trace.late("g")
    found = {
        "f": mean(f),
        "g": mean(g),
        "infeasible": mean(g > FEASIBLE * tolerance, "of seeds"),
        "target": mean(first_round(trace, 0.1, 1.1 * tolerance), "rounds"),
    }
    if trace.rounds[1] == 1:  # evaluated every round
        found["violations"] = mean(violations(trace, tolerance), "rounds")
        found["oscillation"] = mean(oscillation(trace), "1e-3")
        found["f_early"] = mean(trace.metrics["f"][:, min(50, len(trace.rounds) - 1)])
    for k in ("false_alarm", "miss", "g_max"):
        if k in trace.metrics:
            found[k] = mean(trace.late(k))
    return found


def tuned(traces: Traces, names: Sequence[str], tolerance: float) -> str:
    """The run with the smallest late f among those with mean late g <= 1.05 tolerance.

    If no run is feasible, the one with the smallest late g. Training data only.
    """
    late = {n: (traces[n].late("f").mean(), traces[n].late("g").mean()) for n in names}
    feasible = {n: f for n, (f, g) in late.items() if g <= FEASIBLE * tolerance}
    if feasible:
        return min(feasible, key=feasible.__getitem__)
    return min(late, key=lambda n: late[n][1])


def _against(traces: Traces, name: str, base: str) -> dict[str, Number]:
    """Differences of a run from another on the same seeds."""
    a, b = traces[name], traces[base]
    return {
        f"{name}.f_more": mean(a.late("f") - b.late("f")),
        f"{name}.g_more": mean(a.late("g") - b.late("g")),
        f"{name}.oscillation_more": mean(oscillation(a) - oscillation(b), "1e-3"),
    }


def _problem(seed: int) -> Any:
    table = data.breast_cancer()
    return neyman_pearson(table.X, table.y, seed=seed, clients=20, train_fraction=0.8)


def _final(trace: Trace) -> list[tuple[Any, torch.Tensor]]:
    """Each seed's problem and final model."""
    models = torch.as_tensor(trace.state, dtype=torch.float32)
    return [(_problem(s), w) for s, w in zip(trace.seeds, models, strict=True)]


def _averaged(name: str, trace: Trace) -> dict[str, Number]:
    """F and g at the averaged iterate, over the seeds where it is defined."""
    final = zip(trace.seeds, np.asarray(trace.output), strict=True)
    values = [
        _problem(seed).mean_losses(torch.as_tensor(w, dtype=torch.float32)).tolist()
        for seed, w in final
        if np.isfinite(w).all()
    ]
    f, g = np.array(values).T if values else (np.array([np.nan]), np.array([np.nan]))
    return {
        f"{name}.average_f": mean(f),
        f"{name}.average_g": mean(g),
        f"{name}.average_defined": mean([len(values) / len(trace.seeds)], "of seeds"),
    }


def _skewness(trace: Trace) -> dict[str, Number]:
    """Skewness of the clients' gradients at the final models of a run."""
    rows = []
    for task, w in _final(trace):
        a, b = client_gradients(task, w)
        k = skewness(a, b)
        cosine = torch.cosine_similarity(a.mean(0), b.mean(0), dim=0)
        local, glob, difference, bound = (float(x) for x in k)
        rows.append((local / glob, bound / difference, float(cosine), glob, local))
    columns = np.array(rows).T
    names = ("local_to_global", "bound_to_difference", "cosine", "global", "local")
    return {f"skewness.{n}": mean(c) for n, c in zip(names, columns, strict=True)}


def _penalty_prediction(traces: Mapping[str, Trace], p: Params) -> dict[str, Number]:
    """P3: how often a fixed penalty is feasible just if it exceeds the multiplier of its split.

    The multiplier comes from the soft run with all clients, feasibility from the penalty run.
    """
    lam = np.array([multiplier(task, w) for task, w in _final(traces["soft_all"])])
    right, clear = [], []
    for rho in p["rhos"]:
        feasible = traces[f"penalty_all_rho{rho:g}"].late("g") <= FEASIBLE * p["tolerance"]
        right.append(feasible == (rho >= lam))
        clear.append((rho < lam / 2) | (rho > 2 * lam))
    hits, far = np.array(right), np.array(clear)
    share = np.where(far.any(0), (hits & far).sum(0) / np.maximum(far.sum(0), 1), 1.0)
    return {
        "multiplier": mean(lam),
        "penalty.predicted": mean(hits.mean(0), "of penalties"),
        "penalty.predicted_clear": mean(share, "of penalties"),
    }
