"""The table of what other people's packages give on the arena's problems, from the stored file."""

from __future__ import annotations

import pandas as pd

from fedlib.core import files
from papers.arena.outside import CHECKS, PACKAGES, path

DESCENT = (
    "above optimum {gap:.2g} % [{gap_low:.2g}, {gap_high:.2g}], "
    "violation {excess:.2g} % [{excess_low:.2g}, {excess_high:.2g}]"
)
#: Check of `papers.arena.outside` -> what it is about, and what it found.
OUTSIDE = {
    "weights": (
        "weights: MGDA and UPGrad against MinNorm, FindWeights and UPGrad's definition",
        "{matrices:.0f} Gram matrices. Largest difference of a weight: two gradients, MGDA and "
        "MinNorm {mgda_two:.0e}, MGDA and FindWeights {find_two:.0e}; UPGrad {upgrad:.0e}. Three "
        "to five gradients: MGDA's squared norm is at most {mgda_more:.0e} of a gradient's above "
        "MinNorm's",
    ),
    "switching": (
        "Neyman-Pearson, all rows at one client: SSG against FedSGM hard, one local step",
        "after {rounds:.0f} steps, of which {switched:.0%} on the constraint: the models differ by "
        "{apart:.0e} of their largest entry, {same_switches:.0%} of the switches are the same",
    ),
    "lagrangian_np": ("Neyman-Pearson, all rows in one place: gradient descent-ascent", DESCENT),
    "lagrangian_pair": ("Two tasks, all rows in one place: gradient descent-ascent", DESCENT),
}


def table() -> pd.DataFrame:
    """Package and version, and what was found; empty if nothing is stored."""
    if not path().exists():
        return pd.DataFrame()
    held = files.read_json(path())
    rows = {}
    for name, (about, found) in OUTSIDE.items():
        if name in held["found"]:
            package = PACKAGES[CHECKS[name][0]]
            told = found.format(**held["found"][name]).replace(" -", " \N{MINUS SIGN}")
            told = told.replace("[-", "[\N{MINUS SIGN}")
            rows[about] = {"package": f"{package} {held['packages'][package]}", "found": told}
    return pd.DataFrame.from_dict(rows, orient="index")
