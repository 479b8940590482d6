"""Whether SSCA is ahead of tuned SGD, and of tuned momentum SGD, which it is a form of.

The rules were fixed, and committed, before any of the seeds that judge them was drawn.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
from papers.kit.rules import Control, Rule, of
from papers.ssca.common import CLIENTS, SPLITS, rows

BATCHES = (1, 10, 100)
HE = "he_"  # before the name of a cell from He's start
STORED = "a start uniform within 1 / sqrt(inputs)"
WIDE = "He's start"
NAMES = {"sgd": "SGD", "momentum": "momentum SGD"}
FROZEN = (
    "The baseline's step sizes have the lowest mean cost on five other seeds. Rule, grids and "
    "control were committed before the 20 seeds were drawn."
)


def below(start_prefix: str, splits: tuple[str, ...], method: str) -> Rule:
    """SSCA's mean cost over the rounds is below a baseline's, cell by cell."""
    texts = {}
    for split in splits:
        for b in BATCHES:
            printed = f"B = {rows(split, b, CLIENTS)}"
            cell = f"{start_prefix}{split}_B{b}"
            texts[cell] = f"{split}, {printed}" if len(splits) > 1 else printed
    pairs = {cell: f"{cell}_vs_{method}" for cell in texts}
    return Rule(
        {
            f"SSCA's mean cost over the rounds is below that of {NAMES[method]}": {
                text: of(f"{pairs[cell]}.area") < 0 for cell, text in texts.items()
            }
        },
        note=FROZEN,
        control=Control(
            f"{NAMES[method]} on two disjoint halves of the seeds instead of both methods",
            {f"{pair}.area": f"{pair}.null" for pair in pairs.values()},
        ),
    )


def runs(start_prefix: str, splits: tuple[str, ...], method: str) -> tuple[str, ...]:
    """The runs behind a rule."""
    return tuple(
        f"{m}_{start_prefix}{split}_B{b}"
        for split in splits
        for b in BATCHES
        for m in ("ssca", method)
    )


NEEDS = Needs(parameters=("rates", "falls", "momentum_rates", "betas", "tuning_seeds"))


COMMIT = "08ed1c80"  # that fixed the rules


def readings(splits: tuple[str, ...], method: str) -> dict[str, Any]:
    """Rule, runs and readings of a claim: the stored start first, He's beside it."""
    return {
        "rule": below("", splits, method),
        "runs": runs("", splits, method),
        "reading": STORED,
        "readings": (
            Reading(WIDE, below(HE, splits, method), runs(HE, splits, method), NEEDS, COMMIT),
        ),
        "needs": NEEDS,
        "rule_fixed": COMMIT,
    }


claim = partial(Claim, paper="Y")
CLAIMS = (
    claim(
        id="ssca/R2",
        place="Figure 2",
        wording="Where samples are split, Algorithm 1 converges faster than SGD.",
        **readings(("samples",), "sgd"),
    ),
    claim(
        id="ssca/R4",
        place="Figure 3",
        wording="Where features are split, Algorithm 3 converges faster than SGD.",
        **readings(("features",), "sgd"),
    ),
    Claim(
        id="ssca/P1",
        paper="ours",
        place="comparison",
        wording="Algorithms 1 and 3, which are momentum SGD with printed weights, converge faster "
        "than momentum SGD with a tuned step and weight.",
        **readings(SPLITS, "momentum"),
    ),
)
