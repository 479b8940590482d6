"""What Federated Frank-Wolfe's theorems, Figures 2 to 4 and remarks say, as claims."""

from __future__ import annotations

from collections.abc import Callable

from fedlib.claims import Claim, Numbers, Outcome
from fedlib.studies import fw_rates_rules as rules
from fedlib.studies.fw_rates_numbers import EARLY, NORMS

__all__ = ["CLAIMS"]

CONVEX = (
    "Multinomial logistic regression on 600 digits of 8 x 8 pixels, 10 clients with three labels "
    "each, the l1 and the l2 ball of radius 10, 5 seeds; F* by accelerated projected gradient "
    "descent in float64, certified by a Frank-Wolfe gap below 1e-8"
)
SLOPE = (
    "the slope of log(F - F*) by log(t), from a twentieth of the rounds on, has an interval that "
    "lies at or below {}, the theorem's power and a margin of 0.05"
)


def claim(
    number: str,
    place: str,
    wording: str,
    measure: str,
    rule: str,
    runs: tuple[str, ...],
    judged: Callable[[Numbers], Outcome],
    figure: str = "",
) -> Claim:
    """A claim of the paper."""
    return Claim(f"fedfw/{number}", "D", place, wording, measure, rule, runs, judged, figure)


def swept(start: str, values: tuple[float, ...]) -> tuple[str, ...]:
    """The runs of a name and some values, on both sets where the name has a place for them."""
    names = [start.format(norm) for norm in NORMS] if "{}" in start else [start]
    return tuple(f"{name}{x:g}" for name in names for x in values)


KNOWN = tuple(f"convex_{norm}_reference" for norm in NORMS)

