"""What SSCA's Figures 2 and 3 and its counts are said to show, and what judges it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
from papers.kit.rules import (
    EXCHANGED,
    Condition,
    Control,
    Rule,
    least,
    near,
    of,
    stat,
    stat_value,
    value,
)
from papers.ssca import leaks
from papers.ssca.common import LEVELS, NUMBERS, SPLITS
from papers.ssca.convergence.numbers import HE, LOOKS

BATCHES = (1, 10, 100)
RATES, FALLS = (0.1, 0.3, 1.0, 3.0), (0.0, 0.3)
SEARCHED = ("*_sgd*_a3_p*",)  # the largest step of the grid may diverge: it is not chosen
OWN = {split: tuple(f"{split}_ssca_B{b}" for b in BATCHES) for split in SPLITS}
LIMITS = tuple(f"{s}_limit_B{b}_U{u:g}" for s in SPLITS for b in BATCHES for u in LEVELS)


def grid(kind: str, *batches: int) -> tuple[str, ...]:
    return tuple(f"{kind}_B{b}_a{a:g}_p{p:g}" for b in batches for a in RATES for p in FALLS)


def values(*keys: str) -> str:
    """Some numbers in one text, without intervals."""
    return " / ".join(map(stat_value, keys))


NEAR_LINEAR = 0.05  # C8: how far the growth of the server's work may be from proportional
ALIKE = 1.5  # C8: so many times the work of SGD's clients is of the same order
ALGORITHMS = (1, 2, 3, 4)


def by_number(condition: Callable[[int], Condition], *numbers: int) -> dict[str, Condition]:
    return {f"Algorithm {k}": condition(k) for k in numbers}


def each(measure: str, *numbers: int) -> str:
    return values(*(f"alg_{k}.{measure}" for k in numbers))


C8 = Rule(
    {
        f"the work of the server is proportional to d within {100 * NEAR_LINEAR:g} %": by_number(
            lambda k: near(f"alg_{k}.linearity", 1, NEAR_LINEAR), 1, 2
        ),
        f"the work of a client is at most {ALIKE:g} times that of SGD": by_number(
            lambda k: value(f"alg_{k}.client_ratio") <= ALIKE, *ALGORITHMS
        ),
    },
    "numbers that the server writes per parameter and round, Algorithms 1 / 2: "
    f"{each('per_parameter', 1, 2)}; numbers that the clients write, divided by those of SGD, "
    "Algorithms 1 / 2 / 3 / 4: " + each("client_ratio", *ALGORITHMS),
    note="The messages of SGD also carry its step size, so those of SSCA may be shorter.",
    control=Control(
        "server work that grows like the square of d, and clients that do twice the work of SGD",
        {f"alg_{k}.linearity": 2.0 for k in ALGORITHMS}
        | {f"alg_{k}.client_ratio": 2.0 for k in ALGORITHMS},
    ),
)
C12 = Rule(
    {
        "the messages of a round are those that the paper lists": by_number(
            lambda k: value(f"alg_{k}.wrong_messages") <= 0, *ALGORITHMS
        ),
        "the number of bits that the runs send follows from the list": by_number(
            lambda k: value(f"alg_{k}.bits_off") <= 0, *ALGORITHMS
        ),
    },
    f"for Algorithms 1 / 2 / 3 / 4, {each('wrong_messages', *ALGORITHMS)} messages and, in the "
    f"runs, {each('bits_off', *ALGORITHMS)} bits differ from the list",
    control=Control(
        "one message more than the list has", {f"alg_{k}.wrong_messages": 1.0 for k in ALGORITHMS}
    ),
)
LEFT = {f"B = {b}": f"privacy.free_B{b}" for b in leaks.BATCHES}
C13 = Rule(
    {
        "a single sample is recovered only with an error above 0.01": least("privacy.error_B1")
        > 0.01,
        "a batch can change in some direction without changing its message": {
            text: least(key) >= 1 for text, key in LEFT.items()
        },
    },
    lambda n: (
        "largest error of the sample that is recovered from the message: "
        f"{max(n['privacy.error_B1'].per_seed):.0e}; number of directions in which a batch can "
        "change while its message stays the same: "
        + ", ".join(f"{n[key].value:g} ({text})" for text, key in LEFT.items())
        + f"; the same number for the messages to the other clients where features are split: "
        f"{n['privacy.free_clients'].value:g}"
    ),
    note="The paper calls a message safe if its equations have infinitely many solutions. We "
    "prove that those of a single sample have only one solution. Larger batches are tried on small "
    "networks with known labels.",
    control=Control(
        "messages that consist of the samples",
        {"privacy.error_B1": 0.0} | dict.fromkeys(LEFT.values(), 0.0),
    ),
)

claim = partial(Claim, paper="Y")

COUNTED = (
    claim(
        id="ssca/C8",
        place="Sections III to V",
        wording="All updates have closed forms. In a round, the server's work is O(d), and a "
        "client's work is that of SGD.",
        rule=C8,
        runs=(
            *(f"{s}_ssca_B1" for s in SPLITS),
            *(run for s in SPLITS for run in grid(f"{s}_sgd", 1)),
        ),
        needs=Needs(exact=True, dead=SEARCHED),
        kind="counted",
    ),
    claim(
        id="ssca/C12",
        place="Steps 3 to 6 of the algorithms",
        wording="A round sends only what the algorithms list. It sends no raw features and no "
        "parameters of other clients.",
        rule=C12,
        runs=(*OWN["samples"], *OWN["features"], *LIMITS),
        needs=Needs(exact=True),
        kind="counted",
    ),
    claim(
        id="ssca/C13",
        place="abstract and security analysis, samples split",
        wording="The messages of a client do not reveal its samples.",
        rule=C13,
        runs=("samples_ssca_B1",),
        needs=Needs(exact=True),
    ),
)


CLOSE = 0.1  # C5: share of the mean cost by which the two splits may differ
STEPS = ((1, 10), (10, 100))  # C1: a batch and the next larger one
TWICE = {10: 5, 100: 50}  # C3: batch -> that of SGD with two steps

NEEDS = Needs(parameters=("rates", "falls"), dead=SEARCHED)
OPEN = "The paper does not print the initial weights, which decide the winner at B = 1."
STORED, WIDE = (
    "a start uniform within 1 / sqrt(inputs)",
    "He's start, one sample a client, ten seeds",
)

Parts = dict[str, Condition]


def areas(*runs: str) -> str:
    return values(*(f"{run}.area" for run in runs))


def steps(split: str, measure: str) -> Parts:
    """A larger batch below the next smaller one, by some measure, for a split's two algorithms."""
    free, limited = NUMBERS[split]
    kinds = {f"Algorithm {free}": "ssca"}
    if not measure.startswith("cost"):  # that of the constrained algorithms is held at U
        kinds |= {f"Algorithm {limited}, U = {u:g}": f"limit_U{u:g}" for u in LEVELS}
    return {
        f"{text}, B = {large} against B = {small}": of(
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
        said.append(f"{text}: {apart}, {theirs} ({' against '.join(curves)})")
    when = ", ".join(map(str, LOOKS))
    return Rule(
        {"SSCA's mean cost over the rounds is below SGD's": primary},
        "mean cost of SSCA minus that of SGD, and the mean cost of SGD (in brackets the costs of "
        f"both in rounds {when}): {'; '.join(said)}",
        note=note,
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
        one_step(split, 1, before=HE),
        (f"{kind}_ssca_B1", *grid(f"{kind}_sgd", 1)),
        NEEDS,
    )


def alike(batch: int) -> Condition:
    """The splits' difference within a share of Algorithm 1's mean cost."""
    apart = of(f"features_vs_samples_ssca_B{batch}.area")
    return abs(apart) < CLOSE * of(f"samples_ssca_B{batch}.area")


C1 = Rule(
    {
        "the larger batch has the lower mean cost over the rounds": both("area"),
        "the larger batch has the lower cost at round 100": both("cost_100"),
    },
    "mean cost over the rounds at B = "
    + " / ".join(map(str, BATCHES))
    + ": "
    + "; ".join(f"{split} {areas(*OWN[split])}" for split in SPLITS)
    + "; cost at round 10 with B = 100 minus that with B = 10: "
    + ", ".join(stat(f"{s}_ssca_B100_vs_B10.cost_10", "+.2g") for s in SPLITS),
    note="Early rounds are not compared, because the largest batch overshoots in the first ten.",
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
    {
        f"the mean costs of both splits over the rounds differ by less than {100 * CLOSE:g} %": {
            f"B = {b}": alike(b) for b in BATCHES
        }
    },
    "mean cost over the rounds, features split minus samples split, and with samples split: "
    + "; ".join(
        f"B = {b}: {stat(f'features_vs_samples_ssca_B{b}.area', '+.2g')}, "
        + stat_value(f"samples_ssca_B{b}.area")
        for b in BATCHES
    ),
    control=Control(
        "the effect of another batch instead of another split",
        {f"features_vs_samples_ssca_B{b}.area": "samples_ssca_B10_vs_B1.area" for b in BATCHES},
    ),
)
CLAIMS = (
    claim(
        id="ssca/C1",
        place="Figures 2, 3",
        wording="With a larger batch every algorithm of the paper converges faster.",
        rule=C1,
        runs=(*OWN["samples"], *OWN["features"], *LIMITS),
        figure="figure_2",
    ),
    claim(
        id="ssca/C2",
        place="Figure 2",
        wording="With samples split, SSCA converges faster than SGD with one step per round on the "
        "same batch.",
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
        wording="With batch 10 (100) SSCA converges faster than SGD with two steps per round on "
        "batches of 5 (50), which uses the same number of gradients at the clients.",
        rule=C3,
        runs=(*(f"samples_ssca_B{b}" for b in TWICE), *grid("samples_sgd2", *TWICE.values())),
        figure="figure_2",
        needs=NEEDS,
    ),
    claim(
        id="ssca/C4",
        place="Figure 3",
        wording="With features split, SSCA converges faster than SGD on the same batch.",
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
        wording="With the same total number of gradients, SSCA is about as fast with features "
        "split as with samples split.",
        rule=C5,
        runs=(*OWN["samples"], *OWN["features"]),
        figure="figure_3",
    ),
    *COUNTED,
)
