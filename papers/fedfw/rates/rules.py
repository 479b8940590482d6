"""The rules that judge the theorems and Figures 2 to 4 of Federated Frank-Wolfe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from papers.fedfw.rates.numbers import NORMS
from papers.kit.rules import Condition, Rule, most, of, same_order, told, told_value, value

# What the claims are judged on: the full profile's rounds and sweeps.
CONVEX_ROUNDS = 4000
PAIR_PENALTIES = (0.01, 0.1, 1.0)
CONVEX_PENALTIES = (1e-3, 1e-2, 1e-1)
STOCHASTIC_PENALTIES = NONCONVEX_PENALTIES = (1e-2, 1e-1)
HORIZONS = (64, 256, 1024, 4096)
SHARES = (0.2, 0.5, 0.8, 1.0)
SHARE_PENALTIES = (0.01, 0.001)
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)
QUALITIES, SLIPS = (0.75, 0.5, 0.25), (1e-3, 1e-2, 1e-1)
LANCZOS = (1, 2, 3, 5, 40)

STUCK, NEAR = 0.01, 0.1  # C1: how near to 0 the naive scheme stays, to 1 FedFW comes
MARGIN = 0.05  # a slope may be so much flatter than the theorem's power
TWICE = 2.0  # C13: times the gap with the exact oracle of the nuclear ball
FEW = LANCZOS[:-1]  # steps; the most there are stand for the exact oracle
NAIVE = ("falling", "constant")
STARTS = {f"share_mclr_L{x:g}": f"regression, lambda_0 = {x:g}" for x in SHARE_PENALTIES}
STARTS |= {"share_fedfw": "network, FedFW", "share_plus": "network, FedFW+"}
SETTINGS = {
    f"penalty_{model}_{norm}": f"{text}, {norm}"
    for model, text in (("mclr", "regression on MNIST"), ("net", "network"))
    for norm in NORMS
}
BOTH = {norm: f"wrong_{norm}" for norm in NORMS}
STEEP = f"A slope may be flatter than the theorem's power by {MARGIN:g}."


def values(keys: Iterable[str]) -> str:
    return " / ".join(map(told_value, keys))


def listed(x: Sequence[float]) -> str:
    return " / ".join(f"{v:g}" for v in x)


def as_steep(run: str, theorem: float) -> Condition:
    """Whether the whole interval of a slope is at most the theorem's, but for a margin."""
    return of(f"{run}.slope") <= theorem + MARGIN


def under(run: str) -> Condition:
    return most(f"{run}.ratio") <= 1


def theorem(start: str, penalties: Sequence[float], power: float) -> Rule:
    """Bound and slope of runs `start.format(norm)` and a penalty."""
    runs = {norm: [f"{start.format(norm)}_L{x:g}" for x in penalties] for norm in NORMS}
    parts = {
        f"{norm}, lambda_0 = {lam:g}": {"bound": under(run), "slope": as_steep(run, power)}
        for norm, own in runs.items()
        for lam, run in zip(penalties, own, strict=True)
    }
    said = [
        f"{norm}: slopes {values(f'{r}.slope' for r in own)}, largest share of the bound "
        f"{values(f'{r}.ratio' for r in own)}"
        for norm, own in runs.items()
    ]
    return Rule(parts, f"lambda_0 = {listed(penalties)}; {'; '.join(said)}", STEEP)


C1 = Rule(
    {
        "naive scheme at 0": {
            f"{step} step": value(f"pair_naive_{step}.farthest") <= STUCK for step in NAIVE
        },
        "FedFW": {
            f"coming nearer to 1, lambda_0 = {x:g}": of(f"pair_fedfw_L{x:g}.nearer") > 0
            for x in PAIR_PENALTIES
        }
        | {
            f"within {NEAR:g} of 1, lambda_0 = {x:g}": of(f"pair_fedfw_L{x:g}.late") <= NEAR
            for x in PAIR_PENALTIES[-1:]
        },
    },
    "x at the end: naive scheme, falling / constant step: "
    f"{values(f'pair_naive_{s}.x' for s in NAIVE)}; FedFW, lambda_0 = {listed(PAIR_PENALTIES)}: "
    f"{values(f'pair_fedfw_L{x:g}.x' for x in PAIR_PENALTIES)}",
)
C2 = theorem("convex_{}_fedfw", CONVEX_PENALTIES, -1 / 2)
C4 = theorem("sto_{}", STOCHASTIC_PENALTIES, -1 / 3)

