"""The rules that judge FedCMOO's claims about two tasks in one picture; each can fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from papers.fedcmoo.pairs.numbers import DATA, GREY, HOW, LEVELS, METHODS, MIXED
from papers.kit.rules import Condition, Rule, all_of, of, rises, told, told_value, value

MARGIN = 1.0  # points: C4 on CIFAR-10, one seed; C12
FAILS = 30.0  # %: an accuracy at most this counts as a task that is not learnt, chance being 10 %
APART = 20.0  # points: tasks this far apart are unbalanced
FASTER = 1.1  # C14: so many times as many rounds without the least weight
ON, COLOUR = "mnist_fashion", "cifar10_mnist"
LATER = "The parts with dropout were added after shorter runs with it had been looked at."

#: Table 1, final test accuracy in %: data -> method -> first and second task.
TABLE_1 = {
    data: dict(zip(("fsmgda", "fedcmoo", "pref", "single"), rows, strict=True))
    for data, rows in {
        "mnist_fashion": ((93.0, 75.4), (95.5, 78.8), (94.0, 79.2), (97.0, 90.1)),
        "multi_mnist": ((92.3, 88.2), (94.4, 92.6), (93.8, 91.1), (95.4, 93.1)),
        "cifar10_mnist": ((58.2, 96.2), (57.4, 96.8), (63.6, 89.1), (64.9, 97.1)),
    }.items()
}
#: Every grey data set without dropout, then with it: its name, how, and both in words.
SETTINGS = [(data, how, DATA[data] + text) for how, text in HOW.items() for data in GREY]
COLUMNS = [*SETTINGS, (COLOUR, "", DATA[COLOUR])]


MEASURES = ("accuracy", *(f"rounds_{x}" for x in LEVELS))


def values(runs: Mapping[str, str], measures: Sequence[str], unit: str = " %") -> str:
    return ", ".join(
        f"{text} {' / '.join(told_value(f'{run}.{k}') for k in measures)}{unit}"
        for run, text in runs.items()
    )


def shown(data: str, how: str = "", measure: str = "") -> str:
    """A measure of the three methods on one data set, else both accuracies."""
    runs = {f"{data}_{m}{how}": text for m, text in METHODS.items()}
    if measure:
        return values(runs, (measure,), " %" if measure == "decline" else "")
    return values(runs, [accuracy(data, k) for k in (1, 2)])


def accuracy(data: str, task: int) -> str:
    """The accuracy on the larger set of pictures: those held out, of CIFAR-10."""
    return f"{'held_' if data == COLOUR else ''}accuracy_{task}"


def ahead(pair: str, text: str) -> dict[str, Condition]:
    return {
        f"{text}: higher at the end": of(f"{pair}.accuracy") > 0,
        f"{text}: earlier": all_of(*(of(f"{pair}.rounds_{x}") < 0 for x in LEVELS)),
    }


def in_order(data: str, how: str, task: int) -> Condition:
    order = sorted(METHODS, key=lambda m: TABLE_1[data][m][task - 1])
    return rises(*(f"{data}_{m}{how}.{accuracy(data, task)}" for m in order))


def preferred(how: str, text: str) -> dict[str, Condition]:
    """Pref best on the harder task, at a cost on the easier one, with more equal losses."""
    one, other = (f"{ON}{how}_pref_vs_{m}" for m in ("fedcmoo", "fsmgda"))
    return {
        f"best on Fashion-MNIST{text}": all_of(*(of(f"{p}.accuracy_2") > 0 for p in (one, other))),
        f"a cost on MNIST{text}": of(f"{one}.accuracy_1") < 0,
        f"a smaller ratio of losses{text}": of(f"{one}.loss_ratio") < 0,
    }


LEADS = {f"{data}{how}_fedcmoo_vs_fsmgda": text for data, how, text in SETTINGS}
C1 = Rule(
    {part: c for pair, text in LEADS.items() for part, c in ahead(pair, text).items()},
    "FedCMOO minus FSMGDA, at the end and to 60 and 75 %: "
    + "; ".join(
        f"{text}: {', '.join(told(f'{pair}.{k}') for k in MEASURES)}"
        for pair, text in LEADS.items()
    ),
    note=LATER,
)
C3 = Rule(
    {f"{text}, task {k}": in_order(data, how, k) for data, how, text in COLUMNS for k in (1, 2)},
    "; ".join(f"{text}: {shown(data, how)}" for data, how, text in COLUMNS),
    note=f"The columns with CIFAR-10 rest on one seed of a short run. {LATER}",
)
HARDER = [f"{COLOUR}_pref_vs_{m}.held_accuracy_1" for m in ("fedcmoo", "fsmgda")]
EASIER = f"{COLOUR}_pref_vs_fedcmoo.held_accuracy_2"
C4 = Rule(
    {part: c for how, text in HOW.items() for part, c in preferred(how, text).items()}
    | {
        "best on CIFAR-10": all_of(*(of(key) > MARGIN for key in HARDER)),
        "a cost on the digit over CIFAR-10": of(EASIER) < -MARGIN,
    },
    "; ".join(
        f"{DATA[ON]}{text}: {shown(ON, how)}; ratio of losses {shown(ON, how, 'loss_ratio')}"
        for how, text in HOW.items()
    )
    + f"; {DATA[COLOUR]}: {shown(COLOUR)}",
    note=f"CIFAR-10 is one seed. {LATER}",
)
LATE = {
    f"{text}{{}} to {x} %": f"{data}{how}_pref_vs_fedcmoo.rounds_{x}"
    for data, how, text in SETTINGS
    for x in LEVELS
}
C5 = Rule(
    {text.format(": later"): of(key) > 0 for text, key in LATE.items()},
    "FedCMOO-Pref minus FedCMOO: "
    + "; ".join(f"{text.format(',')}: {told(key)}" for text, key in LATE.items()),
    note=LATER,
)
C11 = Rule(
    {
        "Scalarized fails on Digit 1": of("mixed_scalarized.accuracy_1") < FAILS,
        "FSMGDA unbalanced the other way": of("mixed_fsmgda.gap") > APART,
        "FedCMOO best in its worse digit": (of("mixed_fedcmoo_vs_scalarized.worst") > 0)
        & (of("mixed_fedcmoo_vs_fsmgda.worst") > 0),
        "the half of the table with CIFAR-10 was not run": Condition(
            "the half with CIFAR-10, which was not run, so that this holds at most partly",
            (),
            lambda _: False,
        ),
    },
    values({f"mixed_{m}": text for m, text in MIXED.items()}, ("accuracy_1", "accuracy_2")),
    note="The paper does not define its squared loss.",
)
ONEWAY = {text: f"{ON}_{m}_oneway_vs_{m}.accuracy" for m, text in METHODS.items() if m != "fsmgda"}
C12 = Rule(
    {text: abs(value(key)) <= MARGIN for text, key in ONEWAY.items()},
    "; ".join(
        f"{text}: one-way minus two-way {told_value(key, '.2g')} points"
        for text, key in ONEWAY.items()
    ),
    note="One seed.",
)
FREE, MORE = f"{ON}_pref_free.rounds_", f"{ON}_pref_free_vs_pref.rounds_"
C14 = Rule(
    {
        f"faster to {x} %": value(f"{FREE}{x}")
        >= FASTER * (value(f"{FREE}{x}") - value(f"{MORE}{x}"))
        for x in LEVELS
    },
    lambda n: "; ".join(
        f"to {x} %: {n[f'{FREE}{x}'].value - n[f'{MORE}{x}'].value:.3g} rounds with, "
        f"{n[f'{FREE}{x}'].value:.3g} without"
        for x in LEVELS
    ),
    note="One seed; the difference is the rounds of the run with the least weight.",
)
C18 = Rule(
    {
        f"{DATA[data]}: {text}": condition
        for data in GREY
        for text, condition in {
            "FedCMOO below FedCMOO-Pref": of(f"{data}_pref_vs_fedcmoo.decline") > 0,
            "FedCMOO-Pref below FSMGDA": of(f"{data}_pref_vs_fsmgda.decline") < 0,
            "FedCMOO below FSMGDA": of(f"{data}_fedcmoo_vs_fsmgda.decline") < 0,
        }.items()
    },
    "; ".join(f"{DATA[data]}: {shown(data, measure='decline')}" for data in GREY),
)
