"""The paper's own setting beside the full profile: what differs, what is stored, what it decides.

A claim is judged on the full profile. Where every run that it looks at is stored in the paper's
setting, it is judged on these alone, and says so. Runs of the two settings are never compared with
each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from fedlib.core import Trace
from fedlib.core.describe import describe
from papers.kit import archive, runfile, store
from papers.kit.needs import ONE_SEED
from papers.kit.numbers import Number
from papers.kit.run_schema import Payload, load_run
from papers.kit.store import PAPER, Spec

if TYPE_CHECKING:
    from papers.kit.claims import Claim
    from papers.kit.rules import Outcome
    from papers.kit.study import Study

SIZES = (
    "rows",
    "pictures",
    "molecules",
    "most",
)  # what a table calls rows; of generated data the most of a client
LEFT_OUT = {*SIZES, "measured"} - {"rows"}  # said once, and rows for the curves alone
ALL = "all"  # rows, where a study names no number


def differ(one: Spec, other: Spec) -> bool:
    """Whether two specs are of different runs."""
    return identity(one) != identity(other)


def identity(spec: Spec) -> str:
    """All of a spec that decides its numbers, without building its problem."""
    how = (spec.rounds, spec.seeds, spec.evaluate_every, spec.keep)
    return repr((describe(spec.algorithm), spec.maker(), how))


def facts(spec: Spec) -> dict[str, Any]:
    """What a table says of a run."""
    own = arguments(spec)
    return {
        "rounds": spec.rounds,
        "seeds": len(spec.seeds),
        "rows": next((own[name] for name in SIZES if name in own), ALL),
        **own,
        **dict(numbers(describe(spec.algorithm))),
    }


def arguments(spec: Spec) -> dict[str, int]:
    """The whole numbers but 0 among the arguments of a problem."""
    made = getattr(spec.problem, "keywords", {})
    return {k: v for k, v in made.items() if type(v) is int and v}


def numbers(described: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The whole numbers of a described algorithm; what stands inside others first."""
    for value in described.values():
        if isinstance(value, Mapping):
            yield from numbers(value)
    yield from ((k, v) for k, v in described.items() if type(v) is int)


