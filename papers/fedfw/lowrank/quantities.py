"""The quantities of the low-rank study."""

from __future__ import annotations

from math import prod

from fedlib.core import Trace
from papers.fedfw.lowrank.runs import DEFAULTS
from papers.kit import quantities as kit
from papers.kit.numbers import Number, exact, mean, ratio
from papers.kit.quantities import Quantities
from papers.kit.study import Params, Traces


def derive(traces: Traces, _: Params) -> Quantities:
    """What messages look like, how long they are, and how long the two oracles take."""
    return Quantities.of([kit.of_runs(traces, measures)], DEFAULTS)


def measures(trace: Trace) -> dict[str, Number]:
    """What a run is measured by."""
    return looks(trace) if kit.labels_of(trace)["kind"] == "messages" else ticks(trace)


def looks(trace: Trace) -> dict[str, Number]:
    """What messages look like at worst, over all rounds, and the bits of one."""
    problem = trace.config["problem"]
    shapes = problem.get("shapes") or [[problem["features"], problem["tasks"]]]
    bits = trace.config["bits"]["bits_up"] / problem["clients"]
    worst = {name: mean(trace.info[name].max(1)) for name in ("most", "second", "off", "wire")}
    return {
        **worst,
        "fewest": mean(trace.info["fewest"].min(1)),
        "entries": exact(sum(map(prod, shapes))),
        "bits": exact(bits, "bits"),
    }


def ticks(trace: Trace) -> dict[str, Number]:
    """Times of the two oracles, and how long a dense message is beside one of rank one."""
    lmo = trace.info["lmo"][0]
    project = trace.info["project"][0]
    matrix = trace.config["problem"]["set"]
    rows = matrix["rows"]
    columns = matrix["columns"]
    return {
        "lmo": mean(1e3 * lmo, "ms"),
        "project": mean(1e3 * project, "ms"),
        "ratio": ratio(project, lmo),
        "reached": mean(100 * trace.info["reached"][0], "%"),
        "shorter": exact(rows * columns / (rows + columns)),
    }
