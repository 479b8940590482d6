"""Stored runs computed again and compared: all of a study, or a sample, as far as time allows.

Every stored curve and, at the end, the bits and the models must be what is stored, within the
study's tolerance. Of a sample each run is computed alone, for as many rounds as fit; what lies
beyond is not seen. No run is written here; `papers.kit.comparisons` keeps what came of comparing a
study.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from math import isclose
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedlib.core import Problem, Trace
from fedlib.data.cache import DataError, offline
from papers.kit import comparisons, store
from papers.kit.comparisons import Finding
from papers.kit.health import first_fit, listed
from papers.kit.store import Spec
from papers.kit.study import Study, Tolerance

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

SAMPLE_S = 5.0  # of a run that is drawn, as many rounds as it did in so many seconds,
SAMPLED = 1000  # and so many at most: one of a grid took its share of the grid's time
SHIFT = 1e-6  # of start and data, as much as the digits of a float32 come to in some rounds
NOTHING = 1e-7  # curves that are nowhere larger are zeros, rounded
ENDS = ("the final model", "the output")


@dataclass(frozen=True)
class RunPrefix:
    """The first rounds of one stored run."""

    study: str
    name: str
    rounds: int
    of: int
    profile: str = "full"

    @property
    def run(self) -> str:
        """The run as a sentence names it, with its profile where that is not the full one."""
        return f"{comparisons.named(self.study, self.profile)}/{self.name}"


@dataclass(frozen=True)
class Comparison:
    """What came of comparing the first rounds of a stored run with what was computed now.

    Attributes
    ----------
    prefix : what was compared.
    wrong : a sentence for each part that differs.
    difference : the largest of all, as a share of the largest entry of its curve.
    """

    prefix: RunPrefix
    wrong: list[str]
    difference: float

    @property
    def complete(self) -> bool:
        """Whether the run was compared to its end."""
        return self.prefix.rounds == self.prefix.of

    @property
    def finding(self) -> Finding:
        """What `results/recheck.json` says of the run."""
        run = self.prefix
        mark = comparisons.mark(run.study, run.profile, run.name)
        difference = float(f"{self.difference:.2g}")
        return Finding(mark, run.rounds, run.of, difference, not self.wrong)


def check_study(study: Study, profile: str, runs: str, device: str) -> bool:
    """Compute the stored runs with such names again as they were: with their grids, all seeds.

    Whether all are stored and what the code gives. Runs of which only the first rounds follow the
    stored ones are computed that far. What came of each group is noted in `results/recheck.json`
    as soon as it is done.
    """
    specs = study.specs(study.resolve(profile))
    chosen = study.chosen(specs, runs)
    stored = {n: s for n, s in chosen.items() if store.is_stored(study.name, profile, n, s)}
    done: list[Comparison] = []
    without_data: dict[str, DataError] = {}
    for group in store.groups({name: _cut(study, name, spec) for name, spec in specs.items()}):
        if stored.keys().isdisjoint(group):
            continue
        try:
            with offline() if without_data else nullcontext():  # one attempt to download is enough
                traces = store.compute(group, device, progress=True)
        except DataError as error:
            without_data |= dict.fromkeys(stored.keys() & group.keys(), error)
            continue
        findings = {}
        for name in stored.keys() & traces.keys():
            spec = stored[name]
            prefix = RunPrefix(study.name, name, group[name].rounds, spec.rounds, profile)
            comparison = compare(study, spec, prefix, traces[name])
            sys.stderr.writelines(f"{sentence}\n" for sentence in comparison.wrong)
            findings[name] = comparison.finding
            done.append(comparison)
        comparisons.note(study.name, profile, len(specs), findings)
    equal = [comparison.difference for comparison in done if not comparison.wrong]
    largest = max(equal, default=0.0)
    print(f"{study.name}: {len(equal)} of {len(chosen)} runs equal within {largest:.1g}")
    if largest:
        print(
            f"{study.name}: such differences come of another order of roundings, on this machine "
            "or in changed code; --store stores today's digits"
        )
    if short := sum(not comparison.complete for comparison in done):
        print(f"{study.name}: {short} of them over their first rounds alone, no farther")
    if lacking := [name for name in chosen if name not in stored]:
        print(f"{study.name}: {listed(lacking)} not stored as declared; --missing stores them")
    if without_data:
        reason = next(iter(without_data.values()))
        print(f"{study.name}: {listed([*without_data])} not compared, without data; {reason}")
    return len(equal) == len(chosen)


def recheck(studies: Mapping[str, Study], names: Sequence[str], seconds: float, seed: int) -> int:
    """Recompute stored runs drawn at random; 2 if one is not what the code gives, or none was.

    Nothing is downloaded: runs whose data are not here are left out.
    """
    chosen = [studies[name] for name in names or studies]
    print(f"recheck: seed {seed}, {seconds:g} s", flush=True)
    began = time.monotonic()
    done: list[Comparison] = []
    without_data: dict[str, int] = {}
    for study, name, spec in sample(chosen, seed):
        if done and time.monotonic() - began > seconds:
            break
        prefix = prefix_of(study, name, spec)
        try:
            with offline():
                trace = _computed(spec, prefix)
        except DataError:
            without_data[study.name] = without_data.get(study.name, 0) + 1
            continue
        comparison = compare(study, spec, prefix, trace)
        done.append(comparison)
        print(f"  {prefix.run}: {prefix.rounds} of {prefix.of} rounds", flush=True)
        sys.stderr.writelines(f"{sentence}\n" for sentence in comparison.wrong)
    equal = [comparison for comparison in done if not comparison.wrong]
    complete = sum(comparison.complete for comparison in equal)
    drawn = {comparison.prefix.study for comparison in equal}
    print(
        f"recheck: {len(equal)} runs of {len(drawn)} studies are what the code "
        f"gives, {complete} of them to the end, {len(done) - len(equal)} are not "
        f"({time.monotonic() - began:.0f} s)"
    )
    if without_data:
        runs = ", ".join(f"{count} of {name}" for name, count in without_data.items())
        print(f"recheck: runs not checked here, without their data: {runs}")
    if not done:
        print("recheck: nothing was compared", file=sys.stderr)
        return 2
    return 2 if len(equal) < len(done) else 0


def sample(studies: Iterable[Study], seed: int) -> Iterator[tuple[Study, str, Spec]]:
    """Runs of full profiles in a random order, one of each study in turn."""
    rng = np.random.default_rng(seed)
    drawn = []
    for study in studies:
        runs = [*study.specs(study.resolve("full")).items()]
        drawn.append([(study, *runs[i]) for i in rng.permutation(len(runs))])
    return filter(None, chain.from_iterable(zip_longest(*drawn)))


def prefix_of(study: Study, name: str, spec: Spec) -> RunPrefix:
    """The first rounds of a run, as many as a sample has."""
    took = float(study.payload(name)["provenance"]["wall_s"])
    fits = max(1, int(spec.rounds * min(1.0, SAMPLE_S / took)))
    rounds = min(fits, SAMPLED, _cut(study, name, spec).rounds)
    return RunPrefix(study.name, name, rounds, spec.rounds)


def _cut(study: Study, name: str, spec: Spec) -> Spec:
    """A run as far as it can be compared: to the end, for most."""
    rounds = first_fit(name, study.tolerances, Tolerance()).rounds
    return spec if rounds is None else replace(spec, rounds=min(rounds, spec.rounds))


def _computed(spec: Spec, prefix: RunPrefix, shift: float = 0.0) -> Trace:
    """A prefix computed now, of problems with so much noise in their start and their data.

    In the data as a share of each entry: a first step of size 1 forgets the start.
    """

    def shifted(seed: int) -> Problem:
        problem = spec.problem(seed)
        g = torch.Generator().manual_seed(seed)

        def noise(x: Tensor) -> Tensor:
            return shift * torch.randn(x.shape, generator=g).to(x)

        w0 = problem.w0 + noise(problem.w0)
        if problem.set is not None:  # where methods without projections must start
            w0 = problem.set.project(w0)
        data = tuple(x * (1 + noise(x)) if x.is_floating_point() else x for x in problem.data)
        return replace(problem, w0=w0, data=data)

    shortened = replace(spec, rounds=prefix.rounds, problem=shifted if shift else spec.problem)
    return store.compute({prefix.name: shortened}, "cpu", progress=False)[prefix.name]


def compare(study: Study, spec: Spec, prefix: RunPrefix, trace: Trace) -> Comparison:
    """Compare a stored run with what the code gives over its first rounds.

    Where a problem that is shifted by rounding leads elsewhere too, nothing is compared: another
    CPU may round so that a switch at its threshold falls to the other side.
    """
    tolerance = first_fit(prefix.name, study.tolerances, Tolerance())
    stored = store.to_trace(study.payload(prefix.name, prefix.profile))
    computed = _as_stored(trace, spec, prefix)
    computed_curves = _parts(computed, stored, prefix)
    stored_curves = _parts(stored, computed, prefix)
    judged = [
        name for name in stored_curves if name in computed_curves and name not in tolerance.timed
    ]
    equal = {name: _near(computed_curves[name], stored_curves[name], tolerance) for name in judged}
    chaotic = {name: np.zeros_like(flags) for name, flags in equal.items()}
    if not all(flags.all() for flags in equal.values()):
        # both ways, since a tie that rounding decides falls to one side with each
        for shift in (SHIFT, -SHIFT):
            trace_shifted = _as_stored(_computed(spec, prefix, shift), spec, prefix)
            shifted = _parts(trace_shifted, stored, prefix)
            for name in judged:
                chaotic[name] |= _led_elsewhere(
                    name, shifted[name], computed_curves[name], tolerance
                )
    strays = _differing_seeds(equal, chaotic)
    if len(strays) <= tolerance.strays:
        for flags in chaotic.values():
            flags[list(strays)] = True
    wrong = []
    difference = 0.0
    for name in judged:
        for row, entry in np.argwhere(~equal[name] & ~chaotic[name])[:1]:
            wrong.append(
                f"{prefix.run}: {name} must be what the code gives, it is not at entry {entry} of "
                f"seed {stored.seeds[row]}; find out why, or reproduce it."
            )
        apart = np.abs(computed_curves[name] - stored_curves[name])[equal[name] | ~chaotic[name]]
        size = np.nanmax(np.abs(stored_curves[name]), initial=NOTHING)
        difference = max(difference, np.nanmax(apart, initial=0.0) / size)
    if prefix.rounds == prefix.of:
        wrong += _wrong_bits(stored, computed, prefix)
    return Comparison(prefix, wrong, float(difference))


def _as_stored(trace: Trace, spec: Spec, prefix: RunPrefix) -> Trace:
    """A computed run with the digits that a stored one has."""
    payload = store.to_payload(prefix.study, prefix.profile, prefix.name, spec, trace)
    return store.to_trace(payload)


def _near(a: Array, b: Array, tolerance: Tolerance, share: float = 1.0) -> Flags:
    """Where values are equal within a share of a tolerance."""
    size = np.nanmax(np.abs(b), axis=1, initial=NOTHING, keepdims=True)
    absolute: Any = share * tolerance.atol * size
    return np.isclose(a, b, share * tolerance.rtol, absolute, equal_nan=True)


def _led_elsewhere(name: str, shifted: Array, computed: Array, tolerance: Tolerance) -> Flags:
    """Where a problem that is shifted by rounding gives other values; of a model all or nothing."""
    if name in ENDS:
        return np.asarray(~_near(shifted, computed, tolerance).all(1, keepdims=True))
    # two ways may part slowly, and a third stand between
    return ~np.logical_and.accumulate(_near(shifted, computed, tolerance, 0.1), 1)


def _wrong_bits(stored: Trace, computed: Trace, prefix: RunPrefix) -> list[str]:
    """A sentence for each direction whose bits are not what the code counts."""
    sentences = []
    for name, bits in stored.config["bits"].items():
        counted = computed.config["bits"][name]
        if not isclose(bits, counted, rel_tol=1e-9):
            sentences.append(
                f"{prefix.run}: {name} must be {counted:.10g}, got {bits:.10g}; reproduce it."
            )
    return sentences


def _differing_seeds(equal: Mapping[str, Flags], chaotic: Mapping[str, Flags]) -> set[int]:
    """The rows of a run's curves that differ somewhere, and not by chance."""
    seeds: set[int] = set()
    for curve, is_equal in equal.items():
        differs = ~is_equal & ~chaotic[curve]
        seeds.update(np.flatnonzero(differs.any(axis=1)).tolist())
    return seeds


def _parts(trace: Trace, reference: Trace, prefix: RunPrefix) -> dict[str, Array]:
    """What of a run the other has too: curves at shared rounds, models where the end is reached."""
    columns = np.isin(trace.rounds, reference.rounds)
    curves = {name: x[:, columns] for name, x in trace.metrics.items()}
    curves |= {name: x[:, : prefix.rounds] for name, x in trace.info.items()}
    if prefix.rounds == prefix.of:
        ends = zip(ENDS, (trace.state, trace.output), strict=True)
        curves |= {name: x for name, x in ends if x is not None}
    return curves
