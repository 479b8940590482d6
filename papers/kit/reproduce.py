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
class Comparison:
    """What came of comparing the first rounds of a stored run with what was computed now.

    Attributes
    ----------
    rounds, of : how many rounds were compared, of how many.
    wrong : a sentence for each part that differs.
    difference : the largest of all, as a share of the largest entry of its curve.
    """

    rounds: int
    of: int
    wrong: list[str]
    difference: float

    @property
    def complete(self) -> bool:
        """Whether the run was compared to its end."""
        return self.rounds == self.of

    def finding(self, mark: str) -> Finding:
        """What `results/recheck.json` says of the run."""
        difference = float(f"{self.difference:.2g}")
        equal = not self.wrong
        return Finding(mark, self.rounds, self.of, difference, equal)


def check_study(study: Study, profile: str, runs: str, device: str) -> bool:
    """Compute the stored runs with such names again as they were: with their grids, all seeds.

    Whether all are stored and what the code gives. Runs of which only the first rounds follow the
    stored ones are computed that far. What came of each group is noted in `results/recheck.json`
    as soon as it is done.
    """
    specs = study.specs_of(profile)
    chosen = study.chosen(specs, runs)
    stored = {}
    for name, spec in chosen.items():
        is_stored = store.is_stored(study.name, profile, name, spec)
        if is_stored:
            stored[name] = spec
    done: list[Comparison] = []
    without_data: dict[str, DataError] = {}
    cut = {name: _cut(study, name, spec) for name, spec in specs.items()}
    for group in store.groups(cut):
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
            comparison = compare(study, name, stored[name], traces[name], profile)
            _print_wrong(comparison)
            mark = comparisons.mark(study.name, profile, name)
            findings[name] = comparison.finding(mark)
            done.append(comparison)
        comparisons.note(study.name, profile, len(specs), findings)
    lacking = [name for name in chosen if name not in stored]
    _print_outcome(study.name, len(chosen), done, lacking, without_data)
    wrong = [comparison for comparison in done if comparison.wrong]
    return len(done) == len(chosen) and not wrong


def _print_outcome(
    study: str,
    total: int,
    done: Sequence[Comparison],
    lacking: Sequence[str],
    without_data: Mapping[str, DataError],
) -> None:
    """Print what came of comparing runs of a study, of which `total` were asked for."""
    differences = [comparison.difference for comparison in done if not comparison.wrong]
    largest = max(differences, default=0.0)
    print(f"{study}: {len(differences)} of {total} runs equal within {largest:.1g}")
    if largest:
        print(
            f"{study}: such differences come of another order of roundings, on this machine "
            "or in changed code; --store stores today's digits"
        )
    short = sum(not comparison.complete for comparison in done)
    if short:
        print(f"{study}: {short} of them over their first rounds alone, no farther")
    if lacking:
        print(f"{study}: {listed(lacking)} not stored as declared; --missing stores them")
    if without_data:
        names = listed([*without_data])
        reason = next(iter(without_data.values()))
        print(f"{study}: {names} not compared, without data; {reason}")


def _print_wrong(comparison: Comparison) -> None:
    """Print what differs, a sentence a line, where errors go."""
    for sentence in comparison.wrong:
        print(sentence, file=sys.stderr)


