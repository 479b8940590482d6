"""Study of what FedFW sends, and of what its oracle costs beside a projection."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from fedlib.algorithms.fedfw import FedFW
from fedlib.core import Trace
from fedlib.core.problem import ConvexSet
from fedlib.core.trace import Array
from fedlib.sets import Ball, Box, L1Ball, Simplex
from papers.fedfw.lowrank.problems import clock_problem, pictures_within, tasks_within
from papers.fedfw.lowrank.watched import Clock, Watched
from papers.kit import plot
from papers.kit.claims import Claim
from papers.kit.health import Needs, nothing
from papers.kit.numbers import Number, exact, mean, measured, ratio
from papers.kit.panels import panel, row
from papers.kit.parameters import parameters
from papers.kit.rules import Control, Rule, least, most, stat_value
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Tolerance, Traces

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


def clock(traces: Traces) -> plot.Drawing:
    """Seconds of the two oracles, and bits of the two messages, against the side of the matrix."""
    sizes = {n: n.removeprefix("clock_").split("x") for n in traces if n.startswith("clock_")}
    squares = {int(m): traces[name] for name, (m, n) in sizes.items() if m == n}
    sides = np.array(sorted(squares), float)

    def by_side(ax: plot.Axes) -> None:
        ax.set_yscale("log")
        plot.log_ticks(ax, [*sides])

    def seconds(ax: plot.Axes) -> None:
        for i, (oracle, text) in enumerate((("lmo", "LMO"), ("project", "projection by SVD"))):
            each = np.stack([1e3 * squares[m].info[oracle][0] for m in sorted(squares)], 1)
            color = plot.COLORS[i]
            ax.plot(sides, np.median(each, 0), "o-", color=color, label=text)
            ax.fill_between(sides, each.min(0), each.max(0), color=color, alpha=0.18, linewidth=0)

    def bits(ax: plot.Axes) -> None:
        for i, (text, each) in enumerate((("rank one", 64 * sides), ("dense", 32 * sides**2))):
            ax.plot(sides, each / 1e6, "o-", color=plot.COLORS[i], label=text)

    frame: Any = {"xlabel": "side of the square matrix", "legend": True}
    return row(
        panel(seconds, by_side, ylabel="CPU time in ms", **frame),
        panel(bits, by_side, ylabel="message in Mbit", **frame),
    )


EXACT = 1e-5  # of the radius, in float32; and of singular values
SHORT = ("l1", "simplex", "nuclear", "box")
C11 = Rule(
    {
        "every message has exactly one nonzero entry": {
            s: (most(f"messages_{s}.most") <= 1) & (least(f"messages_{s}.fewest") >= 1)
            for s in ("l1", "simplex")
        },
        "every message for the nuclear ball has rank one, up to 1e-5": most(
            "messages_nuclear.second"
        )
        <= EXACT,
        "every message for the box consists of signs, up to 1e-5": most("messages_box.off")
        <= EXACT,
    },
    "Bits of a message: "
    + ", ".join(f"{s} {stat_value(f'messages_{s}.bits', 'g')}" for s in SHORT)
    + f"; without a short form (l2): {stat_value('messages_l2.bits', 'g')}",
    "The tolerance is for the rounding of 32 bits.",
    control=Control(
        "the messages of the l2 ball instead of each",
        {f"messages_{s}": "messages_l2" for s in SHORT},
    ),
)


CLAIMS = (
    Claim(
        id="fedfw/C11",
        paper="D",
        place="Linear minimization oracles",
        wording="A client's message is sparse or of low rank. It is one entry for the l1 ball and "
        "the simplex, has rank one for the nuclear ball, and consists of signs for a box.",
        rule=C11,
        runs=tuple(f"messages_{s}" for s in (*SHORT, "l2")),
        figure="clock",
        needs=Needs(exact=True, dead=("messages_*",)),
        kind="counted",
    ),
)


PARAMETERS = parameters(
    seeds=("seeds; each fixes the generated data", (0, 1, 2, 3, 4), (0, 1)),
    rounds=("rounds in which all messages are looked at", 100, 3),
    clients=("clients N of the regression", 10, 5),
    rank=("rank of the true matrix", 3, 2),
    rows=("rows of the matrix: features", 60, 12),
    columns=("columns of the matrix: tasks", 40, 8),
    samples=("rows of a client", 60, 20),
    lanczos=("steps of Lanczos in the oracle", 15),
    pictures=("digits in the other sets", 1000, 100),
    sides=(
        "sides of the square matrices that the oracles are timed on",
        (100, 200, 500, 1000, 2000),
        (50, 100),
    ),
    repetitions=("repetitions of each timing", 5, 2),
)
SETS: dict[str, ConvexSet] = {
    "l1": L1Ball(RADIUS),
    "simplex": Simplex(RADIUS),
    "box": Box(1.0),
    "l2": Ball(RADIUS),
}
SEEN = ("loss", "most", "fewest", "second", "off", "wire")
INSTANT = 100  # sides up to this are timed over several calls
CALLS = 20


def specs(p: Params) -> dict[str, Spec]:
    """`messages_SET` and `clock_MxN`."""
    seeds, T, steps = tuple(p["seeds"]), p["rounds"], p["lanczos"]
    matrix = {"clients": p["clients"], "rank": p["rank"], "rows": p["samples"]}
    matrix |= {"features": p["rows"], "tasks": p["columns"]}
    problems = {k: partial(pictures_within, convex_set=x, rows=p["pictures"])
                for k, x in SETS.items()}  # fmt: skip
    problems["nuclear"] = partial(tasks_within, steps=steps, **matrix)
    watched = Watched(FedFW(0.01))
    found = {f"messages_{k}": Spec(watched, x, T, seeds, T, SEEN) for k, x in problems.items()}
    shapes = [(side, side) for side in map(int, p["sides"])]
    for m, n in (*shapes, (p["rows"], p["columns"])):
        clock = Clock(CALLS if m <= INSTANT else 1)
        made = partial(clock_problem, rows=m, columns=n, steps=steps)
        keep, rounds = ("lmo", "project", "reached"), p["repetitions"]
        found[f"clock_{m}x{n}"] = Spec(clock, made, rounds, (0,), rounds, keep)
    return found


STUDY = Study(
    name="fw_lowrank",
    title="The low-rank case",
    paper="D",
    specs=specs,
    derive=derive,
    claims=CLAIMS,
    figures={"clock": clock},
    watch={
        "clock_*": nothing("times of single oracle calls"),
        "messages_*": nothing("messages of a run, which are counted"),
    },
    tolerances={"clock_*": Tolerance(timed=("lmo", "project")), "messages_*": Tolerance()},
    **PARAMETERS,
)
