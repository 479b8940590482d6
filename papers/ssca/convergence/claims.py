"""What SSCA's Figures 2 and 3 and its counts are said to show, and what judges it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
from papers.kit.quantities import Label, Query, names_of
from papers.kit.rules import EXCHANGED, Condition, Control, Rule, Term, least, near, of, value
from papers.ssca import leaks
from papers.ssca.common import LEVELS, NUMBERS, SPLITS
from papers.ssca.convergence.runs import DEFAULTS

BATCHES = (1, 10, 100)
RATES = (0.1, 0.3, 1.0, 3.0)
FALLS = (0.0, 0.3)
SEARCHED = ("*_sgd*_a3_p*",)  # the largest step of the grid may diverge: it is not chosen

names = partial(names_of, DEFAULTS)
grid = partial(names, a=RATES, p=FALLS)
OWN = {split: names(split=split, method="ssca", B=BATCHES) for split in SPLITS}
LIMITS = names(split=SPLITS, method="limit", B=BATCHES, U=LEVELS)

NEAR_LINEAR = 0.05  # C8: how far the growth of the server's work may be from proportional
ALIKE = 1.5  # C8: so many times the work of SGD's clients is of the same order
ALGORITHMS = (1, 2, 3, 4)


def by_number(condition: Callable[[int], Condition], *numbers: int) -> dict[str, Condition]:
    """A condition for each of some algorithms."""
    return {f"Algorithm {number}": condition(number) for number in numbers}


def planted(measure: str, number: float) -> dict[Query, float]:
    """A value that is read in place of a measure of every algorithm."""
    return {Query.of(measure, algorithm=k): number for k in ALGORITHMS}


C8 = Rule(
    {
        f"the work of the server is proportional to d within {100 * NEAR_LINEAR:g} %": by_number(
            lambda k: near(Query.of("linearity", algorithm=k), 1, NEAR_LINEAR), 1, 2
        ),
        f"the work of a client is at most {ALIKE:g} times that of SGD": by_number(
            lambda k: value("client_ratio", algorithm=k) <= ALIKE, *ALGORITHMS
        ),
    },
    note="The messages of SGD also carry its step size, so those of SSCA may be shorter.",
    control=Control(
        "server work that grows like the square of d, and clients that do twice the work of SGD",
        planted("linearity", 2.0) | planted("client_ratio", 2.0),
    ),
)
C12 = Rule(
    {
        "the messages of a round are those that the paper lists": by_number(
            lambda k: value("wrong_messages", algorithm=k) <= 0, *ALGORITHMS
        ),
        "the number of bits that the runs send follows from the list": by_number(
            lambda k: value("bits_off", algorithm=k) <= 0, *ALGORITHMS
        ),
    },
    control=Control("one message more than the list has", planted("wrong_messages", 1.0)),
)
ERROR = Query.of("error_B1", method="leak")
LEFT = {f"B = {b}": Query.of(f"free_B{b}", method="leak") for b in leaks.BATCHES}
C13 = Rule(
    {
        "a single sample is recovered only with an error above 0.01": least(ERROR) > 0.01,
        "a batch can change in some direction without changing its message": {
            text: least(free) >= 1 for text, free in LEFT.items()
        },
    },
    note="The paper calls a message safe if its equations have infinitely many solutions. We "
    "prove that those of a single sample have only one solution. Larger batches are tried on small "
    "networks with known labels.",
    control=Control(
        "messages that consist of the samples", dict.fromkeys((ERROR, *LEFT.values()), 0.0)
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
            *names(split=SPLITS, method="ssca", B=1),
            *grid(split=SPLITS, method="sgd", B=1),
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
STORED = "a start uniform within 1 / sqrt(inputs)"
WIDE = "He's start, one sample a client, ten seeds"

Parts = dict[str, Condition]


def lower_with_batch(measure: str) -> Parts:
    """A larger batch below the next smaller one, by some measure, for all algorithms."""
    comparisons = {}
    for split, (free, limited) in NUMBERS.items():
        kinds: dict[str, dict[str, Label]] = {f"Algorithm {free}": {"method": "ssca"}}
        if measure == "area":  # the cost of the constrained algorithms is held at U
            for u in LEVELS:
                kinds[f"Algorithm {limited}, U = {u:g}"] = {"method": "limit", "U": u}
        for text, labels in kinds.items():
            for small, large in STEPS:
                apart = of(measure, split=split, **labels, B=large, minus=f"B{small}")
                comparisons[f"{text}, B = {large} against B = {small}"] = apart < 0
    return comparisons


def against_sgd(cases: dict[str, Term], note: str = "") -> Rule:
    """SSCA below SGD, on average over the rounds."""
    lower = {text: apart < 0 for text, apart in cases.items()}
    return Rule(
        {"SSCA's mean cost over the rounds is below SGD's": lower}, note=note, control=EXCHANGED
    )


def one_step(split: str, *batches: int, start: str = "usual", note: str = "") -> Rule:
    """SSCA below SGD with one step a round, batch by batch."""
    apart = partial(of, "area", start=start, split=split, method="ssca", minus="sgd")
    return against_sgd({f"B = {b}": apart(B=b) for b in batches}, note)


def from_he(split: str) -> Reading:
    """The same from a wider start, where the printed setting does not say which."""
    cell: dict[str, Label] = {"start": "he", "split": split, "B": 1}
    runs = names(**cell, method="ssca") + grid(**cell, method="sgd")
    return Reading(WIDE, one_step(split, 1, start="he"), runs, NEEDS)


def alike(batch: int) -> Condition:
    """The splits' difference within a share of Algorithm 1's mean cost."""
    cost = of("area", split="samples", method="ssca", B=batch)
    return abs(of(splits_apart(batch))) < CLOSE * cost


def splits_apart(batch: int) -> Query:
    """The mean cost of Algorithm 3 minus that of Algorithm 1."""
    return Query.of("area", split="features", method="ssca", B=batch, minus="samples")


C1 = Rule(
    {
        "the larger batch has the lower mean cost over the rounds": lower_with_batch("area"),
        "the larger batch has the lower cost at round 100": lower_with_batch("cost_100"),
    },
    note="Early rounds are not compared, because the largest batch overshoots in the first ten.",
    control=EXCHANGED,
)
C2, C4 = (one_step(split, *BATCHES, note=OPEN) for split in SPLITS)
C3 = against_sgd(
    {
        f"B = {b} against B = {half}, E = 2": of(
            "area", split="samples", method="ssca", B=b, minus="sgd2"
        )
        for b, half in TWICE.items()
    }
)
OTHER_BATCH = Query.of("area", split="samples", method="ssca", B=10, minus="B1")
C5 = Rule(
    {
        f"the mean costs of both splits over the rounds differ by less than {100 * CLOSE:g} %": {
            f"B = {b}": alike(b) for b in BATCHES
        }
    },
    control=Control(
        "the effect of another batch instead of another split",
        {splits_apart(b): OTHER_BATCH for b in BATCHES},
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
        runs=(*OWN["samples"], *grid(split="samples", method="sgd", B=BATCHES)),
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
        runs=names(split="samples", method="ssca", B=[*TWICE])
        + grid(split="samples", method="sgd2", B=[*TWICE.values()]),
        figure="figure_2",
        needs=NEEDS,
    ),
    claim(
        id="ssca/C4",
        place="Figure 3",
        wording="With features split, SSCA converges faster than SGD on the same batch.",
        rule=C4,
        runs=(*OWN["features"], *grid(split="features", method="sgd", B=BATCHES)),
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
