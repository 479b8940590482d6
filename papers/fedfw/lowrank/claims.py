"""The claim about FedFW's messages, and whether Frank-Wolfe wins where it should, by rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from papers.fedfw.lowrank.numbers import FRANK_WOLFE, LEVELS, PROJECTIONS, RADIUS, TASKS
from papers.kit.claims import Claim
from papers.kit.needs import Needs
from papers.kit.rules import Control, Numbers, Rule, least, most, of, told_value, value
from papers.kit.study import Params, Study, Traces

if TYPE_CHECKING:
    import pandas as pd

EXACT = 1e-5  # of the radius, in float32; and of singular values
SETS = ("l1", "simplex", "nuclear", "box")
OTHERS = {"avg1": "FedAvg, 1 step", "avg5": "FedAvg, 5 steps", "dr": "FedDR"}
# The full profile's grids and matrices.
PENALTIES, RATES, PROXIMAL = (0.01, 0.1, 1.0, 10.0), (0.1, 0.3, 1.0), (1.0, 10.0, 100.0)
REGRESSION, COMPLETION = (60, 40), (100, 80)
MEASURES = {
    "rounds": "rounds",
    "mbit": "bits that the clients send",
    "seconds": "oracle work, one client after another",
    "parallel": "oracle work, all clients at the same time",
}

C11 = Rule(
    {
        "one entry": {
            s: (most(f"messages_{s}.most") <= 1) & (least(f"messages_{s}.fewest") >= 1)
            for s in ("l1", "simplex")
        },
        "rank one, nuclear ball": most("messages_nuclear.second") <= EXACT,
        "signs, box": most("messages_box.off") <= EXACT,
    },
    "bits of a message: "
    + ", ".join(f"{s} {told_value(f'messages_{s}.bits', 'g')}" for s in SETS)
    + f"; without a short form {told_value('messages_l2.bits', 'g')}",
    "Of any message; up to the rounding of 32 bits.",
    {
        "bits counted, and nothing lost": {
            s: (most(f"messages_{s}.wire") <= EXACT * RADIUS)
            & (abs(value(f"messages_{s}.bits_off")) <= 0)
            for s in SETS
        }
    },
    control=Control("the messages of the l2 ball", {f"messages_{s}": "messages_l2" for s in SETS}),
)


def wins(measure: str) -> Rule:
    """Whether the better Frank-Wolfe method needs less than every method with projections.

    For each task a part a level and other method: all its seeds reach the level, and the interval
    of the ratio lies below 1. A method that does not reach a level counts with all that it spent.
    """
    races = {
        (task, f"to {level:g} %"): (
            f"{task}.reached_{level:g}",
            {o: f"{task}.fw_vs_{o}.{measure}_{level:g}" for o in PROJECTIONS},
        )
        for task in TASKS
        for level in LEVELS
    }

    def measured(n: Numbers) -> str:
        said = [
            f"{task} {goal}: {' / '.join(f'{n[k].value:.2g}' for k in ratios.values())}"
            if n[reached].value == 100
            else f"{task} {goal}: not always reached"
            for (task, goal), (reached, ratios) in races.items()
        ]
        return f"Frank-Wolfe over {' / '.join(OTHERS.values())}: {'; '.join(said)}"

    return Rule(
        {
            task: {
                f"{goal}, {OTHERS[other]}": (value(reached) >= 100) & (of(key) < 1)
                for (own, goal), (reached, ratios) in races.items()
                if own == task
                for other, key in ratios.items()
            }
            for task in TASKS
        },
        measured,
        control=Control(
            "one method under all names",
            {key: 1.0 for _, ratios in races.values() for key in ratios.values()},
        ),
    )


def race() -> Iterator[str]:
    grids = dict.fromkeys(FRANK_WOLFE, ("l", PENALTIES)) | {
        "avg1": ("a", RATES),
        "avg5": ("a", RATES),
        "dr": ("e", PROXIMAL),
    }
    for task in TASKS:  # and the clock, which has repetitions in the place of seeds
        yield f"{task}_reference"
        for method, (letter, grid) in grids.items():
            yield from (f"{task}_{method}_{letter}{x:g}" for x in grid)


#: Questions of ours that a table on the page answers, one a measure.
WINS = {
    measure: Claim(
        id=f"fedfw/wins-{measure}",
        paper="ours",
        place="the low-rank case",
        wording=f"Frank-Wolfe wins, counted in {text}.",
        measure=f"{text} to two levels of the excess loss, by that of the others.",
        rule=wins(measure),
        runs=tuple(race()),
        needs=Needs(parameters=("penalties", "rates", "proximal")),
    )
    for measure, text in MEASURES.items()
}


def wins_table(study: Study, traces: Traces, numbers: Numbers, params: Params) -> pd.DataFrame:
    """The verdict for every measure, or why these runs give none."""
    import pandas as pd  # here alone: the claims are judged without it

    words = {"reproduced": "yes", "partly": "in part", "not reproduced": "no"}
    rows = []
    for measure, text in MEASURES.items():
        found = study.verdict(WINS[measure], traces, numbers, params)
        verdict = words.get(found.verdict, found.verdict)
        rows.append((text, verdict, found.measured, found.reason))
    columns = ["counted in", "does Frank-Wolfe win?", "measured", "where not"]
    return pd.DataFrame(rows, columns=columns).set_index("counted in").rename_axis(None)


CLAIMS = (
    Claim(
        id="fedfw/C11",
        paper="D",
        place="Linear minimization oracles",
        wording="A client's message is sparse or of low rank: one entry for the l1 ball and the "
        "simplex, rank one for the nuclear ball, signs for a box.",
        measure="Every message of 100 rounds of FedFW, five seeds: ten clients with scikit-learn's "
        "digits and a linear model in the l1 ball, the simplex, a box; multi-task regression in "
        "the nuclear ball. The most and the fewest entries that are not 0 (most, fewest), the "
        "second singular value by the first (second), the distance of an entry from an end of the "
        "box (off), what the wire format does not give back (wire), and the bits counted minus "
        "those of index and sign, index, 32 (rows + columns), a bit an entry (bits_off).",
        rule=C11,
        runs=tuple(f"messages_{s}" for s in (*SETS, "l2")),
        figure="clock",
        needs=Needs(exact=True, dead=("messages_*",)),
        kind="counted",
    ),
)
