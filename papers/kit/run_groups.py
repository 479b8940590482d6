"""Runs that are not stored as their paper has them: which claims wait, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from papers.kit import archive, store
from papers.kit.claims import Claim
from papers.kit.store import PAPER, Spec
from papers.kit.study import Study

OPEN = ("not judged", "undecided")
HOUR = 3600.0
ROWS = ("rows", "pictures", "molecules")  # what the data of a run are counted in


@dataclass(frozen=True)
class Group:
    """Runs of one study that are computed together; the unit of work.

    Attributes
    ----------
    study, profile : whose runs.
    names : those that are to be stored.
    seconds : what it will take on one core: the last run's seconds times its share of the work.
    done : whether all of them are stored.
    waiting : claims that are not judged or undecided and look at one of the runs.
    """

    study: str
    profile: str
    names: tuple[str, ...]
    seconds: float
    done: bool
    waiting: tuple[str, ...] = ()


def groups_of(study: Study, profile: str = PAPER) -> list[Group]:
    """The groups of a profile; of the paper's those that the full profile does not have."""
    if profile == PAPER and not study.at_paper:
        return []
    full, specs = (study.specs(study.resolve(p)) for p in ("full", profile))
    took = {name: seconds_of(study, name) for name in full}
    waiting = {claim.id: {*claim.all_runs} for claim in study.claims if not decided(study, claim)}
    found = []
    for group in store.groups(specs):
        shared = full if profile == PAPER else {}
        names = [n for n, s in group.items() if n not in shared or not s.same_as(shared[n])]
        if names:
            found.append(
                Group(
                    study.name,
                    profile,
                    tuple(names),
                    sum(predicted(name, spec, full, took) for name, spec in group.items()),
                    all(store.is_stored(study.name, profile, n, specs[n]) for n in names),
                    tuple(name for name, runs in waiting.items() if runs & {*names}),
                )
            )
    return found


def predicted(
    name: str, spec: Spec, full: Mapping[str, Spec], took: Mapping[str, float | None]
) -> float:
    """Seconds of a run on one core, from those of the full profile; 0 if none is stored."""
    rates = {other: t / work(full[other]) for other, t in took.items() if t is not None}
    return work(spec) * rates.get(name, median(rates.values() or [0.0]))


def seconds_of(study: Study, name: str) -> float | None:
    """The seconds that a stored run of the full profile took."""
    path = store.run_path(study.name, "full", name)
    return _seconds(path) if archive.exists(path) else None


@archive.cached
def _seconds(path: Path) -> float:
    return float(archive.read(path, curves=False)["provenance"]["wall_s"])


def work(spec: Spec) -> float:
    """Rounds times seeds times the rows of the data, where the problem names them."""
    named = getattr(spec.problem, "keywords", {})
    rows = getattr(spec.algorithm, "batch_size", None) or next(
        filter(None, map(named.get, ROWS)), 1
    )
    return float(spec.rounds * len(spec.seeds) * rows)


def hours_for(study: Study, claim: Claim, seeds: int) -> float:
    """Core-hours that the runs behind a claim take with so many seeds."""
    paths = [store.stored_path(study.name, PAPER, name) for name in claim.runs]
    each = [_seconds(path) / len(store.config_of(path)["seeds"]) for path in paths]
    return seeds * sum(each) / HOUR


def decided(study: Study, claim: Claim) -> bool:
    """Whether what is stored decides a claim."""
    if not archive.exists(store.run_path(study.name, "full", "numbers")):
        return False
    return study.evaluate(claim).verdict not in OPEN


def to_do(studies: Sequence[Study], profile: str) -> list[Group]:
    """The groups that are not stored: those first that claims wait for, then the cheapest."""
    found = [g for study in studies for g in groups_of(study, profile) if not g.done]
    return sorted(found, key=lambda g: (not g.waiting, g.seconds, g.study, g.names))


def for_snakemake(studies: Sequence[Study], profile: str) -> list[dict[str, Any]]:
    """The same as JSON has it: a name, the study, its runs and the seconds that it will take."""
    return [
        {
            "name": f"{group.study}.{group.names[0]}",
            "study": group.study,
            "runs": ",".join(group.names),
            "seconds": round(group.seconds),
        }
        for group in to_do(studies, profile)
    ]


def listed(studies: Sequence[Study], profile: str) -> Iterator[str]:
    """Lines of a listing: what each group costs, its first run, the claims that wait for it."""
    left = to_do(studies, profile)
    for group in left:
        title = f"{group.study}/{group.names[0]} ({len(group.names)} runs)"
        yield f"{group.seconds / HOUR:8.3g} core-hours  {title}  {', '.join(group.waiting)}"
    hours = sum(group.seconds for group in left) / HOUR
    yield f"{len(left)} groups are not stored; they take about {hours:.3g} core-hours"
