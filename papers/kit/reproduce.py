"""Stored runs computed again and compared: all of a study, or a sample, as far as time allows.

Every stored curve, the bits and, at the end, the models must be what is stored, up to rounding.
Of a sample each run is computed alone: all of it where it fits, else some of its seeds for as many
rounds as fit. What lies beyond, or in other seeds, is not seen; `papers.kit.ledger` has how far
anyone came. No run is written here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedlib import data, run
from fedlib.core import Problem, Trace
from fedlib.core.files import digest
from fedlib.provenance import versions
from papers.kit import archive, ledger, store
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
START_S = 0.5  # to make a problem and record its round
SHIFT = 1e-6  # of start and data, as much as the digits of a float32 come to in some rounds
NOTHING = 1e-12  # smaller numbers are zeros, rounded
ENDS = ("the final model", "the output")
NAMED = 5  # runs that are not stored and are listed


@dataclass(frozen=True)
class Comparison:
    """A sentence for each part of a stored run that is not what was computed now.

    `difference` is the largest of all, as a share of the largest entry of its curve.
    """

    wrong: list[str]
    difference: float


Done = list[tuple[RunPrefix, Spec, Comparison]]


def check_study(study: Study, profile: str, runs: str, device: str) -> bool:
    """Compute the stored runs with such names again as they were: with their grids, all seeds.

    Whether all are stored and what the code gives. Runs of which only the first rounds follow the
    stored ones are computed that far. What was compared is entered in the ledger.
    """
    specs = study.specs(study.resolve(profile))
    chosen = study.chosen(specs, runs)
    stored = {n: s for n, s in chosen.items() if store.is_stored(study.name, profile, n, s)}
    done: Done = []
    for group in store.groups({name: _cut(study, name, spec) for name, spec in specs.items()}):
        if stored.keys().isdisjoint(group):
            continue
        begun = len(done)
        for name, trace in store.compute(group, device, progress=True).items():
            if spec := stored.get(name):
                rounds = group[name].rounds
                part = RunPrefix(study.name, name, rounds, spec.rounds, spec.seeds, profile)
                done.append((part, spec, compare(study, spec, part, trace)))
                print(*done[-1][-1].wrong, sep="\n", end="", file=sys.stderr)
        enter(done[begun:])
    equal = [found.difference for *_, found in done if not found.wrong]
    largest = max(equal, default=0.0)
    print(f"{study.name}: {len(equal)} of {len(chosen)} runs equal within {largest:.1g}")
    if short := sum(part.rounds < part.of for part, *_ in done):
        print(f"{study.name}: {short} of them over their first rounds alone, no farther")
    if lacking := [name for name in chosen if name not in stored]:
        names = ", ".join(lacking[:NAMED]) + ", ..." * (len(lacking) > NAMED)
        count = f"{len(lacking)} not stored as declared ({names})"
        print(f"{study.name}: {count}; --missing stores them", flush=True)
    return len(equal) == len(chosen)


def recheck(
    studies: Mapping[str, Study],
    names: Sequence[str],
    seconds: float,
    seed: int | None,
    *,
    store: bool,
) -> int:
    """Recompute stored runs drawn at random; 2 if one is not what the code gives.

    By default the seed of the draw is of this commit and day. With `store` the ledger gets an
    entry for each, and runs without one are drawn first.
    """
    asked = [studies[name] for name in names or studies]
    there = [study for study in asked if all(map(data.available, study.data))]
    if seed is None:
        made = versions()
        seed = int(digest([made["commit"], made["date"]])[:8], 16)
    print(f"recheck: seed {seed}, {seconds:g} s", flush=True)
    began, done = time.monotonic(), Done()
    known = {f"{s.name}/{n}" for s in there for n, one in ledger.of_study(s.name).items() if one}
    draws = sample(there, np.random.default_rng(seed), seconds, known if store else ())
    try:
        for study, spec, part in draws:
            if done and time.monotonic() - began > seconds:
                break
            found = recompute(study, spec, part)
            done.append((part, spec, found))
            drawn = ", ".join(map(str, part.seeds))
            print(f"  {part.run}: {part.rounds} of {part.of} rounds, seeds {drawn}", flush=True)
            print(*found.wrong, sep="\n", end="", file=sys.stderr)
    finally:  # stopped by hand too
        if store:
            enter(done)
    equal = [part for part, _, found in done if not found.wrong]
    complete = sum(part.rounds == part.of for part in equal)
    print(
        f"recheck: {len(equal)} runs of {len({p.study for p in equal})} studies are what the code "
        f"gives, {complete} of them to the end, {len(done) - len(equal)} are not "
        f"({time.monotonic() - began:.0f} s)"
    )
    if away := [study.name for study in asked if study not in there]:
        print(f"recheck: not checked here, without their data: {', '.join(away)}")
    return 2 if len(equal) < len(done) else 0


def enter(done: Done) -> None:
    """Enter in the ledger how far recomputed runs agree."""
    ledger.enter((part, spec, found.difference, not found.wrong) for part, spec, found in done)


def sample(
    studies: Iterable[Study], rng: np.random.Generator, seconds: float, last: Container[str] = ()
) -> Iterator[tuple[Study, Spec, RunPrefix]]:
    """Stored runs in a random order, one of each study in turn; each fits its share of the time.

    Those called `last` (`study/run`) come after a study's others.
    """
    left = {}
    for study in studies:
        runs = stored_runs(study)
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


def stored_runs(study: Study) -> list[tuple[str, str, Spec]]:
    """The runs of a study with their profiles: all of the full one, and the paper's that are there.

    A run that both settings share is the full profile's.
    """
    runs = [("full", *one) for one in study.specs(study.resolve("full")).items()]
    at_paper = archive.names(store.run_path(study.name, store.PAPER, "any").parent)
    if "numbers" in at_paper:
        specs = study.specs(study.resolve(store.PAPER))
        runs += [(store.PAPER, name, spec) for name, spec in specs.items() if name in at_paper]
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
    most = _cut(study, name, spec).rounds
    drawn = rng.permutation(spec.seeds)[: SEEDS if fits < spec.rounds else None]
    rounds, seeds = max(1, min(fits, most)), tuple(sorted(drawn.tolist()))
    return RunPrefix(study.name, name, rounds, spec.rounds, seeds, profile)


def _cut(study: Study, name: str, spec: Spec) -> Spec:
    """A run as far as it can be compared: to the end, for most."""
    rounds = tolerance_of(name, study.tolerances).rounds
    return spec if rounds is None else replace(spec, rounds=min(rounds, spec.rounds))


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
    held = store.to_trace(payload)
    now = _parts(trace, part, held)
    then = {what: x for what, x in _stored(held, trace, part).items() if what in now}
    known = [what for what in then if what not in tolerance.timed]
    equal = {what: _near(now[what], then[what], tolerance) for what in known}
    chaotic = {what: np.zeros_like(one) for what, one in equal.items()}
    # both ways, since a tie that rounding decides falls to one side with each
    for shift in () if all(one.all() for one in equal.values()) else (SHIFT, -SHIFT):
        other = _parts(_computed(spec, part, shift), part, held)
        for what in known:
            chaotic[what] = chaotic[what] | ~_steady(other[what], now[what], tolerance, what)
    wrong, difference = [], 0.0
    for what in known:
        for row, at in np.argwhere(~equal[what] & ~chaotic[what])[:1]:
            wrong.append(
                f"{part.run}: {what} must be what the code gives, it is not at entry {at} of seed "
                f"{part.seeds[row]}; find out why, or reproduce it."
            )
        if now[what].shape == then[what].shape:
            apart = np.abs(now[what] - then[what])[equal[what] | ~chaotic[what]]
            size = np.nanmax(np.abs(then[what]), initial=NOTHING)
            difference = max(difference, np.nanmax(apart, initial=0.0) / size)
    return Comparison([*wrong, *_bits(trace, payload, part)], float(difference))


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


def _parts(trace: Trace, part: RunPrefix, held: Trace) -> dict[str, Array]:
    """What was computed: curves at the stored rounds, and models where the end is reached."""
    columns = np.isin(trace.rounds, held.rounds)
    found = {**{what: x[:, columns] for what, x in trace.metrics.items()}, **trace.info}
    if part.rounds == part.of:
        found[ENDS[0]] = trace.state.w.double().numpy()
        if trace.output is not None:
            found[ENDS[1]] = trace.output
    return {what: np.where(np.isfinite(x), x, np.nan) for what, x in found.items()}


def _stored(held: Trace, trace: Trace, part: RunPrefix) -> dict[str, Array]:
    """What is stored of the same seeds and rounds."""
    rows = [held.seeds.index(seed) for seed in part.seeds]
    columns = np.isin(held.rounds, trace.rounds)
    found = {what: x[rows][:, columns] for what, x in held.metrics.items()}
    found |= {what: x[rows][:, : part.rounds] for what, x in held.info.items()}
    ends = zip(ENDS, (held.state, held.output), strict=True)
    return found | {what: x[rows] for what, x in ends if x is not None}


def _near(now: Array, then: Array, tolerance: Tolerance, share: float = 1.0) -> Flags:
    """Where two curves, a row a seed, differ by no more than (a share of) what rounding does."""
    if now.shape != then.shape:
        return np.zeros((1, 1), bool)
    size = np.nanmax(np.abs(then), axis=1, initial=0.0, keepdims=True)
    absolute: Any = share * tolerance.atol * size + NOTHING
    return np.isclose(now, then, share * tolerance.rtol, absolute, equal_nan=True)


def _steady(shifted: Array, now: Array, tolerance: Tolerance, what: str) -> Flags:
    """Where a shifted problem has led to the same so far; of a model, in all of it.

    A curve to a tenth of what rounding may do: two ways may part slowly, and a third stand between.
    """
    if what in ENDS:
        same = _near(shifted, now, tolerance)
        return np.broadcast_to(same.all(axis=1, keepdims=True), same.shape)
    return np.logical_and.accumulate(_near(shifted, now, tolerance, 0.1), axis=1)


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
