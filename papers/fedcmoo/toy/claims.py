"""The paper's claims that quadratics can test, and the rules that judge them."""

from __future__ import annotations

from papers.kit.claims import Claim, Numbers, Outcome, PaperValue, judge

__all__ = ["CLAIMS", "PAPER_VALUES", "c15", "c16"]

STEEPEST, FLATTEST = -0.65, -0.4  # of a log-log slope that is called -1/2
ERROR = 1e-3  # of a central difference, relative to the formula's slope
HORIZONS = (50, 100, 200, 400, 800, 1600)
OBJECTIVES = (2, 5)


def c15(n: Numbers) -> Outcome:
    """Both slopes with their intervals within the corridor."""
    for T in HORIZONS:
        n[f"rate_exact_T{T}.square"]  # a shorter sweep cannot judge a rate
    parts, text = {}, []
    for key, label in (("exact", "uncompressed"), ("randk", "Rand-K with half of the entries")):
        slope = n[f"rate_{key}.slope"]
        parts[label] = slope.low >= STEEPEST and slope.high <= FLATTEST
        text.append(f"{label}: slope {slope.text('.2f')}")
    return judge(parts, "; ".join(text))


def c16(n: Numbers) -> Outcome:
    """The formula's slope, and the fall, at every point."""
    parts, text = {}, []
    for M in OBJECTIVES:
        error, falls = max(n[f"probe_M{M}.error"].per_seed), n[f"probe_M{M}.falls"].value
        points = n[f"probe_M{M}.points"].value
        parts[f"M = {M}: slope -|grad F a|^2 / S"] = error <= ERROR
        parts[f"M = {M}: mu falls"] = falls == 1
        text.append(
            f"M = {M}: largest relative error {error:.1g}, mu falls at {falls:.1%} of "
            f"{points:.0f} points"
        )
    return judge(parts, "; ".join(text))


CLAIMS = (
    Claim(
        "fedcmoo/C15",
        "C",
        "Corollary 1.1",
        "The mean of the squared norm of the weighted gradient falls like one over the square root "
        "of the number of rounds, also with unbiased compression.",
        "Algorithm 10 on ten quadratic federations (20 clients, d = 10, M = 2, 5 local steps on "
        "minibatches, 10 clients a round) with the step sizes of Corollary 1.1, T = 50 to 1600: "
        "per instance, the log-log slope of the mean over rounds of |grad F(x) w|^2 against T.",
        "Uncompressed, and with Rand-K of half of the entries (q = 1): the 95 % interval of the "
        "mean slope over the instances lies within [-0.65, -0.4].",
        tuple(f"rate_{k}_T{T}" for k in ("exact", "randk") for T in HORIZONS),
        c15,
        figure="rate",
    ),
    Claim(
        "fedcmoo/C16",
        "C",
        "Appendix C.2",
        "A step along minus grad F a does not raise the imbalance mu of the weighted losses.",
        "mu around 100 random models with random preferences on each of ten instances, M = 2 and "
        "5: its central difference over 1e-4 along the unit vector of minus grad F a against minus "
        "|grad F a| / sum r_k F_k, and its change by that step.",
        "For both M: at every point the relative error of the formula is at most 1e-3; at every "
        "point mu is lower after the step.",
        tuple(f"probe_M{M}" for M in OBJECTIVES),
        c16,
    ),
)

PAPER_VALUES = tuple(
    PaperValue(f"log-log slope in T, {label}", f"rate_{key}.slope", -0.5, "-1/2", "Corollary 1.1")
    for key, label in (("exact", "uncompressed"), ("randk", "Rand-K"))
)
