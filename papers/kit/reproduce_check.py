"""A study's stored runs computed again, all of them, and compared; no run is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from papers.kit import ledger, store
from papers.kit.ledger import RunPrefix
from papers.kit.recheck import Comparison, compare
from papers.kit.store import Spec
from papers.kit.study import Study
from papers.kit.tolerance import tolerance_of


@dataclass(frozen=True)
class Reproduced:
    """One stored run, computed again: over how many of its rounds, and how it compares.

    `found` is None for a run that is not stored as it is declared.
    """

    name: str
    rounds: int
    of: int
    found: Comparison | None

    @property
    def equal(self) -> bool:
        """Whether the stored run is what the code gives."""
        return self.found is not None and not self.found.wrong


def check_runs(study: Study, profile: str, runs: str, device: str) -> Iterator[Reproduced]:
    """Every stored run whose name matches, computed as it was: with its grid, all seeds.

    Runs of which only the first rounds follow the stored ones are computed that far. What was
    compared is entered in the ledger, group by group.
    """
    specs = study.specs(study.resolve(profile))
    stored = {}
    for name, spec in study.chosen(specs, runs).items():
        if store.is_stored(study.name, profile, name, spec):
            stored[name] = spec
        else:
            yield Reproduced(name, 0, spec.rounds, None)
    for group in store.groups({name: _cut(study, name, spec) for name, spec in specs.items()}):
        if stored.keys().isdisjoint(group):
            continue
        done = []
        for name, trace in store.compute(group, device, progress=True).items():
            if name not in stored:
                continue
            rounds, spec = group[name].rounds, stored[name]
            part = RunPrefix(study.name, name, rounds, spec.rounds, spec.seeds, profile)
            found = compare(study, spec, part, trace)
            done.append((part, spec, found.difference, not found.wrong))
            yield Reproduced(name, rounds, spec.rounds, found)
        ledger.enter(done)


def _cut(study: Study, name: str, spec: Spec) -> Spec:
    """A run as far as it can be compared: to the end, for most."""
    rounds = tolerance_of(name, study.tolerances).rounds
    return spec if rounds is None else replace(spec, rounds=min(rounds, spec.rounds))


def summary(study: str, done: Sequence[Reproduced]) -> str:
    """How many runs are what the code gives, and up to what; then what was not compared."""
    equal = [one.found for one in done if one.found is not None and one.equal]
    largest = max((found.difference for found in equal), default=0.0)
    lines = [f"{len(equal)} of {len(done)} runs equal within {largest:.1g}"]
    begun = [one for one in done if one.found is not None and one.rounds < one.of]
    if begun:
        far = f"{min(one.rounds for one in begun)} to {max(one.rounds for one in begun)}"
        lines.append(f"{len(begun)} of them over their first rounds alone ({far}), no farther")
    lacking = [one.name for one in done if one.found is None]
    if lacking:
        names = ", ".join(lacking[:5]) + ", ..." * (len(lacking) > 5)
        lines.append(f"{len(lacking)} not stored as declared ({names}); --missing stores them")
    return "\n".join(f"{study}: {line}" for line in lines)
