"""What of a run is watched to tell its health: metrics, what is better, and what is chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from fedlib import checks
from fedlib.core import Trace

Better = Literal["lower", "higher"]

#: Names of metrics, a task's number left off: what is better, and the best there is.
BY_NAME: dict[str, tuple[Better, float | None]] = {
    "loss": ("lower", 0.0),
    "cost": ("lower", 0.0),
    "f": ("lower", None),
    "f_gap": ("lower", 0.0),
    "excess": ("lower", 0.0),
    "stationarity": ("lower", 0.0),
    "stationary": ("lower", 0.0),
    "error": ("lower", 0.0),
    "gap": ("lower", 0.0),
    "accuracy": ("higher", 1.0),
    "reward": ("higher", None),
    "psnr": ("higher", None),
}
COUNTS = ("accuracy", "reward")  # can rest while the model moves


@dataclass(frozen=True)
class HealthCheck:
    """What tells whether a run is healthy.

    Attributes
    ----------
    metric : its name, or a pattern such as `"loss_*"`: then every task is watched for itself.
    better : where it should go; read off the name where it is empty.
    chance : its value without learning, where that stands in the run's configuration, such as
        `"problem.majority"`, or a function of the configuration; the start where None.
    best : the best that there is, where that is known; read off the name where None.
    guard, level : a constraint `guard <= level`. A run is then better than its start if the metric
        is, or if the constraint is violated less.
    exact : why coming to rest abruptly is no death, such as "exact gradients"; empty where it is.
    rests : why nothing is asked of these runs but to be finite; empty where something is.
    task : whether it is one of a pattern's. Without a known chance a task need not gain, since
        tasks give and take; it must not be dead.
    """

    metric: str = ""
    better: Better | Literal[""] = ""
    chance: float | str | Callable[[Mapping[str, Any]], float] | None = None
    best: float | None = None
    guard: str = ""
    level: float = 0.0
    exact: str = ""
    rests: str = ""
    task: bool = False

    def __post_init__(self) -> None:
        checks.fields(self)

    @property
    def known(self) -> tuple[Better, float | None]:
        """What is better, and the best there is."""
        by_name = BY_NAME.get(stem(self.metric), ("lower", None))
        return self.better or by_name[0], by_name[1] if self.best is None else self.best


HealthChecks = Mapping[str, HealthCheck | tuple[HealthCheck, ...]]


def nothing(why: str) -> HealthCheck:
    """For runs that optimize nothing: closed forms, probes, optima known beforehand."""
    return HealthCheck(rests=why)


def learning(chance: float | Callable[[Mapping[str, Any]], float]) -> tuple[HealthCheck, ...]:
    """For runs of a classifier: training loss, and test accuracy beyond that of guessing.

    Where classes differ in size, guessing is to answer the most frequent one.
    """
    return HealthCheck("loss"), HealthCheck("accuracy", chance=chance)


def watches_of(run: str, watch: HealthChecks) -> tuple[HealthCheck, ...]:
    """What a study watches of a run: the first pattern that its name fits; empty if none does."""
    for pattern, found in watch.items():
        if fnmatchcase(run, pattern):
            return found if isinstance(found, tuple) else (found,)
    return ()


def by_name(trace: Trace) -> tuple[HealthCheck, ...]:
    """What is watched where a study says nothing: the first known name, and its tasks."""
    for name in BY_NAME:
        if name in trace.metrics:
            tasks = any(fnmatchcase(m, f"{name}_[0-9]*") for m in trace.metrics)
            return HealthCheck(name), *([HealthCheck(f"{name}_[0-9]*")] if tasks else [])
    return ()


def opened(trace: Trace, watch: HealthCheck) -> Iterator[HealthCheck]:
    """A watch with all values for every metric that its pattern fits; refused if there is none."""
    if watch.rests:
        yield watch
        return
    fitting = [m for m in trace.metrics if fnmatchcase(m, watch.metric)]
    for name in [watch.guard] if fitting else [watch.metric]:
        if name not in ("", *trace.metrics):
            there = ", ".join(trace.metrics)
            raise ValueError(f"HealthCheck: metric must be among {there}, got {name!r}.")
    better, best = watch.known
    chance = watch.chance
    if isinstance(chance, str):
        found: Any = trace.config
        for key in chance.split("."):
            found = found[key]
        chance = float(found)
    elif callable(chance):
        chance = chance(trace.config)
    if chance is not None and best is None:
        raise ValueError(
            f"HealthCheck: best must be given with chance, got None for {watch.metric}."
        )
    task = watch.task or "*" in watch.metric
    for metric in fitting:
        yield replace(watch, metric=metric, better=better, best=best, chance=chance, task=task)


def stem(metric: str) -> str:
    """The name of a metric without a task's number, or a pattern's end."""
    return metric.split("[")[0].rstrip("0123456789*").rstrip("_")
