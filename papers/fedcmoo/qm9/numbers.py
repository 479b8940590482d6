"""The derived numbers of the QM9 study: losses at equal rounds and equal upload, and uploads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedcmoo.common import COLOR, METHODS
from papers.kit import plot
from papers.kit.numbers import Number, exact, mean
from papers.kit.panels import Layer, on, panel, row
from papers.kit.study import Params, Traces, swept

TASKS = tuple(range(1, 12))
LOSSES = ("loss", *(f"loss_{k}" for k in TASKS))
SLACK = 0.01  # by how much more, relative, an upload may be and still count as equal
FLOAT_BITS = 32


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    runs = {m: traces[f"qm9_{m}"] for m in METHODS}
    numbers: dict[str, Number] = {}
    for m, trace in runs.items():
        numbers[f"{m}.upload"] = exact(upload(trace), "d")
        numbers[f"{m}.rounds"] = exact(trace.rounds[-1], "rounds")
        numbers[f"{m}.start"] = mean(trace.metrics["loss"][:, 0])
    batch = runs["fedcmoo"].config["algorithm"]["batch_size"]
    numbers["fedcmoo.batch"] = exact(batch, "molecules")
    rounds = common_round(runs)
    numbers["rounds.at"] = exact(rounds, "rounds")
    numbers |= compared(runs, dict.fromkeys(METHODS, rounds), "rounds")
    room = common_upload(runs)
    numbers["upload.at"] = exact(room, "d")
    last = {m: int(t.rounds[within(t, room)]) for m, t in runs.items()}
    numbers |= compared(runs, last, "upload")
    numbers["rounds.largest_gap"] = mean(largest_gap(runs["fedcmoo"], runs["fsmgda"]))
    return numbers | counted(traces, p)


def upload(trace: Trace) -> float:
    """What a client uploads in a round, in model sizes d of 32-bit numbers."""
    config = trace.config
    floats = config["bits"]["bits_up"] / (FLOAT_BITS * config["algorithm"]["participants"])
    return float(floats / config["problem"]["dim"])


def uploaded(trace: Trace) -> Array:
    return np.asarray(trace.rounds * upload(trace), float)


def within(trace: Trace, room: float) -> int:
    """The last evaluated model that was reached with an upload of `room` (in d)."""
    return int(np.flatnonzero(uploaded(trace) <= room * (1 + SLACK))[-1])


def common_round(runs: Traces) -> int:
    shared = set.intersection(*(set(t.rounds.tolist()) for t in runs.values()))
    return int(max(shared))


def common_upload(runs: Traces) -> float:
    """The largest upload of a client of every round that all runs have reached, in d."""
    return min(float(uploaded(t)[-1]) for t in runs.values())


def largest_gap(ours: Trace, theirs: Trace) -> Array:
    """Per seed the largest difference of the mean losses after any round that both have."""
    both = sorted({*ours.rounds.tolist()} & {*theirs.rounds.tolist()} - {0})
    apart = [at_round(ours, "loss", t) - at_round(theirs, "loss", t) for t in both]
    return np.asarray(np.max(apart, axis=0))


def at_round(trace: Trace, name: str, number: int) -> Array:
    return np.asarray(trace.metrics[name][:, int(np.flatnonzero(trace.rounds == number)[0])])


def compared(runs: Traces, rounds: dict[str, int], kind: str) -> dict[str, Number]:
    """Losses after given rounds of every method, differences to FSMGDA, tasks that are lower."""
    found: dict[str, Number] = {}
    at = {m: {k: at_round(runs[m], k, rounds[m]) for k in LOSSES} for m in METHODS}
    for m in METHODS:
        found[f"{kind}.{m}.loss"] = mean(at[m]["loss"])
    for m in ("fedcmoo", "pref"):
        gaps = {k: at[m][k] - at["fsmgda"][k] for k in LOSSES}
        found |= {f"{kind}.{m}_vs_fsmgda.{k}": mean(gaps[k]) for k in LOSSES}
        lower = np.sum([gaps[f"loss_{k}"] < 0 for k in TASKS], 0)
        found[f"{kind}.{m}_vs_fsmgda.lower"] = mean(lower, "of 11 tasks")
    return found


def counted(traces: Traces, p: Params) -> dict[str, Number]:
    """Uploads of the one-round runs, in d, and without their small matrices; ratios."""
    found: dict[str, Number] = {}
    dim = p["count_dim"]
    for tasks in p["objectives"]:
        each = {m: traces[f"count_{m}_{tasks}"] for m in METHODS}
        found |= {f"count_{tasks}.{m}": exact(upload(t), "d") for m, t in each.items()}
        small = {"fedcmoo": 2 * tasks**2, "pref": 2 * tasks**2 + tasks}
        for m, count in small.items():
            rest = round(upload(each[m]) * dim) - count
            found[f"count_{tasks}.{m}_long"] = exact(rest / dim, "d")
        ratio = upload(each["fsmgda"]) / upload(each["fedcmoo"])
        found[f"count_{tasks}.ratio"] = exact(ratio)
    ratio = upload(traces["qm9_fsmgda"]) / upload(traces["qm9_fedcmoo"])
    found["qm9.ratio"] = exact(ratio)
    return found


MARKS = {"fsmgda": "o", "fedcmoo": "s", "pref": "^"}


def figure_3(traces: Traces) -> plot.Drawing:
    def against(x: Callable[[Trace], Any], **frame: Any) -> Layer:
        curves = []
        for m in METHODS:
            trace = traces[f"qm9_{m}"]
            style: Any = {"color": COLOR[METHODS[m]], "marker": MARKS[m], "markersize": 3}
            loss = trace.metrics["loss"]
            curves.append(on(plot.band, x(trace), loss, label=METHODS[m], **style))
        return panel(*curves, **frame)

    label = "mean test loss of 11 targets"
    return row(
        against(lambda t: t.rounds, xlabel="round", ylabel=label, legend=True),
        against(uploaded, xlabel="uploaded (model size x clients of a round)"),
        sharey=True,
    )


def uploads(traces: Traces) -> plot.Drawing:
    tasks = [*swept(traces, "count_fsmgda_")]

    def draw(ax: plot.Axes) -> None:
        for m in METHODS:
            y = [upload(traces[f"count_{m}_{k:g}"]) for k in tasks]
            line = "--" if m == "pref" else "-"  # it lies on FedCMOO's
            ax.plot(tasks, y, line, color=COLOR[METHODS[m]], marker=MARKS[m], label=METHODS[m])
            ring: dict[str, Any] = {"facecolors": "none", "edgecolors": COLOR[METHODS[m]], "s": 110}
            sent = [upload(traces[f"qm9_{m}"])]
            ax.scatter([len(TASKS)], sent, label=f"{METHODS[m]} on QM9", **ring)
        ax.set_yscale("log")
        ax.set_yticks([2, 5, 10, 20, 40], ["2", "5", "10", "20", "40"])
        plot.log_ticks(ax, tasks)

    label = "upload of a client and round (d)"
    return row(panel(draw, xlabel="objectives M", ylabel=label, legend=True))


FIGURES = {"figure_3": figure_3, "uploads": uploads}
