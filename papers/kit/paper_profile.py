"""The paper's own setting beside the full profile: what differs, what is stored, what it decides.

A claim is judged on the full profile. Where every run that it looks at is stored in the paper's
setting, it is judged on these alone, and says so. Runs of the two settings are never compared with
each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from fedlib.core import Trace
from papers.kit import archive, store
from papers.kit.health import ONE_SEED
from papers.kit.numbers import Number
from papers.kit.store import PAPER, config_of

if TYPE_CHECKING:
    from papers.kit.claims import Claim
    from papers.kit.rules import Outcome
    from papers.kit.study import Study


def setting_text(study: Study, runs: Iterable[str]) -> str:
    """The paper's setting of some runs in words: how many rounds and seeds."""
    specs = study.specs(study.resolve(PAPER))
    rounds = dict.fromkeys(specs[run].rounds for run in runs)
    seeds: dict[str, set[int]] = {}
    for run in runs:
        seeds.setdefault(ONE_SEED.sub("", run), set()).update(specs[run].seeds)
    counts = dict.fromkeys(map(len, seeds.values()))
    return f"rounds {' or '.join(map(str, rounds))}, seeds {' or '.join(map(str, counts))}"


def traces(study: Study) -> dict[str, Trace]:
    """The runs of the paper's setting that are stored; only groups that are whole."""
    return {name: store.to_trace(payload) for name, payload in study.held(PAPER).items()}


def numbers_of(study: Study) -> dict[str, Number]:
    """The numbers that were derived from runs of the paper's setting; none if there are none."""
    there = archive.exists(store.run_path(study.name, PAPER, "numbers"))
    return store.read_numbers(study.name, PAPER) if there else {}


def at_scale(study: Study, claim: Claim) -> dict[str, Outcome]:
    """What those readings of a claim give whose runs are all stored in the paper's setting.

    None of readings of which the full profile has all runs as the paper has them.
    """
    if not numbers_of(study):
        return {}
    known, ill, behind = store.read_derived(study.name, PAPER)
    found = {}
    for reading in claim.each:
        paths = {n: store.stored_path(study.name, PAPER, n) for n in reading.runs if n in behind}
        asked = reading.rule.keys()
        larger = any(path.parent.name == PAPER for path in paths.values())
        if not larger or len(paths) < len(reading.runs) or not asked <= known.keys():
            continue
        configs = {name: config_of(path) for name, path in paths.items()}
        outcome = reading.judged(known, configs, configs, {}, ill)
        found[reading.name] = _named(outcome, setting_text(study, reading.runs))
    return found


def _named(outcome: Outcome, setting: str) -> Outcome:
    """An outcome that says in what setting it was come to."""
    where = f"at the paper's scale ({setting})"
    if not outcome.measured:
        return replace(outcome, reason=f"{where} {outcome.reason}")
    reason = f"{where}: {outcome.reason}" if outcome.reason else ""
    return replace(outcome, measured=f"{where}: {outcome.measured}", reason=reason)
