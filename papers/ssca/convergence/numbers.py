"""The derived numbers of the study of SSCA's Figures 2 and 3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, exact, mean
from papers.kit.study import Params, Traces
from papers.ssca.common import SPLITS
from papers.ssca.convergence.counts import counted, megabits
from papers.ssca.leaks import leaked

LOOKS = (10, 30, 50, 100)  # rounds whose cost is recorded
CROSSED = (1.0, 0.5, 0.4)  # costs to which rounds are counted
#: What decides about SGD's step size: the mean cost over the rounds, or that of a round.
CRITERIA = {"area": 0, "last": 100, "early": 30}
HE = "he_"  # before the name of a run, and of its numbers: from He's start
STRIDE = 10  # rounds between the points by which curves are compared; all runs have them

UNITS = {"accuracy": "%", "rounds": "rounds", "wall": "s"}


def halves(batches: Iterable[int]) -> tuple[int, ...]:
    """Batches of SGD with two steps a round that cost a client what `batches` do with one."""
    return tuple(int(b) // 2 for b in batches if int(b) % 2 == 0)


def points(traces: Iterable[str], kind: str) -> list[str]:
    """The runs of SGD's grid, such as those of `"samples_sgd_B10"`."""
    return [name for name in traces if name.startswith(f"{kind}_a")]


def at(trace: Trace, rounds: float, metric: str = "cost") -> Array:
    """Per seed, a metric after a number of rounds, linear between evaluations, `[S]`."""
    return np.array([np.interp(rounds, trace.rounds, x) for x in trace.metrics[metric]])


def first_below(trace: Trace, level: float) -> Array:
    """Per seed the round in which the cost first falls to `level`, T if it never does, `[S]`.

    Between two evaluations the curve is taken as straight. T in place of "never" makes differences
    between runs smaller than they are, not larger.
    """
    t, curves = coarse(trace)
    found = np.full(len(curves), float(t[-1]))
    for s, x in enumerate(curves):
        below = np.flatnonzero(x <= level)
        if len(below):
            i = below[0]
            two = slice(i - 1, i + 1)
            found[s] = t[0] if i == 0 else np.interp(-level, -x[two], t[two])
    return found


def area(trace: Trace) -> Array:
    """Per seed the mean cost over the rounds 0 .. T, by the trapezoidal rule, `[S]`."""
    t, curves = coarse(trace)
    return np.asarray(np.trapezoid(curves, t, axis=1) / (t[-1] - t[0]))


def coarse(trace: Trace) -> tuple[Array, Array]:
    """Every `STRIDE`-th round `[P]` with the last, and the cost there `[S, P]`.

    SGD is evaluated less often than the others: so both are compared by the same points.
    """
    last = int(trace.rounds[-1])
    t = np.array(sorted({*range(0, last, STRIDE), last}), float)
    return t, np.stack([at(trace, r) for r in t], 1)


def measures(trace: Trace) -> dict[str, Array]:
    """What one run is measured by, per seed."""
    last = float(trace.rounds[-1])
    found = {f"cost_{r}": at(trace, r) for r in LOOKS if r <= last}
    found |= {f"rounds_{x:g}": first_below(trace, x) for x in CROSSED}
    found |= {"cost": at(trace, last), "area": area(trace)}
    found["accuracy"] = 100 * at(trace, last, "accuracy")
    return found


def chosen(traces: Mapping[str, Trace], kind: str, criterion: str) -> str:
    """The run of SGD's grid that is best by the criterion, on the mean over the seeds.

    `kind` is such as `"samples_sgd_B10"`, `criterion` `"area"`, `"last"` or `"early"`.
    """
    names = points(traces, kind)
    cost = {
        n: (area(traces[n]) if criterion == "area" else at(traces[n], look(traces[n], criterion)))
        for n in names
    }
    cost = {n: x.mean() for n, x in cost.items()}
    return min(names, key=lambda n: cost[n] if np.isfinite(cost[n]) else np.inf)


