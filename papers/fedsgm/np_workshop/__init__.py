"""Study W: the workshop paper's Neyman-Pearson figure (10 clients, unbiased Rand-K uplink)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
import torch

from fedlib import data
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.compress import Identity, RandK
from fedlib.core import Problem, Trace
from fedlib.problems import neyman_pearson
from fedlib.steps import Hard, Soft
from fedlib.steps.switching import Switch
from papers.fedsgm import multiverse
from papers.fedsgm.curves import after_feasible, band, jitter, violations
from papers.fedsgm.np_workshop import claims, figures
from papers.fedsgm.skewness import multiplier
from papers.kit.health import HealthCheck
from papers.kit.numbers import Number, exact, mean, measured, ratio
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Traces

LATE = 0.2  # "late" is the last 20 rounds of 100
SETTLED = 0.5  # the second half of the long runs

PARAMETERS = parameters(
    seeds=("seeds; each fixes partition and compressors", tuple(range(100, 160)), (0, 1, 2)),
    rounds=("communication rounds T", 100),
    clients=("clients n, all of which take part", 10),
    lr=("step size of the main curves", 0.3),
    lrs=("step sizes of the sweep", (0.01, 0.03, 0.1, 0.2, 0.5, 1.0), (0.1, 1.0)),
    tolerance=("switching threshold and level of the constraint, epsilon", 0.1),
    beta=("sharpness of soft switching", 20.0),
    betas=("sharpnesses of the sweep", (5.0, 10.0, 40.0, 60.0, 200.0), (5.0, 200.0)),
    fraction=("K/d of the Rand-K uplink", 0.1),
    local_steps=("local steps E", 5),
    fresh=("seeds that judge claim C25 alone", tuple(range(1000, 1400)), (1000, 1001)),
    settle_rounds=("rounds of the uncompressed runs for predictions P1 and P2", 2000, 120),
    many=("whether the settings that the paper leaves open are run", True, False),
)


@lru_cache(maxsize=64)
def problem(seed: int, positive: str = "malignant", clients: int = 10) -> Problem:
    """560 of the 569 samples on equal, stratified clients."""
    table = data.breast_cancer(positive)
    about = {"data": "breast_cancer", "positive": positive}
    return neyman_pearson(table.X, table.y, clients=clients, seed=seed, config=about)


def specs(p: Params) -> dict[str, Spec]:
    """Hard and soft at the main setting, along each sweep, and settled."""
    tolerance, lr = float(p["tolerance"]), float(p["lr"])
    of = partial(problem, clients=p["clients"])
    modes: dict[str, Switch] = {"hard": Hard(), "soft": Soft(float(p["beta"]))}
    found: dict[str, Spec] = {}
    for mode, switch in modes.items():
        main = FedSGM(
            lr=lr,
            local_steps=p["local_steps"],
            participants=p["clients"],
            tolerance=tolerance,
            switch=switch,
            uplink=RandK(float(p["fraction"])),
            error_feedback=False,
        )
        base = Spec(main, of, p["rounds"], p["seeds"], keep=("f", "g", "sigma"))
        thin = replace(base, keep=("f", "g"))
        found[mode] = base
        found[f"fresh_{mode}"] = replace(thin, seeds=p["fresh"], evaluate_every=5)
        for x in p["lrs"]:
            found[f"{mode}_lr{x:g}"] = replace(thin, algorithm=replace(main, lr=float(x)))
        for x in p["betas"] if mode == "soft" else ():
            found[f"soft_beta{x:g}"] = replace(thin, algorithm=replace(main, switch=Soft(float(x))))
        found[f"{mode}_settled"] = replace(
            base,
            algorithm=replace(main, uplink=Identity()),
            rounds=p["settle_rounds"],
            evaluate_every=5,
        )
    return found | (multiverse.workshop_specs(found["hard"], of) if p["many"] else {})


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Violations, late values and jitter of every run, ratios hard/soft, and P1, P2."""
    tolerance = float(p["tolerance"])
    in_all = multiverse.workshop(traces) if p["many"] else {}
    traces = {name: trace for name, trace in traces.items() if name not in multiverse.WORKSHOP}
    curves = {name: trace for name, trace in traces.items() if not name.endswith("_settled")}
    measures = {
        "violations": (lambda t: violations(t, tolerance), "rounds"),
        "after": (lambda t: after_feasible(t, tolerance), "rounds"),
        "f": lambda t: t.late("f", LATE),
        "g": lambda t: t.late("g", LATE),
        "jitter": (jitter, "1e-3"),
        "band_f": (lambda t: band(t, "f"), "1e-3"),
        "band_g": (lambda t: band(t, "g"), "1e-3"),
    }
    numbers = measured(curves, measures)
    pairs = {n.partition("_")[2] or "main": (n, "soft" + n[4:]) for n in curves if n[:4] == "hard"}
    pairs |= {n.removeprefix("soft_"): ("hard", n) for n in curves if n.startswith("soft_beta")}
    for label, (hard, soft) in pairs.items():
        one, two = curves[hard], curves[soft]
        counts = violations(one, tolerance), violations(two, tolerance)
        numbers[f"ratio.{label}"] = ratio(*counts)
        numbers[f"loss_ratio.{label}"] = ratio(two.late("f", LATE), one.late("f", LATE))
    for k, (label, start) in product("fg", {"main": "", "fresh": "fresh_"}.items()):
        apart = band(traces[f"{start}soft"], k) - band(traces[f"{start}hard"], k)
        numbers[f"{label}.band_{k}_more"] = mean(apart, "1e-3")
    return numbers | _predictions(traces, p) | in_all


def _predictions(traces: Traces, p: Params) -> dict[str, Number]:
    """P1 (hard's share of constraint rounds) and P2 (soft's level), predicted and measured.

    The multiplier is the ratio of the gradients' norms at the final model, which nothing in the
    runs was fitted to.
    """
    hard, soft = traces["hard_settled"], traces["soft_settled"]
    lam = {mode: _multipliers(traces[f"{mode}_settled"], p["clients"]) for mode in ("hard", "soft")}
    half = hard.info["sigma"].shape[1] // 2
    share = hard.info["sigma"][:, half:].mean(1)
    expected_share = lam["hard"] / (1 + lam["hard"])
    level = soft.late("g", SETTLED)
    expected_level = p["tolerance"] - 1 / (p["beta"] * (1 + lam["soft"]))
    return {
        "share.predicted": mean(expected_share),
        "share.measured": mean(share),
        "share.gap": mean(np.abs(share - expected_share)),
        "level.predicted": mean(expected_level),
        "level.measured": mean(level),
        "level.gap": mean(np.abs(level - expected_level)),
        "control.level_gap": mean(np.abs(level - p["tolerance"])),
        "control.half": exact(0.5),
        "control.one": exact(1.0),
        "settled.after": mean(after_feasible(soft, p["tolerance"]), "rounds"),
    }


def _multipliers(trace: Trace, clients: int) -> Any:
    final = torch.as_tensor(trace.state, dtype=torch.float32)
    pairs = zip(trace.seeds, final, strict=True)
    return np.array([multiplier(problem(s, clients=clients), w) for s, w in pairs])


LEVEL = PARAMETERS["profiles"]["full"]["tolerance"]


STUDY = Study(
    name="np_workshop",
    title="Neyman-Pearson classification, workshop paper",
    paper="W",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    figures=figures.FIGURES,
    watch={"*": HealthCheck("f", guard="g", level=LEVEL)},
    **PARAMETERS,
)
