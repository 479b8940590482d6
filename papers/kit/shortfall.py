"""Where the stored runs fall short of the papers' setting, what waits for it, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from fedlib.core.describe import describe
from fedlib.core.files import SCHEMA, digest, read_json, write_json
from fedlib.provenance import versions
from papers.kit import archive, store
from papers.kit.claims import Claim
from papers.kit.costs import recorded
from papers.kit.run_schema import config_of
from papers.kit.scale import apart, differing, facts
from papers.kit.store import PAPER, Spec
from papers.kit.study import Study

OPEN = ("not judged", "undecided")
RECORD = "diverged.json"  # of the results folder: groups of which there is nothing to store


@dataclass(frozen=True)
class Job:
    """A group of runs of one study, which are computed together; the unit of work.

    Attributes
    ----------
    study, profile : whose runs.
    group : the names of all runs that advance together.
    names : those of them that are to be stored.
    seconds : what it will take on one core, from recorded times; 0 where there are none.
    """

    study: str
    profile: str
    group: tuple[str, ...]
    names: tuple[str, ...]
    seconds: float

    @property
    def title(self) -> str:
        """How it is called: by its first run."""
        more = f" and {len(self.group) - 1} more" if len(self.group) > 1 else ""
        return f"{self.study}/{self.profile}/{self.group[0]}{more}"


def jobs_of(study: Study, profile: str) -> list[Job]:
    """The groups of a study; no problem is built."""
    specs = study.specs(study.resolve(profile))
    larger = study.specs(study.resolve(PAPER)) if study.at_paper else {}
    costs = recorded(study.name, study.specs(study.resolve("full")), larger)
    found = []
    for group in store.groups(specs):
        seconds = sum(costs.predicted(name, spec) for name, spec in group.items())
        found.append(Job(study.name, profile, tuple(group), tuple(group), seconds))
    return found


@dataclass(frozen=True)
class Short:
    """A group of runs in the paper's setting that the full profile does not have.

    Attributes
    ----------
    job : what is to be computed; its names are the runs of which the full profile has others.
    now, paper : rounds, seeds and rows of these, and what they and the paper have where the two
        differ, whole numbers of the algorithm too; `now` is empty for runs that the full profile
        lacks.
    done : whether all of it is stored in the paper's setting.
    seconds : what that took, on one core; 0 before.
    waiting : claims that are not judged or undecided and look at one of the runs.
    diverged : the seed, and the round after which its model was not finite, if it was tried and
        there is nothing to store.
    """

    job: Job
    now: Mapping[str, Any]
    paper: Mapping[str, Any]
    done: bool
    seconds: float
    waiting: tuple[str, ...]
    diverged: tuple[int, int] | None = None


def shortfall(study: Study) -> list[Short]:
    """The groups of a study that fall short of its paper; no problem is built."""
    if not study.at_paper:
        return []
    full, paper = (study.specs(study.resolve(profile)) for profile in ("full", PAPER))
    known = history()
    waiting = {claim.id: {*claim.all_runs} for claim in study.claims if not decided(study, claim)}
    found = []
    for job in jobs_of(study, PAPER):
        names = tuple(n for n in job.group if n not in full or apart(full[n], paper[n]))
        if not names:
            continue
        there = [seconds_of(study, name, paper[name]) for name in names]
        first = next((name for name in names if name in full), names[0])
        here = facts(full[first]) if first in full else {}
        now, then = differing(here, facts(paper[first]))
        now = {k: here[k] for k in ("rounds", "seeds", "rows") if k in here} | now
        claims = tuple(name for name, runs in waiting.items() if runs & {*names})
        done = all(took is not None for took in there)
        took = sum(one or 0.0 for one in there) if done else 0.0
        entry = None if done else known.get(f"{study.name}/{job.group[0]}")
        end = diverged(entry, [paper[name] for name in names])
        found.append(Short(replace(job, names=names), now, then, done, took, claims, end))
    return found


def history() -> dict[str, dict[str, Any]]:
    """The groups that diverged when they were tried: in which setting, and where."""
    path = store.results_dir() / RECORD
    return dict(read_json(path, "diverged")["groups"]) if path.exists() else {}


def enter(study: Study, runs: str, seed: int, after: int) -> None:
    """Add the group of the paper's setting to which a run belongs to those that diverged."""
    specs = study.specs(study.resolve(PAPER))
    group = next(group for group in store.groups(specs) if {*group} & {*study.chosen(specs, runs)})
    entry = {"setting": setting([*group.values()]), "seed": seed, "round": after}
    entry["date"] = versions()["date"]
    groups = {**history(), f"{study.name}/{next(iter(group))}": entry}
    content = {"schema": SCHEMA, "kind": "diverged", "groups": groups}
    write_json(store.results_dir() / RECORD, {**content, "digest": digest(content)})


def diverged(entry: Mapping[str, Any] | None, specs: Sequence[Spec]) -> tuple[int, int] | None:
    """The seed and the round at which a group ended, if it was computed in this setting."""
    if not entry or entry.get("setting") != setting(specs):
        return None
    return entry["seed"], entry["round"]


def ended(some: Iterable[Short]) -> str:
    """Where those of some groups ended that were tried in vain; empty if there are none."""
    places = [short.diverged for short in some if short.diverged is not None]
    return "; ".join(f"diverged after round {after} with seed {seed}" for seed, after in places)


def setting(specs: Sequence[Spec]) -> str:
    """A short digest of what is computed, without its problem, which may need data."""
    return digest([[describe(s.algorithm), s.rounds, [*s.seeds]] for s in specs])[:16]


def decided(study: Study, claim: Claim) -> bool:
    """Whether what is stored decides a claim."""
    if not archive.exists(store.run_path(study.name, "full", "numbers")):
        return False
    return study.evaluate(claim).outcome.verdict not in OPEN


def seconds_of(study: Study, name: str, spec: Spec) -> float | None:
    """How long a run in the paper's setting took; None if it is not stored."""
    path = store.run_path(study.name, PAPER, name)
    if not archive.exists(path):
        return None
    held = config_of(path)
    today = {"rounds": spec.rounds, "seeds": [*spec.seeds], "algorithm": plain(spec)}
    if any(held[key] != value for key, value in today.items()):
        return None
    return float(archive.read(path, "run", curves=False)["provenance"]["wall_s"])


def plain(spec: Spec) -> Any:
    """The algorithm of a run as a file has it."""
    return json.loads(json.dumps(describe(spec.algorithm)))


def ordered(found: list[Short]) -> Iterator[Short]:
    """The groups that are not done, those first whose claims cost least to decide.

    A claim costs what all its groups do. What no claim waits for comes last, the cheapest first.
    """
    left = [short for short in found if not short.done]
    price: dict[str, float] = {}
    for short in left:
        for claim in short.waiting:
            price[claim] = price.get(claim, 0.0) + short.job.seconds

    def place(short: Short) -> tuple[float, int, float, str]:
        best = min((price[claim] for claim in short.waiting), default=inf)
        return best, -len(short.waiting), short.job.seconds, short.job.title

    return iter(sorted(left, key=place))
