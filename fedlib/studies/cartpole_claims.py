"""Claims of the full paper about constrained cartpole."""

from __future__ import annotations

from fedlib.claims import Claim, Numbers, Outcome, PaperValue, judge
from fedlib.studies.cartpole_numbers import BUDGET

__all__ = ["CLAIMS", "PAPER_VALUES", "TABLE_1"]

#: Table 1: run, its name there, reward and cost at round 100, reward and cost at round 500.
TABLE_1 = (
    ("central_fine_soft", "centralized", 119.9, 33.6, 198.2, 33.2),
    ("soft_none", "none (float32)", 67.2, 26.9, 199.4, 27.6),
    ("soft_float16", "float16", 90.5, 31.2, 198.8, 26.9),
    ("soft_float8", "float8", 91.4, 31.4, 199.1, 26.5),
    ("soft_float4", "float4", 49.1, 25.2, 197.2, 25.6),
    ("soft_top0.5", "Top-K 0.5", 46.5, 23.8, 131.6, 24.0),
    ("soft_top0.25", "Top-K 0.25", 25.1, 22.7, 25.5, 22.2),
)
PAIRS = (("soft_top0.5", "hard_top0.5"), ("central_fine_soft", "central_fine_hard"))
FORMATS = ("float16", "float8", "float4")


def c16(n: Numbers) -> Outcome:
    """Soft collects more reward over the run and violates in fewer rounds, in both pairs."""
    parts, texts = {}, []
    for soft, hard in PAIRS:
        kind = "centralized" if soft.startswith("central") else "federated"
        faster = n[f"{soft}/{hard}.area"]
        parts[f"{kind}: soft is faster"] = faster.low > 1
        parts[f"{kind}: soft violates in fewer late rounds"] = (
            n[f"{soft}.violating"].high < n[f"{hard}.violating"].low
        )
        texts.append(
            f"{kind}: mean reward over the run soft/hard {faster.text()}, violating late rounds "
            f"{n[f'{soft}.violating'].text('.2f')} against {n[f'{hard}.violating'].text('.2f')}"
        )
    return judge(parts, "; ".join(texts))


def c17(n: Numbers) -> Outcome:
    """Under hard switching the federated run's reward exceeds the centralized one's."""
    parts, texts = {}, []
    for at in (100, 250, 500):
        r = n[f"hard_top0.5/central_fine_hard.reward{at}"]
        parts[f"federated ahead at round {at}"] = r.low > 1
        texts.append(f"round {at}: {r.text()}")
    return judge(parts, "reward federated/centralized " + ", ".join(texts))


def c18(n: Numbers) -> Outcome:
    """With fewest participants the run is slower and its cost scatters more than with all."""
    slower, rougher = n["few/all.area"], n["few/all.cost_scatter"]
    parts = {"slower": slower.high < 1, "cost less stable": rougher.low > 1}
    text = f"3 of 10 against all: mean reward {slower.text()}, scatter of cost {rougher.text()}"
    return judge(parts, text)


def c19(n: Numbers) -> Outcome:
    """At round 500 each format's mean reward is within 5 % of 197, its cost surely at most 30."""
    parts, texts = {}, []
    for name in FORMATS:
        reward, cost = n[f"soft_{name}.reward500"], n[f"soft_{name}.cost500"]
        parts[f"{name}: reward within 5 % of 197"] = reward.value >= 0.95 * 197
        parts[f"{name}: cost at most 30"] = cost.high <= BUDGET
        texts.append(f"{name} {reward.text()} at {cost.text()}")
    return judge(parts, "; ".join(texts))


def c20(n: Numbers) -> Outcome:
    """Top-K 0.5 ends near 130 and is slower than no compression; Top-K 0.25 stays below 40."""
    half, quarter = n["soft_top0.5.reward500"], n["soft_top0.25.reward500"]
    slower = n["top0.5/none.area"]
    parts = {
        "Top-K 0.5 ends between 105 and 158 (131.6 within a fifth)": half.low <= 158
        and half.high >= 105,
        "Top-K 0.5 is slower than no compression": slower.high < 1,
        "Top-K 0.25 does not learn": quarter.high < 40,
    }
    text = (
        f"reward at 500: Top-K 0.5 {half.text()}, Top-K 0.25 {quarter.text()}; mean reward over "
        f"the run Top-K 0.5/none {slower.text()}"
    )
    return judge(parts, text)


