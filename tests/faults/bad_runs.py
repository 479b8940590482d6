"""`run`, what becomes of its traces, `compare` and the parameters of studies, given bad things."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import bad_values as bad
import numpy as np
import torch
from bad_values import Calls
from judging import Case

import fedlib as fl
from fedlib.core.federation import Federation
from fedlib.problems import neyman_pearson, pareto, quadratics

SGM = fl.FedSGM(lr=0.1, local_steps=1, participants=2, tolerance=0.05)
AVERAGE = fl.FedAvg(0.1, 1, 2)


class Plain:
    """Three methods and no dataclass."""

    def init(self, problem: Any) -> None: ...

    def draw(self, problem: Any, rng: Any) -> None: ...

    def round(self, fed: Any, state: Any, draw: Any) -> None: ...


@cache
def easy() -> fl.Problem:
    return quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)


def like(**changes: Any) -> fl.Problem:
    """The easy problem with other functions."""
    return replace(easy(), **changes)


def run_good() -> dict[str, Any]:
    return {"algorithms": SGM, "problem": easy(), "rounds": 1, "progress": False}


def wrong_losses() -> tuple[fl.Problem, ...]:
    """Problems whose functions do not give what they say."""
    losses, gradient, metrics = easy().losses, easy().gradient, easy().metrics
    assert gradient is not None
    found: list[dict[str, Any]] = [
        {"losses": f}
        for f in (
            lambda w, b: losses(w, b)[:1],
            lambda w, b: losses(w, b).sum(),
            lambda _, __: 3.0,
            lambda _, __: None,
            lambda w, b: list(losses(w, b)),
            lambda w, b: losses(w, b).long(),
            lambda w, b: torch.cat([losses(w, b)] * 2),
            lambda w, _: w @ torch.ones(5),
            lambda _, b: b.data[7],
            lambda w, b: losses(w, b).unsqueeze(0),
        )
    ]
    found += [
        {"gradient": f}
        for f in (
            lambda w, b, v: gradient(w, b, v)[:1],
            lambda w, b, v: gradient(w, b, v).sum(),
            lambda *_: None,
            lambda w, b, v: gradient(w, b, v).unsqueeze(0),
            lambda w, b, v: gradient(w, b, v).tolist(),
        )
    ]
    found += [
        {"metrics": f}
        for f in (
            lambda _, __: None,
            lambda _, __: {},
            lambda w, _: {"f": w},
            lambda _, __: {"f": 1.0},
            lambda w, _: {3: w.sum()},
            lambda w, _: {"seed": w.sum()},
            lambda w, _: {"round": w.sum()},
            lambda w, _: {"": w.sum()},
            lambda w, _: [w.sum()],
            lambda w, _: w.sum(),
            lambda w, p: {**metrics(w, p), "bad": None},
        )
    ]
    found += [{"num_objectives": 2}, {"num_constraints": 0}, {"num_constraints": 2}]
    return tuple(like(**changes) for changes in found)


def seeded(seed: int) -> fl.Problem:
    """Problems of the seeds that do not fit together."""
    return quadratics(torch.ones(4, 2 + seed), torch.zeros(4, 2 + seed), level=0.5)


def run_calls() -> Iterator[Calls]:
    """Every argument of `run` but those of checkpoints."""
    grids = ((), [], [SGM, AVERAGE], [SGM, None], [SGM, replace(SGM, local_steps=2)])
    algorithms = (None, "FedSGM", 3, fl.FedSGM, [fl.FedSGM], {"a": SGM}, {SGM}, easy(), Plain())
    algorithms += (Plain, [Plain()], ["FedSGM"], object(), (s for s in [SGM]), *grids)
    problems = (None, "np", 3, fl.Problem, [easy()], {}, quadratics, lambda _: None, SGM)
    problems += (lambda _: "x", lambda _: quadratics, object(), *wrong_losses())
    seeds = (None, "0", "012", b"01", 1.0, [1.0], [True], True, [], (), [0, 0], [1, 2, 1], [-1], -1)
    seeds += ([2**63], 2**64, ["0"], [None], {0, 1}, {0: 1}, [bad.NAN], [[0]], np.array([0.5]))
    seeds += (np.array([[0]]), iter([0]), torch.tensor([0]), [torch.tensor(0)], range(0), 1j, [1j])
    devices = ("gpu", "tpu", "cuda:x", "cuda:", "cuda:-1", "cuda:99", "cpu:1", "CPU", "", 3, None)
    devices += (True, ["cpu"], b"cpu", "cuda:1.5", " cpu", "mps", "meta", "auto:1")
    engines = ("Loop", 3, True, fl.Loop(easy()), Federation, object, dict, [fl.Loop], fl.FedSGM)
    counts = {"rounds": bad.COUNT, "evaluate_every": bad.COUNT}
    shown = tuple(x for x in bad.FLAG)
    values = {"algorithms": algorithms, "problem": problems, "seeds": seeds, "device": devices}
    also = {
        "problem": ("losses", "gradient", "metric", "a round"),
        "algorithms": ("algorithms of one grid",),
    }
    yield Calls(fl.run, run_good, {**values, **counts, "engine": engines, "progress": shown}, also)
    several = {**run_good(), "seeds": (0, 1)}
    apart = (seeded, lambda seed: like(name=f"seed {seed}"))
    yield Calls(fl.run, lambda: several, {"problem": apart}, also, "run of two seeds")


@cache
def trace() -> fl.Trace:
    found: fl.Trace = fl.run(**run_good() | {"rounds": 3, "seeds": (0, 1)})
    return found


def trace_calls() -> Iterator[Calls]:
    """Methods of a trace."""
    names = ("h", "F", "", None, 3, ["f"], "distanc")
    share = (*bad.SHARE,)
    yield Calls(trace().late, lambda: {"name": "f"}, {"name": names, "share": share}, {}, "late")
    yield Calls(trace().of_rounds, dict, {"name": names}, {}, "of_rounds")
    yield Calls(trace().save, dict, {"path": (*bad.PATH, Path("/"))}, {"path": ("folder",)}, "save")
    missing = (*bad.PATH, "nowhere.json", Path("/"), "pyproject.toml")
    also = {"path": ("nowhere", "pyproject", "file", "store")}
    yield Calls(fl.Trace.load, dict, {"path": missing}, also, "load")


def cases() -> Iterator[Case]:
    """All of them."""
    for calls in (*run_calls(), *trace_calls()):
        yield from calls.cases()


def good() -> Iterator[tuple[str, Callable[[], object]]]:
    """What must pass, by name."""
    more: list[dict[str, Any]] = [
        {},
        {"seeds": 3},
        {"seeds": np.int64(3)},
        {"seeds": range(2)},
        {"seeds": np.arange(2)},
        {"seeds": [np.int32(1), 0]},
        {"seeds": 2**63 - 1},
        {"rounds": np.int64(2), "evaluate_every": np.int16(5)},
        {"algorithms": (SGM,), "progress": np.False_},
        {"algorithms": [SGM, replace(SGM, lr=0.2)], "engine": fl.Loop},
        {"problem": lambda _: easy(), "seeds": (0, 1), "device": "auto"},
        {"problem": pareto(torch.ones(3, 1, 2, 2)), "algorithms": AVERAGE},
    ]
    for changes in more:
        yield f"run {changes}", lambda c=changes: fl.run(**run_good() | c)
    X, y = torch.linspace(-1, 1, 48).view(24, 2), torch.arange(24) % 2
    for changes in ({}, {"clients": np.int64(4)}, {"X": X.long()}, {"y": y.bool()}):
        yield (
            f"neyman_pearson {[*changes]}",
            lambda c=changes: neyman_pearson(**{"X": X, "y": y, "clients": 4} | c),
        )
