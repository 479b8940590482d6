"""The claims about local steps and preferences, and the rules that judge them."""

from __future__ import annotations

from papers.fedcmoo.common import GREY, cmoo
from papers.kit.claims import PaperValue
from papers.kit.rules import Rule, all_of, rises, told_value, value

STEPS = (1, 20)  # local steps, the fewest and the most
POINT = 1.0  # percentage points of accuracy
EPSILON = 0.01
NEAR = 2 * EPSILON  # divergence of final test losses that counts as meeting the preference
MODERATE = ("0.5", "1", "2")  # r_2 / r_1
STRONG = ("0.25", "4")
ALL = ("0.25", "0.5", "1", "2", "4")
ONE_SEED = "One seed, so no interval over seeds."


def run(data: str, second: str) -> str:
    """The run with a preference, at the paper's tolerance."""
    return f"{data}_ratio{second}_tolerance{EPSILON:g}"


def quotient(data: str, second: str) -> str:
    return f"{run(data, second)}.quotient"


def listed(data: str, measure: str, spec: str) -> str:
    return ", ".join(f"{told_value(f'{run(data, r)}.{measure}', spec)} ({r})" for r in ALL)


LEADS = {title: [f"{data}.lead{steps}" for steps in STEPS] for data, title in GREY.items()}
C6 = Rule(
    {
        part: condition
        for title, (fewest, most) in LEADS.items()
        for part, condition in {
            f"FedCMOO ahead with {STEPS[-1]} local steps on {title}": value(most) >= POINT,
            f"its lead growing on {title}": value(most) - value(fewest) >= POINT,
        }.items()
    },
    "lead in points (local steps), one seed: "
    + "; ".join(
        f"{title} " + ", ".join(f"{told_value(k, '.1f')} ({k.rpartition('lead')[2]})" for k in keys)
        for title, keys in LEADS.items()
    ),
    note=ONE_SEED,
)
C10 = Rule(
    {
        "moderate preferences met on MultiMNIST": all_of(
            *(value(f"{run('multi_mnist', r)}.mu") <= NEAR for r in MODERATE)
        ),
        "strong preferences met in part on MultiMNIST": all_of(
            *(value(f"{run('multi_mnist', r)}.mu") > NEAR for r in STRONG)
        )
        & rises(*(quotient("multi_mnist", r) for r in ("0.25", "1", "4"))),
        "the smaller loss on MNIST with FMNIST": all_of(
            *(value(quotient("mnist_fashion", r)) < 1 for r in ALL)
        ),
    }
    | {
        f"F1/F2 increasing in r2/r1 on {title}": rises(*(quotient(data, r) for r in ALL))
        for data, title in GREY.items()
    },
    "F1/F2 (r2/r1), one seed: "
    + "; ".join(f"{title} {listed(data, 'quotient', '.2f')}" for data, title in GREY.items())
    + f"; mu on MultiMNIST {listed('multi_mnist', 'mu', '.2g')}",
    note=f"{NEAR:g} is twice the tolerance. {ONE_SEED}",
)

CLAIMS = (
    cmoo(
        id="fedcmoo/C6",
        place="Figure 2",
        wording="With more local steps FSMGDA falls behind FedCMOO.",
        measure="Final mean test accuracy (evaluations of the last tenth of the rounds, far fewer "
        "than the paper's 500), FedCMOO minus FSMGDA, with 1 and with 20 local steps (lead1, "
        "lead20) and fixed step sizes, one seed.",
        rule=C6,
        runs=tuple(f"{d}_{m}_steps{s}" for d in GREY for m in ("fsmgda", "fedcmoo") for s in STEPS),
        figure="figure_2",
    ),
    cmoo(
        id="fedcmoo/C10",
        place="Figure 4",
        wording="FedCMOO-Pref ends near r1 F1 = r2 F2 on MultiMNIST for moderate preferences; "
        "strongly unequal ones are met in part; on MNIST+FMNIST the smaller loss stays with MNIST.",
        measure="Final test losses (evaluations of the last tenth of the rounds) for r2/r1 = 1/4, "
        "1/2, 1, 2, 4 (ratio), tolerance 0.01, no least weight, one seed: their quotient F1/F2, "
        "and the divergence mu of (r1 F1, r2 F2) from equal shares.",
        rule=C10,
        runs=tuple(run(d, r) for d in GREY for r in ALL),
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
            f"{title}: F1/F2 for r2/r1 = {r}", quotient(data, r), None, "points only", "Figure 4"
        )
        for data, title in GREY.items()
        for r in ALL
    ),
)
