"""FedCMOO's claims about two tasks in one picture, and the values that its tables print."""

from __future__ import annotations

from papers.fedcmoo.common import cmoo
from papers.fedcmoo.pairs import rules
from papers.fedcmoo.pairs.numbers import DATA, GREY, HOW, METHODS, MIXED
from papers.fedcmoo.pairs.rules import ON, TABLE_1
from papers.kit.claims import PaperValue

#: Table 2's first half, MultiMNIST: method -> accuracy of both digits in %.
TABLE_2 = {"scalarized": (10.5, 93.4), "fsmgda": (94.6, 17.7), "fedcmoo": (95.0, 70.3)}
#: Table 4, Delta_M in %: data -> method.
TABLE_4 = {
    "mnist_fashion": {"fsmgda": 10.22, "fedcmoo": 7.04, "pref": 7.60},
    "multi_mnist": {"fsmgda": 4.26, "fedcmoo": 0.79, "pref": 1.91},
    "cifar10_mnist": {"fsmgda": 5.63, "fedcmoo": 5.93, "pref": 5.12},
}


def grey_runs(*methods: str) -> tuple[str, ...]:
    return tuple(f"{data}_{m}{how}" for how in HOW for data in GREY for m in methods)


COLOUR = tuple(f"cifar10_mnist_{m}" for m in METHODS)
LATE = "mean over the models evaluated in the last tenth of the rounds"
BOTH = "3 seeds, 100 rounds, without dropout and with that of the authors' code"
CROSSING = (
    "Rounds until the mean test accuracy of the two tasks reaches 60 and 75 % (rounds_60, "
    "rounds_75), T if never"
)
PAIRED = "a_vs_b is a minus b, paired by seed"

