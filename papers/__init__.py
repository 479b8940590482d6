"""The studies: each reproduces a figure, a table or a group of them.

A study is a folder of this package (or of a paper's folder in it) whose `__init__` has a `STUDY`;
it is found there and registered nowhere. Importing this package alone imports no other: the command
`papers` can say what has to be installed.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from papers.kit.claims import Claim
    from papers.kit.rules import Outcome
    from papers.kit.study import Study

#: All studies by name. They are imported when somebody asks for it: help needs none of them.
STUDIES: dict[str, Study]

#: The snapshot of all rules and verdicts, which `papers claims --store` writes and a test compares.
VERDICTS = Path(__file__).with_name("verdicts.json")

__all__ = ["STUDIES", "all_claims", "all_outcomes", "verdicts"]


def __getattr__(name: str) -> dict[str, Study]:
    if name != "STUDIES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    studies = globals()[name] = {study.name: study for study in list_studies()}
    return studies


def list_studies() -> list[Study]:
    """The studies of all folders, in the order of the papers and of their first claims."""
    from papers.kit import snapshot

    packages = [m.name for m in pkgutil.walk_packages(__path__, f"{__name__}.") if m.ispkg]
    modules = [import_module(package) for package in packages]
    snapshot.remember()
    studies = sorted((m.STUDY for m in modules if hasattr(m, "STUDY")), key=place)
    names = [study.name for study in studies]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"papers: names of studies must differ, got twice: {', '.join(twice)}.")
    return studies


def place(study: Study) -> tuple[int, int, str]:
    """Where a study stands among the others."""
    from papers.kit.claims import PAPERS
    from papers.kit.study import ALL

    numbers = [int(n) for claim in study.claims for n in re.findall(r"/C(\d+)$", claim.id)]
    return [*PAPERS, ALL].index(study.paper), min(numbers, default=99), study.name


def all_claims() -> list[tuple[Study, Claim]]:
    """Every claim with the study that measures it, in the order of the papers."""
    studies = sys.modules[__name__].STUDIES.values()
    return [(study, claim) for study in studies for claim in study.claims]


def all_outcomes() -> dict[str, dict[str, Outcome]]:
    """What every reading of every claim says of the stored runs, by the ids of claims."""
    return {claim.id: study.outcomes(claim) for study, claim in all_claims()}


def verdicts(judged: Mapping[str, Mapping[str, Outcome]]) -> dict[str, dict[str, str]]:
    """The verdict on every reading of every claim, and the rule behind it.

    Parameters
    ----------
    judged : as of `all_outcomes`.
    """
    found = {}
    for _, claim in all_claims():
        outcomes = judged[claim.id]
        for reading in claim.each:
            name = f"{claim.id}: {reading.name}" if reading.name else claim.id
            found[name] = {"verdict": outcomes[reading.name].label, "rule": reading.rule.words}
    return found
