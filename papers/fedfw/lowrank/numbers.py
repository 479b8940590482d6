"""The derived numbers of the study of the low-rank case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlib.compress.compressors import FLOAT_BITS
from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, exact, mean, measured, over_seeds, ratio
from papers.kit.study import Params, Traces

TASKS = ("regression", "completion")
FRANK_WOLFE = ("fedfw", "plus")
PROJECTIONS = ("avg1", "avg5", "dr")
LEVELS = (10.0, 1.0)  # % of the excess loss at the start
RADIUS = 10.0  # of the sets whose messages are looked at
Measure = Callable[[Trace], Array]
UNITS = {"rounds": "rounds", "reached": "%", "mbit": "Mbit", "seconds": "s", "parallel": "s"}


def best_runs(traces: Traces) -> dict[str, str]:
    """Task and method, such as `"regression_fedfw"`, -> its run with the lowest final mean loss."""
    found: dict[str, str] = {}
    for task in TASKS:
        for method in (*FRANK_WOLFE, *PROJECTIONS):
            kind = f"{task}_{method}"
            ends = {n: t.metrics["loss"][:, -1].mean() for n, t in traces.items() if of(n, kind)}
            if ends:
                found[kind] = min(ends, key=ends.__getitem__)
    return found


def of(name: str, kind: str) -> bool:
    return name.startswith(f"{kind}_")


def excess(trace: Trace, reference: Trace) -> Array:
    """The loss above the reference's last, in % of that at the start, `[S, T_eval]`."""
    seeds = [list(reference.seeds).index(s) for s in trace.seeds]
    floor = reference.metrics["loss"][seeds, -1:]
    loss = trace.metrics["loss"]
    return np.asarray(100 * (loss - floor) / (loss[:, :1] - floor))


def first_below(rounds: Array, values: Array, level: float) -> tuple[Array, NDArray[np.bool_]]:
    """Per seed the first evaluated round at or below a level, else the last; whether there is one.

    A curve that is not finite there has not reached it.
    """
    good = values <= level
    there = np.asarray(good.any(1))
    found = np.where(there, good.argmax(1), values.shape[1] - 1)
    return rounds[found], there


def oracle_seconds(traces: Traces, task: str, p: Params) -> tuple[float, float] | None:
    """Seconds of one LMO and of one projection for the task's matrix, medians of the clock."""
    name = "clock_{}x{}".format(*map(int, p[task]))
    if name not in traces:
        return None
    info = traces[name].info
    return float(np.median(info["lmo"])), float(np.median(info["project"]))


def costs(method: str, seconds: tuple[float, float], clients: int) -> tuple[float, float]:
    """Oracle seconds of a round: of all clients and the server, and with the clients in parallel.

    Every client of a Frank-Wolfe method asks its oracle once; the others project at the server.
    """
    lmo, project = seconds
    return (clients * lmo, lmo) if method in FRANK_WOLFE else (project, project)


def last(metric: str) -> Measure:
    return lambda t: np.asarray(t.metrics[metric][:, -1])


def remaining(trace: Trace) -> Array:
    """The Frank-Wolfe gap as a share of the loss that was taken away, in %: how exact it is."""
    loss = trace.metrics["loss"]
    return np.asarray(100 * trace.metrics["gap"][:, -1] / (loss[:, 0] - loss[:, -1]))


