"""The full paper's claims about Neyman-Pearson classification, and one prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, log2

from fedlib.claims import Claim, Numbers, Outcome, PaperValue, judge
from fedlib.numbers import Number

__all__ = ["CLAIMS", "PAPER_VALUES"]

EPSILON = 0.05
START = log(2)
MODES = ("hard", "soft")
RHOS = ("0.001", "0.5", "2", "20", "100")
STEPS = ("_E1", "_E2", "", "_E10", "_E20")
DOUBLINGS = (log2(2 / 1), log2(5 / 2), log2(10 / 5), log2(20 / 10))
FRACTIONS = ("_K1", "_K0.5", "_K0.25", "", "_K0.04")
MEMBERS = ("_m2", "_m5", "", "_m15", "_all")


def values(numbers: Sequence[Number], spec: str = ".2g") -> str:
    """The values of a sweep, in order."""
    return ", ".join(format(x.value, spec) for x in numbers)


def falls(numbers: Sequence[Number]) -> bool:
    """Whether the values fall from each to the next."""
    v = [x.value for x in numbers]
    return all(b < a for a, b in zip(v, v[1:], strict=False))


def c5(n: Numbers) -> Outcome:
    """Both modes, half and full participation: f small, g at most 5 % above epsilon."""
    parts = {}
    for group, what in (("", "10 of 20 clients"), ("_all", "all clients")):
        for mode in MODES:
            late = n[f"{mode}{group}.f"], n[f"{mode}{group}.infeasible"]
            parts[f"{mode}, {what}: late f < {START / 4:.3f}"] = late[0].high < START / 4
            parts[f"{mode}, {what}: feasible on 9 of 10 seeds"] = late[1].value <= 0.1
    text = "; ".join(
        f"{m}{g}: f {n[f'{m}{g}.f'].text()}, g {n[f'{m}{g}.g'].text()}, "
        f"{n[f'{m}{g}.infeasible'].value:.0%} of seeds infeasible"
        for g in ("", "_all")
        for m in MODES
    )
    return judge(parts, text)


def c6(n: Numbers) -> Outcome:
    """Late f falls from E = 1 to 10, and each doubling of E gains less; all clients."""
    parts, text = {}, []
    for mode in MODES:
        f = [n[f"{mode}_all{e}.f"] for e in STEPS]
        gain = [
            (a.value - b.value) / doublings
            for a, b, doublings in zip(f, f[1:], DOUBLINGS, strict=False)
        ]
        parts[f"{mode}: f falls from E = 1 to 10"] = falls(f[:4])
        parts[f"{mode}: gains diminish"] = gain[0] > gain[1] > gain[2] > gain[3]
        text.append(f"{mode}: f = {values(f, '.3f')} at E = 1, 2, 5, 10, 20")
    return judge(parts, "; ".join(text))


def c7(n: Numbers) -> Outcome:
    """Oscillation of g rises with every step of E; all clients."""
    parts, text = {}, []
    for mode in MODES:
        x = [n[f"{mode}_all{e}.oscillation"] for e in STEPS]
        parts[f"{mode}: rises with E"] = falls(x[::-1])
        text.append(f"{mode}: {values(x)} x 1e-3 at E = 1, 2, 5, 10, 20")
    return judge(parts, "; ".join(text))


def c8(n: Numbers) -> Outcome:
    """More participants: the target earlier, the objective earlier, less oscillation."""
    parts, text = {}, []
    for mode in MODES:
        target = [n[f"{mode}{m}.target"] for m in MEMBERS]
        parts[f"{mode}: rounds to f <= 0.1 and g <= 1.1 epsilon fall with m"] = falls(target)
        early = [n[f"{mode}{m}.f_early"] for m in MEMBERS]
        parts[f"{mode}: f at round 50 falls with m"] = falls(early)
        parts[f"{mode}: oscillation falls with m"] = falls(
            [n[f"{mode}{m}.oscillation"] for m in MEMBERS]
        )
        text.append(
            f"{mode}: {values(target, '.0f')} rounds, f at 50 {values(early)} at m = 2, 5, 10, 15, 20"
        )
    return judge(parts, "; ".join(text))


def c9(n: Numbers) -> Outcome:
    """Small penalties infeasible on at least half the seeds; the largest twice as costly."""
    parts = {
        f"rho = {r}: infeasible on at least half of the seeds": n[
            f"penalty_rho{r}.infeasible"
        ].value
        >= 0.5
        for r in ("0.001", "0.5")
    }
    poor = n["penalty_rho100.f"]
    parts["rho = 100: late f at least twice that of hard FedSGM"] = (
        poor.low >= 2 * n["hard_tuned.f"].value
    )
    text = "; ".join(
        f"rho {r}: f {n[f'penalty_rho{r}.f'].text('.2g')}, g {n[f'penalty_rho{r}.g'].text('.2g')}"
        for r in ("0.001", "0.5", "100")
    )
    return judge(parts, text)


def c10(n: Numbers) -> Outcome:
    """Every penalty is infeasible on half the seeds, or no better than soft FedSGM in f and g."""
    best = n["soft_tuned.f"], n["soft_tuned.infeasible"]
    parts, text = {}, [f"soft: f {best[0].text('.2g')}, infeasible {best[1].value:.0%}"]
    for r in RHOS:
        f, bad = n[f"penalty_rho{r}.f"], n[f"penalty_rho{r}.infeasible"]
        no_better = bad.value >= best[1].value and f.value >= best[0].value
        parts[f"FedSGM dominates rho = {r}"] = bad.value >= 0.5 or no_better
        text.append(f"rho {r}: f {f.text('.2g')}, infeasible {bad.value:.0%}")
    return judge(parts, "; ".join(text))


def c11(n: Numbers) -> Outcome:
    """With feedback near the uncompressed f, without clearly worse, and slower than it."""
    parts, text = {}, []
    for mode in MODES:
        f = {k: n[f"{mode}{k}.f"] for k in ("", "_K1", "_nofeedback")}
        parts[f"{mode}: with feedback f within 10 % of uncompressed"] = (
            f[""].value <= 1.1 * f["_K1"].value
        )
        parts[f"{mode}: without feedback f at least 30 % worse"] = (
            f["_nofeedback"].value >= 1.3 * f[""].value
        )
        slow, fast = n[f"{mode}.target"], n[f"{mode}_K1.target"]
        parts[f"{mode}: at least 10 % more rounds to the target"] = slow.value >= 1.1 * fast.value
        text.append(
            f"{mode}: f {f['_K1'].value:.3f} uncompressed, {f[''].value:.3f} at K/d = 0.1, "
            f"{f['_nofeedback'].value:.3f} without feedback; target after {fast.value:.0f} and "
            f"{slow.value:.0f} rounds"
        )
    return judge(parts, "; ".join(text))


def c12(n: Numbers) -> Outcome:
    """Oscillation rises as K falls, and is lower under soft at every K; all clients."""
    x = {m: [n[f"{m}_all{k}.oscillation"] for k in FRACTIONS] for m in MODES}
    parts = {f"{m}: rises as K/d falls": falls(x[m][::-1]) for m in MODES}
    pairs = zip(x["hard"], x["soft"], strict=True)
    parts["soft below hard at every K/d"] = all(s.value < h.value for h, s in pairs)
    text = "; ".join(f"{m}: {values(x[m])} x 1e-3 at K/d = 1, 0.5, 0.25, 0.1, 0.04" for m in MODES)
    return judge(parts, text)


def c13(n: Numbers) -> Outcome:
    """At beta = 20 g is lower and f higher than at 40, intervals of the differences off zero."""
    parts, text = {}, []
    for group in ("", "_all"):
        name = f"soft{group}_beta20"
        f, g = n[f"{name}.f_more"], n[f"{name}.g_more"]
        where = "all clients" if group else "10 of 20 clients"
        parts[f"{where}: g lower"] = g.high < 0
        parts[f"{where}: f higher"] = f.low > 0
        text.append(f"{where}: f {f.text('+.2g')}, g {g.text('+.2g')}")
    return judge(parts, "; ".join(text))


def c14(n: Numbers) -> Outcome:
    """At beta = 20 g oscillates more than at 40, interval of the difference above zero."""
    parts, text = {}, []
    for group in ("", "_all"):
        more = n[f"soft{group}_beta20.oscillation_more"]
        where = "all clients" if group else "10 of 20 clients"
        parts[f"{where}: oscillates more"] = more.low > 0
        text.append(f"{where}: {more.text('+.2g')}")
    return judge(parts, "; ".join(text))


def c15(n: Numbers) -> Outcome:
    """At beta = 4000 late f and g are within 5 % of hard's, and nearer than at beta = 40."""
    parts, text = {}, []
    for group in ("", "_all"):
        where = "all clients" if group else "10 of 20 clients"
        for k in ("f", "g"):
            hard, far, near = (n[f"{x}.{k}"].value for x in (f"hard{group}", f"soft{group}", f"soft{group}_beta4000"))
            parts[f"{where}: {k} within 5 % of hard"] = abs(near - hard) <= 0.05 * hard
            parts[f"{where}: {k} nearer than at 40"] = abs(near - hard) < abs(far - hard)
            text.append(f"{where}: {k} {far:.3f}, {near:.3f}, hard {hard:.3f}")
    return judge(parts, "; ".join(text))


