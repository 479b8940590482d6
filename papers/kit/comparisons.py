"""What comparisons of stored runs with today's code found, in `results/recheck.json`.

Of every study and profile the file has a list of comparisons, the last first. A comparison knows
each of its runs; a later one of the same run takes its place. Comparisons of an older format know
how many of the runs that were stored then they compared, and not which; they stay until all runs
are compared again. What is said of a run that was stored anew since does not count any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fedlib.core.files import Format, read_json, write_json
from fedlib.provenance import versions
from papers.kit import archive, store

Entry = dict[str, Any]


class Finding(NamedTuple):
    """What was found of one stored run.

    Attributes
    ----------
    mark : the start of the stored run's digest.
    rounds, of : how many rounds were compared, of how many.
    difference : the largest, as a share of the largest entry of its curve.
    equal : whether all of it is within the study's tolerance.
    """

    mark: str
    rounds: int
    of: int
    difference: float
    equal: bool


NOTES = Format("recheck", 3)


def path() -> Path:
    """The path of the file."""
    return store.results_dir() / "recheck.json"


def read() -> dict[str, list[Entry]]:
    """The comparisons of each study, the last first, by the study's name and profile."""
    file = path()
    if not file.exists():
        return {}
    content = read_json(file, NOTES)
    return dict(content["studies"])


def write(studies: Mapping[str, list[Entry]]) -> None:
    """Write the comparisons of all studies."""
    in_order = dict(sorted(studies.items()))
    write_json(path(), NOTES.sealed({"studies": in_order}))


def note(study: str, profile: str, total: int, findings: Mapping[str, Finding]) -> None:
    """Keep what was found of some of a profile's runs, of which there are `total`."""
    version = versions()
    commit = version["commit"]
    if version["dirty"]:
        commit = f"{commit} with changes"
    about = {"date": version["date"], "commit": commit, "total": total}
    with archive.exclusive(store.results_dir()):
        studies = read()
        entries = studies.setdefault(named(study, profile), [])
        goes_on = bool(entries) and about.items() <= entries[0].items()
        if not goes_on:
            entries.insert(0, {**about, "runs": {}})
        newest = entries[0]
        runs = newest["runs"]
        for name, finding in findings.items():
            runs[name] = list(finding)
        newest["runs"] = dict(sorted(runs.items()))
        earlier = [_without(entry, runs, total) for entry in entries[1:]]
        entries[1:] = filter(None, earlier)
        write(studies)


def rename(study: str, profile: str, names: Mapping[str, str]) -> None:
    """Keep what was found of runs that got other names."""
    studies = read()
    entries = studies.get(named(study, profile), [])
    for entry in entries:
        findings = entry.get("runs", {})
        for name in findings.keys() & names.keys():
            new_name = names[name]
            new_mark = mark(study, profile, new_name)
            finding = Finding(*findings.pop(name))
            finding = finding._replace(mark=new_mark)
            findings[new_name] = list(finding)
    write(studies)


def summary(study: str) -> str:
    """What the last comparisons of a study's stored runs found."""
    studies = read()
    sentences = []
    for profile in ("full", store.PAPER):
        entries = studies.get(named(study, profile), [])
        for entry in entries:
            sentences += _sentences(study, profile, entry)
        left = _never_compared(entries)
        if sentences and left > 0:
            sentences.append(f"The other {left} were never recomputed.")
    return " ".join(sentences) or "never recomputed"


def _never_compared(entries: list[Entry]) -> int:
    """How many runs no comparison has; 0 where one does not say which runs it has."""
    compared: set[str] = set()
    for entry in entries:
        if "runs" not in entry:
            return 0
        compared |= entry["runs"].keys()
    if not entries:
        return 0
    total: int = entries[0].get("total", 0)
    return total - len(compared)


def named(study: str, profile: str) -> str:
    """A study with its profile where that is not the full one."""
    return study if profile == "full" else f"{study}/{profile}"


def mark(study: str, profile: str, run: str) -> str:
    """The start of the digest of a stored run; empty if there is none."""
    run_file = store.stored_path(study, profile, run)
    if not archive.exists(run_file):
        return ""
    stored = archive.summary(run_file)
    return str(stored["digest"][:16])


def _without(entry: Entry, runs: Mapping[str, Any], total: int) -> Entry | None:
    """A comparison without runs that were compared again; None if none is left."""
    if "runs" not in entry:
        all_compared = len(runs) == total
        return None if all_compared else entry
    left = {name: finding for name, finding in entry["runs"].items() if name not in runs}
    if not left:
        return None
    return {**entry, "runs": left}


def _sentences(study: str, profile: str, entry: Entry) -> list[str]:
    """What one comparison found; nothing if all its runs were stored anew since."""
    counts = entry.get("counts") or _counts(study, profile, entry)
    if not counts["runs"]:
        return []
    marks = entry.get("stored", {})
    for run, mark_then in marks.items():
        if mark(study, profile, run) != mark_then:
            return []
    setting = " in the paper's setting" if profile == store.PAPER else ""
    sentence = (
        f"{counts['runs']} of {counts['of']} runs{setting} were recomputed on {entry['date']} at "
        f"commit {entry['commit']}"
    )
    if counts["cut"]:
        sentence += f", {counts['cut']} of them over their first rounds only"
    differ = (
        f"Recomputed and stored values differ by at most {counts['difference']:.1g} of the largest "
        "of their curve"
    )
    if counts["beyond"]:
        differ += f", and the study's tolerance is exceeded in {counts['beyond']} of the runs"
    return [f"{sentence}.", f"{differ}."]


def _counts(study: str, profile: str, entry: Entry) -> Entry:
    """How many runs a comparison has that are still stored, and what was found of them."""
    valid = []
    for name, values in entry["runs"].items():
        finding = Finding(*values)
        if finding.mark == mark(study, profile, name):
            valid.append(finding)
    differences = [finding.difference for finding in valid]
    return {
        "runs": len(valid),
        "of": entry["total"],
        "cut": sum(finding.rounds < finding.of for finding in valid),
        "difference": max(differences, default=0.0),
        "beyond": sum(not finding.equal for finding in valid),
    }
