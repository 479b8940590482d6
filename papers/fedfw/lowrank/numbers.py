"""The derived numbers of the study of the low-rank case."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, exact, mean, measured, ratio, share
from papers.kit.study import Params, Traces

TASKS = ("regression", "completion")
FRANK_WOLFE = ("fedfw", "plus")
PROJECTIONS = ("avg1", "avg5", "dr")
LEVELS = (10.0, 1.0)  # % of the excess loss at the start
RADIUS = 10.0  # of the sets whose messages are looked at
UNITS = {"rounds": "rounds", "mbit": "Mbit", "seconds": "s"}
Measure = Callable[[Trace], Array]


def best_runs(traces: Traces) -> dict[str, str]:
    """Task and method, such as `"regression_fedfw"`, -> its run with the lowest final mean loss."""
    found: dict[str, str] = {}
    for task in TASKS:
        for method in (*FRANK_WOLFE, *PROJECTIONS):
            kind = f"{task}_{method}"
            own = [n for n in traces if n.startswith(f"{kind}_")]
            if own:
                found[kind] = min(own, key=lambda n: traces[n].metrics["loss"][:, -1].mean())
    return found


def excess(trace: Trace, reference: Trace) -> Array:
    """The loss above the reference's last, in % of that at the start, `[S, T_eval]`."""
    seeds = [list(reference.seeds).index(s) for s in trace.seeds]
    floor = reference.metrics["loss"][seeds, -1:]
    loss = trace.metrics["loss"]
    return np.asarray(100 * (loss - floor) / (loss[:, :1] - floor))


def pace(traces: Traces, trace: Trace, method: str) -> dict[str, float]:
    """What a round costs: one round, what all clients send, and the seconds of its oracle calls.

    Every client of a Frank-Wolfe method asks its oracle once, one after another; the others project
    at the server. Seconds are medians of the clock.
    """
    problem = trace.config["problem"]
    clock = traces["clock_{rows}x{columns}".format(**problem["set"])].info
    lmo, project = (float(np.median(clock[k])) for k in ("lmo", "project"))
    seconds = problem["clients"] * lmo if method in FRANK_WOLFE else project
    return {"rounds": 1.0, "mbit": trace.config["bits"]["bits_up"] / 1e6, "seconds": seconds}


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


def derive(traces: Traces, _: Params) -> dict[str, Number]:
    """Where every run ends; rounds, bits and seconds to two levels; messages; the clock.

    Keys are `run.measure`; `TASK_METHOD.measure` is that of the method's best run.
    """
    found: dict[str, Number] = {}
    for kind, name in best_runs(traces).items():
        task, method = kind.split("_")
        trace, reference = traces[name], traces[f"{task}_reference"]
        found |= measured({f"{task}_reference": reference}, REFERENCE)
        found |= measured({kind: trace}, {"error": last("error"), "rank": last("rank")})
        found[f"{kind}.excess"] = mean(excess(trace, reference)[:, -1], "%")
        found[f"{kind}.kbit"] = exact(trace.config["bits"]["bits_up"] / 1e3, "kbit")
        found[f"{kind}.grid"] = exact(float(name.rsplit("_", 1)[1][1:]))
        for level in LEVELS:
            rounds, there = first_at(trace, excess(trace, reference), level)
            found[f"{kind}.reached_{level:g}"] = share(there, "%")
            for unit, cost in pace(traces, trace, method).items():
                found[f"{kind}.{unit}_{level:g}"] = mean(cost * rounds, UNITS[unit])
    return found | looks(traces) | ticks(traces)


def first_at(trace: Trace, values: Array, level: float) -> tuple[Array, NDArray[np.bool_]]:
    """Per seed the first evaluated round at or below a level, else the last; whether there is one.

    A curve that is not finite there has not reached it.
    """
    good = values <= level
    there = np.asarray(good.any(1))
    return np.asarray(trace.rounds[np.where(there, good.argmax(1), -1)], float), there


def looks(traces: Traces) -> dict[str, Number]:
    """What all messages of a run look like, and the bits of one."""
    found: dict[str, Number] = {}
    for name, trace in traces.items():
        if name.startswith("messages_"):
            problem = trace.config["problem"]
            shapes = problem.get("shapes") or [[problem["features"], problem["tasks"]]]
            found |= measured({name: trace}, WORST)
            found[f"{name}.entries"] = exact(sum(map(prod, shapes)))
            bits = trace.config["bits"]["bits_up"] / problem["clients"]
            found[f"{name}.bits"] = exact(bits, "bits")
    return found


def ticks(traces: Traces) -> dict[str, Number]:
    """Times of the two oracles by size, and how long a dense message is beside one of rank one."""
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
