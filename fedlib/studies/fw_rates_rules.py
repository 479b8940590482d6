"""The rules that judge the theorems and Figures 2 to 4 of Federated Frank-Wolfe; each can fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from fedlib.claims import Numbers, Outcome, judge
from fedlib.numbers import Number
from fedlib.studies.fw_rates_numbers import NORMS

__all__ = ["c1", "c2", "c3", "c4", "c5", "c6", "c13", "judged"]

PAIR_PENALTIES = (0.01, 0.1, 1.0)
CONVEX_PENALTIES = (1e-3, 1e-2, 1e-1)
NOISY_PENALTIES = NONCONVEX_PENALTIES = (1e-2, 1e-1)
HORIZONS = (64, 256, 1024, 4096)
SHARES = (0.2, 0.5, 0.8, 1.0)
SHARE_PENALTIES = (0.01, 0.001)
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)
QUALITIES, SLIPS, LANCZOS = (0.75, 0.5, 0.25), (1e-3, 1e-2, 1e-1), (1, 2, 3, 5)
STUCK, NEAR = 0.01, 0.1  # C1: how near to 0 the naive scheme stays, to 1 FedFW comes
MARGIN = 0.05  # a slope may be so much flatter than the theorem's power
TWICE = 2.0  # C13: times the gap with the exact oracle of the nuclear ball
NETS = {"fedfw": "network, FedFW", "plus": "network, FedFW+"}
SETTINGS = {
    f"penalty_{model}_{norm}": f"{text}, {norm}"
    for model, text in (("mclr", "regression on MNIST"), ("net", "network"))
    for norm in NORMS
}

Parts = Mapping[str, Mapping[str, bool]]


def judged(parts: Parts, measured: str) -> Outcome:
    """`judge` over parts in groups; the reason names, for each group, what fails in it."""
    flat = {f"{group}: {x}": holds for group, each in parts.items() for x, holds in each.items()}
    found = judge(flat, measured)
    texts = [
        f"{group} ({', '.join(x for x, holds in each.items() if not holds)})"
        for group, each in parts.items()
        if not all(each.values())
    ]
    return replace(found, reason=f"does not hold: {'; '.join(texts)}") if texts else found


def values(n: Numbers, keys: Sequence[str]) -> str:
    """Some numbers in one text, without intervals."""
    return " / ".join(f"{n[k].value:.3g}" for k in keys)


def under(x: Number) -> bool:
    """Whether no seed exceeds a bound: all shares of it are at most 1."""
    return max(x.per_seed) <= 1


def as_steep(slope: Number, theorem: float) -> bool:
    """Whether the whole interval of a slope is at most the theorem's, but for a margin."""
    return bool(slope.high <= theorem + MARGIN)


def c1(n: Numbers) -> Outcome:
    """The naive scheme at 0; FedFW on its way to 1, and near it for the largest penalty."""
    n["whole.pair"]
    parts: dict[str, dict[str, bool]] = {"naive scheme at 0": {}, "FedFW": {}}
    for step in ("falling", "constant"):
        stuck = n[f"pair_naive_{step}.farthest"].value <= STUCK
        parts["naive scheme at 0"][f"{step} step"] = stuck
    for lam in PAIR_PENALTIES:
        nearer = n[f"pair_fedfw_L{lam:g}.nearer"].low > 0
        parts["FedFW"][f"coming nearer to 1, lambda_0 = {lam:g}"] = nearer
    top = max(PAIR_PENALTIES)
    near = n[f"pair_fedfw_L{top:g}.late"].high <= NEAR
    parts["FedFW"][f"within {NEAR:g} of 1, lambda_0 = {top:g}"] = bool(near)
    naive = values(n, [f"pair_naive_{s}.x" for s in ("falling", "constant")])
    ours = values(n, [f"pair_fedfw_L{lam:g}.x" for lam in PAIR_PENALTIES])
    return judged(
        parts,
        f"x at the end: naive scheme, falling / constant step: {naive}; FedFW, lambda_0 = "
        f"{listed(PAIR_PENALTIES)}: {ours}",
    )


def listed(x: Sequence[float]) -> str:
    """Values with slashes, as `values` has them."""
    return " / ".join(f"{v:g}" for v in x)


def theorem(n: Numbers, start: str, penalties: Sequence[float], power: float) -> Outcome:
    """Bound and slope of runs `start.format(norm)` and a penalty."""
    parts: dict[str, dict[str, bool]] = {}
    said = []
    for norm in NORMS:
        runs = {lam: f"{start.format(norm)}_L{lam:g}" for lam in penalties}
        for lam, run in runs.items():
            parts[f"{norm}, lambda_0 = {lam:g}"] = {
                "bound": under(n[f"{run}.ratio"]),
                "slope": as_steep(n[f"{run}.slope"], power),
            }
        said.append(
            f"{norm}: slopes {values(n, [f'{r}.slope' for r in runs.values()])}, largest share "
            f"of the bound {values(n, [f'{r}.ratio' for r in runs.values()])}"
        )
    return judged(parts, f"lambda_0 = {listed(penalties)}; {'; '.join(said)}")


def c2(n: Numbers) -> Outcome:
    """Theorem 1: below (38), and as steep as t^(-1/2)."""
    n["whole.convex"]
    return theorem(n, "convex_{}_fedfw", CONVEX_PENALTIES, -1 / 2)


