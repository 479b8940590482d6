"""The claims about local steps and preferences, and the rules that judge them."""

from __future__ import annotations

from itertools import pairwise

from fedlib.claims import Claim, Numbers, Outcome, PaperValue, judge

__all__ = ["CLAIMS", "PAPER_VALUES", "c6", "c10"]

GREY = {"multi_mnist": "MultiMNIST", "mnist_fashion": "MNIST+FMNIST"}
STEPS = (1, 20)  # the fewest and the most
POINT = 1.0  # percentage points of accuracy
EPSILON = 0.01
NEAR = 2 * EPSILON  # divergence of final test losses that counts as meeting the preference
MODERATE = ("0.5", "1", "2")  # r_2 / r_1
STRONG = ("0.25", "4")
ALL = ("0.25", "0.5", "1", "2", "4")


def run(data: str, second: str) -> str:
    """The run with a preference, at the paper's tolerance."""
    return f"{data}_ratio{second}_tolerance{EPSILON:g}"


def c6(n: Numbers) -> Outcome:
    """Two parts a data set: the lead at the most local steps, and its growth."""
    parts, texts = {}, []
    for data, title in GREY.items():
        leads = {steps: n[f"{data}.lead{steps}"].value for steps in STEPS}
        fewest, most = leads[STEPS[0]], leads[STEPS[-1]]
        parts[f"FedCMOO ahead with {STEPS[-1]} local steps on {title}"] = most >= POINT
        parts[f"its lead growing on {title}"] = most >= fewest + POINT
        shown = ", ".join(f"{x:.1f} ({steps})" for steps, x in leads.items())
        texts.append(f"{title} {shown}")
    return judge(parts, "lead in points (local steps), one seed: " + "; ".join(texts))


def c10(n: Numbers) -> Outcome:
    """Five parts, as the claim's rule says."""
    quotients = {d: {r: n[f"{run(d, r)}.quotient"].value for r in ALL} for d in GREY}
    mu = {r: n[f"{run('multi_mnist', r)}.mu"].value for r in ALL}
    of, even = quotients["multi_mnist"], quotients["multi_mnist"]["1"]
    partly = all(mu[r] > NEAR for r in STRONG) and of["0.25"] < even < of["4"]
    parts = {
        "moderate preferences met on MultiMNIST": max(mu[r] for r in MODERATE) <= NEAR,
        "strong preferences met in part on MultiMNIST": partly,
        "the smaller loss on MNIST with FMNIST": max(quotients["mnist_fashion"].values()) < 1,
    }
    for data, title in GREY.items():
        ordered = all(a < b for a, b in pairwise(quotients[data][r] for r in ALL))
        parts[f"F1/F2 increasing in r2/r1 on {title}"] = ordered
    texts = [
        f"{title} " + ", ".join(f"{quotients[data][r]:.2f} ({r})" for r in ALL)
        for data, title in GREY.items()
    ]
    texts.append("mu on MultiMNIST " + ", ".join(f"{mu[r]:.2g} ({r})" for r in ALL))
    return judge(parts, "F1/F2 (r2/r1), one seed: " + "; ".join(texts))


CLAIMS = (
    Claim(
        "fedcmoo/C6",
        "C",
        "Figure 2",
        "With more local steps FSMGDA falls behind FedCMOO.",
        "Final mean test accuracy (evaluations of the last tenth of the rounds, far fewer than the "
        "paper's 500), FedCMOO minus FSMGDA, with 1 and with 20 local steps and fixed step sizes, "
        "one seed.",
        "One seed, so no interval over seeds. On MultiMNIST and on MNIST+FMNIST: (1) with 20 local "
        "steps FedCMOO is at least one point ahead; (2) that lead is at least one point larger "
        "than with one local step.",
        tuple(f"{d}_{m}_steps{s}" for d in GREY for m in ("fsmgda", "fedcmoo") for s in STEPS),
        c6,
        figure="figure_2",
    ),
    Claim(
        "fedcmoo/C10",
        "C",
        "Figure 4",
        "FedCMOO-Pref ends near r1 F1 = r2 F2 on MultiMNIST for moderate preferences; strongly "
        "unequal ones are met in part; on MNIST+FMNIST the smaller loss stays with MNIST.",
        "Final test losses (evaluations of the last tenth of the rounds) for r2/r1 = 1/4, 1/2, 1, "
        "2, 4, tolerance 0.01, no least weight, one seed: their quotient F1/F2, and the divergence "
        "mu of (r1 F1, r2 F2) from equal shares.",
        "One seed, so no interval over seeds. On MultiMNIST (1) mu <= 0.02, twice the tolerance, "
        "for r2/r1 = 1/2, 1, 2; (2) mu > 0.02 for 1/4 and 4, while F1/F2 is below that of 1 for "
        "1/4 and above it for 4. (3) On MNIST+FMNIST F1 < F2 for all five. (4), (5) On each data "
        "set F1/F2 increases with r2/r1.",
        tuple(run(d, r) for d in GREY for r in ALL),
        c10,
        figure="figure_4",
    ),
)

PAPER_VALUES = (
    *(
        PaperValue(
            f"{title}: lead with {steps} local steps",
            f"{data}.lead{steps}",
            None,
            "curve only",
            "Figure 2",
        )
        for data, title in GREY.items()
        for steps in STEPS
    ),
    *(
        PaperValue(
            f"{title}: F1/F2 for r2/r1 = {r}",
            f"{run(data, r)}.quotient",
            None,
            "points only",
            "Figure 4",
        )
        for data, title in GREY.items()
        for r in ALL
    ),
)