REFERENCE = {
    "loss": last("loss"),
    "gap": (remaining, "%"),
    "error": last("error"),
    "rank": last("rank"),
}
#: What messages look like at worst, over all rounds.
WORST: dict[str, Measure] = {
    "most": lambda t: t.info["most"].max(1),
    "second": lambda t: t.info["second"].max(1),
    "off": lambda t: t.info["off"].max(1),
    "wire": lambda t: t.info["wire"].max(1),
    "fewest": lambda t: t.info["fewest"].min(1),
}


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Where every run ends; rounds, bits and seconds to two levels; messages; the clock.

    Keys are `run.measure`; `TASK_METHOD.measure` is that of the method's best run, and
    `TASK.FW_vs_OTHER.measure` the ratio of two methods by seed.
    """
    references = {n: t for task in TASKS for n in [f"{task}_reference"] if (t := traces.get(n))}
    numbers = measured(references, REFERENCE)
    spent: dict[str, dict[str, NDArray[Any]]] = {}
    for kind, name in best_runs(traces).items():
        task, method = kind.split("_")
        trace, reference = traces[name], references.get(f"{task}_reference")
        if reference is None:
            continue
        seconds = oracle_seconds(traces, task, p)
        spent[kind] = reach(trace, reference, method, seconds, p["clients"])
        numbers[f"{kind}.excess"] = mean(excess(trace, reference)[:, -1], "%")
        own = {k: last(k) for k in ("error", "rank", "heldout") if k in trace.metrics}
        numbers |= measured({kind: trace}, own)
        numbers[f"{kind}.kbit"] = exact(trace.config["bits"]["bits_up"] / 1e3, "kbit")
        units = {k: UNITS[k.partition("_")[0]] for k in spent[kind]}
        numbers |= {f"{kind}.{k}": over_seeds(x, units[k]) for k, x in spent[kind].items()}
        numbers[f"{kind}.grid"] = exact(float(name.rsplit("_", 1)[1][1:]))
    numbers |= ratios(spent, numbers) | looks(traces) | ticks(traces)
    walls = [float(t.provenance.get("wall_s") or 0) for t in traces.values()]
    return numbers | {"all.wall": exact(sum(walls) / 60, "min")}


def reach(
    trace: Trace, reference: Trace, method: str, seconds: tuple[float, float] | None, clients: int
) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    values, bits = excess(trace, reference), trace.config["bits"]["bits_up"] / 1e6
    for level in LEVELS:
        rounds, there = first_below(np.asarray(trace.rounds, float), values, level)
        found |= {f"rounds_{level:g}": rounds, f"reached_{level:g}": there}
        found[f"mbit_{level:g}"] = bits * rounds
        if seconds is not None:
            everybody, parallel = costs(method, seconds, clients)
            found[f"seconds_{level:g}"] = everybody * rounds
            found[f"parallel_{level:g}"] = parallel * rounds
    return found


def ratios(
    spent: Mapping[str, Mapping[str, NDArray[Any]]], numbers: Mapping[str, Number]
) -> dict[str, Number]:
    """The better Frank-Wolfe method of each task against every method with projections.

    NaN where one of its seeds does not reach the level.
    """
    found: dict[str, Number] = {}
    for task in TASKS:
        kinds = [f"{task}_{m}" for m in FRANK_WOLFE if f"{task}_{m}" in spent]
        if not kinds:
            continue
        fw = min(kinds, key=lambda kind: numbers[f"{kind}.excess"].value)
        for level in LEVELS:
            reached = f"reached_{level:g}"
            found[f"{task}.{reached}"] = over_seeds(spent[fw][reached], "%")
        for other in PROJECTIONS:
            for k, x in spent.get(f"{task}_{other}", {}).items():
                there = spent[fw]["reached_" + k.partition("_")[2]]
                if not k.startswith("reached") and x.min() > 0:
                    cost = np.where(there, spent[fw][k], np.nan)
                    found[f"{task}.fw_vs_{other}.{k}"] = ratio(cost, x)
    return found


def looks(traces: Traces) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for name, trace in traces.items():
        if name.startswith("messages_"):
            bits, d = per_message(trace)
            found |= measured({name: trace}, WORST)
            found[f"{name}.bits"] = exact(bits, "bits")
            found[f"{name}.bits_off"] = exact(bits - formula(trace, d), "bits")
            found[f"{name}.entries"] = exact(d)
    return found


def per_message(trace: Trace) -> tuple[float, int]:
    """Bits of one message of a run, and the entries of its vector; all clients send one a round."""
    problem = trace.config["problem"]
    matrix = [[problem["features"], problem["tasks"]]] if "tasks" in problem else problem["shapes"]
    d = sum(int(np.prod(shape)) for shape in matrix)
    return trace.config["bits"]["bits_up"] / problem["clients"], d


def formula(trace: Trace, d: int) -> float:
    """Bits by the set: index and sign, index, a bit an entry, two vectors, all entries."""
    problem = trace.config["problem"]
    index = ceil(log2(d))
    if "tasks" in problem:
        return float(FLOAT_BITS * (problem["features"] + problem["tasks"]))
    by_set = {"L1Ball": index + 1, "Simplex": index, "Box": d, "Ball": FLOAT_BITS * d}
    return float(by_set[problem["set"]["type"]])


def ticks(traces: Traces) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for name, trace in traces.items():
        if name.startswith("clock_"):
            lmo, project = (trace.info[k][0] for k in ("lmo", "project"))
            m, n = map(int, name.removeprefix("clock_").split("x"))
            found[f"{name}.lmo"] = mean(1e3 * lmo, "ms")
            found[f"{name}.project"] = mean(1e3 * project, "ms")
            found[f"{name}.ratio"] = ratio(project, lmo)
            found[f"{name}.reached"] = mean(100 * trace.info["reached"][0], "%")
            found[f"{name}.shorter"] = exact(m * n / (m + n))
    return found
