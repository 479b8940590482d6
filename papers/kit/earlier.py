"""What rules said of the seeds that were known when they were written.

Where a rule judges seeds that were drawn after it, the verdict on the earlier seeds stands beside.
`papers/earlier_verdicts.json` has it: a copy of what `papers/verdicts.json` was in the commit that
fixed the rule.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

EARLIER = Path(__file__).parents[1] / "earlier_verdicts.json"


@cache
def earlier_verdicts() -> dict[str, dict[str, str]]:
    """Name of a claim or of its reading -> `verdict`, `seeds` and `commit`; see `name_of`."""
    stored: dict[str, dict[str, str]] = json.loads(EARLIER.read_text(encoding="utf-8"))
    return stored


def name_of(claim: str, reading: str) -> str:
    """What a reading of a claim is called, here and in `papers/verdicts.json`."""
    return f"{claim}: {reading}" if reading else claim


def on_earlier_seeds(claim: str, reading: str) -> list[str]:
    """The sentence on the earlier seeds of a reading; none where there were none."""
    known = earlier_verdicts().get(name_of(claim, reading))
    if known is None:
        return []
    return [f"On the seeds {known['seeds']}, known when the rule was written: {known['verdict']}."]
