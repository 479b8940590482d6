"""Claims of the papers: what is said, how it is measured, when it holds, what judging it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from fedlib import checks
from papers.kit.health import Evidence, Needs, listed
from papers.kit.numbers import Number
from papers.kit.parameters import nearest
from papers.kit.quantities import Key
from papers.kit.rules import Outcome, Rule

#: The letter of each paper, and its short name.
PAPERS = {
    "W": "FedSGM, workshop",
    "F": "FedSGM",
    "C": "FedCMOO",
    "Y": "SSCA",
    "D": "FedFW",
    "ours": "this book",
}


@dataclass(frozen=True)
class Reading:
    """Another reading of a claim, where the paper and its authors' code differ.

    Attributes
    ----------
    name : what is read how, such as `the network as printed, without dropout`.
    rule, runs, needs, rule_fixed : as of a `Claim`.
    """

    name: str
    rule: Rule
    runs: tuple[str, ...]
    needs: Needs = Needs()
    rule_fixed: str = ""

    def judged(self, evidence: Evidence, claim: str) -> Outcome:
        """The rule's outcome, or *not judged* with the reason; see `Claim.verdicts`.

        Parameters
        ----------
        evidence : what judges it.
        claim : the claim's id, which errors name.
        """
        edits = evidence.edits
        edited = [f"{run} is your own ({edits[run]})" for run in self.runs if run in edits]
        lacking = listed(edited) or self.needs.unmet(self.runs, evidence)
        if lacking:
            return Outcome("not judged", "", f"not judged, because {lacking}")
        check_known(claim, self.rule, evidence.numbers)
        return self.rule(evidence.numbers)


def check_known(claim: str, rule: Rule, numbers: Mapping[Any, Number]) -> None:
    """Refuse a rule that reads a quantity which is not there, with those of its measure."""
    for key in sorted(rule.keys(), key=str):
        if key in numbers:
            continue
        names = [str(name) for name in getattr(numbers, "queries", numbers)]
        raise ValueError(
            f"{claim}: every quantity of its rule must be one row of the study's numbers, "
            f"got `{key}`; {nearest(str(key), names)}."
        )


@dataclass(frozen=True)
class Claim:
    """One testable sentence, figure or table of a paper.

    Attributes
    ----------
    id : such as `fedsgm/C4`.
    paper : one of `PAPERS`.
    place : figure, table or section.
    wording : what the paper says, in our words.
    rule : when the verdict is what.
    runs : names of the runs behind it.
    figure : name of the study's figure that shows it; empty where none does.
    needs : what those runs must have for a verdict.
    reading : where there are several, the name of the one that the rule is of, which counts.
    readings : the others, such as what the authors' code implies, judged beside it.
    kind : `measured` by runs, `proved` as a theorem, or `counted`: it follows from a definition.
    rule_fixed : the commit that has the rule, where the runs that judge it were computed after it,
        on seeds that had told nothing of it; empty where they are older, or where that is unknown.
    """

    id: str
    paper: str
    place: str
    wording: str
    rule: Rule
    runs: tuple[str, ...]
    figure: str = ""
    needs: Needs = Needs()
    reading: str = ""
    readings: tuple[Reading, ...] = ()
    kind: Literal["measured", "proved", "counted"] = "measured"
    rule_fixed: str = ""

    def __post_init__(self) -> None:
        checks.fields(self)
        checks.one_of(self.id, "paper", self.paper, tuple(PAPERS))

    @property
    def anchor(self) -> str:
        """Where the claim stands on the claims page."""
        return "claim-" + self.id.replace("/", "-")

    @property
    def each(self) -> tuple[Reading, ...]:
        """All readings, the claim's own first."""
        headline = Reading(
            self.reading,
            self.rule,
            self.runs,
            self.needs,
            self.rule_fixed,
        )
        return (headline, *self.readings)

    @property
    def all_runs(self) -> tuple[str, ...]:
        """The runs behind all readings, each once."""
        return tuple(dict.fromkeys([*self.runs, *(r for x in self.readings for r in x.runs)]))

    def verdicts(self, evidence: Evidence) -> dict[str, Outcome]:
        """The outcome of every reading by its name, the claim's own first.

        *Not judged* with the reason where the runs lack what a reading needs. The one place that
        decides whether a claim may be judged.
        """
        return {
            reading.name: self.worded(reading.judged(evidence, self.id)) for reading in self.each
        }

    def worded(self, outcome: Outcome) -> Outcome:
        """An outcome with the word for this kind of claim: a theorem is not *reproduced*.

        A theorem is proved in a note whether or not runs could have told otherwise; the outcome
        still says where they could not.
        """
        if self.kind == "measured" or {*outcome.states.values()} != {"holds"}:
            return outcome
        reason = outcome.reason.replace("not judged", "the runs do not judge it")
        return replace(outcome, verdict=self.kind, reason=reason)


@dataclass(frozen=True)
class PaperValue:
    """A printed number beside ours.

    It `agrees` if it is within `rtol` of ours; where the paper states a bound (`at_most`), if our
    value does not exceed it by more than `rtol`. Where it is further away and still in our interval
    it is `open`: a wide interval excludes nothing, and agrees with nothing. With the `spread` that
    the paper prints beside it, any value that far away may be meant.
    """

    label: str
    key: Key
    paper: float
    paper_text: str
    place: str
    rtol: float = 0.1
    at_most: bool = False
    spread: float = 0.0

    def status(self, ours: Number) -> str:
        """`agrees`, `differs` or `open`."""
        if self.at_most:
            return "agrees" if ours.value <= (1 + self.rtol) * self.paper else "differs"
        if abs(self.paper - ours.value) <= self.rtol * abs(self.paper) + self.spread:
            return "agrees"
        return "open" if ours.meets(self.paper, self.spread) else "differs"


def check(label: str, passed: object, detail: str = "") -> None:
    """Print one stable line for a notebook's checked cell: whether the check passed."""
    print(f"{label}: {'yes' if passed else 'NO'}{f' ({detail})' if detail else ''}")
