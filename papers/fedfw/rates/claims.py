"""What Federated Frank-Wolfe's theorems, Figures 2 to 4 and remarks say, as claims."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from papers.fedfw.rates import rules
from papers.fedfw.rates.numbers import EARLY, NORMS
from papers.kit.claims import Claim
from papers.kit.needs import Needs

KNOWN = tuple(f"convex_{norm}_reference" for norm in NORMS)
CONVEX = (
    "Multinomial logistic regression on 600 digits of 8 x 8 pixels, 10 clients with three labels "
    "each, the l1 and the l2 ball of radius 10, 5 seeds; F* by accelerated projected gradient "
    "descent in float64, certified by a Frank-Wolfe gap below 1e-8"
)
COMPARED = (
    "the largest share of the bound that F - F* takes in any evaluated round (ratio); the slope of "
    "log(F - F*) by log(t) from a twentieth of the rounds on (slope)"
)

paper = partial(Claim, paper="D")


def swept(start: str, values: Iterable[float]) -> tuple[str, ...]:
    names = [start.format(norm) for norm in NORMS] if "{}" in start else [start]
    return tuple(f"{name}{x:g}" for name in names for x in values)


CLAIMS = (
    paper(
        id="fedfw/C1",
        place="Appendix A",
        wording="Averaging the oracle's answers at the common model stalls at 0 on a problem of "
        "two clients with the minimizer 1; FedFW converges to 1.",
        measure="x after 2000 rounds on the paper's problem, from 0 and from four random starts "
        "(farthest: the largest distance from 0), its distance from 1 (late) and how much smaller "
        "it is than after a tenth of the rounds (nearer); the naive scheme with a falling and a "
        "constant step, FedFW with lambda_0 = 0.01, 0.1, 1.",
        rule=rules.C1,
        runs=(
            *(f"pair_naive_{s}" for s in rules.NAIVE),
            *swept("pair_fedfw_L", rules.PAIR_PENALTIES),
        ),
        figure="counterexample",
    ),
    paper(
        id="fedfw/C2",
        place="Theorem 1",
        wording="On convex problems F - F* is below (38), which falls like the root of 1/t.",
        measure=f"{CONVEX}; FedFW for 4000 rounds, lambda_0 = 0.001, 0.01, 0.1; (38) with the "
        f"corrected constant of Lemma 2; {COMPARED}.",
        rule=rules.C2,
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
        "about 256 evaluated rounds: its share of the bound (ratio), and the slope of its "
        "logarithm by that of T (slope).",
        rule=rules.C3,
        runs=tuple(f"nonconvex_{norm}_reference" for norm in NORMS)
        + tuple(f"{run}_T{T}" for run in rules.BUMPY.values() for T in rules.HORIZONS),
        figure="theorem_2",
        needs=Needs(parameters=("horizons",)),
    ),
    paper(
        id="fedfw/C4",
        place="Theorem 3",
        wording="FedFW-sto has an F - F* of the order of the cube root of 1/t on convex problems.",
        measure=f"{CONVEX}; 10,000 rounds, minibatches of 10 rows, lambda_0 = 0.01, 0.1; (68) "
        f"with the corrected constants; {COMPARED}.",
        rule=rules.C4,
        runs=(*KNOWN, *swept("sto_{}_L", rules.STOCHASTIC_PENALTIES)),
        figure="theorem_3",
    ),
    paper(
        id="fedfw/C5",
        place="Figures 2, 3",
        wording="The more clients take part, the faster FedFW converges, for convex and other "
        "problems, and whatever lambda_0.",
        measure="Generated data, 10 clients with three labels each and at most 2000 generated "
        "rows a client, 300 rounds, 5 seeds, p = 0.2, 0.5, 0.8, 1: logistic regression on the l1 "
        "ball, lambda_0 = 0.01 and 0.001, and the network 60-20-10 on the l2 ball with lambda_t = "
        "0.001, FedFW and FedFW+. Mean training loss and test accuracy over the rounds "
        "(mean_loss, mean_accuracy); of neighbouring p the larger minus the smaller, paired by "
        "seed (vs).",
        rule=rules.C5,
        runs=tuple(run for start in rules.STARTS for run in swept(f"{start}_p", rules.SHARES)),
        figure="figure_2",
        needs=Needs(parameters=("shares",)),
    ),
    paper(
        id="fedfw/C6",
        place="Figure 4",
        wording="A larger lambda_0 gives a larger Frank-Wolfe gap in the first rounds.",
        measure=f"The mean over the first {EARLY} rounds of the gap (11) at the server's model, on "
        "all rows (early_gap), 5 seeds, lambda_0 = 0.001, 0.01, 0.1, 1: logistic regression on "
        "4000 pictures of MNIST with p = 0.5, and the network on generated data with p = 1, each "
        "on both balls; of neighbouring lambda_0 the larger minus the smaller, paired by seed "
        "(vs).",
        rule=rules.C6,
        runs=tuple(run for start in rules.SETTINGS for run in swept(f"{start}_L", rules.PENALTIES)),
        figure="figure_4",
        needs=Needs(parameters=("penalties",)),
    ),
    paper(
        id="fedfw/C13",
        place="Remark on oracles",
        wording="Frank-Wolfe methods tolerate additive and multiplicative errors of their oracles.",
        measure=f"{CONVEX}; FedFW for 4000 rounds, lambda_0 = 0.01, its step sizes unchanged, with "
        "oracles that attain the share m = 0.75, 0.5, 0.25 of every client's gap (quality), or "
        "miss the best value by 0.001, 0.01, 0.1 for all clients together (slip), or by as much "
        "times the step (falling): the excess at the end by that with the exact oracle (times), or "
        "minus it (more). And regression of several tasks in a nuclear ball, 1000 rounds, with 1, "
        "2, 3, 5 steps of Lanczos: the mean gap of the last fifth of the rounds by that with all "
        "steps (times).",
        rule=rules.C13,
        runs=(
            *(f"wrong_{norm}_exact" for norm in NORMS),
            *swept("wrong_{}_quality", rules.QUALITIES),
            *swept("wrong_{}_slip", rules.SLIPS),
            *swept("wrong_{}_falling", rules.SLIPS),
            *swept("nuclear_k", rules.LANCZOS),
        ),
        figure="oracles",
        needs=Needs(parameters=("lanczos",)),
    ),
)
