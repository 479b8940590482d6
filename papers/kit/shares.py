"""Jobs: whole groups of runs, listed without building a problem, and cut into shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from fedlib.core.files import digest
from papers.kit import store
from papers.kit.costs import recorded
from papers.kit.store import PAPER, Spec
from papers.kit.study import Study

HELD = ".claim"  # of a group that a process works at


@dataclass(frozen=True)
class Job:
    """A group of runs of one study, which are computed together; the unit of work.

    Attributes
    ----------
    study, profile : whose runs.
    group : the names of all runs that advance together.
    names : those of them that are to be stored.
    seconds : what it will take on one core, from recorded times; 0 where there are none.
    size : rounds, seeds and runs, multiplied: known without any record.
    """

    study: str
    profile: str
    group: tuple[str, ...]
    names: tuple[str, ...]
    seconds: float
    size: int

    @property
    def title(self) -> str:
        """How it is called: by its first run."""
        more = f" and {len(self.group) - 1} more" if len(self.group) > 1 else ""
        return f"{self.study}/{self.profile}/{self.group[0]}{more}"

    @property
    def claim(self) -> Path:
        """The file that says who works at it."""
        path = store.run_path(self.study, self.profile, self.group[0])
        return path.with_suffix(f".{digest(self.group)[:16]}{HELD}")


def jobs_of(study: Study, profile: str, runs: str = "*") -> list[Job]:
    """The groups of a study with a run of such a name; no problem is built."""
    specs = study.specs(study.resolve(profile))
    chosen = {name for name in specs if fnmatch(name, runs)}
    if not chosen:
        raise ValueError(
            f"{study.name}: runs must match a run such as {', '.join([*specs][:3])}, got {runs!r}."
        )
    larger = study.specs(study.resolve(PAPER)) if study.at_paper else {}
    costs = recorded(study.name, study.specs(study.resolve("full")), larger)
    found = []
    for group in store.groups(specs):
        if names := tuple(name for name in group if name in chosen):
            seconds = sum(costs.predicted(name, spec) for name, spec in group.items())
            found.append(
                Job(study.name, profile, tuple(group), names, seconds, size_of(group.values()))
            )
    return found


def size_of(group: Iterable[Spec]) -> int:
    return sum(spec.rounds * len(spec.seeds) for spec in group)


def longest_first(jobs: Iterable[Job]) -> list[Job]:
    """Those of unknown length before all others: one of them may be the longest."""
    return sorted(jobs, key=lambda job: (job.seconds > 0, -job.seconds, -job.size, job.title))


def share(jobs: Sequence[Job], part: int, parts: int) -> list[Job]:
    """The part of so many that one process of an array takes: every job is in exactly one.

    The cut looks at what is declared alone, not at stored times, which change while others store.
    """
    ordered = sorted(jobs, key=lambda job: (-job.size, job.title))
    return [job for place, job in enumerate(ordered) if dealt(place, parts) == part - 1]


def dealt(place: int, parts: int) -> int:
    """To whom a card goes if they are dealt to and fro, so that nobody always has the larger."""
    turn, place = divmod(place, parts)
    return parts - 1 - place if turn % 2 else place


def listing(jobs: Iterable[Job]) -> Iterator[str]:
    """A line a job: its seconds, how much of it is stored, and whether somebody works at it."""
    for job in jobs:
        there = sum(store.run_path(job.study, job.profile, n).exists() for n in job.names)
        took = f"{job.seconds:8.0f} s" if job.seconds else "         ?"
        held = ", in work or left behind" if job.claim.exists() else ""
        yield f"{took}  {there} of {len(job.names)} stored{held}  {job.title}"
