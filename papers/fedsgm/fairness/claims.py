"""The full paper's claims about fair classification, and the rules that judge them."""

from __future__ import annotations

from functools import partial

from papers.fedsgm.curves import FEASIBLE
from papers.fedsgm.fairness import many, thirty
from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
from papers.kit.rules import Condition, Control, Rule, alike, all_of, any_of, of, stat, stat_value

EPSILON = 0.05
MODES = ("hard", "soft")
DUALS = ("conex_dual1", "conex_dual10")
#: Settings of IPP ConEx that train -> step size and dual step.
ON_GRID = {
    "conex_dual1": "ConEx with step size 0.1 and dual step 1",
    "conex_dual10": "ConEx with step size 0.1 and dual step 10",
    "grid_conex_lr0.1_dual100": "ConEx with step size 0.1 and dual step 100",
    "grid_conex_lr0.3_dual1": "ConEx with step size 0.3 and dual step 1",
    "grid_conex_lr0.3_dual10": "ConEx with step size 0.3 and dual step 10",
}
RHOS = ("0.1", "1", "10")
PENALTIES = tuple(f"penalty_rho{r}" for r in RHOS)
CENTRAL = tuple(f"central_{run}" for run in (*MODES, *PENALTIES))
TUNED = f"tuned penalty (rho = {stat_value('penalty.rho', 'g')})"
#: The federated methods beside soft switching.
RIVALS = {"hard switching": "hard", "the tuned penalty": "penalty"}
#: All methods but IPP ConEx.
OTHERS = (*MODES, "penalty", *(f"central_{m}" for m in (*MODES, "penalty")))
TWINS = {"hard": "hard switching", "soft": "soft switching", "penalty": "tuned penalty"}


def comparable(a: str, b: str, free: str = "fedavg") -> Condition:
    """Whether the late losses of two methods differ by a quarter of the constraint's price at most.

    The price is what the loss rises by from FedAvg, which has no constraint.
    """
    return alike(of(f"{a}.f"), of(f"{b}.f"), of(f"{a}.f") - of(f"{free}.f"))


#: What every rule on soft switching must not pass.
PENALTY = Control("the tuned penalty instead of soft switching", {"soft": "penalty"})


def late_estimates(runs: dict[str, str]) -> str:
    """Late loss and gap of some runs, each under its label."""
    return "late loss and late gap; " + "; ".join(
        f"{text}: {stat(f'{run}.f')}, {stat(f'{run}.g', '.2g')}" for text, run in runs.items()
    )