def c23(n: Numbers) -> Outcome:
    """At beta = 1e9 the whole curves of f and g equal those of hard switching to 1e-3."""
    gaps = {"10 of 20 clients": n["limit.gap"], "all clients": n["limit_all.gap"]}
    parts = {f"{where}: largest gap <= 0.001": max(x.per_seed) <= 1e-3 for where, x in gaps.items()}
    return judge(parts, "; ".join(f"{k}: {max(x.per_seed):.1e}" for k, x in gaps.items()))


def c24(n: Numbers) -> Outcome:
    """Gradients nearly aligned, local skewness at least twice the global one, bound kept."""
    rate, slack = n["skewness.local_to_global"], n["skewness.bound_to_difference"]
    cosine = n["skewness.cosine"]
    parts = {
        "mean gradients nearly (anti-)parallel: |cos| >= 0.7": min(map(abs, cosine.per_seed)) >= 0.7,
        "local at least twice the global skewness": min(rate.per_seed) >= 2,
        "the bound holds on every seed": min(slack.per_seed) >= 1,
    }
    text = f"local/global {rate.text()}, bound/difference {slack.text()}, cosine {cosine.text('.2f')}"
    return judge(parts, text)


def p3(n: Numbers) -> Outcome:
    """Right for at least 90 % of the penalties that are a factor 2 away from the multiplier."""
    share, clear = n["penalty.predicted"], n["penalty.predicted_clear"]
    text = f"right for {share.text('.2f')}, a factor 2 away {clear.text('.2f')}"
    return judge({"right for 90 %": clear.value >= 0.9}, f"{text}; multiplier {n['multiplier'].text()}")


