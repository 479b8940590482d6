"""The derived numbers of the study of the low-rank case."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, exact, mean, measured, ratio
from papers.kit.study import Params, Traces

RADIUS = 10.0  # of the sets whose messages are looked at
#: What messages look like at worst, over all rounds.
WORST: dict[str, Callable[[Trace], Array]] = {
    "most": lambda t: t.info["most"].max(1),
    "second": lambda t: t.info["second"].max(1),
    "off": lambda t: t.info["off"].max(1),
    "wire": lambda t: t.info["wire"].max(1),
    "fewest": lambda t: t.info["fewest"].min(1),
}


def derive(traces: Traces, _: Params) -> dict[str, Number]:
    """What messages look like, how long they are, and how long the two oracles take."""
    found: dict[str, Number] = {}
    for name, trace in traces.items():
        found |= looks(name, trace) if name.startswith("messages_") else ticks(name, trace)
    return found


def looks(name: str, trace: Trace) -> dict[str, Number]:
    """What all messages of a run look like, and the bits of one."""
    problem = trace.config["problem"]
    shapes = problem.get("shapes") or [[problem["features"], problem["tasks"]]]
    found = measured({name: trace}, WORST)
    found[f"{name}.entries"] = exact(sum(map(prod, shapes)))
    bits = trace.config["bits"]["bits_up"] / problem["clients"]
    return found | {f"{name}.bits": exact(bits, "bits")}


def ticks(name: str, trace: Trace) -> dict[str, Number]:
    """Times of the two oracles, and how long a dense message is beside one of rank one."""
    lmo, project = (trace.info[k][0] for k in ("lmo", "project"))
    m, n = map(int, name.removeprefix("clock_").split("x"))
    return {
        f"{name}.lmo": mean(1e3 * lmo, "ms"),
        f"{name}.project": mean(1e3 * project, "ms"),
        f"{name}.ratio": ratio(project, lmo),
        f"{name}.reached": mean(100 * trace.info["reached"][0], "%"),
        f"{name}.shorter": exact(m * n / (m + n)),
    }