def recheck(studies: Mapping[str, Study], names: Sequence[str], seconds: float, seed: int) -> int:
    """Recompute stored runs drawn at random; 2 if one is not what the code gives, or none was.

    Nothing is downloaded: runs whose data are not here are left out.
    """
    chosen = [studies[name] for name in names or studies]
    print(f"recheck: seed {seed}, {seconds:g} s", flush=True)
    began = time.monotonic()
    done: list[Comparison] = []
    studies_of_equal: set[str] = set()
    without_data: dict[str, int] = {}
    for study, name, spec in sample(chosen, seed):
        took = time.monotonic() - began
        if done and took > seconds:
            break
        rounds = sampled_rounds(study, name, spec)
        try:
            with offline():
                trace = computed(spec, rounds)
        except DataError:
            without_data[study.name] = without_data.get(study.name, 0) + 1
            continue
        comparison = compare(study, name, spec, trace)
        done.append(comparison)
        if not comparison.wrong:
            studies_of_equal.add(study.name)
        print(f"  {study.name}/{name}: {comparison.rounds} of {spec.rounds} rounds", flush=True)
        _print_wrong(comparison)
    equal = [comparison for comparison in done if not comparison.wrong]
    complete = sum(comparison.complete for comparison in equal)
    differing = len(done) - len(equal)
    took = time.monotonic() - began
    print(
        f"recheck: {len(equal)} runs of {len(studies_of_equal)} studies are what the code "
        f"gives, {complete} of them to the end, {differing} are not ({took:.0f} s)"
    )
    if without_data:
        counts = [f"{count} of {name}" for name, count in without_data.items()]
        runs = ", ".join(counts)
        print(f"recheck: runs not checked here, without their data: {runs}")
    if not done:
        print("recheck: nothing was compared", file=sys.stderr)
        return 2
    return 2 if differing else 0


def sample(studies: Iterable[Study], seed: int) -> Iterator[tuple[Study, str, Spec]]:
    """Runs of full profiles in a random order, one of each study in turn."""
    rng = np.random.default_rng(seed)
    drawn = []
    for study in studies:
        params = study.resolve("full")
        runs = list(study.specs(params).items())
        in_order = []
        for index in rng.permutation(len(runs)):
            name, spec = runs[index]
            in_order.append((study, name, spec))
        drawn.append(in_order)
    in_turn = chain.from_iterable(zip_longest(*drawn))
    return filter(None, in_turn)


def sampled_rounds(study: Study, name: str, spec: Spec) -> int:
    """How many of the first rounds of a run a sample has."""
    provenance = study.payload(name)["provenance"]
    took = float(provenance["wall_s"])
    share = min(1.0, SAMPLE_S / took)
    fits = max(1, int(spec.rounds * share))
    comparable = _cut(study, name, spec).rounds
    return min(fits, SAMPLED, comparable)


def _cut(study: Study, name: str, spec: Spec) -> Spec:
    """A run as far as it can be compared: to the end, for most."""
    most = first_fit(name, study.tolerances, Tolerance()).rounds
    if most is None:
        return spec
    return replace(spec, rounds=min(most, spec.rounds))


def computed(spec: Spec, rounds: int, shift: float = 0.0) -> Trace:
    """The first rounds of a run computed now, with so much noise in its start and its data.

    In the data as a share of each entry: a first step of size 1 forgets the start.
    """
    make = spec.problem

    def shifted(seed: int) -> Problem:
        problem = make(seed)
        g = torch.Generator().manual_seed(seed)

        def noise(x: Tensor) -> Tensor:
            normal = torch.randn(x.shape, generator=g)
            return shift * normal.to(x)

        w0 = problem.w0 + noise(problem.w0)
        if problem.set is not None:  # where methods without projections must start
            w0 = problem.set.project(w0)
        data = []
        for x in problem.data:
            is_float = x.is_floating_point()
            data.append(x * (1 + noise(x)) if is_float else x)
        return replace(problem, w0=w0, data=tuple(data))

    spec = replace(spec, rounds=rounds)
    if shift:
        spec = replace(spec, problem=shifted)
    traces = store.compute({"run": spec}, "cpu", progress=False)
    return traces["run"]


