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
    entries: list[dict[str, Any]] = []
    for study in studies:
        if profile != PAPER or study.at_paper:
            entries += groups_of(study, profile)
    return sorted(entries, key=lambda entry: (entry["seconds"], entry["name"]))


def groups_of(study: Study, profile: str) -> Iterator[dict[str, Any]]:
    """The groups of one study that lack runs."""
    rates = {}
    for name, spec in study.specs_of("full").items():
        path = store.run_path(study.name, "full", name)
        if archive.exists(path):
            rates[name] = _seconds(path) / work(spec)
    usual = median(rates.values() or [0.0])
    for group in store.groups(study.specs_of(profile)):
        lacking = [
            name
            for name, spec in group.items()
            if not store.is_stored(study.name, profile, name, spec)
        ]
        if lacking:
            seconds = sum(work(spec) * rates.get(name, usual) for name, spec in group.items())
            yield {
                "name": f"{study.name}.{lacking[0]}",
                "study": study.name,
                "runs": ",".join(lacking),
                "seconds": round(seconds),
            }


def listed(studies: Sequence[Study], profile: str) -> Iterator[str]:
    """Lines of a listing: what each group costs, its first run, and how many it lacks."""
    entries = to_do(studies, profile)
    folder = store.results_dir()
    if entries and not any(archive.names(folder / study.name / "full") for study in studies):
        yield f"no run is stored in {folder}: the cost of {len(entries)} groups is unknown"
        return
    for entry in entries:
        hours = entry["seconds"] / HOUR
        runs = entry["runs"].split(",")
        yield f"{hours:8.3g} core-hours  {entry['study']}/{runs[0]} ({len(runs)} runs)"
    hours = sum(entry["seconds"] for entry in entries) / HOUR
    yield f"{len(entries)} groups are not stored; they take about {hours:.3g} core-hours"


def work(spec: Spec) -> float:
    """Rounds times seeds, participants and rows of the data, where a run names these."""
    participants = getattr(spec.algorithm, "participants", None) or 1
    arguments = getattr(spec.problem, "keywords", {})
    counts = [getattr(spec.algorithm, "batch_size", None), *map(arguments.get, ROWS)]
    rows = next(filter(None, counts), 1)
    return float(spec.rounds * len(spec.seeds) * participants * rows)


def hours_for(study: Study, claim: Claim, seeds: int) -> float:
    """Core-hours that the runs behind a claim take with so many seeds."""
    seconds = 0.0
    for name in claim.runs:
        path = store.stored_path(study.name, PAPER, name)
        seconds += _seconds(path) / len(store.config_of(path)["seeds"])
    return seeds * seconds / HOUR


def hours_at_scale(study: Study, claim: Claim) -> float:
    """Core-hours that the runs behind a claim take in the paper's setting; 0 where it has none."""
    if not study.at_paper:
        return 0.0
    full = study.specs_of("full")
    paper = study.specs_of(PAPER)
    seconds = 0.0
    for name in claim.runs:
        path = store.run_path(study.name, "full", name)
        seconds += _seconds(path) * work(paper[name]) / work(full[name])
    return seconds / HOUR


@archive.cached
def _seconds(path: Path) -> float:
    """The seconds that a stored run took."""
    return float(archive.summary(path)["provenance"]["wall_s"])
