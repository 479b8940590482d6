"""Claims of the papers and their verdicts, computed by rule from stored runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from fedlib import checks
from fedlib.numbers import Number

__all__ = [
    "PAPERS",
    "VERDICTS",
    "Claim",
    "Outcome",
    "PaperValue",
    "Verdict",
    "check",
    "judge",
]

Verdict = Literal["reproduced", "partly", "not reproduced", "not testable here"]
VERDICTS: tuple[Verdict, ...] = ("not reproduced", "partly", "reproduced", "not testable here")
Numbers = Mapping[str, Number]

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
class Outcome:
    """What a rule says of the numbers: the verdict, what was measured, and why."""

    verdict: Verdict
    measured: str
    reason: str = ""


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
    rule : when the verdict is what; the code of `judge` does just this.
    runs : names of the stored runs behind it.
    judge : numbers of the study -> Outcome.
    figure : name of the study's figure that shows it; empty where none does.
    """

    id: str
    paper: str
    place: str
    wording: str
    measure: str
    rule: str
    runs: tuple[str, ...]
    judge: Callable[[Numbers], Outcome]
    figure: str = ""

    def __post_init__(self) -> None:
        checks.one_of(self.id, "paper", self.paper, tuple(PAPERS))

    @property
    def anchor(self) -> str:
        """Where the claim stands on the claims page."""
        return "claim-" + self.id.replace("/", "-")


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


def judge(parts: Mapping[str, bool], measured: str) -> Outcome:
    """Reproduced if all parts hold, not reproduced if none does, partly otherwise.

    The reason names the parts that fail.
    """
    failing = [name for name, holds in parts.items() if not holds]
    if not failing:
        return Outcome("reproduced", measured)
    reason = "does not hold: " + "; ".join(failing)
    return Outcome("partly" if len(failing) < len(parts) else "not reproduced", measured, reason)


def check(label: str, passed: object, detail: str = "") -> bool:
    """Print one stable line for a notebook's checked cell, and say whether the check passed."""
    holds = bool(passed)
    print(f"{label}: {'yes' if holds else 'NO'}{f' ({detail})' if detail else ''}")
    return holds
