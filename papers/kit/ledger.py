"""The ledger of recomputations: of every stored run, when it was last computed again and agreed.

A stored run is as fresh as its last recomputation. `results/recheck.json` has one entry a run,
which `papers recheck --store` and `papers reproduce` write. No test and no verdict looks at source
code: where a source file of a run has changed since, loading the run says so, and nothing more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from fedlib.core import Trace
from fedlib.core.files import SCHEMA, digest, read_json, write_json
from fedlib.provenance import versions
from papers.kit import archive, sources, store
from papers.kit.store import Spec

FEW = 3  # commits that a notice names


@dataclass(frozen=True)
class RunPrefix:
    """The first rounds of one stored run."""

    study: str
    name: str
    rounds: int
    of: int
    profile: str = "full"

    @property
    def run(self) -> str:
        """The run's name in the ledger."""
        return f"{self.study}/{run_name(self.name, self.profile)}"


@dataclass(frozen=True)
class CheckedRun:
    """The last recomputation of one stored run.

    Attributes
    ----------
    rounds, of : how many of its first rounds were computed again, and of how many.
    mark : that of the run as it was then; one that was stored anew since counts as unchecked.
    date, commit : when, and by which code.
    difference : the largest, as a share of the largest entry of its curve; None in entries that
        are older than this field.
    within : whether it is within the study's tolerance.
    sources : the run's source files then, each with its SHA-256.
    """

    rounds: int
    of: int
    mark: str
    date: str
    commit: str | None
    difference: float | None = None
    within: bool = True
    sources: Mapping[str, str] = field(default_factory=dict)


def run_name(name: str, profile: str) -> str:
    """A run of a study, with its profile where that is not the full one."""
    return name if profile == "full" else f"{profile}/{name}"


def path() -> Path:
    """Where the ledger is."""
    return store.results_dir() / "recheck.json"


def entries() -> dict[str, CheckedRun]:
    """All entries by `study/run`; none without a ledger."""
    return dict(_read(path())) if path().exists() else {}


@archive.cached
def _read(place: Path) -> dict[str, CheckedRun]:
    runs = read_json(place, "recheck")["runs"]
    return {run: CheckedRun(**one) for run, one in runs.items()}


def enter(done: Iterable[tuple[RunPrefix, Spec, float, bool]]) -> None:
    """Add recomputed runs, each with the largest difference and whether it is within tolerance."""
    made, found = versions(), entries()
    for part, spec, difference, within in done:
        mark = _mark_of(part.study, part.profile, part.name)
        found[part.run] = CheckedRun(
            part.rounds, part.of, mark, made["date"], made["commit"],
            float(f"{difference:.2g}"), within, spec.sources(),
        )  # fmt: skip
    runs = {run: asdict(one) for run, one in sorted(found.items())}
    content = {"schema": SCHEMA, "kind": "recheck", "runs": runs}
    write_json(path(), {**content, "digest": digest(content)})


def of_study(study: str) -> dict[str, CheckedRun | None]:
    """Every stored run of a study with its last recomputation as it is stored now, if ever."""
    found, checked = entries(), dict[str, CheckedRun | None]()
    for profile in ("full", store.PAPER):
        there = archive.names(store.run_path(study, profile, "any").parent) - {"numbers"}
        for name in sorted(there):
            one = found.get(f"{study}/{run_name(name, profile)}")
            agrees = one and one.mark == _mark_of(study, profile, name)
            checked[run_name(name, profile)] = one if agrees else None
    return checked


def summary(runs: Iterable[CheckedRun | None]) -> str:
    """The last recomputation of some runs in one line."""
    runs = [*runs]
    done = [one for one in runs if one is not None]
    if not done:
        return "never recomputed"
    last = max(done, key=lambda one: one.date)
    told = (
        f"last recomputed at commit {last.commit} on {last.date}, {len(done)} of {len(runs)} runs"
    )
    if known := [one.difference for one in done if one.difference is not None]:
        told += f", largest relative difference {max(known):.1g}"
    beyond = sum(not one.within for one in done)
    return told + f", {beyond} beyond the study's tolerance" * bool(beyond)


def notify(study: str, profile: str, traces: Mapping[str, Trace]) -> None:
    """Say in one sentence which source files of loaded runs changed since; once a process."""
    found, files, places = entries(), dict[str, None](), dict[str, None]()
    count = 0
    for name, trace in traces.items():
        what, commit = "stored", trace.provenance["commit"]
        now = sources.changed(trace.provenance.get("sources", {}))
        last = found.get(f"{study}/{run_name(name, profile)}") if now else None
        if last and last.within and last.sources and last.mark == _mark_of(study, profile, name):
            what, commit, now = "recomputed", last.commit, sources.changed(last.sources)
        if now:
            files |= dict.fromkeys(now)
            places[f"{what} at commit {commit}"] = None
            count += 1
    if count:
        when = " or ".join([*places][:FEW]) + " or others" * (len(places) > FEW)
        _say(
            f"{study}: {', '.join(files)} {'has' if len(files) == 1 else 'have'} changed since "
            f"{count} of {len(traces)} runs were {when}; recompute=True computes them anew."
        )


def _mark_of(study: str, profile: str, name: str) -> str:
    """The mark of a run as it is stored now; empty where none is."""
    place = store.stored_path(study, profile, name)
    if not archive.exists(place):
        return ""
    return store.mark(archive.read(place, curves=False))


@cache
def _say(sentence: str) -> None:
    """Once a process; on a page as an output that comparisons of pages leave out."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        from IPython.display import display

        notice = {"notice": True}
        display({"text/plain": sentence}, raw=True, metadata=notice)  # type: ignore[no-untyped-call]
    else:
        print(sentence, file=sys.stderr)