def look(trace: Trace, criterion: str) -> float:
    """The round of a criterion: 100 and 30 of 100 rounds, the same shares of fewer."""
    return float(CRITERIA[criterion] / CRITERIA["last"] * trace.rounds[-1])


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Measures of every run and of the chosen baselines, differences by seed, bits, counts.

    Keys are `run.measure`, of differences `a_vs_b.measure`; a chosen baseline is
    `samples_sgd_B10_area`, `..._last` or `..._early`, with `.lr` and `.fall` beside the measures.
    All of the runs from He's start begin with `HE`. Where a run is missing, the numbers that need
    it are.
    """
    curves = {n: t for n, t in traces.items() if n.startswith(SPLITS)}
    wide = {n.removeprefix(HE): t for n, t in traces.items() if n.startswith(HE)}
    numbers = compared(curves, p) | {f"{HE}{k}": x for k, x in compared(wide, p).items()}
    numbers |= megabits({**curves, **baselines(curves)}, p)
    return numbers | walls(curves) | in_file(traces) | counted() | leaked()


def compared(curves: Traces, p: Params) -> dict[str, Number]:
    """Measures of all runs from one start and of the baselines chosen there, and differences."""
    best = baselines(curves)
    found = {name: measures(trace) for name, trace in {**curves, **best}.items()}
    for name in (n for kind in kinds(curves) for n in points(curves, kind)):
        found[name] = {"cost": found[name]["cost"]}  # the chosen ones have all, by another name
    numbers = {
        f"{run}.{k}": mean(x, unit(k)) for run, each in found.items() for k, x in each.items()
    }
    for name, trace in best.items():
        lr = trace.config["algorithm"]["lr"]
        numbers |= {f"{name}.lr": exact(lr["scale"]), f"{name}.fall": exact(lr["exponent"])}
    for name, (a, b) in pairs(found, p).items():
        numbers |= differences(name, found[a], found[b])
    return numbers


def baselines(curves: Traces) -> dict[str, Trace]:
    """The run of every grid that each criterion chooses, such as `samples_sgd_B10_last`."""
    return {
        f"{kind}_{criterion}": curves[chosen(curves, kind, criterion)]
        for kind in kinds(curves)
        for criterion in CRITERIA
    }


def unit(measure: str) -> str:
    return UNITS.get(measure.partition("_")[0], "")


def kinds(traces: Traces) -> list[str]:
    """The grids that there are, such as `"samples_sgd_B10"`, those of one split together."""
    names = [n.rsplit("_a", 1)[0] for n in traces if n.startswith(SPLITS) and "_sgd" in n]
    return sorted(dict.fromkeys(names), key=lambda name: SPLITS.index(name.split("_")[0]))


def pairs(found: Mapping[str, object], p: Params) -> dict[str, tuple[str, str]]:
    """Which runs are compared on the same seeds, first minus second."""
    made: dict[str, tuple[str, str]] = {}
    batches = sorted(map(int, p["batches"]))
    algorithms = ("ssca", *(f"limit_U{level:g}" for level in p["levels"]))
    for which in algorithms:
        for b in batches:
            two = [run(split, which, b) for split in SPLITS]
            made[f"features_vs_samples_{which}_B{b}"] = (two[1], two[0])
        for split in SPLITS:
            for small, large in pairwise(batches):
                each = (run(split, which, large), run(split, which, small))
                made[f"{split}_{which}_B{large}_vs_B{small}"] = each
    for split in SPLITS:
        for b in batches:
            own = run(split, "ssca", b)
            made[f"{own}_debiased_vs_plain"] = (f"{own}_debiased", own)
            for criterion in CRITERIA:
                made[f"{own}_vs_sgd_{criterion}"] = (own, f"{split}_sgd_B{b}_{criterion}")
                if split == "samples" and b % 2 == 0:
                    half = f"samples_sgd2_B{b // 2}_{criterion}"
                    made[f"{own}_vs_sgd2_{criterion}"] = (own, half)
    return {name: (a, b) for name, (a, b) in made.items() if a in found and b in found}


def run(split: str, which: str, batch: int) -> str:
    """The name of a run of `"ssca"` or, with its level, of `"limit_U0.4"`."""
    kind, _, level = which.partition("_")
    return f"{split}_{kind}_B{batch}" + (f"_{level}" if level else "")


def differences(name: str, a: Mapping[str, Array], b: Mapping[str, Array]) -> dict[str, Number]:
    """Measures of run a minus those of run b, seed by seed."""
    units = {k: "points" if unit(k) == "%" else unit(k) for k in a if k in b}
    return {f"{name}.{k}": mean(a[k] - b[k], each) for k, each in units.items()}


def walls(traces: Traces) -> dict[str, Number]:
    """Seconds of computing time, of every run and of all that a figure shows."""
    times = {n: float(t.provenance.get("wall_s") or np.nan) for n, t in traces.items()}
    found = {f"{n}.wall": exact(x, "s") for n, x in times.items() if np.isfinite(x)}
    for split, figure in zip(SPLITS, ("figure_2", "figure_3"), strict=True):
        own = [x for n, x in times.items() if n.startswith(split) and np.isfinite(x)]
        if own:
            found[f"{figure}.wall"] = exact(sum(own) / 60, "min")
    return found


def in_file(traces: Traces) -> dict[str, Number]:
    """The final cost on pictures with even and with odd numbers, on all, and the differences."""
    if "order" not in traces:
        return {}
    last = {k: v[:, -1] for k, v in traces["order"].metrics.items() if k.startswith("cost")}
    found = {f"order.{k}": mean(v) for k, v in last.items()}
    found["order.even_minus_odd"] = mean(last["cost_even"] - last["cost_odd"])
    found["order.some_minus_all"] = mean(last["cost"] - last["cost_all"])
    return found