CLAIMS = (
    cmoo(
        id="fedcmoo/C1",
        place="Figures 1, 8, 9",
        wording="FedCMOO reaches a higher mean test accuracy than FSMGDA, and reaches it earlier.",
        measure=f"Final mean test accuracy ({LATE}) and rounds to 60 and 75 % (rounds_60, "
        f"rounds_75), T if never; MultiMNIST and MNIST + Fashion-MNIST, {BOTH}; {PAIRED}.",
        rule=rules.C1,
        runs=grey_runs("fsmgda", "fedcmoo"),
        figure="curves",
    ),
    cmoo(
        id="fedcmoo/C3",
        place="Table 1",
        wording="Final accuracy of each task, and with it the order of the three methods: FedCMOO "
        "first on both digits of MultiMNIST, on the digit beside an item and on the digit over "
        "CIFAR-10, FedCMOO-Pref first on Fashion-MNIST and on CIFAR-10, where FSMGDA is before "
        "FedCMOO.",
        measure=f"Final test accuracy ({LATE}) of each task, {BOTH}; CIFAR-10 + MNIST: one seed "
        "and a short run, on the 5,000 training pictures that no client has (held).",
        rule=rules.C3,
        runs=(*grey_runs(*METHODS), *COLOUR),
        figure="tasks",
    ),
    cmoo(
        id="fedcmoo/C4",
        place="Table 1",
        wording="With uniform preference FedCMOO-Pref is best on the harder task, Fashion-MNIST "
        "and CIFAR-10, at some cost on the easier one.",
        measure="Final test accuracies and ratio of the final test losses, item by digit "
        f"({LATE}), MNIST + Fashion-MNIST (1: digit, 2: item), {BOTH}; CIFAR-10 + MNIST (1: "
        f"object, 2: digit), one seed, a short run, 5,000 held pictures; {PAIRED}.",
        rule=rules.C4,
        runs=(*(f"{ON}_{m}{how}" for how in HOW for m in METHODS), *COLOUR),
        figure="tasks",
    ),
    cmoo(
        id="fedcmoo/C5",
        place="Figures 1, 8",
        wording="FedCMOO-Pref needs more rounds than FedCMOO.",
        measure=f"{CROSSING}; MultiMNIST and MNIST + Fashion-MNIST, {BOTH}; {PAIRED}.",
        rule=rules.C5,
        runs=grey_runs("fedcmoo", "pref"),
        figure="curves",
    ),
    cmoo(
        id="fedcmoo/C11",
        place="Table 2",
        wording="With a squared loss for one task and NLL for the other Scalarized fails on one "
        "task, FSMGDA on the other, and FedCMOO has the best accuracy in its worse task.",
        measure=f"Final test accuracies ({LATE}) on MultiMNIST, squared loss for Digit 1; the "
        "first minus the second (gap) and the smaller of the two (worst); 60 rounds, 3 seeds; "
        f"{PAIRED}. The half with CIFAR-10 was not run.",
        rule=rules.C11,
        runs=tuple(f"mixed_{m}" for m in MIXED),
        figure="mixed",
    ),
    cmoo(
        id="fedcmoo/C12",
        place="Text beside Algorithm 6",
        wording="One-way and two-way compression of the Jacobian give nearly the same final "
        "accuracy.",
        measure=f"Final mean test accuracy ({LATE}), MNIST + Fashion-MNIST, one seed; {PAIRED}.",
        rule=rules.C12,
        runs=tuple(f"{ON}_{m}{x}" for m in ("fedcmoo", "pref") for x in ("", "_oneway")),
        figure="variants",
    ),
    cmoo(
        id="fedcmoo/C14",
        place="Text beside Algorithm 8",
        wording="A small least weight makes FedCMOO-Pref faster.",
        measure=f"{CROSSING}; MNIST + Fashion-MNIST, one seed, with least weight 0.1 (pref) and "
        f"without (pref_free); {PAIRED}.",
        rule=rules.C14,
        runs=(f"{ON}_pref", f"{ON}_pref_free"),
        figure="variants",
    ),
    cmoo(
        id="fedcmoo/C18",
        place="Table 4",
        wording="The mean relative loss of accuracy against training in one task alone is smallest "
        "for FedCMOO and largest for FSMGDA (MultiMNIST, MNIST + Fashion-MNIST).",
        measure=f"Delta_M of the final test accuracies ({LATE}) with single-task runs of the same "
        "seed and data (decline), 3 seeds, 100 rounds, no dropout; FedCMOO-Pref's step sizes for "
        f"the single tasks; {PAIRED}.",
        rule=rules.C18,
        runs=tuple(f"{data}_{m}" for data in GREY for m in (*METHODS, "single_1", "single_2")),
        figure="tasks",
    ),
)


def printed() -> list[PaperValue]:
    """Tables 1, 2 and 4, as far as there are runs: CIFAR-10 has no single-task and mixed ones."""
    found = []
    runs = [(data, how, text) for data in GREY for how, text in HOW.items()]
    for data, how, said in [*runs, ("cifar10_mnist", "", " (short run)")]:
        for m, both in TABLE_1[data].items():
            for k, x in enumerate(both, 1):
                if m == "single" and (how or data not in GREY):
                    continue
                text = f"{DATA[data]}, {METHODS.get(m, 'one task alone')}, task {k}{said}"
                found.append(value(text, f"{data}_{m}{how}.accuracy_{k}", x, 1))
    for m, both in TABLE_2.items():
        for k, x in enumerate(both, 1):
            text = f"mixed losses, {MIXED[m]}, Digit {k}"
            found.append(value(text, f"mixed_{m}.accuracy_{k}", x, 2))
    for data in GREY:
        for m, x in TABLE_4[data].items():
            text = f"{DATA[data]}, {METHODS[m]}, Delta_M"
            found.append(value(text, f"{data}_{m}.decline", x, 4))
    return found


def value(label: str, key: str, paper: float, table: int) -> PaperValue:
    """A number of the paper in %: accuracies to a tenth, Table 4's Delta_M to a hundredth."""
    text, rtol = (f"{paper:.2f} %", 0.25) if table == 4 else (f"{paper:.1f} %", 0.03)
    return PaperValue(label, key, paper, text, f"C, Table {table}", rtol)


PAPER_VALUES = tuple(printed())
