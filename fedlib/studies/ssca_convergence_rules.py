"""The rules that judge what SSCA's Figures 2 and 3 are said to show; each can fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fedlib.claims import Numbers, Outcome, judge
from fedlib.numbers import Number
from fedlib.studies.ssca_common import LEVELS, SPLITS
from fedlib.studies.ssca_convergence_numbers import BATCHES, CRITERIA, LOOKS

__all__ = ["c1", "c2", "c3", "c4", "c5", "c8", "c12", "judged"]

CLOSE = 0.1  # C5: share of the cost by which the two splits may differ
NEAR_LINEAR = 0.05  # C8: how far the growth of the server's work may be from proportional
ALIKE = 1.5  # C8: so many times the work of SGD's clients is of the same order
CHOICE = {"last": "SGD chosen at round 100", "early": "SGD chosen at round 30"}
STEPS = ((1, 10), (10, 100))  # C1: a batch and the next larger one
START = "1"  # C1: the cost, above all levels U, to which the constrained algorithms are timed
TWICE = {10: 5, 100: 50}  # C3: batch -> that of SGD with two steps

Parts = Mapping[str, Mapping[str, bool]]


def judged(parts: Parts, measured: str) -> Outcome:
    """`judge` over parts in groups; the reason names, for each group, what fails in it."""
    flat = {f"{group}: {x}": holds for group, each in parts.items() for x, holds in each.items()}
    found = judge(flat, measured)
    failing = {
        group: [x for x, holds in each.items() if not holds]
        for group, each in parts.items()
        if not all(each.values())
    }
    if not failing:
        return found
    texts = [f"{group} ({', '.join(names)})" for group, names in failing.items()]
    return replace(found, reason=f"does not hold: {'; '.join(texts)}")


def all_pictures(n: Numbers) -> None:
    """Raise KeyError for runs that cannot judge the paper: other pictures, few rounds or seeds."""
    n["whole.pictures"]


def below(x: Number) -> bool:
    """Whether the whole interval lies below zero."""
    return x.high < 0


def c1(n: Numbers) -> Outcome:
    """Larger batches below smaller ones: at every look, on average, and to a cost of 1."""
    all_pictures(n)
    parts: dict[str, dict[str, bool]] = {}
    for split in SPLITS:
        for small, large in STEPS:
            pair = f"B{large}_vs_B{small}"
            own = {f"t = {r}": below(n[f"{split}_ssca_{pair}.cost_{r}"]) for r in LOOKS}
            own["mean cost"] = below(n[f"{split}_ssca_{pair}.area"])
            for u in LEVELS:
                x = n[f"{split}_limit_U{u:g}_{pair}.rounds_{START}"]
                own[f"U = {u:g}, rounds to a cost of 1"] = below(x)
            parts[f"{split}, B = {large} below B = {small}"] = own
    said = [
        f"{split}, B = {' / '.join(map(str, BATCHES))}: mean cost over the rounds "
        + values(n, [f"{split}_ssca_B{b}.area" for b in BATCHES])
        for split in SPLITS
    ]
    return judged(parts, "; ".join(said))


def values(n: Numbers, keys: list[str]) -> str:
    """Some numbers in one text, without intervals."""
    return " / ".join(f"{n[k].value:.3g}" for k in keys)


def against(n: Numbers, pairs: Mapping[str, tuple[str, str, str]]) -> Outcome:
    """SSCA below SGD at every look, for both criteria.

    `pairs`: what is compared -> the difference, the run and the baseline, without the criterion.
    """
    all_pictures(n)
    parts: dict[str, dict[str, bool]] = {}
    said = []
    for text, (pair, run, baseline) in pairs.items():
        costs = [values(n, [f"{run}.cost_{r}" for r in LOOKS])]
        for criterion in CRITERIA:
            own = {f"t = {r}": below(n[f"{pair}_{criterion}.cost_{r}"]) for r in LOOKS}
            parts[f"{text}, {CHOICE[criterion]}"] = own
            theirs = values(n, [f"{baseline}_{criterion}.cost_{r}" for r in LOOKS])
            costs.append(f"{theirs} ({CHOICE[criterion]})")
        said.append(f"{text}: {' against '.join(costs)}")
    when = ", ".join(map(str, LOOKS))
    return judged(parts, f"cost at t = {when}: {'; '.join(said)}")


def c2(n: Numbers) -> Outcome:
    """Algorithm 1 below SGD with one step, batch by batch."""
    return against(n, one_step("samples"))


def c4(n: Numbers) -> Outcome:
    """Algorithm 3 below feature-based SGD, batch by batch."""
    return against(n, one_step("features"))


def one_step(split: str) -> dict[str, tuple[str, str, str]]:
    """SSCA and SGD with one step a round, batch by batch."""
    return {
        f"B = {b}": (f"{split}_ssca_B{b}_vs_sgd", f"{split}_ssca_B{b}", f"{split}_sgd_B{b}")
        for b in BATCHES
    }


def c3(n: Numbers) -> Outcome:
    """Algorithm 1 below SGD with two steps on half of the batch."""
    return against(
        n,
        {
            f"B = {b} against B = {half}, E = 2": (
                f"samples_ssca_B{b}_vs_sgd2",
                f"samples_ssca_B{b}",
                f"samples_sgd2_B{half}",
            )
            for b, half in TWICE.items()
        },
    )


def c5(n: Numbers) -> Outcome:
    """The two splits within a tenth of each other at every look."""
    all_pictures(n)
    parts: dict[str, dict[str, bool]] = {}
    said = []
    for b in BATCHES:
        own = {}
        for r in LOOKS:
            x = n[f"features_vs_samples_ssca_B{b}.cost_{r}"]
            most = CLOSE * n[f"samples_ssca_B{b}.cost_{r}"].value
            own[f"t = {r}"] = bool(-most < x.low and x.high < most)
        parts[f"B = {b}"] = own
        both = (values(n, [f"{s}_ssca_B{b}.cost_{r}" for r in LOOKS]) for s in SPLITS)
        said.append(f"B = {b}: {' against '.join(both)}")
    when = ", ".join(map(str, LOOKS))
    return judged(parts, f"cost at t = {when}, samples against features: {'; '.join(said)}")


def c8(n: Numbers) -> Outcome:
    """Messages no longer than SGD's, server work linear in d, client work of SGD's order."""
    all_pictures(n)
    parts: dict[str, dict[str, bool]] = {}
    for split, first in zip(SPLITS, (1, 3), strict=True):
        own, other = f"{split}_ssca_B{BATCHES[0]}", f"{split}_sgd_B{BATCHES[0]}_last"
        alike = all(
            n[f"{own}.{way}"].value <= n[f"{other}.{way}"].value
            for way in ("up", "down", "between")
        )
        parts[f"Algorithm {first}"] = {"messages no longer than SGD's": alike}
        parts[f"Algorithm {first + 1}"] = {}
        for k in (first, first + 1):
            parts[f"Algorithm {k}"]["client work"] = n[f"alg_{k}.client_ratio"].value <= ALIKE
    for k in (1, 2):
        linear = abs(n[f"alg_{k}.linearity"].value - 1) <= NEAR_LINEAR
        parts[f"Algorithm {k}"]["server work proportional to d"] = linear
    per = values(n, [f"alg_{k}.per_parameter" for k in (1, 2)])
    work = values(n, [f"alg_{k}.client_ratio" for k in (1, 2, 3, 4)])
    text = (
        f"numbers written at the server a parameter and round, Algorithms 1 / 2: {per}; at the "
        f"clients, beside SGD, Algorithms 1 / 2 / 3 / 4: {work}"
    )
    return judged(parts, text)


def c12(n: Numbers) -> Outcome:
    """No message that the table does not have, none missing, and as many bits as it says."""
    all_pictures(n)
    wrong = {k: n[f"alg_{k}.wrong_messages"].value for k in (1, 2, 3, 4)}
    off = {k: n[f"alg_{k}.bits_off"].value for k in (1, 2, 3, 4)}
    parts = {
        f"Algorithm {k}": {"messages as in the list": wrong[k] == 0, "bits": off[k] == 0}
        for k in wrong
    }
    counts, bits = (" / ".join(f"{x:.0f}" for x in each.values()) for each in (wrong, off))
    return judged(
        parts,
        f"Algorithms 1 / 2 / 3 / 4: {counts} messages and, in the runs, {bits} bits that differ "
        "from the list",
    )
