"""FedCMOO's claims about two tasks in one picture, and the values that its tables print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from papers.fedcmoo.common import GREY, METHODS, cmoo
from papers.fedcmoo.pairs import rules
from papers.fedcmoo.pairs.numbers import DATA, MIXED, STEP_SIZES, at_step
from papers.fedcmoo.pairs.rules import COLOUR, ON, TABLE_1, TABLE_4
from papers.kit.claims import Claim, PaperValue, Reading
from papers.kit.health import Needs
from papers.kit.rules import Rule

#: Table 2's first half, MultiMNIST: method -> accuracy of both digits in %.
TABLE_2 = {"scalarized": (10.5, 93.4), "fsmgda": (94.6, 17.7), "fedcmoo": (95.0, 70.3)}


#: What a run of the paper on the grey data sets has. Its rounds are not printed: those of its
#: authors' demo on MNIST + Fashion-MNIST are taken, and their default on CIFAR-10 + MNIST.
GREY_NEEDS = Needs(
    paper={
        "rounds": 300,
        "problem.clients": 100,
        "algorithm.participants": 10,
        "algorithm.local_steps": 10,
        "algorithm.batch_size": 128,
    }
)
COLOUR_NEEDS = Needs(paper={**GREY_NEEDS.paper, "rounds": 200})
AUTHORS, PRINTED = "the authors' network, with dropout", "the network as printed, without dropout"
EQUAL = "both methods at equal step sizes, with dropout"


def read_twice(
    rule: Callable[[str], Rule],
    runs: Callable[[str], list[str]],
    also: tuple[Reading, ...] = (),
    **said: Any,
) -> Claim:
    """A claim on the authors' network, and beside it on the network as the paper prints it."""
    printed = Reading(PRINTED, rule(""), tuple(runs("")), GREY_NEEDS)
    return cmoo(
        rule=rule("_dropout"),
        runs=tuple(runs("_dropout")),
        needs=GREY_NEEDS,
        reading=AUTHORS,
        readings=(printed, *also),
        **said,
    )


def grey(*methods: str) -> Callable[[str], list[str]]:
    """The runs of some methods on both grey data sets, trained in one way."""
    return lambda how: [f"{data}_{m}{how}" for data in GREY for m in methods]


def stepped(*methods: str) -> list[str]:
    """The runs of some methods at the step sizes of all."""
    return [at_step(m, lr) for m in methods for _, lr in STEP_SIZES]


def with_single(how: str) -> list[str]:
    return grey(*METHODS)(how) + grey("single_1", "single_2")("")


