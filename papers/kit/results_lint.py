"""A lint of stored results: a study's files against the study, the history, and one another."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import lru_cache, partial
from typing import Any

import numpy as np

from fedlib.core.describe import describe
from fedlib.provenance import ROOT
from papers.kit import archive, runfile, scale, store
from papers.kit.numbers import Number
from papers.kit.run_schema import validate_run
from papers.kit.store import Spec
from papers.kit.study import Study

Payloads = Mapping[str, Mapping[str, Any]]

NUMBERS = "numbers"  # the file beside the runs
#: Commits that runs name and that are in no history: made on a branch that was rewritten.
LOST = frozenset({"fb19afb2448e"})
CLOSE = 2e-5  # of a number and of its largest seed: optima differ between processors so much


def lint_study(study: Study, profile: str = "full") -> list[str]:
    """What in the stored files of a study is not as it must be: a sentence each.

    In the paper's setting no run has to be there, and no number before there are enough.
    """
    specs = study.specs(study.resolve(profile))
    folder = store.results_dir() / study.name / profile
    there = {f"{name}.json" for name in archive.names(folder)}
    if folder.is_dir():
        there |= {path.name for path in folder.iterdir()}
    if profile == store.PAPER:
        specs = {name: spec for name, spec in specs.items() if f"{name}.json" in there}
    derived = profile != store.PAPER or f"{NUMBERS}.json" in there
    wanted = {f"{name}.json" for name in (*specs, *[NUMBERS] * derived)}
    found = [f"{study.name}: {name} must be stored, it is not there" for name in wanted - there]
    found += [f"{study.name}: {name} must be of a run of the study" for name in there - wanted]
    if found:
        return sorted(found)
    paths = {name: folder / f"{name}.json" for name in specs}
    payloads = {name: archive.read(path) for name, path in paths.items()}
    for name, payload in payloads.items():
        found += validate_run(payload, paths[name])
    if found:
        return found
    for name, spec in specs.items():
        who = f"{study.name}/{name}"
        found += [f"{who}: {wrong}" for wrong in _as_declared(spec, payloads[name])]
    if derived:
        found += [f"{study.name}/{NUMBERS}: {w}" for w in _derived(study, profile, payloads)]
    return found


def lint_folder(studies: Iterable[str]) -> list[str]:
    """Folders and files among the results that belong to none of some studies."""
    known = {f"{name}{end}" for name in studies for end in ("", ".json", ".npz")}
    return sorted(
        f"results: {path.name} must belong to a study"
        for path in store.results_dir().iterdir()
        if path.name not in {*known, *store.BESIDE}
    )


def _as_declared(spec: Spec, payload: Mapping[str, Any]) -> Iterator[str]:
    """A run against what the study declares under its name."""
    config = payload["config"]
    declared = {
        "algorithm": json.loads(json.dumps(describe(spec.algorithm))),
        "rounds": spec.rounds,
        "seeds": [*spec.seeds],
        "evaluate_every": spec.evaluate_every,
    }
    for what, today in declared.items():
        if config[what] != today:
            yield f"{what} of its configuration must be today's, {today}, got {config[what]}"
    extra = {*payload["metrics"], *payload["info"]} - {*spec.keep}
    if extra:
        yield f"curves must be kept by the study, got {', '.join(sorted(extra))}"
    if "final_w" in spec.keep and payload["final_w"] is None:
        yield "final_w must be stored, the study keeps it"
    if payload["final_w"] is not None:
        given, stored = hasattr(spec.algorithm, "output"), payload["output_w"] is not None
        if given != stored:
            yield f"output_w must be stored where the algorithm has an output, {given} and {stored}"
    if payload["key"] != spec.key():
        yield f"key must be {spec.key()}, its configuration changed; reproduce it"
    days, made = commits(), payload["provenance"]
    commit, day = made["commit"], made["date"]
    if not days or commit is None:
        return
    if commit not in days and commit not in LOST:
        yield f"commit must be one of the history, got {commit}"
    elif commit in days and date.fromisoformat(day) < days[commit]:
        yield f"date must not be before that of its commit {commit}, got {day}"


@lru_cache(maxsize=1)
def commits() -> Mapping[str, date]:
    """All commits of this history and their days; nothing without git, or with a part of it."""
    if not (ROOT / ".git").exists():
        return {}
    git = partial(subprocess.run, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    try:
        if git(("git", "rev-parse", "--is-shallow-repository")).stdout.strip() != "false":
            return {}
        lines = git(("git", "log", "--format=%H %cI")).stdout.splitlines()
    except OSError:
        return {}
    each = (line.split() for line in lines)
    return {full[:12]: datetime.fromisoformat(at).astimezone(UTC).date() for full, at in each}


def _derived(study: Study, profile: str, payloads: Payloads) -> Iterator[str]:
    """The numbers, what stands beside them, and the runs that they were derived from."""
    held = archive.read(store.run_path(study.name, profile, NUMBERS))
    if profile == store.PAPER:
        payloads = {name: archive.read(path) for name, path in scale.held(study).items()}
    traces = {name: runfile.to_trace(payload) for name, payload in payloads.items()}
    numbers, health = study.numbers(traces, profile), study.health(traces)
    now = store.numbers_content(study.name, profile, numbers, payloads, health)
    changed = sorted(name for name in now["runs"] if now["runs"][name] != held["runs"].get(name))
    if changed:
        yield (
            f"must be derived from the stored runs, {', '.join(changed[:3])} ({len(changed)}) were "
            "stored later or changed; run `papers reproduce` with --missing"
        )
    for part in now.keys() - {"numbers", "runs"}:
        if now[part] != held[part]:
            remedy = "run `papers reproduce` with --missing"
            yield f"{part} must be that of the stored runs, it differs; {remedy}"
    if held.keys() - {"digest"} != now.keys() or held["numbers"].keys() != now["numbers"].keys():
        yield f"entries must be {', '.join(now)} and the numbers those derived; they differ"
        return
    for key, number in now["numbers"].items():
        if not _same(number, held["numbers"][key]):
            yield f"{key} must follow from the runs, {number} is not {held['numbers'][key]}"


def _same(now: Mapping[str, Any], then: Mapping[str, Any]) -> bool:
    a, b = (Number.from_json(dict(x)) for x in (now, then))
    one, other = (np.array([x.value, x.low, x.high, *x.per_seed]) for x in (a, b))
    size = np.max(np.abs(other), initial=0.0, where=np.isfinite(other))
    near = partial(np.allclose, rtol=CLOSE, atol=CLOSE * size + 1e-9, equal_nan=True)
    return one.shape == other.shape and near(one, other) and a.unit == b.unit
