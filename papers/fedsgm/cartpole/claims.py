"""Claims of the full paper about constrained cartpole."""

from __future__ import annotations

from functools import partial

from papers.fedsgm.cartpole.numbers import BUDGET, PAIRS
from papers.kit.claims import Claim, PaperValue
from papers.kit.needs import Needs
from papers.kit.rules import Rule, between, of, told, value

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
KINDS = dict(zip(("federated", "centralized"), PAIRS, strict=True))
FORMATS = ("float16", "float8", "float4")
HARD = ("hard_top0.5", "central_fine_hard")

full = partial(Claim, paper="F")

C16 = Rule(
    {f"{kind}: soft is faster": of(f"{a}/{b}.area") > 1 for kind, (a, b) in KINDS.items()}
    | {
        f"{kind}: soft violates in fewer late rounds": of(f"{soft}.violating")
        < of(f"{hard}.violating")
        for kind, (soft, hard) in KINDS.items()
    },
    "; ".join(
        f"{kind}: mean reward over the run soft/hard {told(f'{soft}/{hard}.area')}, violating late "
        f"rounds {told(f'{soft}.violating', '.2f')} against {told(f'{hard}.violating', '.2f')}"
        for kind, (soft, hard) in KINDS.items()
    ),
)
AHEAD = {at: f"{'/'.join(HARD)}.reward{at}" for at in (100, 250, 500)}
C17 = Rule(
    {f"federated ahead at round {at}": of(key) > 1 for at, key in AHEAD.items()},
    "reward federated/centralized "
    + ", ".join(f"round {at}: {told(key)}" for at, key in AHEAD.items()),
)
C18 = Rule(
    {"slower": of("few/all.area") < 1, "cost less stable": of("few/all.cost_scatter") > 1},
    f"3 of 10 against all: mean reward {told('few/all.area')}, "
    f"scatter of cost {told('few/all.cost_scatter')}",
)
C19 = Rule(
    {
        f"{name}: {text}": holds
        for name in FORMATS
        for text, holds in {
            "reward within 5 % of 197": value(f"soft_{name}.reward500") >= 0.95 * 197,
            "cost at most 30": of(f"soft_{name}.cost500") <= BUDGET,
        }.items()
    },
    "; ".join(f"{x} {told(f'soft_{x}.reward500')} at {told(f'soft_{x}.cost500')}" for x in FORMATS),
    "The bound on the reward is 0.95 times 197.",
)
C20 = Rule(
    {
        "Top-K 0.5 ends between 105 and 158 (131.6 within a fifth)": between(
            "soft_top0.5.reward500", 105, 158
        ),
        "Top-K 0.5 is slower than no compression": of("top0.5/none.area") < 1,
        "Top-K 0.25 does not learn": of("soft_top0.25.reward500") < 40,
    },
    f"reward at 500: Top-K 0.5 {told('soft_top0.5.reward500')}, "
    f"Top-K 0.25 {told('soft_top0.25.reward500')}; "
    f"mean reward over the run Top-K 0.5/none {told('top0.5/none.area')}",
)
C21 = Rule(
    {
        "centralized soft violates": of("central_fine_soft.cost500") > BUDGET,
        "federated without compression does not": of("soft_none.cost500") <= BUDGET,
    },
    f"cost: centralized {told('central_fine_soft.cost500')}, federated {told('soft_none.cost500')}",
)

CLAIMS = (
    full(
        id="fedsgm/C16",
        place="Figure 3",
        wording="Soft switching converges faster and more steadily than hard switching on "
        "cartpole.",
        measure="Mean reward over all evaluations (area), soft divided by hard on the same seeds; "
        "share of rounds in the second half whose estimated constraint is violated (violating). "
        "Federated (7 of 10 clients, Top-K 0.5 both ways) and centralized, 10 seeds.",
        rule=C16,
        runs=tuple(run for pair in PAIRS for run in pair),
        figure="figure_3",
    ),
    full(
        id="fedsgm/C17",
        place="Figure 3",
        wording="With hard switching the federated run learns the objective better than the "
        "centralized.",
        measure="Reward around rounds 100, 250 and 500, federated divided by centralized on the "
        "same seeds, 10 seeds.",
        rule=C17,
        runs=HARD,
        figure="figure_3",
    ),
    full(
        id="fedsgm/C18",
        place="Figure 4",
        wording="Lower participation is slower and less stable.",
        measure="3 of 10 clients against all, Top-K 0.5 both ways, soft, 5 seeds: ratio of the "
        "mean reward over the run (area), and of the mean change of the cost between evaluations, "
        "second half (cost_scatter).",
        rule=C18,
        runs=("half_n3", "half_n10"),
        figure="figure_4",
        needs=Needs(parameters=("sweep_participants",)),
    ),
    full(
        id="fedsgm/C19",
        place="Table 1",
        wording="With quantization to 16, 8 and 4 bits the reward reaches 197 or more by round 500 "
        "at a cost of at most 30.",
        measure="Reward and cost, mean over the evaluations of rounds 480 to 500, 10 seeds.",
        rule=C19,
        runs=tuple(f"soft_{name}" for name in FORMATS),
        figure="table_1",
    ),
    full(
        id="fedsgm/C20",
        place="Table 1",
        wording="Top-K with half of the entries is slower (about 130 at round 500); with a quarter "
        "nothing is learned.",
        measure="Reward around round 500; mean reward over the run against that without "
        "compression (area); 10 seeds.",
        rule=C20,
        runs=("soft_top0.5", "soft_top0.25", "soft_none"),
        figure="table_1",
    ),
    full(
        id="fedsgm/C21",
        place="Table 1",
        wording="The centralized run violates the budget, the federated one without compression "
        "does not.",
        measure="Cost, mean over the evaluations of rounds 480 to 500, 10 seeds.",
        rule=C21,
        runs=("central_fine_soft", "soft_none"),
        figure="table_1",
    ),
)

PAPER_VALUES = tuple(
    PaperValue(f"{label}: {k} at {at}", f"{run}.{k}{at}", x, f"{x:g}", "Table 1")
    for run, label, *row in TABLE_1
    for (at, k), x in zip(
        ((a, k) for a in (100, 500) for k in ("reward", "cost")), row, strict=True
    )
)