SOLID = {"soft switching": "soft", "hard switching": "hard", TUNED: "penalty"}
PRICE = "The price is the rise of the loss above that of FedAvg, which has no constraint."
C22 = Rule(
    {
        "soft switching's late gap is smaller than its rival's": {
            text: of("soft.g") < of(f"{x}.g") for text, x in RIVALS.items()
        },
        "the late losses of both differ by at most a quarter of the price of the constraint": {
            text: comparable("soft", x) for text, x in RIVALS.items()
        },
    },
    late_estimates(SOLID),
    f"{PRICE} Soft switching has a smaller gap and a larger loss than both rivals.",
    control=PENALTY,
)
C29 = Rule(
    {
        "the centralized method has the lower mean loss over the run": {
            f"centralized {text}, federated {other}": of(f"central_{x}.mean_f") < of(f"{y}.mean_f")
            for x, text in TWINS.items()
            for y, other in TWINS.items()
        }
    },
    "mean loss over the run; "
    + "; ".join(
        f"{text}: centralized {stat(f'central_{x}.mean_f')}, federated {stat(f'{x}.mean_f')}"
        for x, text in TWINS.items()
    ),
    control=Control(
        "the federated method instead of its centralized twin",
        {f"central_{x}": x for x in TWINS},
    ),
)
C30 = Rule(
    {
        "the late losses differ by at most a quarter of the price of the constraint": comparable(
            "fresh_hard", "fresh_penalty", "fresh_fedavg"
        ),
        f"the late gap is at most {FEASIBLE * EPSILON:g}, 5 % above its level": {
            text: of(f"fresh_{x}.g") <= FEASIBLE * EPSILON for text, x in RIVALS.items()
        },
    },
    late_estimates({"hard switching": "fresh_hard", TUNED: "fresh_penalty"}),
    PRICE,
    control=Control("FedAvg instead of hard FedSGM", {"fresh_hard": "fresh_fedavg"}),
)
C31 = Rule(
    {
        "the centralized method has the smaller late gap": {
            text: of(f"central_{x}.g") < of(f"{x}.g") for x, text in TWINS.items()
        }
    },
    "late gap; "
    + "; ".join(
        f"{text}: centralized {stat(f'central_{x}.g', '.2g')}, federated {stat(f'{x}.g', '.2g')}"
        for x, text in TWINS.items()
    ),
    "More conservative means a smaller gap, not a larger loss: by the same paragraph of the "
    "paper, the loss falls fastest with the centralized methods.",
    control=Control(
        "the federated method instead of its centralized twin",
        {f"central_{x}": x for x in TWINS},
    ),
)
C32 = Rule(
    {
        "some setting of ConEx has a smaller late gap than every other method": any_of(
            *(all_of(*(of(f"{run}.g") < of(f"{x}.g") for x in OTHERS)) for run in ON_GRID)
        )
    },
    late_estimates({text: run for run, text in ON_GRID.items()} | SOLID),
    "All settings in which ConEx trains are listed. With a step size of 0.03 it never does.",
    control=Control("hard FedSGM instead of ConEx", dict.fromkeys(ON_GRID, "hard")),
)
C33 = Rule(
    {
        "soft switching's gap oscillates less than its rival's": {
            text: of("fresh_soft.oscillation") < of(f"fresh_{x}.oscillation")
            for text, x in RIVALS.items()
        }
    },
    "oscillation of the gap: "
    + "; ".join(f"{text} {stat(f'fresh_{x}.oscillation')}" for text, x in SOLID.items()),
    control=Control("the tuned penalty instead of soft switching", {"fresh_soft": "fresh_penalty"}),
)

figure_7 = partial(
    Claim, paper="F", place="Figure 7", figure="trade_off", needs=Needs(parameters=("rhos",))
)

CLAIMS = (
    figure_7(
        id="fedsgm/C22",
        wording="Soft FedSGM has the best trade-off of loss and fairness.",
        rule=many.RULE,
        runs=many.FAIR,
        needs=Needs(dead=("many_*_step2",)),
        reading="in all settings that the paper leaves open",
        readings=(
            Reading(
                "fairer at a comparable loss",
                C22,
                (*MODES, *PENALTIES, "central_soft", "fedavg"),
                Needs(parameters=("rhos",)),
            ),
        ),
    ),
    figure_7(
        id="fedsgm/C29",
        wording="Centralized methods converge fastest in the loss.",
        rule=C29,
        runs=(*MODES, *PENALTIES, *CENTRAL, *DUALS),
    ),
    figure_7(
        id="fedsgm/C30",
        wording="Hard FedSGM is comparable with the tuned penalty.",
        rule=C30,
        runs=tuple(f"fresh_{run}" for run in ("hard", *PENALTIES, "fedavg")),
        rule_fixed="43651f8f",
    ),
    figure_7(
        id="fedsgm/C31",
        wording="Centralized methods are more conservative than federated ones.",
        rule=C31,
        runs=(*MODES, *PENALTIES, *CENTRAL),
        reading="on five seeds",
        readings=(thirty.READINGS["fedsgm/C31"],),
    ),
    figure_7(
        id="fedsgm/C32",
        wording="IPP ConEx is the most conservative.",
        rule=C32,
        runs=(*MODES, *PENALTIES, *CENTRAL, *ON_GRID),
        reading="on five seeds, some setting of ConEx",
        readings=(thirty.READINGS["fedsgm/C32"],),
    ),
    figure_7(
        id="fedsgm/C33",
        wording="Soft FedSGM is the most stable of the federated methods.",
        rule=C33,
        runs=tuple(f"fresh_{run}" for run in (*MODES, *PENALTIES)),
        rule_fixed="43651f8f",
    ),
)