def compare(study: Study, name: str, spec: Spec, trace: Trace, profile: str = "full") -> Comparison:
    """Compare a stored run with what the code gives over its first rounds.

    Where a problem that is shifted by rounding leads elsewhere too, nothing is compared: another
    CPU may round so that a switch at its threshold falls to the other side.
    """
    tolerance = first_fit(name, study.tolerances, Tolerance())
    rounds = int(trace.rounds[-1])
    stored = store.to_trace(study.payload(name, profile))
    trace = _as_stored(trace, spec)
    curves = _parts(trace, stored)
    known = _parts(stored, trace)
    judged = [curve for curve in known if curve in curves and curve not in tolerance.timed]
    equal = {}
    chaotic = {}
    for curve in judged:
        equal[curve] = _near(curves[curve], known[curve], tolerance)
        chaotic[curve] = np.zeros_like(equal[curve])
    all_equal = all(flags.all() for flags in equal.values())
    if not all_equal:
        # both ways, since a tie that rounding decides falls to one side with each
        for shift in (SHIFT, -SHIFT):
            shifted_trace = _as_stored(computed(spec, rounds, shift), spec)
            shifted = _parts(shifted_trace, stored)
            for curve in judged:
                elsewhere = _led_elsewhere(curve, shifted[curve], curves[curve], tolerance)
                chaotic[curve] |= elsewhere
    differs = {curve: ~equal[curve] & ~chaotic[curve] for curve in judged}
    seeds_that_differ = [flags.any(axis=1) for flags in differs.values()]
    strays = np.any(seeds_that_differ, axis=0)
    if np.sum(strays) <= tolerance.strays:
        for curve in judged:
            chaotic[curve][strays] = True
            differs[curve][strays] = False
    run = f"{comparisons.named(study.name, profile)}/{name}"
    wrong = []
    difference = 0.0
    for curve in judged:
        entries = np.argwhere(differs[curve])
        if len(entries):
            row, entry = entries[0]
            wrong.append(
                f"{run}: {curve} must be what the code gives, it is not at entry {entry} of "
                f"seed {stored.seeds[row]}; find out why, or reproduce it."
            )
        counts = equal[curve] | ~chaotic[curve]
        apart = _difference(curves[curve], known[curve], counts)
        difference = max(difference, apart)
    if rounds == spec.rounds:
        wrong += _other_bits(run, stored, trace)
    return Comparison(rounds, spec.rounds, wrong, difference)


def _difference(computed: Array, stored: Array, counts: Flags) -> float:
    """The largest difference where an entry counts, as a share of the curve's largest entry."""
    distances = np.abs(computed - stored)
    sizes = np.abs(stored)
    apart = np.nanmax(distances[counts], initial=0.0)
    size = np.nanmax(sizes, initial=NOTHING)
    return float(apart / size)


def _other_bits(run: str, stored: Trace, trace: Trace) -> list[str]:
    """A sentence for each direction in which a round has other bits than are stored."""
    sentences = []
    for direction, bits in stored.config["bits"].items():
        counted = trace.config["bits"][direction]
        if not isclose(bits, counted, rel_tol=1e-9):
            sentences.append(
                f"{run}: {direction} must be {counted:.10g}, got {bits:.10g}; reproduce it."
            )
    return sentences


def _as_stored(trace: Trace, spec: Spec) -> Trace:
    """A computed run with the digits that a stored one has."""
    payload = store.to_payload("", "", "", spec, trace)
    return store.to_trace(payload)


def _near(a: Array, b: Array, tolerance: Tolerance, share: float = 1.0) -> Flags:
    """Where values are equal within a share of a tolerance."""
    size = np.nanmax(np.abs(b), axis=1, initial=NOTHING, keepdims=True)
    relative = share * tolerance.rtol
    absolute: Any = share * tolerance.atol * size
    return np.isclose(a, b, relative, absolute, equal_nan=True)


def _led_elsewhere(name: str, shifted: Array, computed: Array, tolerance: Tolerance) -> Flags:
    """Where a problem that is shifted by rounding gives other values; of a model all or nothing."""
    if name in ENDS:
        equal = _near(shifted, computed, tolerance)
        return np.asarray(~equal.all(axis=1, keepdims=True))
    # two ways may part slowly, and a third stand between
    close = _near(shifted, computed, tolerance, share=0.1)
    close_so_far = np.logical_and.accumulate(close, axis=1)
    return ~close_so_far


def _parts(trace: Trace, reference: Trace) -> dict[str, Array]:
    """What of a run the other has too: curves at shared rounds, models where both end together."""
    shared = np.isin(trace.rounds, reference.rounds)
    last_round = reference.rounds[-1]
    parts = {}
    for name, curves in trace.metrics.items():
        parts[name] = curves[:, shared]
    for name, curves in trace.info.items():
        parts[name] = curves[:, :last_round]
    if trace.rounds[-1] == last_round:
        models = dict(zip(ENDS, (trace.state, trace.output), strict=True))
        parts |= {name: model for name, model in models.items() if model is not None}
    return parts
