"""What SSCA's Figures 2 and 3 are said to show, and what judges it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from papers.kit.claims import Claim, Reading
from papers.kit.needs import Needs
from papers.kit.rules import EXCHANGED, Condition, Control, Rule, of, stat, stat_value
from papers.ssca.common import LEVELS, SPLITS
from papers.ssca.convergence.names import BATCHES, LIMITS, NUMBER, OWN, SEARCHED, grid, values
from papers.ssca.convergence.numbers import HE, LOOKS
from papers.ssca.convergence.work import CLAIMS as COUNTED

CLOSE = 0.1  # C5: share of the mean cost by which the two splits may differ
STEPS = ((1, 10), (10, 100))  # C1: a batch and the next larger one
TWICE = {10: 5, 100: 50}  # C3: batch -> that of SGD with two steps

COST = (
    "Training cost on 10,000 pictures of MNIST, 20 seeds: on average over 100 rounds (area), and "
    "after 10, 30, 50 and 100 (cost_10, ...)"
)
GRID = (
    "SGD with the step a / t^p of the grid a in {0.1, 0.3, 1, 3}, p in {0, 0.3} that has the "
    "lowest mean cost over the rounds (area), which is what judges"
)
NEEDS = Needs(parameters=("rates", "falls"), dead=SEARCHED)
PAIRED = "Differences (a_vs_b: a minus b) are paired by seed."
AVERAGE = (
    "Faster is a lower cost on average over the rounds: the paper shows curves, and no measure."
)
OPEN = (
    "The paper does not print the start. At one sample a client the winner depends on it, so that "
    "this cell cannot be decided from the paper."
)
STORED, WIDE = (
    "a start uniform within 1 / sqrt(inputs)",
    "He's start, one sample a client, ten seeds",
)

Parts = dict[str, Condition]


def areas(*runs: str) -> str:
    return values(*(f"{run}.area" for run in runs))


def steps(split: str, measure: str) -> Parts:
    """A larger batch below the next smaller one, by some measure, for a split's two algorithms."""
    free, limited = NUMBER[split]
    kinds = {f"Algorithm {free}": "ssca"}
    if not measure.startswith("cost"):  # that of the constrained algorithms is held at U
        kinds |= {f"Algorithm {limited}, U = {u:g}": f"limit_U{u:g}" for u in LEVELS}
    return {
        f"{text}, B = {large} below B = {small}": of(
            f"{split}_{kind}_B{large}_vs_B{small}.{measure}"
        )
        < 0
        for text, kind in kinds.items()
        for small, large in STEPS
    }


def both(measure: str) -> Parts:
    return {text: part for split in SPLITS for text, part in steps(split, measure).items()}


def against(pairs: Mapping[str, tuple[str, str]], note: str = "") -> Rule:
    """SSCA below SGD, on average over the rounds; `pairs`: in words -> the run and the baseline."""
    primary: Parts = {}
    said = []
    for text, (run, baseline) in pairs.items():
        kind = baseline.rpartition("_B")[0].rpartition("_")[2]
        average = f"{run}_vs_{kind}.area"
        primary[text] = of(average) < 0
        curves = (values(*(f"{x}.cost_{r}" for r in LOOKS)) for x in (run, baseline))
        apart, theirs = stat(average, "+.3g"), stat_value(f"{baseline}.area")
        said.append(f"{text}: {apart} to {theirs} ({' against '.join(curves)})")
    when = ", ".join(map(str, LOOKS))
    return Rule(
        {"a lower cost on average over the rounds": primary},
        f"mean cost minus that of SGD (in brackets both costs at t = {when}): {'; '.join(said)}",
        note=f"{AVERAGE} {note}".strip(),
        control=EXCHANGED,
    )


def one_step(split: str, *batches: int, before: str = "", note: str = "") -> Rule:
    """SSCA below SGD with one step a round, batch by batch."""
    names = {b: (f"{before}{split}_ssca_B{b}", f"{before}{split}_sgd_B{b}") for b in batches}
    return against({f"B = {b}": pair for b, pair in names.items()}, note)


def from_he(split: str) -> Reading:
    """The same from a wider start, where the printed setting does not say which."""
    kind = f"{HE}{split}"
    return Reading(
        WIDE,
        one_step(split, 1, before=HE, note=OPEN),
        (f"{kind}_ssca_B1", *grid(f"{kind}_sgd", 1)),
        NEEDS,
    )


def alike(batch: int) -> Condition:
    """The splits' difference within a share of Algorithm 1's mean cost."""
    apart = of(f"features_vs_samples_ssca_B{batch}.area")
    return abs(apart) < CLOSE * of(f"samples_ssca_B{batch}.area")


C1 = Rule(
    {
        "a lower cost on average over the rounds": both("area"),
        "a lower cost at round 100": both("cost_100"),
    },
    "mean cost over the rounds at B = "
    + " / ".join(map(str, BATCHES))
    + ": "
    + "; ".join(f"{split} {areas(*OWN[split])}" for split in SPLITS)
    + "; at round 10 with B = 100 minus B = 10: "
    + ", ".join(stat(f"{s}_ssca_B100_vs_B10.cost_10", "+.2g") for s in SPLITS),
    note="That every round of a larger batch is lower is not asked: the largest overshoots in the "
    "first ten.",
    control=EXCHANGED,
)
C2, C4 = (one_step(split, *BATCHES, note=OPEN) for split in SPLITS)
C3 = against(
    {
        f"B = {b} against B = {half}, E = 2": (f"samples_ssca_B{b}", f"samples_sgd2_B{half}")
        for b, half in TWICE.items()
    }
)
C5 = Rule(
    {"much the same cost on average over the rounds": {f"B = {b}": alike(b) for b in BATCHES}},
    "mean cost over the rounds, features minus samples: "
    + "; ".join(
        f"B = {b}: {stat(f'features_vs_samples_ssca_B{b}.area', '+.2g')} to "
        + stat_value(f"samples_ssca_B{b}.area")
        for b in BATCHES
    ),
    note="About as fast means within a tenth, a margin of ours.",
    control=Control(
        "another batch in the place of another split",
        {f"features_vs_samples_ssca_B{b}.area": "samples_ssca_B10_vs_B1.area" for b in BATCHES},
    ),
)
claim = partial(Claim, paper="Y")

CLAIMS = (
    claim(
        id="ssca/C1",
        place="Figures 2, 3",
        wording="A larger batch converges faster, for every algorithm.",
        measure=f"{COST}; of Algorithms 2 and 4, whose cost at the end is set by U, on average "
        f"alone. {PAIRED}",
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
        reading=STORED,
        readings=(from_he("samples"),),
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
        reading=STORED,
        readings=(from_he("features"),),
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
    *COUNTED,
)
