"""The rules that judge the full paper's claims; each does just what its claim says in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log, log2

from fedlib.claims import Numbers, Outcome, judge
from fedlib.numbers import Number

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
    return all(b < a for a, b in pairwise(v))


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
            f"{mode}: {values(target, '.0f')} rounds, f at 50 {values(early)} "
            "at m = 2, 5, 10, 15, 20"
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
            hard, far, near = (
                n[f"{x}.{k}"].value
                for x in (f"hard{group}", f"soft{group}", f"soft{group}_beta4000")
            )
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
        "mean gradients nearly (anti-)parallel: |cos| >= 0.7": min(map(abs, cosine.per_seed))
        >= 0.7,
        "local at least twice the global skewness": min(rate.per_seed) >= 2,
        "the bound holds on every seed": min(slack.per_seed) >= 1,
    }
    text = (
        f"local/global {rate.text()}, bound/difference {slack.text()}, cosine {cosine.text('.2f')}"
    )
    return judge(parts, text)


def p3(n: Numbers) -> Outcome:
    """Right for at least 90 % of the penalties that are a factor 2 away from the multiplier."""
    share, clear = n["penalty.predicted"], n["penalty.predicted_clear"]
    text = f"right for {share.text('.2f')}, a factor 2 away {clear.text('.2f')}"
    return judge(
        {"right for 90 %": clear.value >= 0.9}, f"{text}; multiplier {n['multiplier'].text()}"
    )
