"""Runs that are not stored as their paper has them, in groups that are computed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from papers.kit import archive, store
from papers.kit.claims import Claim
from papers.kit.store import PAPER, Spec
from papers.kit.study import Study

HOUR = 3600.0
ROWS = ("rows", "pictures", "molecules")  # what the data of a run are counted in


def to_do(studies: Sequence[Study], profile: str) -> list[dict[str, Any]]:
    """The groups that lack runs, the cheapest first, as `Snakefile` reads them.

    Each has a name, its study, the runs that are not stored and the seconds that it will take on
    one core: of each run those of the last time, times its share of the work.
    """
    entries = []
    for study in studies:
        if profile == PAPER and not study.at_paper:
            continue
        full, specs = (study.specs(study.resolve(p)) for p in ("full", profile))
        paths = {name: store.run_path(study.name, "full", name) for name in full}
        rates = {n: _seconds(p) / work(full[n]) for n, p in paths.items() if archive.exists(p)}
        usual = median(rates.values() or [0.0])
        for group in store.groups(specs):
            left = [n for n, s in group.items() if not store.is_stored(study.name, profile, n, s)]
            if left:
                seconds = sum(work(spec) * rates.get(n, usual) for n, spec in group.items())
                name = f"{study.name}.{left[0]}"
                runs = ",".join(left)
                entry = {"name": name, "study": study.name, "runs": runs, "seconds": round(seconds)}
                entries.append(entry)
    return sorted(entries, key=lambda entry: (entry["seconds"], entry["name"]))


def listed(studies: Sequence[Study], profile: str) -> Iterator[str]:
    """Lines of a listing: what each group costs, its first run, and how many it lacks."""
    left = to_do(studies, profile)
    stored = any(archive.names(store.results_dir() / s.name / "full") for s in studies)
    if left and not stored:
        folder = store.results_dir()
        yield f"no run is stored in {folder}: the cost of {len(left)} groups is unknown"
        return
    for entry in left:
        hours = entry["seconds"] / HOUR
        runs = entry["runs"].split(",")
        yield f"{hours:8.3g} core-hours  {entry['study']}/{runs[0]} ({len(runs)} runs)"
    hours = sum(entry["seconds"] for entry in left) / HOUR
    yield f"{len(left)} groups are not stored; they take about {hours:.3g} core-hours"


def work(spec: Spec) -> float:
    """Rounds times seeds, participants and rows of the data, where a run names these."""
    named = getattr(spec.problem, "keywords", {})
    rows = getattr(spec.algorithm, "batch_size", None) or next(
        filter(None, map(named.get, ROWS)), 1
    )
    participants = getattr(spec.algorithm, "participants", None) or 1
    return float(spec.rounds * len(spec.seeds) * participants * rows)


def hours_for(study: Study, claim: Claim, seeds: int) -> float:
    """Core-hours that the runs behind a claim take with so many seeds."""
    paths = [store.stored_path(study.name, PAPER, name) for name in claim.runs]
    seconds_a_seed = [_seconds(path) / len(store.config_of(path)["seeds"]) for path in paths]
    return seeds * sum(seconds_a_seed) / HOUR


def hours_at_scale(study: Study, claim: Claim) -> float:
    """Core-hours that the runs behind a claim take in the paper's setting; 0 where it has none."""
    if not study.at_paper:
        return 0.0
    full, paper = (study.specs(study.resolve(profile)) for profile in ("full", PAPER))
    paths = {name: store.run_path(study.name, "full", name) for name in claim.runs}
    seconds = (_seconds(paths[n]) * work(paper[n]) / work(full[n]) for n in claim.runs)
    return sum(seconds) / HOUR


@archive.cached
def _seconds(path: Path) -> float:
    """The seconds that a stored run took."""
    return float(archive.read(path, curves=False)["provenance"]["wall_s"])