def differing(now: Mapping[str, Any], paper: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Entries of two tables of facts that are not equal; each once, rows under that name."""
    names = [k for k, v in paper.items() if now.get(k) != v and k not in LEFT_OUT]
    return {k: now[k] for k in names if k in now}, {k: paper[k] for k in names}


def setting_text(study: Study, runs: Iterable[str]) -> str:
    """The paper's setting of some runs in words: rounds, seeds, and what the full one has less."""
    full, paper = (study.specs(study.resolve(profile)) for profile in ("full", PAPER))
    found: dict[str, dict[Any, None]] = {"rounds": {}, "seeds": {}}
    seeds: dict[str, set[int]] = {}
    for run in (names := tuple(runs)):
        seeds.setdefault(ONE_SEED.sub("", run), set()).update(paper[run].seeds)
    for run in names:
        own = facts(paper[run])
        _, other = differing(facts(full[run]) if run in full else {}, own)
        several = len(seeds[ONE_SEED.sub("", run)])
        for name, value in {"rounds": own["rounds"], **other, "seeds": several}.items():
            found.setdefault(name, {})[value] = None
    each = (f"{k.replace('_', ' ')} {' or '.join(map(str, v))}" for k, v in found.items())
    return ", ".join(each)


def held(study: Study) -> dict[str, Path]:
    """The runs of the paper's setting that are stored, and where; only groups that are whole.

    The points of a grid are one group: none is judged while others, which might be chosen in its
    place, are missing.
    """
    full, paper = (study.specs(study.resolve(profile)) for profile in ("full", PAPER))
    places = {name: _place(study, name, spec, full.get(name)) for name, spec in paper.items()}
    groups = [{name: places[name] for name in group} for group in store.groups(paper)]
    return {n: path for group in groups if all(group.values()) for n, path in group.items() if path}


def _place(study: Study, name: str, paper: Spec, full: Spec | None) -> Path | None:
    """Where a run of the paper's setting is stored: in its place, or as the full profile's."""
    own = store.run_path(study.name, PAPER, name)
    if archive.exists(own):
        return own if store.is_stored(study.name, PAPER, name, paper) else None
    shared = store.run_path(study.name, "full", name)
    alike = full is not None and not differ(full, paper)
    return shared if alike and archive.exists(shared) else None


def traces(study: Study) -> dict[str, Trace]:
    """The runs of `held`."""
    return {name: runfile.to_trace(load_run(path)) for name, path in held(study).items()}


def numbers_of(study: Study) -> dict[str, Number]:
    """The numbers that were derived from runs of the paper's setting; none if there are none."""
    there = archive.exists(store.run_path(study.name, PAPER, "numbers"))
    return store.read_numbers(study.name, PAPER) if there else {}


class Missing(KeyError):
    """A number asks for a run that is not stored."""


class Some(dict[str, Trace]):
    """Traces of which some are not there."""

    def __missing__(self, name: str) -> NoReturn:
        raise Missing(name)


def settle(study: Study) -> dict[str, Number] | None:
    """Derive numbers from the runs of the paper's setting that are there, and store them.

    None where there are none, and where the study cannot derive any before it has more.
    """
    if not study.at_paper or not archive.names(store.run_path(study.name, PAPER, "any").parent):
        return None
    payloads = {name: load_run(path) for name, path in held(study).items()}
    if not any(payload["profile"] == PAPER for payload in payloads.values()):
        return None
    traces = Some({name: runfile.to_trace(payload) for name, payload in payloads.items()})
    try:
        found = study.numbers(traces, PAPER)
    except Missing:
        return None
    store.write_numbers(study.name, PAPER, found, payloads, study.health(traces))
    return found


def at_scale(study: Study, claim: Claim) -> dict[str, Outcome]:
    """What those readings of a claim give whose runs are all stored in the paper's setting.

    None of readings of which the full profile has all runs as the paper has them.
    """
    known = numbers_of(study)
    if not study.at_paper or not known:
        return {}
    ill, marks = store.read_health(study.name, PAPER), store.read_marks(study.name, PAPER)
    found = {}
    for reading in claim.each:
        runs = dict(_unchanged(study, reading.runs, marks))
        asked = {key for condition in reading.rule.conditions() for key in condition.keys}
        larger = any(run.at_paper for run in runs.values())
        if not larger or len(runs) < len(reading.runs) or not asked <= known.keys():
            continue
        configs = {name: run.config for name, run in runs.items()}
        wrong = {name: ill[name].wrong for name in runs}
        outcome = reading.judged(known, configs, configs, {}, wrong)
        found[reading.name] = _named(outcome, setting_text(study, reading.runs))
    return found


class Marked(NamedTuple):
    """The configuration of a stored run, where it lies, and the mark of its content."""

    config: Payload
    at_paper: bool
    mark: str


@archive.cached
def marked(path: Path) -> Marked:
    """The same of a file, read once with all its checks."""
    run = load_run(path)
    return Marked(run["config"], path.parent.name == PAPER, runfile.mark(run))


def _unchanged(
    study: Study, runs: Iterable[str], marks: Mapping[str, str]
) -> Iterator[tuple[str, Marked]]:
    """Those of some runs that are as they were when the numbers were derived.

    A run that was removed since is not among them: the full profile's, which would be read in its
    place, has another mark.
    """
    for run in runs:
        path = store.stored_path(study.name, PAPER, run)
        if run in marks and archive.exists(path) and marked(path).mark == marks[run]:
            yield run, marked(path)


def _named(outcome: Outcome, setting: str) -> Outcome:
    """An outcome that says in what setting it was come to."""
    where = f"at the paper's scale ({setting})"
    if not outcome.measured:
        return replace(outcome, reason=f"{where} {outcome.reason}")
    reason = f"{where}: {outcome.reason}" if outcome.reason else ""
    return replace(outcome, measured=f"{where}: {outcome.measured}", reason=reason)
