"""A study's stored runs computed again, all of them, and compared; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from papers.kit import store
from papers.kit.close import close_of
from papers.kit.recheck import Compared, Stretch, compared
from papers.kit.store import Spec
from papers.kit.study import Study


@dataclass(frozen=True)
class Again:
    """One stored run, computed again: over how many of its rounds, and what was found.

    `found` is None for a run that is not stored with the configuration of today.
    """

    name: str
    rounds: int
    of: int
    found: Compared | None

    @property
    def equal(self) -> bool:
        """Whether the stored run is what the code gives."""
        return self.found is not None and not self.found.wrong


def again(study: Study, profile: str, runs: str, device: str) -> Iterator[Again]:
    """Every stored run whose name matches, computed as it was: with its grid, all seeds.

    Runs of which only the first rounds follow the stored ones are computed that far.
    """
    specs = study.specs(study.resolve(profile))
    chosen = study.chosen(specs, runs)
    held = {}
    for name, spec in chosen.items():
        if store.is_stored(study.name, profile, name, spec, spec):
            held[name] = spec
        else:
            yield Again(name, 0, spec.rounds, None)
    for group in store.groups({name: first(study, name, spec) for name, spec in specs.items()}):
        if held.keys().isdisjoint(group):
            continue
        for name, trace in store.compute(group, device, progress=True).items():
            if name not in held:
                continue
            rounds, spec = group[name].rounds, held[name]
            part = Stretch(study.name, name, rounds, spec.rounds, spec.seeds)
            found = compared(study, spec, part, trace, profile)
            yield Again(name, rounds, spec.rounds, found)


def first(study: Study, name: str, spec: Spec) -> Spec:
    """A run as far as it can be compared: to the end, for most."""
    rounds = close_of(name, study.close).rounds
    return spec if rounds is None else replace(spec, rounds=min(rounds, spec.rounds))


def summary(study: str, done: Sequence[Again]) -> str:
    """How many runs are what the code gives, and up to what; then what was not compared."""
    equal = [one.found for one in done if one.found is not None and one.equal]
    apart = max((found.apart for found in equal), default=0.0)
    lines = [f"{len(equal)} of {len(done)} runs equal within {apart:.1g}"]
    begun = [one for one in done if one.found is not None and one.rounds < one.of]
    if begun:
        far = f"{min(one.rounds for one in begun)} to {max(one.rounds for one in begun)}"
        lines.append(f"{len(begun)} of them over their first rounds alone ({far}), no farther")
    lacking = [one.name for one in done if one.found is None]
    if lacking:
        shown = ", ".join(lacking[:5]) + ", ..." * (len(lacking) > 5)
        lines.append(f"{len(lacking)} not stored as declared ({shown}); --missing stores them")
    return "\n".join(f"{study}: {line}" for line in lines)
