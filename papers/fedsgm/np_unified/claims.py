"""The full paper's claims about Neyman-Pearson classification, and one prediction."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from papers.fedsgm import multiverse
from papers.fedsgm.np_unified import rules
from papers.fedsgm.np_unified.rules import FRACTIONS, MEMBERS, MODES, RHOS, SETTINGS, STEPS
from papers.kit.claims import Claim, PaperValue, Reading
from papers.kit.health import Needs

RATES = ("0.0001", "0.001", "0.01", "0.03", "0.1", "0.3", "1")
#: What the tuned methods are chosen from.
TUNING = (
    *(f"penalty_rho{r}_lr{x}" for r in RHOS for x in RATES),
    *(f"{m}_lr{x}" for m in MODES for x in RATES if x != "0.3"),
    *MODES,
)

full = partial(Claim, paper="F")


def runs(starts: Iterable[str], ends: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{a}{b}" for a in starts for b in ends)


CLAIMS = (
    full(
        id="fedsgm/C5",
        place="Figure 1",
        wording="Hard and soft switching both converge and satisfy the constraint.",
        rule=rules.C5,
        runs=tuple(SETTINGS),
        figure="figure_1",
    ),
    full(
        id="fedsgm/C6",
        place="Figure 2, row 1",
        wording="With more local steps the methods converge faster, with diminishing gain.",
        rule=rules.C6,
        runs=runs(SETTINGS, STEPS),
        figure="local_steps",
    ),
    full(
        id="fedsgm/C7",
        place="Figure 2, row 1",
        wording="The oscillation of the constraint around its level grows with the local steps.",
        rule=rules.C7,
        runs=runs(SETTINGS, STEPS),
        figure="local_steps",
        reading="as the change from round to round",
        readings=(
            Reading(
                "as the standard deviation of late g (scatter)",
                rules.grows("scatter"),
                runs(SETTINGS, STEPS),
            ),
        ),
    ),
    full(
        id="fedsgm/C8",
        place="Figure 2, row 2",
        wording="With more clients per round, both switching modes converge faster and more "
        "steadily.",
        rule=rules.C8,
        runs=runs(MODES, MEMBERS),
        figure="participation",
    ),
    full(
        id="fedsgm/C9",
        place="Figure 6",
        wording="Penalty-FedAvg is infeasible with rho = 0.001 or 0.5, and slow or poor with rho = "
        "100.",
        rule=rules.C9,
        runs=TUNING,
        figure="figure_6",
        needs=Needs(parameters=("lrs",)),
    ),
    full(
        id="fedsgm/C10",
        place="Figure 6",
        wording="The right penalty rho of Penalty-FedAvg is hard to find.",
        rule=rules.C10,
        runs=TUNING,
        figure="figure_6",
        needs=Needs(parameters=("lrs",)),
    ),
    full(
        id="fedsgm/C11",
        place="Figure 2, row 3",
        wording="With Top-K at K/d = 0.1 the method converges thanks to error feedback, but more "
        "slowly.",
        rule=rules.C11,
        runs=(*runs(MODES, ("", "_K1", "_nofeedback")), *runs(MODES, ("_all", "_all_K1"))),
        figure="compression",
    ),
    full(
        id="fedsgm/C12",
        place="Figure 2, row 3",
        wording="Compression makes the constraint unstable; soft switching mitigates it.",
        rule=rules.C12,
        runs=runs(SETTINGS, FRACTIONS),
        figure="compression",
        reading="unstable from round to round",
        readings=(
            Reading(
                "unstable as the standard deviation of late g (scatter)",
                rules.unstable("scatter"),
                runs(SETTINGS, FRACTIONS),
            ),
        ),
    ),
    full(
        id="fedsgm/C13",
        place="Figure 5",
        wording="Soft switching is more conservative with beta = 20 than with beta = 40.",
        rule=rules.C13,
        runs=runs(("soft", "soft_all"), ("", "_beta20")),
        figure="figure_5",
    ),
    full(
        id="fedsgm/C14",
        place="Figure 5",
        wording="Convergence is less stable with beta = 20 than with beta = 40.",
        rule=multiverse.C14,
        runs=multiverse.UNIFIED,
        figure="figure_5",
        reading="in all settings that the paper leaves open",
    ),
    full(
        id="fedsgm/C15",
        place="Figure 5",
        wording="Soft switching with a large beta approaches hard switching.",
        rule=rules.C15,
        runs=(*SETTINGS, *runs(("soft", "soft_all"), ("_beta20", "_beta4000"))),
        figure="figure_5",
    ),
    full(
        id="fedsgm/C23",
        place="switching rule",
        wording="Soft switching equals hard switching in the limit of large beta.",
        rule=rules.C23,
        runs=("hard", "hard_all", "soft_beta1e+09", "soft_all_beta1e+09"),
        kind="proved",
    ),
    full(
        id="fedsgm/C24",
        place="Section 3.2",
        wording="Even if the mean gradients of objective and constraint are aligned, the drift of "
        "the clients leaves a skewness.",
        rule=rules.C24,
        runs=("hard",),
    ),
    full(
        id="fedsgm/C26",
        place="Figure 2, row 2",
        wording="With all clients per round the method matches centralized training.",
        rule=rules.C26,
        runs=tuple(f"fresh_{run}" for run in runs(MODES, ("_all", "_central"))),
        rule_fixed="82aa2943",
        figure="figure_1",
    ),
    full(
        id="fedsgm/C27",
        place="Figures 5 and 6",
        wording="The sharpness beta is far easier to tune than the penalty rho.",
        rule=rules.C27,
        runs=(
            *runs(("soft",), ("", *(f"_beta{b}" for b in ("20", "80", "120", "400", "4000")))),
            *(f"penalty_rho{r}_lr0.3" for r in RHOS[1:]),
        ),
        figure="figure_6",
        needs=Needs(parameters=("betas", "rhos")),
    ),
    Claim(
        id="fedsgm/P3",
        paper="ours",
        place="prediction",
        wording="A run with a fixed penalty ends feasible exactly if the penalty exceeds the "
        "multiplier of the data split.",
        rule=rules.P3,
        runs=(*(f"penalty_all_rho{r}" for r in RHOS), "soft_all"),
        needs=Needs(parameters=("rhos",)),
    ),
)

PAPER_VALUES = tuple(
    PaperValue(
        f"late constraint, {text.removesuffix(' of 20 clients')}",
        *(f"{run}.g", 0.05, "at most 0.05", "F, Figure 1"),
        rtol=0.05,
        at_most=True,
    )
    for run, text in SETTINGS.items()
)
