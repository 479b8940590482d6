"""What SSCA's Figures 2 and 3 are said to show, and the claims about messages and work."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from papers.kit.claims import Claim
from papers.kit.needs import Needs
from papers.kit.rules import Condition, Rule, all_of, of, told_value, value, within
from papers.ssca.common import LEVELS, SPLITS
from papers.ssca.convergence.numbers import CRITERIA, LOOKS

BATCHES = (1, 10, 100)
RATES, FALLS = (0.1, 0.3, 1.0, 3.0), (0.0, 0.3)
CLOSE = 0.1  # C5: share of the cost by which the two splits may differ
NEAR_LINEAR = 0.05  # C8: how far the growth of the server's work may be from proportional
ALIKE = 1.5  # C8: so many times the work of SGD's clients is of the same order
CHOICE = {"last": "SGD chosen at round 100", "early": "SGD chosen at round 30"}
STEPS = ((1, 10), (10, 100))  # C1: a batch and the next larger one
START = "1"  # C1: the cost, above all levels U, to which the constrained algorithms are timed
TWICE = {10: 5, 100: 50}  # C3: batch -> that of SGD with two steps
ALGORITHMS = (1, 2, 3, 4)
WHEN = ", ".join(map(str, LOOKS))

COST = (
    "Training cost on 10,000 pictures of MNIST, 20 seeds, after 10, 30, 50 and 100 rounds "
    "(cost_10, ...)"
)
GRID = (
    "SGD with the step a / t^p of the grid a in {0.1, 0.3, 1, 3}, p in {0, 0.3} that has the "
    "lowest mean cost at round 100 (last), and again the one at round 30 (early)"
)
NEEDS = Needs(parameters=("rates", "falls"))  # from which SGD's steps are chosen
PAIRED = "Differences (a_vs_b: a minus b) are paired by seed."

Parts = dict[str, Condition]
OWN = {split: tuple(f"{split}_ssca_B{b}" for b in BATCHES) for split in SPLITS}
LIMITS = tuple(f"{s}_limit_B{b}_U{u:g}" for s in SPLITS for b in BATCHES for u in LEVELS)


def grid(kind: str, *batches: int) -> tuple[str, ...]:
    return tuple(f"{kind}_B{b}_a{a:g}_p{p:g}" for b in batches for a in RATES for p in FALLS)


def values(*keys: str) -> str:
    """Some numbers in one text, without intervals."""
    return " / ".join(map(told_value, keys))


def costs(run: str) -> str:
    return values(*(f"{run}.cost_{r}" for r in LOOKS))


def below(pair: str) -> Parts:
    return {f"t = {r}": of(f"{pair}.cost_{r}") < 0 for r in LOOKS}


def larger(split: str, pair: str) -> Parts:
    """A larger batch below a smaller one: at every look, on average, and to a cost of 1."""
    limits = {f"U = {u:g}": f"{split}_limit_U{u:g}_{pair}.rounds_{START}" for u in LEVELS}
    return {
        **below(f"{split}_ssca_{pair}"),
        "mean cost": of(f"{split}_ssca_{pair}.area") < 0,
        **{f"{u}, rounds to a cost of 1": of(key) < 0 for u, key in limits.items()},
    }


def against(pairs: Mapping[str, tuple[str, str]]) -> Rule:
    """SSCA below SGD at every look, for both criteria.

    `pairs`: what is compared -> the run and the baseline, without the criterion.
    """
    parts: dict[str, Parts] = {}
    said = []
    for text, (run, baseline) in pairs.items():
        kind = baseline.split("_")[1]
        each = {criterion: f"{run}_vs_{kind}_{criterion}" for criterion in CRITERIA}
        parts |= {f"{text}, {CHOICE[c]}": below(pair) for c, pair in each.items()}
        theirs = [f"{costs(f'{baseline}_{c}')} ({CHOICE[c]})" for c in CRITERIA]
        said.append(f"{text}: {' against '.join([costs(run), *theirs])}")
    return Rule(parts, f"cost at t = {WHEN}: {'; '.join(said)}")


def one_step(split: str) -> Rule:
    """SSCA below SGD with one step a round, batch by batch."""
    return against({f"B = {b}": (f"{split}_ssca_B{b}", f"{split}_sgd_B{b}") for b in BATCHES})


def alike(batch: int, look: int) -> Condition:
    """The splits' difference within a share of Algorithm 1's cost."""
    keys = f"features_vs_samples_ssca_B{batch}.cost_{look}", f"samples_ssca_B{batch}.cost_{look}"
    return Condition(
        f"interval of {{}} within {CLOSE:g} times {{}} of 0",
        keys,
        lambda n: (
            -CLOSE * n[keys[1]].value < n[keys[0]].low
            and n[keys[0]].high < CLOSE * n[keys[1]].value
        ),
    )


def work(k: int) -> Parts:
    """Messages no longer than SGD's, server work linear in d, client work of SGD's order."""
    own, other = (f"{SPLITS[k > 2]}_{kind}" for kind in ("ssca_B1", "sgd_B1_last"))
    ways = ("up", "down", "between")
    short = all_of(*(value(f"{own}.{way}") <= value(f"{other}.{way}") for way in ways))
    linear = within(f"alg_{k}.linearity", 1, NEAR_LINEAR)
    return {
        **({"messages no longer than SGD's": short} if k in (1, 3) else {}),
        "client work": value(f"alg_{k}.client_ratio") <= ALIKE,
        **({"server work proportional to d": linear} if k in (1, 2) else {}),
    }


def each(measure: str, *numbers: int) -> str:
    return values(*(f"alg_{k}.{measure}" for k in numbers))


C1 = Rule(
    {
        f"{split}, B = {large} below B = {small}": larger(split, f"B{large}_vs_B{small}")
        for split in SPLITS
        for small, large in STEPS
    },
    "; ".join(
        f"{split}, B = {' / '.join(map(str, BATCHES))}: mean cost over the rounds "
        + values(*(f"{run}.area" for run in OWN[split]))
        for split in SPLITS
    ),
)
C2, C4 = one_step("samples"), one_step("features")
C3 = against(
    {
        f"B = {b} against B = {half}, E = 2": (f"samples_ssca_B{b}", f"samples_sgd2_B{half}")
        for b, half in TWICE.items()
    }
)
C5 = Rule(
    {f"B = {b}": {f"t = {r}": alike(b, r) for r in LOOKS} for b in BATCHES},
    f"cost at t = {WHEN}, samples against features: "
    + "; ".join(
        f"B = {b}: {' against '.join(costs(f'{s}_ssca_B{b}') for s in SPLITS)}" for b in BATCHES
    ),
)
C8 = Rule(
    {f"Algorithm {k}": work(k) for k in ALGORITHMS},
    "numbers written at the server a parameter and round, Algorithms 1 / 2: "
    f"{each('per_parameter', 1, 2)}; at the clients, beside SGD, Algorithms 1 / 2 / 3 / 4: "
    + each("client_ratio", *ALGORITHMS),
    note="Bits: equally many, the rule said, until a run showed that SGD also sends its step size.",
)
C12 = Rule(
    {
        f"Algorithm {k}": {
            "messages as in the list": value(f"alg_{k}.wrong_messages") <= 0,
            "bits": value(f"alg_{k}.bits_off") <= 0,
        }
        for k in ALGORITHMS
    },
    f"Algorithms 1 / 2 / 3 / 4: {each('wrong_messages', *ALGORITHMS)} messages and, in the runs, "
    f"{each('bits_off', *ALGORITHMS)} bits that differ from the list",
)

claim = partial(Claim, paper="Y")

CLAIMS = (
    claim(
        id="ssca/C1",
        place="Figures 2, 3",
        wording="A larger batch converges faster, for every algorithm.",
        measure=f"{COST} and on average over the rounds (area), of Algorithms 1 and 3; rounds "
        f"until the cost of Algorithms 2 and 4 is first below 1 (rounds_1). {PAIRED}",
        rule=C1,
        runs=(*OWN["samples"], *OWN["features"], *LIMITS),
        figure="figure_2",
    ),
    claim(
        id="ssca/C2",
        place="Figure 2",
        wording="With samples split, SSCA converges faster than SGD with one step a round on the "
        "same batch.",
        measure=f"{COST}; Algorithm 1 against {GRID}. {PAIRED}",
        rule=C2,
        runs=(*OWN["samples"], *grid("samples_sgd", *BATCHES)),
        figure="figure_2",
        needs=NEEDS,
    ),
    claim(
        id="ssca/C3",
        place="Figure 2",
        wording="With batch 10 (100) SSCA converges faster than SGD with two steps a round on "
        "batches of 5 (50), the same number of gradients at the clients.",
        measure=f"{COST}; Algorithm 1 against {GRID}. {PAIRED}",
        rule=C3,
        runs=(*(f"samples_ssca_B{b}" for b in TWICE), *grid("samples_sgd2", *TWICE.values())),
        figure="figure_2",
        needs=NEEDS,
    ),
    claim(
        id="ssca/C4",
        place="Figure 3",
        wording="With features split, SSCA converges faster than SGD on the same batch.",
        measure=f"{COST}; Algorithm 3 against {GRID}. {PAIRED} Batches are named by their tenth, "
        "the samples that a client has of them when samples are split.",
        rule=C4,
        runs=(*OWN["features"], *grid("features_sgd", *BATCHES)),
        figure="figure_3",
        needs=NEEDS,
    ),
    claim(
        id="ssca/C5",
        place="Figures 2, 3",
        wording="With equally many gradients in all, SSCA is about as fast with features split as "
        "with samples split.",
        measure=f"{COST}; Algorithm 3 minus Algorithm 1 from the same start, paired by seed.",
        rule=C5,
        runs=(*OWN["samples"], *OWN["features"]),
        figure="figure_3",
    ),
    claim(
        id="ssca/C8",
        place="Sections III to V",
        wording="All updates have closed forms; the server's work is O(d) a round, a client's that "
        "of SGD.",
        measure="Bits of the rounds up, down and between clients; numbers that the tensor "
        "operations of a round of Algorithm k (alg_k) write, at the server and at the clients, "
        "counted on small networks of 32, 64 and 96 hidden cells: what the second enlargement adds "
        "to the server's work by what the first adds (linearity); the clients' by those of SGD's, "
        "for Algorithms 3 and 4 in the whole round (client_ratio).",
        rule=C8,
        runs=(
            *(f"{s}_ssca_B1" for s in SPLITS),
            *(run for s in SPLITS for run in grid(f"{s}_sgd", 1)),
        ),
    ),
    claim(
        id="ssca/C12",
        place="Steps 3 to 6 of the algorithms",
        wording="What a round sends is what the algorithms list: no raw features, and no "
        "parameters of other clients.",
        measure="Senders, receivers, numbers and indices of all messages of a recorded round of "
        "Algorithms 3 and 4, and a client's numbers up and down of Algorithms 1 and 2, on a small "
        "network: those that the list does not have, and those of the list that are missing "
        "(alg_k.wrong_messages); bits up and down of all runs of the four on MNIST against those "
        "that follow from the list (bits_off).",
        rule=C12,
        runs=(*OWN["samples"], *OWN["features"], *LIMITS),
    ),
)
