"""Whether a study's stored files are those that it declares, and its numbers those of its runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core.describe import describe
from papers.kit import archive, paper_profile, store
from papers.kit.numbers import Number

if TYPE_CHECKING:
    from papers.kit.store import Spec
    from papers.kit.study import Study

Payload = Mapping[str, Any]

NUMBERS = "numbers"  # the file beside the runs
CLOSE = 2e-5  # of a number and of its largest seed: optima differ between processors so much
AGAIN = "run `papers reproduce` with --missing"


def lint_study(study: Study, profile: str = "full") -> list[str]:
    """What in the stored files of a study is not as it must be: a sentence each.

    In the paper's setting no run has to be there, and no number before there are enough.
    """
    specs = study.specs(study.resolve(profile))
    folder = store.results_dir() / study.name / profile
    there = archive.names(folder)
    if profile == store.PAPER:
        specs = {name: spec for name, spec in specs.items() if name in there}
    numbers = profile != store.PAPER or NUMBERS in there
    wanted = {*specs, *[NUMBERS] * numbers}
    found = [f"{study.name}: no run {name} is stored" for name in wanted - there]
    found += [f"{study.name}: {name} must be of a run of the study" for name in there - wanted]
    if found:
        return sorted(found)
    payloads = {name: store.read_run(folder / f"{name}.json") for name in specs}
    for name, spec in specs.items():
        found += [f"{study.name}/{name}: {wrong}" for wrong in _as_declared(spec, payloads[name])]
    if numbers:
        found += [f"{study.name}/{NUMBERS}: {w}" for w in _derived(study, profile, payloads)]
    return found


def lint_folder(studies: Iterable[str]) -> list[str]:
    """Files among the results that belong to none of some studies."""
    known = {"recheck.json", *(f"{name}{end}" for name in studies for end in ("", ".json", ".npz"))}
    others = {path.name for path in store.results_dir().iterdir()} - known
    return sorted(f"results: {name} must belong to a study" for name in others)


def _as_declared(spec: Spec, payload: Payload) -> Iterator[str]:
    """A run against what the study declares under its name."""
    declared = json.loads(json.dumps(describe(spec.algorithm)))
    if payload["config"]["algorithm"] != declared:
        held = payload["config"]["algorithm"]
        yield f"algorithm of its configuration must be today's, {declared}, got {held}"
    if payload["key"] != spec.key():
        yield f"key must be {spec.key()}, its configuration changed; reproduce it"
    extra = {*payload["metrics"], *payload["info"]} - {*spec.keep}
    if extra:
        yield f"curves must be kept by the study, got {', '.join(sorted(extra))}"
    if "final_w" in spec.keep and payload["final_w"] is None:
        yield "final_w must be stored, the study keeps it"


def _derived(study: Study, profile: str, payloads: Mapping[str, Payload]) -> Iterator[str]:
    """The numbers, what stands beside them, and the runs that they were derived from."""
    held = archive.read(store.run_path(study.name, profile, NUMBERS))
    if profile == store.PAPER:
        payloads = {name: store.read_run(path) for name, path in paper_profile.held(study).items()}
    traces = {name: store.to_trace(payload) for name, payload in payloads.items()}
    numbers, health = study.numbers(traces, profile), study.health(traces)
    now = store.derived(study.name, profile, numbers, payloads, health)
    changed = sorted(name for name in now["runs"] if now["runs"][name] != held["runs"].get(name))
    if changed:
        yield (
            f"must be derived from the stored runs, {', '.join(changed[:3])} ({len(changed)}) were "
            f"stored later or changed; {AGAIN}"
        )
    for part in now.keys() - {"numbers", "runs", "digest"}:
        if now[part] != held.get(part):
            yield f"{part} must be that of the stored runs, it differs; {AGAIN}"
    if held.keys() != now.keys() or held["numbers"].keys() != now["numbers"].keys():
        yield f"entries must be {', '.join(now)} and the numbers those derived; they differ"
        return
    for key, number in now["numbers"].items():
        if not _same(number, held["numbers"][key]):
            yield f"{key} must follow from the runs, {number} is not {held['numbers'][key]}"


def _same(now: Payload, then: Payload) -> bool:
    a, b = (Number.from_json(dict(x)) for x in (now, then))
    one, other = (np.array([x.value, x.low, x.high, *x.per_seed]) for x in (a, b))
    size = np.max(np.abs(other), initial=0.0, where=np.isfinite(other))
    near = partial(np.allclose, rtol=CLOSE, atol=CLOSE * size + 1e-9, equal_nan=True)
    return one.shape == other.shape and near(one, other) and a.unit == b.unit
