"""What Federated Frank-Wolfe's theorems, Figures 2 to 4 and remarks say, as claims."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from papers.fedfw.rates import rules
from papers.fedfw.rates.numbers import EARLY, NORMS
from papers.kit.claims import Claim, Reading
from papers.kit.needs import Needs

KNOWN = tuple(f"convex_{norm}_reference" for norm in NORMS)
CONVEX = (
    "Multinomial logistic regression on 600 digits of 8 x 8 pixels, 10 clients with three labels "
    "each, the l1 and the l2 ball of radius 10, 5 seeds; F* by accelerated projected gradient "
    "descent in float64, certified by a Frank-Wolfe gap below 1e-8"
)
COMPARED = (
    "the largest share of the bound that F - F* takes in any evaluated round (ratio); the bound at "
    "its lowest, at the end, by the most that F - F* can be in the set, 12.3 in the l1 and 116 in "
    "the l2 ball (by_most); the slope of log(F - F*) by log(t) from a twentieth of the rounds on "
    "(slope)"
)

SHARED = (
    "Generated data, 10 clients with three labels each and at most 2000 generated rows a client "
    "(at the paper's scale all that are generated), 300 rounds, 5 seeds, p = 0.2, 0.5, 0.8, 1"
)
SPEED = (
    "Mean training loss over the rounds (mean_loss), and its least squares slope over p, seed by "
    "seed (trend; of the last loss: trend_last)."
)

paper = partial(Claim, paper="D")


def swept(start: str, values: Iterable[float]) -> tuple[str, ...]:
    names = [start.format(norm) for norm in NORMS] if "{}" in start else [start]
    return tuple(f"{name}{x:g}" for name in names for x in values)


def shares(starts: Iterable[str]) -> tuple[str, ...]:
    return tuple(run for start in starts for run in swept(f"{start}_p", rules.SHARES))


LAMBDA_RUNS = tuple(
    run
    for start, text in rules.SETTINGS.items()
    if text != rules.UNTRAINED
    for run in swept(f"{start}_L", rules.PENALTIES)
)
LAMBDA_NEEDS = Needs(parameters=("penalties",), dead=("penalty_*_L0.1", "penalty_*_L1"))

CLAIMS = (
    paper(
        id="fedfw/C1",
        place="Appendix A",
        wording="Averaging the oracle's answers at the common model stalls at 0 on a problem of "
        "two clients with the minimizer 1; FedFW converges to 1.",
        measure="x after 2000 rounds on the paper's problem, from 0 and from four random starts "
        "(farthest: the largest distance from 0), its distance from 1 (late) and how much smaller "
        "it is than after a tenth of the rounds (nearer); the naive scheme with a falling and a "
        "constant step, FedFW with lambda_0 = 0.01, 0.1, 1. That the naive scheme stands still is "
        "what is claimed.",
        rule=rules.C1,
        runs=(
            *(f"pair_naive_{s}" for s in rules.NAIVE),
            *swept("pair_fedfw_L", rules.PAIR_PENALTIES),
        ),
        figure="counterexample",
        needs=Needs(dead=("pair_naive_*",)),
    ),
    paper(
        id="fedfw/C2",
        place="Theorem 1",
        wording="On convex problems F - F* is below (38), which falls like the root of 1/t.",
        measure=f"{CONVEX}; FedFW for 4000 rounds, lambda_0 = 0.001, 0.01, 0.1; (38) with the "
        f"corrected constant of Lemma 2; {COMPARED}.",
        rule=rules.C2,
        kind="proved",
        runs=(*KNOWN, *swept("convex_{}_fedfw_L", rules.CONVEX_PENALTIES)),
        figure="theorem_1",
    ),
    paper(
        id="fedfw/C3",
        place="Theorem 2",
        wording="On smooth problems that are not convex the smallest gap of T rounds is below "
        "(62), which falls like the cube root of 1/T.",
        measure="Digits of 5 and more against the others, 600 of them, 10 clients with three "
        "labels each, loss 1/(1 + exp(yz)) of a linear z, both sets, 5 seeds; T = 64, 256, 1024, "
        "4096 with the step and penalty of each T, lambda_0 = 0.01, 0.1. The smallest (11) of "
        "about 256 evaluated rounds: its share of the bound (ratio), the bound by the largest gap "
        "that there is in the set, 5 in the l1 and 40 in the l2 ball (by_most), and the slope of "
        "the gap's logarithm by that of T (slope).",
        rule=rules.C3,
        kind="proved",
        runs=tuple(f"nonconvex_{norm}_reference" for norm in NORMS) + rules.LENGTHS,
        needs=Needs(parameters=("horizons",), dead=("nonconvex_l1_L0.1_*",)),
    ),
    paper(
        id="fedfw/C4",
        place="Theorem 3",
        wording="FedFW-sto has an F - F* of the order of the cube root of 1/t on convex problems.",
        measure=f"{CONVEX}; 10,000 rounds, minibatches of 10 rows, lambda_0 = 0.01, 0.1; (68) "
        f"with the corrected constants; {COMPARED}.",
        rule=rules.C4,
        kind="proved",
        runs=(*KNOWN, *swept("sto_{}_L", rules.STOCHASTIC_PENALTIES)),
    ),
    paper(
        id="fedfw/C5",
        place="Theorem 1, Figure 2",
        wording="On convex problems FedFW converges the faster the more clients take part, "
        "whatever lambda_0.",
        measure=f"{SHARED}: logistic regression on the l1 ball, lambda_0 = 0.01 and 0.001. {SPEED}",
        rule=rules.C5,
        runs=shares(rules.CONVEX_SHARES),
        figure="figure_2",
        needs=Needs(parameters=("shares",)),
    ),
    paper(
        id="fedfw/C15",
        place="Theorem 2, Figure 3",
        wording="On problems that are not convex FedFW and FedFW+ converge the faster the more "
        "clients take part.",
        measure=f"{SHARED}: the network 60-20-10 on the l2 ball with lambda_t = 0.001. {SPEED}",
        rule=rules.C15,
        runs=shares(rules.NETWORKS),
        figure="figure_3",
        needs=Needs(parameters=("shares",)),
    ),
    paper(
        id="fedfw/C6",
        place="Figure 4",
        wording="A larger lambda_0 gives a larger Frank-Wolfe gap in the first rounds.",
        measure=f"The mean gap of the first {EARLY} rounds, 5 seeds, lambda_0 = 0.001, 0.01, 0.1, "
        "1: logistic regression on 4000 pictures of MNIST with p = 0.5, and the network on "
        "generated data with p = 1, each on both balls. The gap is sum_i <g_i, x_i - s_i> with the "
        "penalty in g_i (early_surrogate), which is near what the authors' code plots, or (11) at "
        "the server's model on all rows (early_gap). The power of lambda_0 in it is the least "
        "squares slope of logarithms, seed by seed (trend). A lambda_0 so large that nothing is "
        "learned is part of the claim.",
        rule=rules.C6_GLOBAL,
        runs=LAMBDA_RUNS,
        figure="figure_4",
        needs=LAMBDA_NEEDS,
        reading="the gap (11), as the text",
        readings=(
            Reading("the surrogate's gap, as the code", rules.C6, LAMBDA_RUNS, LAMBDA_NEEDS),
        ),
    ),
    paper(
        id="fedfw/C13",
        place="Remark on oracles",
        wording="Frank-Wolfe methods tolerate additive and multiplicative errors of their oracles.",
        measure=f"{CONVEX}; FedFW for 4000 rounds, lambda_0 = 0.01, its step sizes unchanged, with "
        "oracles that attain the share m = 0.75, 0.5, 0.25 of every client's gap (quality), or "
        "miss the best value by e = 0.001, 0.01, 0.1 for all clients together (slip), or by as "
        "much times the step (falling): the excess at the end by that with the exact oracle "
        "(times), or minus it (more). And regression of several tasks in a nuclear ball, 1000 "
        "rounds, with 1, 2, 3, 5 steps of Lanczos: the mean gap of the last fifth of the rounds "
        "by that with all steps (times).",
        rule=rules.C13,
        runs=(
            *(f"wrong_{norm}_exact" for norm in NORMS),
            *swept("wrong_{}_quality", rules.QUALITIES),
            *swept("wrong_{}_slip", rules.SLIPS),
            *swept("wrong_{}_falling", rules.SLIPS),
            *swept("nuclear_k", rules.LANCZOS),
        ),
        needs=Needs(parameters=("lanczos",)),
    ),
)
