"""Claims of the papers: what is said, how it is measured, when it holds, what judging it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedlib import checks
from papers.kit.needs import Needs
from papers.kit.numbers import Number
from papers.kit.rules import Numbers, Outcome, Rule

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
class Claim:
    """One testable sentence, figure or table of a paper.

    Attributes
    ----------
    id : such as `fedsgm/C4`.
    paper : one of `PAPERS`.
    place : figure, table or section.
    wording : what the paper says, in our words.
    measure : what is measured.
    rule : when the verdict is what.
    runs : names of the runs behind it.
    figure : name of the study's figure that shows it; empty where none does.
    needs : what those runs must have for a verdict.
    """

    id: str
    paper: str
    place: str
    wording: str
    measure: str
    rule: Rule
    runs: tuple[str, ...]
    figure: str = ""
    needs: Needs = Needs()

    def __post_init__(self) -> None:
        checks.one_of(self.id, "paper", self.paper, tuple(PAPERS))

    @property
    def anchor(self) -> str:
        """Where the claim stands on the claims page."""
        return "claim-" + self.id.replace("/", "-")

    def judge(self, numbers: Numbers) -> Outcome:
        """What the rule says of numbers that meet the needs."""
        return self.rule(numbers)

    def verdict(
        self,
        numbers: Numbers,
        configs: Mapping[str, Mapping[str, Any]],
        paper: Mapping[str, Mapping[str, Any]],
        changed: Mapping[str, tuple[Any, Any]] = {},
    ) -> Outcome:
        """The rule's outcome, or *not judged* with the reason where the runs lack what it needs.

        The one place that decides whether a claim may be judged. `configs` are the configurations
        of the runs that the numbers come from, `paper` those of the setting that the claim is
        about; `changed` has the parameters that differ, each with its value and the paper's.
        """
        lacking = self.needs.unmet(self.runs, configs, paper, changed)
        if lacking:
            return Outcome("not judged", "", f"not judged, because {lacking}")
        return self.judge(numbers)


@dataclass(frozen=True)
class PaperValue:
    """A printed number beside ours.

    It `agrees` if it lies in our interval or within `rtol` of ours; where the paper states a bound
    (`at_most`), if our value does not exceed it by more than `rtol`. `paper` is None where the
    paper gives words or a curve only; nothing is compared then.
    """

    label: str
    key: str
    paper: float | None
    paper_text: str
    place: str
    rtol: float = 0.1
    at_most: bool = False

    def status(self, ours: Number) -> str:
        """`agrees`, `differs`, or `not printed`."""
        if self.paper is None:
            return "not printed"
        if self.at_most:
            return "agrees" if ours.value <= (1 + self.rtol) * self.paper else "differs"
        near = abs(self.paper - ours.value) <= self.rtol * abs(self.paper)
        return "agrees" if near or ours.low <= self.paper <= ours.high else "differs"


def check(label: str, passed: object, detail: str = "") -> bool:
    """Print one stable line for a notebook's checked cell, and say whether the check passed."""
    holds = bool(passed)
    print(f"{label}: {'yes' if holds else 'NO'}{f' ({detail})' if detail else ''}")
    return holds
