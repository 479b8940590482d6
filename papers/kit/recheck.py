"""Stored runs recomputed and compared: a sample of them, as far as the time allows.

A run is drawn at random and computed again from its start: all of it where it fits, else some of
its seeds for as many rounds as fit. Every stored curve, the bits and, at the end, the models must
be what is stored, up to rounding: a run is computed alone here, and was computed in a grid. What
lies beyond the prefix, or in other seeds, is not seen; `papers.kit.ledger` has how far anyone came.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedlib import run
from fedlib.core import Problem, Trace
from papers.kit import archive, runfile, store
from papers.kit.ledger import RunPrefix, run_name
from papers.kit.store import Spec, problems
from papers.kit.study import Study
from papers.kit.tolerance import Tolerance, tolerance_of

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

SEEDS = 2  # of a run, that are computed again
SHARE = 5  # of the time, one part of so many goes to one run at most,
MOST_S = 6.0  # and so many seconds
ROUND_S = 0.004  # a round alone takes as long at least, whatever its share of a grid was
SHIFT = 1e-6  # of start and data, as much as the digits of a float32 come to in some rounds
NOTHING = 1e-12  # smaller numbers are zeros, rounded
ROUGH = 1e-5  # what six digits of a model come to
ENDS = ("the final model", "the output")
NUMBERS = "numbers"  # the file beside the runs
START_S = 0.5  # to make a problem and record its round


def sample(
    studies: Iterable[Study], rng: np.random.Generator, seconds: float, last: Container[str] = ()
) -> Iterator[tuple[Study, Spec, RunPrefix]]:
    """Stored runs in a random order, one of each study in turn; each fits its share of the time.

    Those called `last` (`study/run`) come after a study's others.
    """
    left = {}
    for study in studies:
        runs = stored(study)
        drawn = [runs[i] for i in rng.permutation(len(runs))]
        # the next one is taken from the end
        drawn.sort(key=lambda one: f"{study.name}/{run_name(one[1], one[0])}" not in last)
        left[study.name] = (study, drawn)
    most = min(seconds / SHARE, MOST_S)
    while left:
        for name in rng.permutation([*left]):
            study, runs = left[name]
            profile, chosen, spec = runs.pop()
            yield study, spec, prefix_of(study, chosen, spec, rng, most, profile)
            if not runs:
                del left[name]


def stored(study: Study) -> list[tuple[str, str, Spec]]:
    """The runs of a study with their profiles: all of the full one, and the paper's that are there.

    A run that both settings share is the full profile's.
    """
    runs = [("full", *one) for one in study.specs(study.resolve("full")).items()]
    if archive.exists(store.run_path(study.name, store.PAPER, NUMBERS)):
        for name, spec in study.specs(study.resolve(store.PAPER)).items():
            if archive.exists(store.run_path(study.name, store.PAPER, name)):
                runs.append((store.PAPER, name, spec))
    return runs


def prefix_of(
    study: Study,
    name: str,
    spec: Spec,
    rng: np.random.Generator,
    seconds: float,
    profile: str = "full",
) -> RunPrefix:
    """As many rounds of a run as fit the time, by how long it took, and some seeds.

    Where the whole run fits, all seeds do: the time that is stored is theirs.
    """
    took = float(study.payload(name, profile)["provenance"]["wall_s"])
    fits = int((seconds - START_S) / max(took / spec.rounds, ROUND_S))
    most = min(tolerance_of(name, study.tolerances).rounds or spec.rounds, spec.rounds)
    drawn = rng.permutation(spec.seeds)[: SEEDS if fits < spec.rounds else None]
    rounds, seeds = max(1, min(fits, most)), tuple(sorted(drawn.tolist()))
    return RunPrefix(study.name, name, rounds, spec.rounds, seeds, profile)


@dataclass(frozen=True)
class Comparison:
    """A sentence for each part of a stored run that is not what was computed now.

    `difference` is the largest of all, as a share of the largest entry of its curve.
    """

    wrong: list[str]
    difference: float


def recompute(study: Study, spec: Spec, part: RunPrefix) -> Comparison:
    """Compute a prefix of a stored run again, and compare."""
    return compare(study, spec, part, _computed(spec, part))


def compare(study: Study, spec: Spec, part: RunPrefix, trace: Trace) -> Comparison:
    """Compare a stored run with what the code gives over a prefix.

    Where a problem that is shifted by rounding leads elsewhere too, nothing is compared: another
    CPU may round so that a switch at its threshold falls to the other side.
    """
    payload = study.payload(part.name, part.profile)
    tolerance = tolerance_of(part.name, study.tolerances)
    held = runfile.to_trace(payload)
    pairs = [p for p in _pairs(trace, held, part) if p[0] not in tolerance.timed]
    near = first = [_near(now, then, tolerance) for _, now, then in pairs]
    # both ways, since a tie that rounding decides falls to one side with each
    for shift in () if all(one.all() for one in near) else (SHIFT, -SHIFT):
        shifted = _pairs(_computed(spec, part, shift), held, part)
        other = {what: now for what, now, _ in shifted}
        near = [
            one | ~_steady(other[what], now, tolerance, ends=what in ENDS)
            for one, (what, now, _) in zip(near, pairs, strict=True)
        ]
    # a difference that rounding alone may lead to does not count
    counted = [one | ~now for one, now in zip(first, near, strict=True)]
    apart = (_apart(*p[1:], one) for p, one in zip(pairs, counted, strict=True))
    difference = max(apart, default=0.0)
    places = [(what, one, part.seeds) for (what, _, _), one in zip(pairs, near, strict=True)]
    for name, now, then in _ends(held, spec):
        if not any(fnmatchcase(name, pattern) for pattern in tolerance.blurred):
            what = f"the last {name}, of the final model,"
            places.append((what, _near(now, then, tolerance, ROUGH), held.seeds))
    wrong = [
        f"{part.run}: {what} must be what the code gives, it is not at entry {at} of seed "
        f"{seeds[row]}; find out why, or reproduce it."
        for what, one, seeds in places
        for row, at in np.argwhere(~one)[:1]
    ]
    return Comparison([*wrong, *_bits(trace, payload, part)], difference)


def _computed(spec: Spec, part: RunPrefix, shift: float = 0.0) -> Trace:
    """A prefix computed now, of problems with so much noise."""
    made = problems(spec.problem, part.seeds)
    if shift:
        made = {seed: _shifted(problem, shift, seed) for seed, problem in made.items()}
    trace: Trace = run(
        spec.algorithm,
        made.__getitem__,
        rounds=part.rounds,
        seeds=part.seeds,
        evaluate_every=spec.evaluate_every,
        progress=False,
    )
    return trace


def _shifted(problem: Problem, shift: float, seed: int) -> Problem:
    """A problem with noise in its start and, a share of each entry, in its real data.

    The data too, since a first step of size 1 forgets the start.
    """
    g = torch.Generator().manual_seed(seed)

    def noise(x: Tensor) -> Tensor:
        return shift * torch.randn(x.shape, generator=g).to(x)

    w0 = problem.w0 + noise(problem.w0)
    if problem.set is not None:  # where methods without projections must start
        w0 = problem.set.project(w0)
    data = tuple(x * (1 + noise(x)) if x.is_floating_point() else x for x in problem.data)
    return replace(problem, w0=w0, data=data)


def _pairs(trace: Trace, held: Trace, part: RunPrefix) -> list[tuple[str, Array, Array]]:
    """What was computed beside what is stored: curves, and models where the end is reached."""
    rows = [held.seeds.index(seed) for seed in part.seeds]
    models = _models(trace, held, rows) if part.rounds == part.of else ()
    return [*_curves(trace, held, rows), *models]


def _curves(trace: Trace, held: Trace, rows: Sequence[int]) -> Iterator[tuple[str, Array, Array]]:
    """Each stored curve as it is now and as it is stored, where both were evaluated."""
    there = {int(t): i for i, t in enumerate(held.rounds)}
    columns = [i for i, t in enumerate(trace.rounds) if int(t) in there]
    stored = [there[int(trace.rounds[i])] for i in columns]
    for name, curve in held.metrics.items():
        yield name, trace.metrics[name][:, columns], curve[rows][:, stored]
    for name, curve in held.info.items():
        yield name, trace.info[name], curve[rows][:, : trace.rounds[-1]]


def _models(trace: Trace, held: Trace, rows: Sequence[int]) -> Iterator[tuple[str, Array, Array]]:
    if held.state is not None:
        yield ENDS[0], trace.state.w.double().numpy(), held.state[rows]
    if held.output is not None and trace.output is not None:
        yield ENDS[1], trace.output, held.output[rows]


def _ends(held: Trace, spec: Spec) -> Iterator[tuple[str, Array, Array]]:
    """The last entry of every curve as it follows from the stored final models of all seeds."""
    if held.state is None or not held.metrics:
        return
    each = []
    for seed, model in zip(held.seeds, held.state, strict=True):
        problem = spec.problem(seed)
        w = torch.tensor(model, dtype=problem.w0.dtype)
        each.append({k: float(v) for k, v in problem.metrics(w, problem).items()})
    for name, curve in held.metrics.items():
        # the curve goes with it, for its size: an entry near zero is rounded as the others are
        now = np.concatenate([curve[:, :-1], [[one[name]] for one in each]], axis=1)
        yield name, now, curve


def _near(now: Array, then: Array, tolerance: Tolerance, least: float = NOTHING) -> Flags:
    """Where two curves, a row a seed, differ by no more than rounding does."""
    if now.shape != then.shape:
        return np.zeros((1, 1), bool)
    size = np.max(np.abs(then), axis=1, initial=0.0, keepdims=True, where=np.isfinite(then))
    both = np.isfinite(now) & np.isfinite(then)
    with np.errstate(invalid="ignore"):
        near = abs(now - then) <= tolerance.rtol * abs(then) + tolerance.atol * size + least
    return np.where(both, near, ~np.isfinite(now) & ~np.isfinite(then))


def _apart(now: Array, then: Array, counted: Flags) -> float:
    """The largest difference of two curves where it counts, as a share of the largest entry."""
    if now.shape != then.shape or not counted.any():
        return 0.0
    both = counted & np.isfinite(now) & np.isfinite(then)
    size = np.max(np.abs(then), initial=NOTHING, where=np.isfinite(then))
    return float(np.max(np.abs(now - then), initial=0.0, where=both) / size)


def _steady(shifted: Array, now: Array, tolerance: Tolerance, *, ends: bool) -> Flags:
    """Where a shifted problem has led to the same so far; of a model, in all of it.

    To a tenth of what rounding may do: two ways may part slowly, and a third stand between.
    """
    tenth = replace(tolerance, rtol=tolerance.rtol / 10, atol=tolerance.atol / 10)
    same = _near(shifted, now, tenth)
    if ends:
        return np.broadcast_to(same.all(axis=1, keepdims=True), same.shape)
    return np.logical_and.accumulate(same, axis=1)


def _bits(trace: Trace, payload: Mapping[str, Any], part: RunPrefix) -> Iterator[str]:
    """Bits are exact; where they differ between rounds, only the mean of a whole run is known."""
    for name, mean in payload["bits"].items():
        bits = trace.info[name]
        alike = (bits == bits[:1]).all()  # in all seeds, as it seems
        known = float(mean).is_integer() and bits.min() == bits.max()
        if part.rounds == part.of and (alike or list(part.seeds) == payload["seeds"]):
            known = True
        if known and not np.isclose(bits.mean(), mean, 1e-9):
            yield f"{part.run}: {name} must be {bits.mean():.10g}, got {mean:.10g}; reproduce it."