CLAIMS = (
    claim(
        "C1",
        "Appendix A",
        "Averaging the oracle's answers at the common model stalls at 0 on a problem of two "
        "clients with the minimizer 1; FedFW converges to 1.",
        "x after 2000 rounds on the paper's problem, from 0 and from four random starts; the "
        "naive scheme with a falling and a constant step, FedFW with lambda_0 = 0.01, 0.1, 1.",
        "The naive scheme ends within 0.01 of 0 from every start, with both steps. For each "
        "lambda_0 FedFW is nearer to 1 at the end than after a tenth of the rounds (interval), "
        "and for lambda_0 = 1 it ends within 0.1 of 1.",
        (
            "pair_naive_falling",
            "pair_naive_constant",
            *swept("pair_fedfw_L", rules.PAIR_PENALTIES),
        ),
        rules.c1,
        figure="counterexample",
    ),
    claim(
        "C2",
        "Theorem 1",
        "On convex problems F - F* is below (38), which falls like the root of 1/t.",
        f"{CONVEX}; FedFW for 4000 rounds, lambda_0 = 0.001, 0.01, 0.1; (38) with the corrected "
        "constant of Lemma 2.",
        "For each set and lambda_0: F - F* exceeds the bound in no seed and no evaluated round; "
        f"{SLOPE.format('-0.45')}.",
        (*KNOWN, *swept("convex_{}_fedfw_L", rules.CONVEX_PENALTIES)),
        rules.c2,
        figure="theorem_1",
    ),
    claim(
        "C3",
        "Theorem 2",
        "On smooth problems that are not convex the smallest gap of T rounds is below (62), "
        "which falls like the cube root of 1/T.",
        "Digits of 5 and more against the others, 600 of them, 10 clients with three labels each, "
        "loss 1/(1 + exp(yz)) of a linear z, both sets, 5 seeds; T = 64, 256, 1024, 4096 with the "
        "step and penalty of each T, lambda_0 = 0.01, 0.1. The smallest (11) of about 256 "
        "evaluated rounds.",
        "For each set and lambda_0: below the bound for every T in all seeds; the slope of the "
        "logarithm of the gap by that of T has an interval that lies at or below -0.283, the "
        "theorem's power and a margin of 0.05.",
        tuple(f"nonconvex_{norm}_reference" for norm in NORMS)
        + tuple(
            f"nonconvex_{norm}_L{lam:g}_T{T}"
            for norm in NORMS
            for lam in rules.NONCONVEX_PENALTIES
            for T in rules.HORIZONS
        ),
        rules.c3,
        figure="theorem_2",
    ),
    claim(
        "C4",
        "Theorem 3",
        "FedFW-sto has an F - F* of the order of the cube root of 1/t on convex problems.",
        f"{CONVEX}; 10,000 rounds, minibatches of 10 rows, lambda_0 = 0.01, 0.1; (68) with the "
        "corrected constants.",
        "For each set and lambda_0: F - F* exceeds the bound in no seed and no evaluated round; "
        f"{SLOPE.format('-0.283')}.",
        (*KNOWN, *swept("sto_{}_L", rules.NOISY_PENALTIES)),
        rules.c4,
        figure="theorem_3",
    ),
    claim(
        "C5",
        "Figures 2, 3",
        "The more clients take part, the faster FedFW converges, for convex and other problems, "
        "and whatever lambda_0.",
        "Generated data, 10 clients with three labels each and at most 2000 generated rows a "
        "client, 300 rounds, 5 seeds, p = 0.2, 0.5, 0.8, 1: logistic regression on the l1 ball, "
        "lambda_0 = 0.01 and 0.001, and the network 60-20-10 on the l2 ball with lambda_t = 0.001, "
        "FedFW and FedFW+. Mean training loss and test accuracy over the rounds.",
        "For each problem and each two neighbouring p: the intervals of the paired differences "
        "say that the loss is lower and the accuracy higher for the larger p; the mean losses "
        "put the p in the same order for both lambda_0.",
        (
            *swept("share_mclr_L0.01_p", rules.SHARES),
            *swept("share_mclr_L0.001_p", rules.SHARES),
            *swept("share_fedfw_p", rules.SHARES),
            *swept("share_plus_p", rules.SHARES),
        ),
        rules.c5,
        figure="figure_2",
    ),
    claim(
        "C6",
        "Figure 4",
        "A larger lambda_0 gives a larger Frank-Wolfe gap in the first rounds.",
        f"The mean over the first {EARLY} rounds of the gap (11) at the server's model, on all "
        "rows, 5 seeds, lambda_0 = 0.001, 0.01, 0.1, 1: logistic regression on 4000 pictures of "
        "MNIST with p = 0.5, and the network on generated data with p = 1, each on both balls.",
        "For each of the four settings and each two neighbouring lambda_0 the interval of the "
        "paired difference lies above 0.",
        (
            *swept("penalty_mclr_{}_L", rules.PENALTIES),
            *swept("penalty_net_{}_L", rules.PENALTIES),
        ),
        rules.c6,
        figure="figure_4",
    ),
    claim(
        "C13",
        "Remark on oracles",
        "Frank-Wolfe methods tolerate additive and multiplicative errors of their oracles.",
        f"{CONVEX}; FedFW for 4000 rounds, lambda_0 = 0.01, its step sizes unchanged, with oracles "
        "that attain the share m = 0.75, 0.5, 0.25 of every client's gap, or miss the best value "
        "by 0.001, 0.01, 0.1 for all clients together, or by as much times the step. And "
        "regression of several tasks in a nuclear ball, 1000 rounds, with 1, 2, 3, 5 steps of "
        "Lanczos.",
        "For both sets: the excess at the end is at most 1/m^2 times that with the exact oracle "
        "(interval of the ratio); with an error e it is larger than that by at most e, and by at "
        "most 4e/(T + 1) where the error falls with the step (intervals of the paired "
        "differences). In the nuclear ball the mean gap of the last fifth of the rounds is at "
        "most twice that of the exact oracle (interval of the ratio).",
        (
            *(f"wrong_{norm}_exact" for norm in NORMS),
            *swept("wrong_{}_quality", rules.QUALITIES),
            *swept("wrong_{}_slip", rules.SLIPS),
            *swept("wrong_{}_falling", rules.SLIPS),
            *swept("nuclear_k", (*rules.LANCZOS, 40)),
        ),
        rules.c13,
        figure="oracles",
    ),
)
