"""The groups of runs that are to be computed: what `Snakefile` makes a job each of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from papers.kit import archive, store
from papers.kit.shortfall import Job, Short, ended, jobs_of, ordered, shortfall
from papers.kit.store import PAPER
from papers.kit.study import Study

HOUR = 3600.0
HEAD = "  core-h  decides  group, and what is stored -> what the paper has"


def to_do(studies: Sequence[Study], profile: str) -> list[Job]:
    """The groups with a run that is not stored; of the paper's setting in the order of `ordered`.

    Those of the paper's setting that diverged when they were tried are left out.
    """
    if profile == PAPER:
        found = [short for study in studies for short in shortfall(study)]
        return [short.job for short in ordered(found) if short.diverged is None]
    every = [job for study in studies for job in jobs_of(study, profile)]
    return [
        job
        for job in every
        if not all(archive.exists(store.run_path(job.study, profile, n)) for n in job.names)
    ]


def for_snakemake(studies: Sequence[Study], profile: str) -> list[dict[str, Any]]:
    """The same as JSON has it: a name, the study, its runs and the seconds that it will take."""
    return [
        {
            "name": f"{job.study}.{job.group[0]}",
            "study": job.study,
            "runs": ",".join(job.names),
            "seconds": round(job.seconds),
        }
        for job in to_do(studies, profile)
    ]


def listed(studies: Sequence[Study]) -> Iterator[str]:
    """Where stored runs fall short of the papers, in lines: what it costs, and what it decides."""
    found = [short for study in studies for short in shortfall(study)]
    yield HEAD
    for short in ordered(found):
        yield f"{short.job.seconds / HOUR:8.3g}  {len(short.waiting):7}  {said(short)}"
    hours = sum(short.job.seconds for short in found if not short.done) / HOUR
    claims = {claim for short in found if not short.done for claim in short.waiting}
    lost = sum(short.diverged is not None for short in found)
    if lost:
        yield f"{lost} of them diverged when they were tried: there is nothing to store of them"
    done = sum(short.done for short in found)
    yield f"{done} of {len(found)} groups are stored; the others take about {hours:.3g} core-hours"
    yield f"{len(claims)} claims wait: {', '.join(sorted(claims)) or 'none'}"


def said(short: Short) -> str:
    """A group, and in what it differs from what is stored."""
    changes = [
        f"{name} {short.now.get(name, 'none')} -> {then}" for name, then in short.paper.items()
    ]
    return f"{short.job.title}: {', '.join(changes) or 'as the paper has it'}" + (
        f"; {end}" if (end := ended([short])) else ""
    )