def c21(n: Numbers) -> Outcome:
    """At round 500 the centralized cost exceeds 30, the federated one does not."""
    central, federated = n["central_fine_soft.cost500"], n["soft_none.cost500"]
    parts = {
        "centralized soft violates": central.low > BUDGET,
        "federated without compression does not": federated.low <= BUDGET,
    }
    return judge(parts, f"cost: centralized {central.text()}, federated {federated.text()}")


def _table(label: str, run: str, values: tuple[float, ...]) -> tuple[PaperValue, ...]:
    keys = ("reward100", "cost100", "reward500", "cost500")
    words = ("reward at 100", "cost at 100", "reward at 500", "cost at 500")
    return tuple(
        PaperValue(f"{label}: {word}", f"{run}.{key}", x, f"{x:g}", "Table 1")
        for key, word, x in zip(keys, words, values, strict=True)
    )


PAPER_VALUES = tuple(v for run, label, *x in TABLE_1 for v in _table(label, run, tuple(x)))

CLAIMS = (
    Claim(
        "fedsgm/C16",
        "F",
        "Figure 3",
        "Soft switching converges faster and more steadily than hard switching on cartpole.",
        "Mean reward over all evaluations, soft divided by hard on the same seeds; share of rounds "
        "in the second half whose estimated constraint is violated. Federated (7 of 10 clients, "
        "Top-K 0.5 both ways) and centralized, 10 seeds.",
        "Faster: the interval of the ratio lies above 1. Steadier: the intervals of the shares are "
        "apart. Each for both pairs.",
        tuple(run for pair in PAIRS for run in pair),
        c16,
        figure="figure_3",
    ),
    Claim(
        "fedsgm/C17",
        "F",
        "Figure 3",
        "With hard switching the federated run learns the objective better than the centralized.",
        "Reward around rounds 100, 250 and 500, federated divided by centralized on the same "
        "seeds, 10 seeds.",
        "The interval of the ratio lies above 1, at each of the three rounds.",
        ("hard_top0.5", "central_fine_hard"),
        c17,
        figure="figure_3",
    ),
    Claim(
        "fedsgm/C18",
        "F",
        "Figure 4",
        "Lower participation is slower and less stable.",
        "3 of 10 clients against all, Top-K 0.5 both ways, soft, 5 seeds: ratio of the mean reward "
        "over the run, and of the mean change of the cost between evaluations, second half.",
        "The interval of the first ratio lies below 1, that of the second above 1.",
        ("half_n3", "half_n10"),
        c18,
        figure="figure_4",
    ),
    Claim(
        "fedsgm/C19",
        "F",
        "Table 1",
        "With quantization to 16, 8 and 4 bits the reward reaches 197 or more by round 500 at a "
        "cost of at most 30.",
        "Reward and cost, mean over the evaluations of rounds 480 to 500, 10 seeds.",
        "For each format the mean reward is at least 0.95 times 197, and the interval of the cost "
        "lies below 30.",
        tuple(f"soft_{name}" for name in FORMATS),
        c19,
        figure="table_1",
    ),
    Claim(
        "fedsgm/C20",
        "F",
        "Table 1",
        "Top-K with half of the entries is slower (about 130 at round 500); with a quarter nothing "
        "is learned.",
        "Reward around round 500; mean reward over the run against that without compression; 10 "
        "seeds.",
        "The interval of the first meets 131.6 within a fifth, the ratio's lies below 1, and "
        "that of Top-K 0.25 lies below 40.",
        ("soft_top0.5", "soft_top0.25", "soft_none"),
        c20,
        figure="table_1",
    ),
    Claim(
        "fedsgm/C21",
        "F",
        "Table 1",
        "The centralized run violates the budget, the federated one without compression does not.",
        "Cost, mean over the evaluations of rounds 480 to 500, 10 seeds.",
        "The interval of the centralized cost lies above 30, that of the federated one reaches 30 "
        "or less.",
        ("central_fine_soft", "soft_none"),
        c21,
        figure="table_1",
    ),
)
