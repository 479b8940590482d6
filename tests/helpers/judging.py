"""How a planted fault is judged.

`good` (noticed, in one clear sentence, or harmless), `obscure` (stopped, but not in one sentence),
`unnamed` (a sentence that does not say which argument is meant), `accepted` (nothing was said).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

KINDS = ("good", "obscure", "accepted", "unnamed")
#: What a refusal may be raised as; other exceptions come from the depths.
REFUSALS = (ValueError, TypeError, OSError)


@dataclass(frozen=True)
class Case:
    """A call that must be refused, and the words of which its sentence must hold one."""

    name: str
    attempt: Callable[[], object]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of one planted fault: one of KINDS, and what was said."""

    name: str
    kind: str
    said: str = ""

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind


def judge(case: Case) -> Outcome:
    """Try a call that must be refused."""
    try:
        case.attempt()
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        if not isinstance(error, REFUSALS):
            return Outcome(case.name, "obscure", said)
        return Outcome(case.name, kind_of(str(error), case.names), said)
    return Outcome(case.name, "accepted")


def kind_of(text: str, names: Sequence[str] = ()) -> str:
    """Whether a message is one sentence `WHO: ...` that holds one of the names."""
    one = re.fullmatch(r"[^\n]{3,80}?: [^\n]*\.", text) is not None
    if not one or len(text) > 500 or "Traceback" in text:
        return "obscure"
    return "good" if not names or any(name in text for name in names) else "unnamed"
