"""The parts of claims as one table: what each asks, what was measured, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from fedlib.core.files import atomic_write
from papers.kit.claims import PAPERS, Claim, Reading
from papers.kit.numbers import Number, exact
from papers.kit.rules import Outcome, Part, conditions_of
from papers.kit.study import Study

#: Column -> what it has.
COLUMNS = {
    "study": "study whose runs judge the claim",
    "claim": "its identifier, such as fedsgm/C4",
    "reading": "how the claim is read, where there are several ways",
    "paper": "the paper's short name",
    "place": "figure, table or section of the paper",
    "part": "what is asked, in the paper's terms",
    "case": "for which case; empty where the part has one alone",
    "condition": "the same in words, with the names of the stored quantities",
    "quantities": "those names",
    "estimate": "the value that the condition compares: a quantity, or a difference of two",
    "low": "lower end of its 95 % interval",
    "high": "upper end of its 95 % interval",
    "relation": "below, at most, above, at least; between bound and top",
    "bound": "what the estimate is compared with",
    "top": "the upper bound of between",
    "unit": "unit of the estimate",
    "seeds": "number of seeds behind it; empty where no seed changes it",
    "profile": "whose stored quantities were judged: full, or paper for the paper's scale",
    "state": "holds, fails, open, or not judged",
    "rule_fixed": "commit of the rule, where it is older than the runs that judge it",
    "control": "what the negative control exchanges",
    "control_state": "what the same condition does there; empty where that exchanges no number",
    "printed": "the same value by the numbers that the paper prints",
    "printed_spread": "the uncertainty that it prints beside them; empty where it prints none",
    "printed_place": "where it prints them",
    "verdict": "the verdict on the claim by this reading",
}
NOT_JUDGED = "not judged"


class Printed(NamedTuple):
    """A printed value and where the paper prints it."""

    number: Number
    place: str


def frame(study: Study, claim: Claim, outcomes: Mapping[str, Outcome]) -> pd.DataFrame:
    """One row for each part of each reading of a claim; see `COLUMNS`.

    Parameters
    ----------
    study : the study of the claim.
    outcomes : name of a reading -> its outcome, as of `Study.outcomes`.
    """
    rows = []
    for reading in claim.each:
        outcome = outcomes[reading.name]
        printed = printed_values(study, reading)
        of_reading = outcome.parts or unread_parts(reading)
        rows += [
            row_of(
                study,
                claim,
                reading,
                outcome,
                part,
                printed,
            )
            for part in of_reading
        ]
    return pd.DataFrame(rows, columns=[*COLUMNS]).astype(
        {"seeds": "Int64", "printed_spread": float}
    )


def all_parts(
    claims: Iterable[tuple[Study, Claim]], judged: Mapping[str, Mapping[str, Outcome]]
) -> pd.DataFrame:
    """The parts of claims; see `COLUMNS`.

    Parameters
    ----------
    claims : each claim with its study.
    judged : id of a claim -> name of a reading -> its outcome.
    """
    frames = [frame(study, claim, judged[claim.id]) for study, claim in claims]
    return pd.concat(frames, ignore_index=True)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write the table as CSV; numbers have six significant digits."""
    text = table.to_csv(index=False, float_format="%.6g")
    atomic_write(path, lambda file: file.write(text.encode()))


def printed_values(study: Study, reading: Reading) -> dict[Any, Printed]:
    """The quantities that the paper prints; printed bounds are none of them."""
    printed: dict[Any, Printed] = {}
    for size in reading.rule.sizes:
        number = with_spread(size.printed, size.spread)
        printed.setdefault(size.key, Printed(number, size.place))
    for value in study.paper_values:
        if not value.at_most:
            number = with_spread(value.paper, value.spread)
            printed.setdefault(value.key, Printed(number, value.place))
    return printed


def with_spread(value: float, spread: float) -> Number:
    """A printed value, with its uncertainty as an interval."""
    return replace(exact(value), low=value - spread, high=value + spread)


def unread_parts(reading: Reading) -> list[Part]:
    """The parts of a rule whose runs cannot judge it."""
    return [Part(*named, state=NOT_JUDGED) for named in conditions_of(reading.rule.primary)]


def row_of(
    study: Study,
    claim: Claim,
    reading: Reading,
    outcome: Outcome,
    part: Part,
    printed: Mapping[Any, Printed],
) -> dict[str, Any]:
    """One row of the table."""
    row: dict[str, Any] = {
        "study": study.name,
        "claim": claim.id,
        "reading": reading.name,
        "paper": PAPERS[claim.paper],
        "place": claim.place,
        "part": part.words,
        "case": part.case,
        "condition": part.condition.words,
        "quantities": "; ".join(str(key) for key in part.condition.keys),
        "unit": part.unit,
        "seeds": part.seeds or pd.NA,
        "profile": outcome.profile,
        "state": NOT_JUDGED if outcome.verdict == NOT_JUDGED else part.state,
        "rule_fixed": reading.rule_fixed,
        "control": reading.rule.control.what if reading.rule.control else "",
        "control_state": part.control,
        "verdict": outcome.label,
    }
    statement = part.statement
    value = part.value
    if statement is None or value is None:
        return row
    row |= {"estimate": value.value, "low": value.low, "high": value.high}
    row |= {"relation": statement.relation, "bound": statement.bound, "top": statement.top}
    if all(key in printed for key in statement.keys):
        numbers = {key: printed[key].number for key in statement.keys}
        places = dict.fromkeys(printed[key].place for key in statement.keys)
        value = statement.read(numbers)
        row["printed"] = value.value
        row["printed_spread"] = (value.high - value.low) / 2 or None
        row["printed_place"] = "; ".join(places)
    return row