BUMPY = {
    f"{norm}, lambda_0 = {x:g}": f"nonconvex_{norm}_L{x:g}"
    for norm in NORMS
    for x in NONCONVEX_PENALTIES
}
C3 = Rule(
    {
        text: {f"bound, T = {T}": under(f"{run}_T{T}") for T in HORIZONS}
        | {"slope": as_steep(run, -1 / 3)}
        for text, run in BUMPY.items()
    },
    f"smallest gap for T = {listed(HORIZONS)}: "
    + "; ".join(
        f"{text}: {values(f'{run}_T{T}.least_gap' for T in HORIZONS)}, "
        f"slope {told(f'{run}.slope', '.2f')}"
        for text, run in BUMPY.items()
    ),
    STEEP,
)


def neighbours(start: str) -> dict[str, Condition]:
    """Of each two neighbouring p the larger one has the lower loss and the higher accuracy."""
    found = {}
    for small, large in pairwise(SHARES):
        pair = f"{start}_p{large:g}_vs_{small:g}"
        found[f"loss, p = {large:g} below {small:g}"] = of(f"{pair}.mean_loss") < 0
        found[f"accuracy, p = {large:g} above {small:g}"] = of(f"{pair}.mean_accuracy") > 0
    return found


LOSSES = {run: [f"{run}_p{q:g}.mean_loss" for q in SHARES] for run in STARTS}
C5 = Rule(
    {text: neighbours(run) for run, text in STARTS.items()}
    | {"role of p": {"the same order for both lambda_0": same_order(*[*LOSSES.values()][:2])}},
    f"mean loss over the rounds, p = {listed(SHARES)}: "
    + "; ".join(f"{text}: {values(LOSSES[run])}" for run, text in STARTS.items()),
)
C6 = Rule(
    {
        text: {
            f"lambda_0 = {large:g} above {small:g}": of(f"{run}_L{large:g}_vs_{small:g}.early_gap")
            > 0
            for small, large in pairwise(PENALTIES)
        }
        for run, text in SETTINGS.items()
    },
    f"mean gap of the first rounds, lambda_0 = {listed(PENALTIES)}: "
    + "; ".join(
        f"{text}: {values(f'{run}_L{x:g}.early_gap' for x in PENALTIES)}"
        for run, text in SETTINGS.items()
    ),
)


def errors(run: str) -> dict[str, Condition]:
    """What each error may cost on one set."""
    found = {f"share {m:g} of the gap": of(f"{run}_quality{m:g}.times") <= m**-2
             for m in QUALITIES}  # fmt: skip
    for x in SLIPS:
        falling = 4 * x / (CONVEX_ROUNDS + 1)
        found[f"error {x:g}"] = of(f"{run}_slip{x:g}.more") <= x
        found[f"error {x:g} times the step"] = of(f"{run}_falling{x:g}.more") <= falling
    return found


C13 = Rule(
    {norm: errors(run) for norm, run in BOTH.items()}
    | {"nuclear ball": {f"{k} steps of Lanczos": of(f"nuclear_k{k}.times") <= TWICE for k in FEW}},
    "; ".join(
        f"{norm}: excess with a share {listed(QUALITIES)} of the gap, as a multiple of the exact "
        f"one's: {values(f'{run}_quality{m:g}.times' for m in QUALITIES)}, and with an error of "
        f"{listed(SLIPS)} more than it: {values(f'{run}_slip{x:g}.more' for x in SLIPS)}"
        for norm, run in BOTH.items()
    )
    + f"; nuclear ball, gap with {listed(FEW)} steps by that with all: "
    f"{values(f'nuclear_k{k}.times' for k in FEW)}",
    "A share m may cost a factor 1/m^2, an error e as much as itself, and 4e/(T + 1) where it "
    "falls with the step.",
)