def sweep(prefixes: Sequence[str], suffixes: Sequence[str]) -> tuple[str, ...]:
    """Names of runs."""
    return tuple(f"{a}{b}" for a in prefixes for b in suffixes)


ALL = ("hard_all", "soft_all")
RATES = ("0.0001", "0.001", "0.01", "0.03", "0.1", "0.3", "1")
PENALTY_RUNS = tuple(f"penalty_rho{r}_lr{x}" for r in RHOS for x in RATES)
TUNING = tuple(f"{m}_lr{x}" for m in MODES for x in RATES if x != "0.3")


def claim(number: str, place: str, wording: str, measure: str, rule: str, runs: tuple[str, ...], judged: Callable[[Numbers], Outcome]) -> Claim:
    """A claim of the full paper."""
    return Claim(f"fedsgm/{number}", "F", place, wording, measure, rule, runs, judged)


CLAIMS = (
    claim(
        "C5", "Figure 1",
        "Hard and soft switching both converge and satisfy the constraint.",
        "Late means of f and g (last 100 of 500 rounds), 10 splits, with 10 of 20 and all clients.",
        "Each of four settings: interval of f below log(2)/4; late g <= 1.05 epsilon on 9 of 10 seeds.",
        (*MODES, *ALL), c5,
    ),
    claim(
        "C6", "Figure 2, row 1",
        "More local steps converge faster, with diminishing gain.",
        "Late f at E = 1, 2, 5, 10, 20, all clients take part.",
        "For each mode: f falls from E = 1 to 10; the gain per doubling of E falls from each step of the sweep to the next.",
        sweep(ALL, STEPS), c6,
    ),
    claim(
        "C7", "Figure 2, row 1",
        "The oscillation of the constraint around its level grows with the local steps.",
        "Mean |g(w_t+1) - g(w_t)| over the second half, all clients.",
        "For each mode it rises with every step of the sweep.",
        sweep(ALL, STEPS), c7,
    ),
    claim(
        "C8", "Figure 2, row 2",
        "Higher participation converges faster and more steadily, for both modes.",
        "Rounds to f <= 0.1 with g <= 1.1 epsilon (500 if never), f at round 50, oscillation, at "
        "m = 2, 5, 10, 15, 20.",
        "For each mode each of the three falls with every step of m.",
        sweep(MODES, MEMBERS), c8,
    ),
    claim(
        "C9", "Figure 6",
        "Penalty-FedAvg with rho = 0.001 or 0.5 is infeasible, with rho = 100 slow or poor.",
        "Late f and g at the step size tuned on the training curves, 10 seeds.",
        "Infeasible (late g > 1.05 epsilon) on half the seeds or more; for 100 the interval of f "
        "above twice that of tuned hard FedSGM.",
        PENALTY_RUNS + TUNING + MODES, c9,
    ),
    claim(
        "C10", "Figure 6",
        "The right penalty is hard to find, and FedSGM dominates Penalty-FedAvg.",
        "Late f and share of infeasible seeds of every penalty and of soft FedSGM, each at its tuned "
        "step size.",
        "A penalty is dominated if it is infeasible on at least half of the seeds, or neither less "
        "often infeasible nor lower in f than soft FedSGM; the claim holds for each that is.",
        PENALTY_RUNS + TUNING + MODES, c10,
    ),
    claim(
        "C11", "Figure 2, row 3",
        "With K/d = 0.1 the method converges thanks to error feedback, but more slowly.",
        "Late f uncompressed, compressed, and compressed without feedback; rounds to the target.",
        "For each mode: within 10 % with feedback; 30 % worse without; 10 % more rounds to the target.",
        sweep(MODES, ("", "_K1", "_nofeedback")), c11,
    ),
    claim(
        "C12", "Figure 2, row 3",
        "Compression makes the constraint unstable; soft switching mitigates it.",
        "Oscillation of g at K/d = 1, 0.5, 0.25, 0.1, 0.04, all clients.",
        "For each mode it rises with every step; soft's is below hard's at every K/d.",
        sweep(ALL, FRACTIONS), c12,
    ),
    claim(
        "C13", "Figure 5",
        "beta = 20 is more conservative than beta = 40.",
        "Differences of late f and g between the two, paired by seed.",
        "With 10 and with all clients: interval of the difference of g below 0, of f above 0.",
        sweep(("soft", "soft_all"), ("", "_beta20")), c13,
    ),
    claim(
        "C14", "Figure 5",
        "beta = 20 is less stable than beta = 40.",
        "Difference of the oscillation of g between the two, paired by seed.",
        "With 10 and with all clients: interval of the difference above 0.",
        sweep(("soft", "soft_all"), ("", "_beta20")), c14,
    ),
    claim(
        "C15", "Figure 5",
        "A large beta approaches hard switching.",
        "Late f and g at beta = 40 and 4000 against hard.",
        "With 10 and with all clients: within 5 % of hard, and nearer than at 40.",
        (*MODES, *ALL, "soft_beta4000", "soft_all_beta4000"), c15,
    ),
    claim(
        "C23", "Section 2",
        "Soft switching equals hard switching in the limit of large beta.",
        "Largest difference between the curves of f and g at beta = 1e9 and of hard, every seed.",
        "At most 0.001 on every seed.",
        ("hard", "hard_all", "soft_beta1e+09", "soft_all_beta1e+09"), c23,
    ),
    claim(
        "C24", "Section 3.2",
        "Client drift makes the gradients' skewness large although the mean gradients are nearly "
        "aligned.",
        "Skewness of the clients' full gradients at the final models of hard FedSGM.",
        "On every seed: |cosine| of the mean gradients at least 0.7, local at least twice the global "
        "norm, the bound of appendix A kept.",
        ("hard",), c24,
    ),
    Claim(
        "fedsgm/P3", "ours", "prediction",
        "A fixed penalty ends feasible exactly if it exceeds the multiplier of its split.",
        "Feasibility of Penalty-FedAvg with all clients against rho >= lambda, five penalties and 10 "
        "splits; lambda from the soft run.",
        "Right in at least 90 % of the cases with rho a factor 2 or more away from lambda.",
        tuple(f"penalty_all_rho{r}" for r in RHOS) + ("soft_all",), p3,
    ),
)

PAPER_VALUES = (
    PaperValue("late constraint, hard, 10 clients", "hard.g", 0.05, "at or below 0.05", "F, Figure 1"),
    PaperValue("late constraint, soft, 10 clients", "soft.g", 0.05, "at or below 0.05", "F, Figure 1"),
    PaperValue("late constraint, hard, all clients", "hard_all.g", 0.05, "around 0.05", "F, Figure 1"),
    PaperValue("late objective, hard", "hard.f", None, "curve only", "F, Figure 1"),
    PaperValue("late objective, soft", "soft.f", None, "curve only", "F, Figure 1"),
    PaperValue("seeds never feasible, hard", "hard.infeasible", None, "none reported", "F, Figure 1"),
    PaperValue("seeds never feasible, soft", "soft.infeasible", None, "none reported", "F, Figure 1"),
)
