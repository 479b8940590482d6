"""How a planted fault is judged, and how a script of faults reports.

Every script of this folder plants one kind of fault many times and says what became of each:
`good` (noticed, in one clear sentence, or harmless), `obscure` (stopped, but not in one sentence),
`unnamed` (a sentence that does not say which argument or file is meant), `accepted` (nothing was
said). `python tests/faults/NAME.py` prints what fell short; `--store` keeps the counts for the
book.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fedlib.core.files import SCHEMA, digest, write_json
from fedlib.core.provenance import versions

ROOT = Path(__file__).resolve().parents[2]
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


def main(what: str, outcomes: Callable[[argparse.Namespace], Iterable[Outcome]]) -> int:
    """The command line of a script: run, print what fell short, store the counts if asked."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--store", action="store_true", help="keep the counts for the book")
    parser.add_argument("--count", type=int, help="how many faults, where they are drawn")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    options = parser.parse_args()
    began = time.perf_counter()
    found = [outcome for outcome in outcomes(options) if options.only in outcome.name]
    wall = time.perf_counter() - began
    report(what, found)
    if options.store:
        if options.only or (options.count is not None and options.count < len(found)):
            parser.error("--store takes all cases: leave out --only")
        store(Path(sys.argv[0]).stem, what, found, wall, options.seed)
    return 0


def report(what: str, found: Sequence[Outcome]) -> None:
    """Print the counts and what fell short."""
    for outcome in found:
        if outcome.kind != "good":
            print(f"{outcome.kind:9} {outcome.name}: {outcome.said}".replace("\n", " | ")[:300])
    count = Counter(outcome.kind for outcome in found)
    print(f"{what}: {len(found)} tried, " + ", ".join(f"{count[k]} {k}" for k in KINDS))


def plain(outcome: Outcome) -> dict[str, str]:
    """What is stored of an outcome: without the places of the machine that it was tried on."""
    said = outcome.said.replace(str(ROOT), ".")
    return {**asdict(outcome), "said": re.sub(r"(?<![\w.])/(?:[\w.-]+/)+", ".../", said)}


def store(name: str, what: str, found: Sequence[Outcome], wall: float, seed: int) -> None:
    """Write results/faults/NAME.json, sealed."""
    count = Counter(outcome.kind for outcome in found)
    content = {
        "schema": SCHEMA,
        "kind": "faults",
        "name": name,
        "what": what,
        "seed": seed,
        "tried": len(found),
        **{kind: count[kind] for kind in KINDS},
        "short": [plain(outcome) for outcome in found if outcome.kind != "good"],
        "provenance": {**versions(), "wall_s": round(wall, 1)},
    }
    path = ROOT / "results" / "faults" / f"{name}.json"
    write_json(path, {**content, "digest": digest(content)})
    print(f"wrote {path.relative_to(ROOT)}")
