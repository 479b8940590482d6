"""Tables of a study for its notebook: parameters, the paper against ours, verdicts, health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from papers.kit.health import Health
from papers.kit.numbers import Number
from papers.kit.snippet import snippet
from papers.kit.study import Params, Study, Traces

if TYPE_CHECKING:
    from IPython.display import Markdown

Numbers = Mapping[str, Number]

pd.set_option("display.max_colwidth", None)  # sentences in these tables are never cut


def parameter_table(study: Study, params: Params) -> pd.DataFrame:
    """What the runs of this page were made with."""
    rows = [(k, plain(params[k]), text) for k, text in study.parameters.items()]
    return (
        pd.DataFrame(rows, columns=["parameter", "value", "meaning"])
        .set_index("parameter")
        .rename_axis(None)
    )


def program(study: Study, params: Params, *runs: str) -> Markdown:
    """A run, and the first of those that advance with it, as code that runs as it stands.

    It is the first of `runs` that these parameters have.
    """
    from IPython.display import Markdown  # in a notebook it is there, for a script it is not needed

    specs = study.specs(params)
    code = snippet(specs, next((run for run in runs if run in specs), runs[0]))
    return Markdown(f"```python\n{code}\n```")  # type: ignore[no-untyped-call]


def paper_table(study: Study, numbers: Numbers) -> pd.DataFrame:
    """The paper's printed values beside ours, with the interval over seeds."""
    rows = []
    for v in study.paper_values:
        if v.key in numbers:
            ours = numbers[v.key]
            rows.append((v.label, v.place, v.paper_text, ours.text(), v.status(ours)))
    columns = ["quantity", "place", "paper", "ours [95 % interval]", "status"]
    return pd.DataFrame(rows, columns=columns).set_index("quantity").rename_axis(None)


def claims_table(study: Study, traces: Traces, numbers: Numbers, params: Params) -> pd.DataFrame:
    """The verdict on every claim of a study by every reading, or why these runs cannot judge it."""
    rows = []
    for claim in study.claims:
        for reading, found in study.verdicts(claim, traces, numbers, params).items():
            name = f"{claim.id}: {reading}" if reading else claim.id
            rows.append((name, claim.wording, found.label, found.reason))
    columns = ["claim", "the paper says", "verdict", "what fails or is undecided"]
    return pd.DataFrame(rows, columns=columns).set_index("claim").rename_axis(None)


def health_table(study: Study, traces: Traces) -> pd.DataFrame:
    """How many runs of a page are in which state, and those that are not healthy, with why."""
    health = study.health(traces)
    states: dict[str, list[str]] = {}
    for name, found in health.items():
        kind, _, why = found.text.partition(": ")
        states.setdefault(kind, []).append(f"{name} ({why})" if why else name)
    ill = {found.text.partition(": ")[0] for found in health.values() if found.wrong}
    rows = {
        kind: {"runs": len(names), "not healthy": "; ".join(names) if kind in ill else ""}
        for kind, names in sorted(states.items(), key=lambda item: item[0] in ill)
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def runs_table(
    numbers: Numbers,
    runs: Mapping[str, str],
    measures: Mapping[str, str],
    health: Mapping[str, Health] = {},
) -> pd.DataFrame:
    """Chosen measures of chosen runs: labels down, measures across, each with its interval.

    With their health a last column says of the runs that are not healthy what is wrong.
    """
    there = {k: v for k, v in runs.items() if all(f"{v}.{m}" in numbers for m in measures)}
    rows = {
        label: {
            with_unit(text, numbers[f"{run}.{m}"]): unbroken(numbers[f"{run}.{m}"])
            for m, text in measures.items()
        }
        for label, run in there.items()
    }
    wrong = {label: health[run].wrong for label, run in there.items() if run in health}
    if any(wrong.values()):
        for label in rows:
            rows[label]["not healthy"] = wrong.get(label, "")
    return pd.DataFrame.from_dict(rows, orient="index")


def unbroken(n: Number, spec: str = ".3g") -> str:
    """Value and interval, which a narrow column must not tear apart."""
    return replace(n, unit="").text(spec).replace(" ", "\N{NO-BREAK SPACE}")


def with_unit(text: str, n: Number) -> str:
    """A column's heading, with the unit of its numbers unless the heading says it already."""
    return f"{text} ({n.unit})" if n.unit and n.unit not in text else text


def plain(value: object) -> str:
    """A parameter as a reader writes it."""
    return ", ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
