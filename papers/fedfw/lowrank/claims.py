"""The claim about FedFW's messages, and whether Frank-Wolfe wins where it should, by rule."""

from __future__ import annotations

import pandas as pd

from papers.fedfw.lowrank.numbers import LEVELS, PROJECTIONS, RADIUS, TASKS
from papers.kit.claims import Claim, Numbers, Outcome, judge

__all__ = ["CLAIMS", "MEASURES", "c11", "wins", "wins_table"]

EXACT = 1e-5  # of the radius, in float32; and of singular values
SETS = ("l1", "simplex", "nuclear", "box")
MEASURES = {
    "rounds": "rounds",
    "mbit": "bits that the clients send",
    "seconds": "oracle work, one client after another",
    "parallel": "oracle work, all clients at the same time",
}
OTHERS = {"avg1": "FedAvg, 1 step", "avg5": "FedAvg, 5 steps", "dr": "FedDR"}


def c11(n: Numbers) -> Outcome:
    """One entry, one entry, rank one, signs; and as many bits as the formulas say."""
    n["whole.rounds"]
    parts = {
        f"one entry, {s}": n[f"messages_{s}.most"].high == 1 == n[f"messages_{s}.fewest"].low
        for s in ("l1", "simplex")
    }
    parts["rank one, nuclear"] = n["messages_nuclear.second"].high <= EXACT
    parts["ends only, box"] = n["messages_box.off"].high <= EXACT
    for s in SETS:
        same = n[f"messages_{s}.wire"].high <= EXACT * RADIUS
        parts[f"bits, {s}"] = same and n[f"messages_{s}.bits_off"].value == 0
    said = [f"{s} {n[f'messages_{s}.bits'].value:g}" for s in SETS]
    dense = n["messages_l2.bits"].value
    return judge(parts, f"bits of a message: {', '.join(said)}; without a short form {dense:g}")


def wins(n: Numbers, measure: str) -> Outcome:
    """Whether the better Frank-Wolfe method needs less than every method with projections.

    A part for each task, level and other method: all its seeds reach the level, and the interval of
    the ratio lies below 1. A method that does not reach a level counts with all that it spent.
    """
    n["whole.rounds"]
    parts, said = {}, []
    for task in TASKS:
        for level in LEVELS:
            there = n[f"{task}.reached_{level:g}"].value == 100
            each = []
            for other in PROJECTIONS:
                x = n[f"{task}.fw_vs_{other}.{measure}_{level:g}"]
                parts[f"{task} to {level:g} %, {OTHERS[other]}"] = there and x.high < 1
                each.append(f"{x.value:.2g}")
            text = " / ".join(each) if there else "not always reached"
            said.append(f"{task} to {level:g} %: {text}")
    return judge(parts, f"Frank-Wolfe over {' / '.join(OTHERS.values())}: {'; '.join(said)}")


def wins_table(n: Numbers) -> pd.DataFrame:
    """The verdict for every measure."""
    words = {"reproduced": "yes", "partly": "in part", "not reproduced": "no"}
    rows = []
    for measure, text in MEASURES.items():
        try:
            found = wins(n, measure)
        except KeyError:  # too small, or a run is missing
            rows.append((text, "not measured at these parameters", "", ""))
        else:
            rows.append((text, words[found.verdict], found.measured, found.reason))
    columns = ["counted in", "does Frank-Wolfe win?", "measured", "where not"]
    return pd.DataFrame(rows, columns=columns).set_index("counted in").rename_axis(None)


CLAIMS = (
    Claim(
        "fedfw/C11",
        "D",
        "Linear minimization oracles",
        "A client's message is sparse or of low rank: one entry for the l1 ball and the simplex, "
        "rank one for the nuclear ball, signs for a box.",
        "Every message of 100 rounds of FedFW, five seeds: ten clients with scikit-learn's digits "
        "and a linear model in the l1 ball, the simplex, a box; multi-task regression in the "
        "nuclear ball.",
        "l1 ball and simplex: every message has exactly one entry that is not 0; nuclear ball: no "
        "second singular value above 1e-5 of the first; box: no entry further than 1e-5 from an "
        "end; each: the wire format gives every message back within 1e-5 of the radius, and the "
        "bits counted are index and sign, index, 32 (rows + columns), a bit an entry.",
        tuple(f"messages_{s}" for s in (*SETS, "l2")),
        c11,
        figure="clock",
    ),
)
