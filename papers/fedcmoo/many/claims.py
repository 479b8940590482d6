"""FedCMOO's claims about many objectives, and the rules that judge them."""

from __future__ import annotations

from papers.fedcmoo.many.numbers import METHODS, SETS
from papers.kit.claims import Claim, Numbers, Outcome, PaperValue, judge

__all__ = ["CLAIMS", "PAPER_VALUES", "c2", "c17"]

POINT = 0.5  # a difference of accuracies that counts, in points
EVEN = 0.9  # a spread that counts as smaller: at most so much of the other


def c2(n: Numbers) -> Outcome:
    """Three parts, as the claim's rule says."""
    n["data.pictures"]  # a stand-in for the data cannot judge the paper
    g = {tasks: n[f"{tasks}.gap"] for tasks in SETS}
    few, some, many = (g[tasks].value for tasks in SETS)
    parts = {
        "FedCMOO ahead with 40 tasks": g["attributes"].low > POINT,
        "the gap with 40 tasks above that with 2": n["attributes_vs_halves.gap"].low > POINT,
        "the gap with 5 tasks between the two": few - POINT <= some <= many + POINT,
    }
    text = "; ".join(f"M = {count}: {g[tasks].text('.2g')}" for tasks, count in SETS.items())
    return judge(parts, f"FedCMOO minus FSMGDA in final accuracy, {text}")


def c17(n: Numbers) -> Outcome:
    """Four parts: two sets of tasks, against each of the two other methods."""
    n["data.pictures"]
    parts, texts = {}, []
    for tasks in ("groups", "attributes"):
        for name, text in (("fedcmoo", "FedCMOO"), ("fsmgda", "FSMGDA")):
            ratio = n[f"{tasks}_pref_vs_{name}.deviation"]
            parts[f"more even than {text} with {SETS[tasks]} tasks"] = ratio.high <= EVEN
            texts.append(f"M = {SETS[tasks]}, {ratio.value:.2f} of {text}'s")
    return judge(parts, f"deviation of the final losses over tasks: {'; '.join(texts)}")


CLAIMS = (
    Claim(
        "fedcmoo/C2",
        "C",
        "Figures 1, 8 and 9",
        "The advantage of FedCMOO over FSMGDA grows with the number of objectives (40 tasks of "
        "CelebA against two tasks).",
        "Final mean test accuracy (last fifth of the evaluations) of FedCMOO minus FSMGDA's, in "
        "points, with M = 2, 5 and 40 tasks on the same 40 attributes of the same pictures, equal "
        "rounds, clients, local steps and network; step sizes of the paper's CelebA-5 for M = 2 "
        "and 5, of its CelebA for M = 40. Forty attributes of a digit and an item in place of "
        "CelebA's.",
        "One seed, so that an interval is a single value. (1) The gap with M = 40 is above 0.5 "
        "points. (2) It exceeds the gap with M = 2 by more than 0.5 points. (3) The gap with "
        "M = 5 is neither more than 0.5 points below that with M = 2 nor more than 0.5 points "
        "above that with M = 40.",
        tuple(f"{tasks}_{name}" for tasks in SETS for name in ("fedcmoo", "fsmgda")),
        c2,
        figure="gap_by_tasks",
    ),
    Claim(
        "fedcmoo/C17",
        "C",
        "Figure 10",
        "FedCMOO-Pref with equal preference trains the tasks more evenly than FedCMOO and FSMGDA.",
        "Standard deviation over the tasks of their final test losses (last fifth of the "
        "evaluations), FedCMOO-Pref's divided by another method's, with M = 5 and M = 40 tasks. "
        "Forty attributes of a digit and an item in place of CelebA's.",
        "One seed, so that an interval is a single value. Four parts: with M = 5 and with M = 40, "
        "against FedCMOO and against FSMGDA, the upper end of the ratio's interval is at most 0.9.",
        tuple(f"{tasks}_{name}" for tasks in ("groups", "attributes") for name in METHODS),
        c17,
        figure="figure_10",
    ),
)

#: The paper shows its results with many objectives as curves and radial plots only.
PAPER_VALUES = tuple(
    PaperValue(f"{what}, M = {count}", f"{tasks}.{k}", None, "curve only", f"C, {place}")
    for tasks, count in SETS.items()
    if count > 2
    for k, what, place in (
        ("gap", "FedCMOO - FSMGDA in accuracy (points)", "Figures 1 and 8"),
        ("gap_upload", "the same at equal uploads", "Figures 1 and 8"),
    )
)
