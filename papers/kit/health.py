"""Health of runs: finite, moved, better than chance or than the start, settled or not, not dead.

A run is judged by the curves that a `HealthCheck` names: a pure function of what is stored. What a
claim says of a method means nothing where the method never trained; `Health.wrong` says so.

>>> curve = np.array([[1.0, 0.6, 0.4, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3]])
>>> of_run(Trace({"loss": curve}, {}, np.arange(11), (0,), {})).text
'dead: loss constant from round 4'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlib.core import Trace
from papers.kit.curve_stats import (
    DIGIT,
    Curve,
    PerSeed,
    Seeds,
    abruptly,
    gains,
    late,
    moves,
    rests_from,
    stretch,
    way,
)
from papers.kit.health_checks import COUNTS, HealthCheck, by_name, opened, stem

__all__ = ["Health", "HealthCheck", "of_run"]

AWAY = 0.05  # of the way from chance to the best there is: whoever is nearer to chance is at it
STEP = "direction"  # what a method reports of the length of its step


@dataclass(frozen=True)
class Health:
    """How a run is; `wrong` is empty if a claim may be judged on it.

    Attributes
    ----------
    finite : every watched curve is, in all seeds; and what was finite at the start stayed so.
    moved : in every seed some watched curve left its start by more than rounding.
    above : seeds in which every watched curve ends better than chance, or than its start, by more
        than noise.
    seeds : how many there are.
    course : of the first watched curve over the last fifth: `settled`, `still improving`,
        `worsening`; `unknown` if it was evaluated too seldom, `none` if the run optimizes nothing.
    wrong : what is wrong, in a few words: not finite or never moved, dead or at chance in some
        seed, or no better than the start in half of the seeds or more.
    """

    finite: bool
    moved: bool
    above: int
    seeds: int
    course: str
    wrong: str = ""

    @property
    def text(self) -> str:
        """One short phrase for tables."""
        told = {"none": "nothing to train", "unknown": "healthy", "worsening": "healthy, worsening"}
        return self.wrong or told.get(self.course, f"healthy, {self.course}")

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))


def of_run(trace: Trace, watches: Sequence[HealthCheck] = ()) -> Health:
    """The health of one run, by some watches, or by its first metric of a known name."""
    judged = [one for watch in watches or by_name(trace) for one in opened(trace, watch)]
    seeds = len(trace.seeds)
    if broken := not_finite(trace, judged):
        return Health(False, True, 0, seeds, "unknown", broken)
    if not judged or judged[0].rests:
        return Health(True, True, seeds, seeds, "none")
    still = np.asarray(np.all([~moved(trace, watch) for watch in judged], axis=0))
    above = np.all([is_above(trace, watch) for watch in judged], axis=0)
    faults = (
        phrase(f"never moved: {names([w.metric for w in judged])} constant", still),
        dead(trace, judged),
        *(below(trace, watch) for watch in sorted(judged, key=lambda w: w.chance is None)),
    )
    course = course_of(trace, judged[0])
    wrong = next(filter(None, faults), "")
    return Health(True, not still.any(), int(above.sum()), seeds, course, wrong)


def not_finite(trace: Trace, watches: Sequence[HealthCheck]) -> str:
    """From which round in how many seeds a curve is not finite; empty if all are.

    A metric that nobody watches may be undefined from the start.
    """
    watched = {name for watch in watches for name in (watch.metric, watch.guard)}
    bad = np.zeros((len(trace.seeds), len(trace.rounds)), bool)
    for name, x in trace.metrics.items():
        if name in watched or np.isfinite(x[:, 0]).all():
            bad |= ~np.isfinite(x)
    first = int(trace.rounds[np.argmax(np.any(bad, axis=0))])
    return phrase(f"not finite from round {first}", np.asarray(bad.any(axis=1)))


def moved(trace: Trace, watch: HealthCheck) -> Seeds:
    """Seeds in which the metric, or its constraint, left its start by more than rounding."""
    curves = [trace.metrics[name] for name in (watch.metric, watch.guard) if name]
    return np.asarray(np.any([moves(x) for x in curves], axis=0))


def dead(trace: Trace, watches: Sequence[HealthCheck]) -> str:
    """From which round in how many seeds a watched curve is exactly constant, short of an optimum.

    Constant over the last fifth at least, and abruptly so: the step before was more than a
    thousandth of the curve's whole range (a method that comes to rest at an optimum slows down),
    or the method reports steps that are exactly zero.
    """
    zero = stopped(trace)
    resting = {w.metric: rests(trace, w) for w in watches if not w.exact}
    fell = [rest & abruptly(trace.metrics[name]) for name, rest in resting.items()]
    seeds = np.asarray(np.any([zero, *fell], axis=0))
    constant = {name: x & seeds for name, x in resting.items() if (x & seeds).any()}
    if constant:
        first = min(int(rests_from(trace.metrics[name])[x].min()) for name, x in constant.items())
        return phrase(f"dead: {names([*constant])} constant from {after(trace, first)}", seeds)
    first = int(rests_from(trace.info[STEP])[zero].min()) if zero.any() else 0
    return phrase(f"dead: {STEP} exactly 0 from round {first + 1}", zero)


def stopped(trace: Trace) -> Seeds:
    """Seeds in which the steps that a method reports became exactly zero, and not by and by."""
    if STEP not in trace.info:
        return np.zeros(len(trace.seeds), bool)
    steps = trace.info[STEP]
    return np.asarray((steps[:, -stretch(steps) :] == 0).all(1) & abruptly(steps))


def rests(trace: Trace, watch: HealthCheck) -> Seeds:
    """Seeds whose metric is constant over the last fifth at least, and not at the best there is.

    Of counts, which can rest while the model moves, all metrics have to.
    """
    x = trace.metrics[watch.metric]
    curves = trace.metrics.values() if stem(watch.metric).endswith(COUNTS) else [x]
    since = np.max([rests_from(curve) for curve in curves], axis=0)
    constant = (since > 0) & (since < x.shape[1] - stretch(x))
    return np.asarray(constant & ~at_best(x[:, -1], watch))


def at_best(last: PerSeed, watch: HealthCheck) -> Seeds:
    """Seeds that end at the best there is."""
    if watch.best is None:
        return np.zeros(len(last), bool)
    return np.asarray(
        last <= watch.best + DIGIT if watch.better == "lower" else last >= watch.best - DIGIT
    )


def is_above(trace: Trace, watch: HealthCheck) -> Seeds:
    """Seeds that end better than chance or, where none is known, than their start."""
    x = trace.metrics[watch.metric]
    sign = 1.0 if watch.better == "lower" else -1.0
    if isinstance(watch.chance, float) and watch.best is not None:
        away = sign * (watch.chance - late(x))
        return np.asarray(away > AWAY * abs(watch.chance - watch.best))
    gained = gains(sign * x) | at_best(late(x), watch)
    if watch.guard:
        gained |= gains(violation(trace, watch))
    return np.asarray(gained | watch.task)


def below(trace: Trace, watch: HealthCheck) -> str:
    """That a run ends at chance, or no better than its start, and in how many seeds."""
    seeds = ~is_above(trace, watch)
    if not seeds.any() or (watch.chance is None and 2 * seeds.sum() < len(seeds)):
        return ""
    x = trace.metrics[watch.metric][seeds]
    now = shown(late(x).mean(), watch)
    if isinstance(watch.chance, float):
        what = f"{watch.metric} {now} against {shown(watch.chance, watch)}"
        return phrase(f"at chance: {what}", seeds)
    what = f"{watch.metric} {now} after {shown(x[:, 0].mean(), watch)}"
    return phrase(f"no better than its start: {what}", seeds)


def course_of(trace: Trace, watch: HealthCheck) -> str:
    """Where a run goes at its end; with a constraint, the metric or the violation."""
    sign = 1.0 if watch.better == "lower" else -1.0
    ways = [way(sign * trace.metrics[watch.metric])]
    if watch.guard:
        ways.append(way(violation(trace, watch)))
    order = ("still improving", "worsening", "unknown", "settled")
    return min(ways, key=order.index)


def violation(trace: Trace, watch: HealthCheck) -> Curve:
    """By how much the constraint is exceeded."""
    return np.maximum(trace.metrics[watch.guard] - watch.level, 0.0)


def after(trace: Trace, column: int) -> str:
    """The first round that changes nothing any more."""
    return f"round {int(trace.rounds[column]) + 1}"


def names(metrics: Sequence[str]) -> str:
    """The first of some metrics, and how many more."""
    return metrics[0] + (f" and {len(metrics) - 1} more" if len(metrics) > 1 else "")


def shown(x: float, watch: HealthCheck) -> str:
    """A share as per cent, anything else with four digits, for losses differ in the third."""
    return f"{100 * x:.3g} %" if stem(watch.metric).endswith("accuracy") else f"{x:.4g}"


def phrase(what: str, seeds: Seeds) -> str:
    """What is wrong and in how many seeds, if not in all; empty if in none."""
    if not seeds.any():
        return ""
    return what if seeds.all() else f"{what} in {seeds.sum()} of {len(seeds)} seeds"
