"""The campaign: every run that falls short of its paper, computed in the paper's setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from statistics import median
from typing import Any

import papers
from fedlib.core.files import SCHEMA, digest, read_json, write_json
from fedlib.core.provenance import versions
from fedlib.run import resolve_device
from papers.jobs import Done, Progress, spread
from papers.kit import store
from papers.kit.numbers import significant
from papers.kit.shares import Job
from papers.kit.shortfall import RECORD, Short, ended, history, ordered, setting, shortfall
from papers.kit.store import PAPER
from papers.kit.study import Study

UNKNOWN = 3.0  # gigabytes of a group, where none of its study was computed yet
HOUR = 3600.0
HEAD = "  core-h  decides  group, and what is stored -> what the paper has"


def listed(studies: Sequence[Study]) -> Iterator[str]:
    """The campaign in lines: what is to do, in its order, and what earlier groups took."""
    found = [short for study in studies for short in shortfall(study)]
    yield HEAD
    for short in ordered(found):
        yield f"{short.job.seconds / HOUR:8.3g}  {len(short.waiting):7}  {said(short)}"
    hours = sum(short.job.seconds for short in found if not short.done) / HOUR
    claims = {claim for short in found if not short.done for claim in short.waiting}
    done = sum(short.done for short in found)
    lost = sum(short.diverged is not None for short in found)
    if lost:
        yield f"{lost} of them diverged when they were tried: there is nothing to store of them"
    yield f"{done} of {len(found)} groups are stored; the others take about {hours:.3g} core-hours"
    yield f"{len(claims)} claims wait: {', '.join(sorted(claims)) or 'none'}"
    yield from accuracy(history())


def said(short: Short) -> str:
    """A group, and in what it differs from what is stored."""
    changes = [
        f"{name} {short.now.get(name, 'none')} -> {then}" for name, then in short.paper.items()
    ]
    return f"{short.job.title}: {', '.join(changes) or 'as the paper has it'}" + (
        f"; {end}" if (end := ended([short])) else ""
    )


def accuracy(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """How far off predictions were, over all groups that were computed in one go.

    By the time that a core worked: on a busy machine a group takes many times as long.
    """
    known = [one for one in entries.values() if one["predicted"] and "core_s" in one]
    ratios = sorted(one["core_s"] / one["predicted"] for one in known)
    if ratios:
        least, most = f"{ratios[0]:.2g}", f"{ratios[-1]:.2g}"
        yield (
            f"{len(ratios)} groups took {least} to {most} times what was predicted, "
            f"half of them at most {median(ratios):.2g} times"
        )


def carry_out(studies: Sequence[Study], processes: int, memory: float | None, device: str) -> int:
    """Compute what the campaign lacks, so many groups at a time; 2 if some were refused.

    Those that diverged in the same setting are not tried again.
    """
    resolve_device(device)
    found = [short for study in studies for short in shortfall(study)]
    jobs = [short.job for short in ordered(found) if short.diverged is None]
    if not jobs:
        settle(studies)  # of groups that were computed by a process that was killed
        print("campaign: nothing is left to compute")
        return 0
    hours = sum(job.seconds for job in jobs) / HOUR
    print(f"{len(jobs)} groups, about {hours:.3g} core-hours, {processes} at a time", flush=True)
    known, bar, refused = history(), Progress(jobs), 0
    runs = spread(
        jobs,
        processes,
        device=device,
        memory=lambda job: expected(job, known),
        limit=inf if memory is None else memory,
        look=bar.look,
    )
    for done in runs:
        bar.tell(done)
        refused += bool(done.refused)
        if done.diverged or not (done.refused or done.elsewhere):
            enter(done)
    bar.bar.close()
    settle(studies)
    for line in accuracy(history()):
        print(line)
    return 2 if refused else 0


def settle(studies: Sequence[Study]) -> None:
    """Derive the numbers of the runs that are stored, by which claims are judged."""
    for study in studies:
        study.settle(PAPER)


def expected(job: Job, known: Mapping[str, Mapping[str, Any]]) -> float:
    """The gigabytes of a group: the most that one of its study has taken."""
    peaks = [one["peak_gb"] for name, one in known.items() if name.startswith(f"{job.study}/")]
    return max(peaks, default=UNKNOWN)


def enter(done: Done) -> None:
    """Add a group to the record: what it took, or where it diverged."""
    entry = {
        "runs": len(done.job.group),
        "predicted": significant(done.job.seconds, 3),
        "peak_gb": significant(done.peak, 3),
        "date": versions()["date"],
        **(_ended(done) if done.diverged else _took(done)),
    }
    content = {
        "schema": SCHEMA,
        "kind": "campaign",
        "groups": {**history(), f"{done.job.study}/{done.job.group[0]}": entry},
    }
    write_json(store.results_dir() / RECORD, {**content, "digest": digest(content)})


def _ended(done: Done) -> dict[str, Any]:
    """Which setting diverged, and where."""
    job, (seed, after) = done.job, done.diverged or (0, 0)
    study = papers.STUDIES[job.study]
    specs = study.specs(study.resolve(job.profile))
    where = {"seed": seed, "round": after}
    return {"setting": setting([specs[name] for name in job.names]), **where}


def _took(done: Done) -> dict[str, Any]:
    """Seconds of its runs, over all times that it was begun, and the device.

    The seconds of a core are known where it was computed in one go.
    """
    job = done.job
    runs = [read_json(store.run_path(job.study, job.profile, name), "run") for name in job.names]
    took = sum(run["provenance"]["wall_s"] for run in runs)
    at_once = {"core_s": significant(done.busy, 3)} if took <= 1.01 * done.seconds else {}
    device = runs[0]["provenance"]["device"]
    return {"seconds": significant(took, 3), **at_once, "device": device}