def c4(n: Numbers) -> Outcome:
    """Theorem 3: below (68), and as steep as t^(-1/3)."""
    n["whole.stochastic"]
    return theorem(n, "sto_{}", NOISY_PENALTIES, -1 / 3)


def c3(n: Numbers) -> Outcome:
    """Theorem 2: the smallest gap below (62) for every T, and as steep as T^(-1/3)."""
    n["whole.nonconvex"]
    parts: dict[str, dict[str, bool]] = {}
    said = []
    for norm in NORMS:
        for lam in NONCONVEX_PENALTIES:
            start = f"nonconvex_{norm}_L{lam:g}"
            own = {f"bound, T = {T}": under(n[f"{start}_T{T}.ratio"]) for T in HORIZONS}
            own["slope"] = as_steep(n[f"{start}.slope"], -1 / 3)
            parts[f"{norm}, lambda_0 = {lam:g}"] = own
            gaps = values(n, [f"{start}_T{T}.least_gap" for T in HORIZONS])
            slope = n[f"{start}.slope"].text(".2f")
            said.append(f"{norm}, lambda_0 = {lam:g}: {gaps}, slope {slope}")
    return judged(parts, f"smallest gap for T = {listed(HORIZONS)}: {'; '.join(said)}")


def c5(n: Numbers) -> Outcome:
    """Larger p: lower loss and higher accuracy over the rounds, in the same order of p."""
    n["whole.shares"]
    runs = {f"share_mclr_L{x:g}": f"regression, lambda_0 = {x:g}" for x in SHARE_PENALTIES}
    runs |= {f"share_{kind}": text for kind, text in NETS.items()}
    parts: dict[str, dict[str, bool]] = {}
    said, orders = [], []
    for start, text in runs.items():
        own: dict[str, bool] = {}
        for small, large in pairwise(SHARES):
            pair = f"{start}_p{large:g}_vs_{small:g}"
            own[f"loss, p = {large:g} below {small:g}"] = bool(n[f"{pair}.mean_loss"].high < 0)
            better = n[f"{pair}.mean_accuracy"].low > 0
            own[f"accuracy, p = {large:g} above {small:g}"] = bool(better)
        parts[text] = own
        keys = {q: f"{start}_p{q:g}.mean_loss" for q in SHARES}
        said.append(f"{text}: {values(n, list(keys.values()))}")
        if start.startswith("share_mclr"):
            orders.append(sorted(SHARES, key={q: n[k].value for q, k in keys.items()}.__getitem__))
    parts["role of p"] = {"the same order for both lambda_0": orders[0] == orders[1]}
    return judged(parts, f"mean loss over the rounds, p = {listed(SHARES)}: {'; '.join(said)}")


def c6(n: Numbers) -> Outcome:
    """Larger lambda_0: a larger Frank-Wolfe gap in the first rounds."""
    n["whole.penalties"]
    parts: dict[str, dict[str, bool]] = {}
    said = []
    for start, text in SETTINGS.items():
        parts[text] = {
            f"lambda_0 = {large:g} above {small:g}": bool(
                n[f"{start}_L{large:g}_vs_{small:g}.early_gap"].low > 0
            )
            for small, large in pairwise(PENALTIES)
        }
        said.append(f"{text}: {values(n, [f'{start}_L{x:g}.early_gap' for x in PENALTIES])}")
    return judged(
        parts, f"mean gap of the first rounds, lambda_0 = {listed(PENALTIES)}: {'; '.join(said)}"
    )


def c13(n: Numbers) -> Outcome:
    """Wrong oracles cost no more than their error: a factor, the slip itself, or its falling."""
    n["whole.wrong"]
    rounds = n["wrong.rounds"].value
    parts: dict[str, dict[str, bool]] = {}
    said = []
    for norm in NORMS:
        times = {m: n[f"wrong_{norm}_quality{m:g}.times"] for m in QUALITIES}
        own = {f"share {m:g} of the gap": bool(x.high <= m**-2) for m, x in times.items()}
        for slip in SLIPS:
            more = n[f"wrong_{norm}_slip{slip:g}.more"]
            own[f"error {slip:g}"] = bool(more.high <= slip)
            more = n[f"wrong_{norm}_falling{slip:g}.more"]
            own[f"error {slip:g} times the step"] = bool(more.high <= 4 * slip / (rounds + 1))
        parts[norm] = own
        said.append(
            f"{norm}: excess with a share {listed(QUALITIES)} of the gap, as a multiple of the "
            f"exact one's: {values(n, [f'wrong_{norm}_quality{m:g}.times' for m in QUALITIES])}, "
            f"and with an error of {listed(SLIPS)} more than it: "
            f"{values(n, [f'wrong_{norm}_slip{x:g}.more' for x in SLIPS])}"
        )
    nuclear = {k: n[f"nuclear_k{k}.times"] for k in LANCZOS}
    parts["nuclear ball"] = {
        f"{k} steps of Lanczos": bool(x.high <= TWICE) for k, x in nuclear.items()
    }
    shown = values(n, [f"nuclear_k{k}.times" for k in LANCZOS])
    said.append(f"nuclear ball, gap with {listed(LANCZOS)} steps by that with all: {shown}")
    return judged(parts, "; ".join(said))