CLAIMS = (
    read_twice(
        rules.c1,
        grey("fsmgda", "fedcmoo"),
        id="fedcmoo/C1",
        place="Figures 1, 8, 9",
        wording="FedCMOO reaches a higher mean test accuracy than FSMGDA, and reaches it earlier.",
        figure="dropout",
        also=(
            Reading(EQUAL, rules.at_equal_steps(), tuple(stepped("fsmgda", "fedcmoo")), GREY_NEEDS),
        ),
    ),
    read_twice(
        rules.c3,
        grey(*METHODS),
        id="fedcmoo/C3",
        place="Table 1, grey pictures",
        wording="FedCMOO has the highest final accuracy on both digits of MultiMNIST and on the "
        "digit of MNIST + Fashion-MNIST. FedCMOO-Pref has the highest on the item of clothing. "
        "FSMGDA has the lowest on all four tasks.",
        figure="tasks",
    ),
    read_twice(
        rules.c4,
        lambda how: [f"{ON}_{m}{how}" for m in METHODS],
        id="fedcmoo/C4",
        place="Table 1, MNIST + Fashion-MNIST",
        wording="With a uniform preference, FedCMOO-Pref is best on the harder task, "
        "Fashion-MNIST, at some cost on the easier one.",
        figure="tasks",
    ),
    read_twice(
        rules.c5,
        grey("fedcmoo", "pref"),
        id="fedcmoo/C5",
        place="Figures 1, 8",
        wording="FedCMOO-Pref needs more rounds than FedCMOO.",
        figure="dropout",
    ),
    cmoo(
        id="fedcmoo/C11",
        place="Table 2",
        wording="One task has a squared loss, the other the negative log-likelihood. Scalarized "
        "then trains only one task, and FSMGDA mainly the other one. FedCMOO has the best accuracy "
        "in its worse task.",
        rule=rules.C11,
        runs=tuple(f"mixed_{m}" for m in MIXED),
        needs=replace(GREY_NEEDS, dead=("mixed_*",)),  # a task that is not trained is the claim
        reading=AUTHORS,
    ),
    cmoo(
        id="fedcmoo/C12",
        place="Text beside Algorithm 6",
        wording="One-way and two-way compression of the Jacobian lead to nearly the same final "
        "accuracy.",
        rule=rules.C12,
        runs=tuple(f"{ON}_{m}{x}_dropout" for m in ("fedcmoo", "pref") for x in ("", "_oneway")),
        needs=GREY_NEEDS,
        reading=AUTHORS,
    ),
    read_twice(
        rules.c14,
        lambda how: [f"{ON}_pref{how}", f"{ON}_pref_free{how}"],
        id="fedcmoo/C14",
        place="Text beside Algorithm 8",
        wording="A small least weight makes FedCMOO-Pref faster.",
    ),
    read_twice(
        rules.c17,
        grey(*METHODS),
        id="fedcmoo/C17",
        place="Figure 8, caption",
        wording="FedCMOO-Pref with equal preference trains the tasks more evenly than FedCMOO and "
        "FSMGDA (Table 1).",
        figure="tasks",
    ),
    read_twice(
        rules.c18,
        with_single,
        id="fedcmoo/C18",
        place="Table 4, grey pictures",
        wording="The mean relative loss of accuracy against training in one task alone is smallest "
        "for FedCMOO and largest for FSMGDA (MultiMNIST, MNIST + Fashion-MNIST).",
        figure="tasks",
    ),
    cmoo(
        id="fedcmoo/C19",
        place="Table 1, CIFAR-10 + MNIST",
        wording="On CIFAR-10 with a digit, FedCMOO-Pref is best on the object at some cost on the "
        "digit. FSMGDA is ahead of FedCMOO on the object and behind it on the digit.",
        rule=rules.C19,
        runs=tuple(f"{COLOUR}_{m}" for m in METHODS),
        figure="tasks",
        needs=COLOUR_NEEDS,
        reading=PRINTED,
    ),
)


def printed() -> list[PaperValue]:
    """Tables 1, 2 and 4, as far as there are runs, on the authors' network."""
    found = []
    for data in GREY:
        for m, both in TABLE_1[data].items():
            run = f"{data}_single" if m == "single" else f"{data}_{m}_dropout"
            for k, x in enumerate(both, 1):
                text = f"{DATA[data]}, {METHODS.get(m, 'one task alone')}, task {k}"
                found.append(value(text, f"{run}.accuracy_{k}", x, 1))
        for m, x in TABLE_4[data].items():
            text = f"{DATA[data]}, {METHODS[m]}, Delta_M"
            found.append(value(text, f"{data}_{m}_dropout.decline", x, 4))
    for m, both in TABLE_2.items():
        for k, x in enumerate(both, 1):
            text = f"mixed losses, {MIXED[m]}, Digit {k}"
            found.append(value(text, f"mixed_{m}.accuracy_{k}", x, 2))
    return found


def value(label: str, key: str, paper: float, table: int) -> PaperValue:
    """A number of the paper in %: accuracies to a tenth, Table 4's Delta_M to a hundredth."""
    text, rtol = (f"{paper:.2f} %", 0.25) if table == 4 else (f"{paper:.1f} %", 0.03)
    return PaperValue(label, key, paper, text, f"C, Table {table}", rtol)


PAPER_VALUES = tuple(printed())
