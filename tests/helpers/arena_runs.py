"""Runs of the arena made by hand."""

from dataclasses import replace

import numpy as np

from fedlib.core import Trace
from papers.arena.problems import LEVELS
from papers.arena.quantities import fields
from papers.arena.runs import DEFAULTS, REFERENCE
from papers.kit.quantities import name_of

E = 3  # local steps
SEEDS = (0, 1, 2)
LEVEL = LEVELS["np"]
SIDES = ("", "val_", "test_")


def trace_of(f, g, *, up=32.0, down=0.0, d=4, metrics=()):
    """A run on np with `[S][T]` curves on all three kinds of rows."""
    f = np.asarray(f, float)
    g = np.asarray(g, float)
    curves = {}
    for side in SIDES:
        curves[f"{side}f"] = f
        curves[f"{side}g"] = g
    for name, values in dict(metrics).items():
        curves[name] = np.asarray(values, float)
    config = {
        "algorithm": {"method": {"local_steps": E}},
        "problem": {"clients": 2, "dim": d},
        "bits": {"bits_up": up, "bits_down": down},
    }
    rounds = 10 * np.arange(f.shape[1])
    return Trace(curves, {}, rounds, SEEDS[: len(f)], config, {"wall_s": 1.0})


OPTIMUM = trace_of(
    [[0.5, 0.5]] * 3,
    [[LEVEL, LEVEL]] * 3,
    metrics={"residual": [[0.0] * 2] * 3},
)
P = {"local_steps": E, "passes": 6 * E * 10}


def ending(f, g, spread=0.0, **options):
    """Three seeds that start at (1, 2 level) and end around (f, g)."""
    constraints = [[2 * LEVEL, g + spread * side] for side in (-1.0, 0.0, 1.0)]
    return trace_of([[1.0, f]] * 3, constraints, **options)


def named(runs):
    """Traces by name: those of methods and configurations on np, and the optimum."""
    traces = {}
    for (method, number), trace in {**runs, (REFERENCE, None): OPTIMUM}.items():
        labels = {"problem": "np", "method": method}
        if number is not None:
            labels["config"] = number
        traces[name_of(labels, DEFAULTS)] = replace(
            trace, config={**trace.config, "labels": labels}
        )
    return traces


def field_of(runs):
    (field,) = fields(named(runs), P)
    return field
