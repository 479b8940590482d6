"""The record of what was recomputed: of every stored run, how far anyone has come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fedlib.core.files import SCHEMA, digest, read_json, write_json
from fedlib.core.provenance import versions
from papers.kit import runfile, store
from papers.kit.recheck import Stretch, called
from papers.kit.study import Study


@dataclass(frozen=True)
class Seen:
    """How far one stored run was recomputed: its first rounds, in some seeds, when, by which code.

    `mark` is that of the run as it was then: one that was stored anew since is unseen.
    """

    rounds: int
    of: int
    seeds: tuple[int, ...]
    mark: str
    date: str
    commit: str | None

    @property
    def share(self) -> float:
        """Of the rounds."""
        return self.rounds / self.of


Record = dict[str, Seen]


def path() -> Path:
    """Where the record is."""
    return store.results_dir() / "recheck.json"


def seen() -> Record:
    """The record, by `study/run`; empty where there is none."""
    if not path().exists():
        return {}
    runs = read_json(path())["runs"]
    return {run: Seen(**{**one, "seeds": (*one["seeds"],)}) for run, one in runs.items()}


def enter(parts: Iterable[Stretch], studies: Mapping[str, Study]) -> None:
    """Add stretches that were recomputed; of one run the furthest stays, of equals the latest."""
    made, record = versions(), seen()
    for part in parts:
        mark = runfile.mark(studies[part.study].payload(part.name, part.profile))
        new = Seen(part.rounds, part.of, part.seeds, mark, made["date"], made["commit"])
        old = record.get(part.run)
        if old is None or old.mark != mark or old.rounds <= new.rounds:
            record[part.run] = new
    runs = {run: asdict(one) for run, one in sorted(record.items())}
    content = {"schema": SCHEMA, "kind": "recheck", "runs": runs}
    write_json(path(), {**content, "digest": digest(content)})


def of_study(study: str) -> dict[str, Seen | None]:
    """Every stored run of a study, and how far it was recomputed as it is stored now, if ever."""
    record, marks = seen(), dict[str, str]()
    for profile in ("full", store.PAPER):
        path = store.run_path(study, profile, "numbers")
        if path.exists() or profile == "full":
            for name, mark in read_json(path).get("runs", {}).items():
                # numbers at the paper's scale may come from runs of the full profile too
                if profile == "full" or store.run_path(study, profile, name).exists():
                    marks[called(name, profile)] = mark
    found = {name: record.get(f"{study}/{name}") for name in marks}
    return {
        n: one if one is not None and one.mark == marks[n] else None for n, one in found.items()
    }
