"""The command that recomputes a sample of the stored runs within some time."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np

from fedlib import data
from fedlib.core.files import digest
from fedlib.provenance import versions
from papers.kit import ledger
from papers.kit.ledger import RunPrefix
from papers.kit.recheck import recompute, sample
from papers.kit.store import Spec
from papers.kit.study import Study


def recheck(
    studies: Mapping[str, Study],
    names: Sequence[str],
    seconds: float,
    seed: int | None,
    *,
    store: bool,
) -> int:
    """Recompute stored runs drawn at random; 2 if one is not what the code gives.

    With `store` the ledger gets an entry for each, and runs without one are drawn first.
    """
    asked = [studies[name] for name in names or studies]
    chosen = [study for study in asked if all(map(data.available, study.data))]
    seed = seed_of_day() if seed is None else seed
    print(f"recheck: seed {seed}, {seconds:g} s", flush=True)
    began, done = time.monotonic(), list[tuple[RunPrefix, Spec, float, bool]]()
    last = {run for study in chosen for run in known(study)} if store else set()
    try:
        for study, spec, part in sample(chosen, np.random.default_rng(seed), seconds, last):
            if time.monotonic() - began > seconds:
                break
            found = recompute(study, spec, part)
            seeds = ", ".join(map(str, part.seeds))
            print(f"  {part.run}: {part.rounds} of {part.of} rounds, seeds {seeds}", flush=True)
            for sentence in found.wrong:
                print(sentence, file=sys.stderr)
            done.append((part, spec, found.difference, not found.wrong))
    finally:  # stopped by hand too
        if store:
            ledger.enter(done)
    equal, wrong = ([p for p, *_, within in done if within is x] for x in (True, False))
    report(equal, len(wrong), time.monotonic() - began, chosen)
    if away := [study.name for study in asked if study not in chosen]:
        print(f"recheck: not checked here, without their data: {', '.join(away)}")
    return 2 if wrong else 0


def known(study: Study) -> list[str]:
    """The stored runs of a study that have been recomputed as they are, `study/run`."""
    return [f"{study.name}/{name}" for name, one in ledger.of_study(study.name).items() if one]


def seed_of_day() -> int:
    """A seed of this commit and this day: every day and every commit see other runs."""
    made = versions()
    return int(digest([made["commit"], made["date"]])[:8], 16)


def report(equal: Sequence[RunPrefix], wrong: int, took: float, studies: Sequence[Study]) -> None:
    """What was recomputed, what could not be, and what nobody ever has."""
    complete = sum(part.rounds == part.of for part in equal)
    print(
        f"recheck: {len(equal)} runs of {len({p.study for p in equal})} studies are what the code "
        f"gives, {complete} of them to the end, {wrong} are not ({took:.0f} s)"
    )
    never = {s.name: sum(one is None for one in ledger.of_study(s.name).values()) for s in studies}
    if total := sum(never.values()):
        each = ", ".join(f"{name} {n}" for name, n in never.items() if n)
        print(f"recheck: recomputed by nobody yet: {total} runs ({each})")
