"""FedCMOO's claims about two tasks in one picture, and the values that its tables print."""

from __future__ import annotations

from collections.abc import Callable

from fedlib.claims import Claim, Numbers, Outcome, PaperValue
from fedlib.studies import cmoo_pairs_rules as rules
from fedlib.studies.cmoo_pairs_numbers import DATA, GREY, HOW, METHODS, MIXED
from fedlib.studies.cmoo_pairs_rules import ON, TABLE_1

__all__ = ["CLAIMS", "PAPER_VALUES", "TABLE_2", "TABLE_4"]

#: Table 2's first half, MultiMNIST: method -> accuracy of both digits in %.
TABLE_2 = {"scalarized": (10.5, 93.4), "fsmgda": (94.6, 17.7), "fedcmoo": (95.0, 70.3)}
#: Table 4, Delta_M in %: data -> method.
TABLE_4 = {
    "mnist_fashion": {"fsmgda": 10.22, "fedcmoo": 7.04, "pref": 7.60},
    "multi_mnist": {"fsmgda": 4.26, "fedcmoo": 0.79, "pref": 1.91},
    "cifar10_mnist": {"fsmgda": 5.63, "fedcmoo": 5.93, "pref": 5.12},
}


def grey_runs(*methods: str) -> tuple[str, ...]:
    """Names of runs on both grey sets, without dropout and with it."""
    return tuple(f"{data}_{m}{how}" for how in HOW for data in GREY for m in methods)


def claim(
    number: str,
    place: str,
    wording: str,
    measure: str,
    rule: str,
    runs: tuple[str, ...],
    judged: Callable[[Numbers], Outcome],
    figure: str = "",
) -> Claim:
    """A claim of the FedCMOO paper."""
    return Claim(f"fedcmoo/{number}", "C", place, wording, measure, rule, runs, judged, figure)


COLOUR = tuple(f"cifar10_mnist_{m}" for m in METHODS)
LATE = "mean over the models evaluated in the last tenth of the rounds"
BOTH = "3 seeds, 100 rounds, without dropout and with that of the authors' code"
LATER = "The parts with dropout were added after shorter runs with it had been looked at."
CROSSING = "Rounds until the mean test accuracy of the two tasks reaches 60 and 75 %, T if never"

CLAIMS = (
    claim(
        "C1",
        "Figures 1, 8, 9",
        "FedCMOO reaches a higher mean test accuracy than FSMGDA, and reaches it earlier.",
        f"Final mean test accuracy ({LATE}) and rounds to 60 and 75 %, T if never; MultiMNIST and "
        f"MNIST + Fashion-MNIST, {BOTH}.",
        "For each of the two data sets, differences paired by seed: (1) interval of the difference "
        "of the final accuracies above 0; (2) intervals of the differences of the rounds to 60 and "
        "to 75 % both below 0. (3), (4) The same with dropout; the rule was extended to these runs "
        "after those without it, and shorter ones with it, had been looked at.",
        grey_runs("fsmgda", "fedcmoo"),
        rules.c1,
        figure="curves",
    ),
    claim(
        "C3",
        "Table 1",
        "Final accuracy of each task, and with it the order of the three methods: FedCMOO first "
        "on both digits of MultiMNIST, on the digit beside an item and on the digit over CIFAR-10, "
        "FedCMOO-Pref first on Fashion-MNIST and on CIFAR-10, where FSMGDA is before FedCMOO.",
        f"Final test accuracy ({LATE}) of each task, {BOTH}; CIFAR-10 + MNIST: one seed and a "
        "short run, on the 5,000 training pictures that no client has.",
        "Six columns of the table, those of the grey sets without dropout and with it. A column "
        "holds if the means of the three methods have the paper's order; those with CIFAR-10 rest "
        f"on one seed of a short run. {LATER}",
        (*grey_runs(*METHODS), *COLOUR),
        rules.c3,
        figure="tasks",
    ),
    claim(
        "C4",
        "Table 1",
        "With uniform preference FedCMOO-Pref is best on the harder task, Fashion-MNIST and "
        "CIFAR-10, at some cost on the easier one.",
        f"Final test accuracies and ratio of the final test losses ({LATE}), MNIST + "
        f"Fashion-MNIST, {BOTH}; CIFAR-10 + MNIST, one seed, a short run, 5,000 held pictures.",
        "Differences paired by seed. MNIST + Fashion-MNIST, without dropout and with it: (1) "
        "accuracy on the item above those of both other methods, (2) on the digit below FedCMOO's, "
        "(3) loss of the item over loss of the digit below FedCMOO's, all with intervals off 0. "
        "CIFAR-10 + MNIST, one seed: (4) accuracy on the object more than 1 point above both "
        "others, (5) on the digit more than 1 point below FedCMOO's. "
        f"{LATER}",
        (*(f"{ON}_{m}{how}" for how in HOW for m in METHODS), *COLOUR),
        rules.c4,
        figure="tasks",
    ),
    claim(
        "C5",
        "Figures 1, 8",
        "FedCMOO-Pref needs more rounds than FedCMOO.",
        f"{CROSSING}; MultiMNIST and MNIST + Fashion-MNIST, {BOTH}.",
        "For each data set, without dropout and with it, and each level: the interval of the "
        f"difference of the rounds, paired by seed, lies above 0. {LATER}",
        grey_runs("fedcmoo", "pref"),
        rules.c5,
        figure="curves",
    ),
    claim(
        "C11",
        "Table 2",
        "With a squared loss for one task and NLL for the other Scalarized fails on one task, "
        "FSMGDA on the other, and FedCMOO has the best accuracy in its worse task.",
        f"Final test accuracies ({LATE}) on MultiMNIST, squared loss for Digit 1; 60 rounds, 3 "
        "seeds. The half with CIFAR-10 was not run.",
        "(1) Interval of Scalarized's accuracy on Digit 1 below 30 %. (2) FSMGDA's accuracy on "
        "Digit 1 more than 20 points above that on Digit 2, interval above 20. (3) The smaller of "
        "FedCMOO's two accuracies above that of both others, intervals of the paired differences "
        "above 0. At most partly: one of two data sets, and the paper does not define its loss.",
        tuple(f"mixed_{m}" for m in MIXED),
        rules.c11,
        figure="mixed",
    ),
    claim(
        "C12",
        "Text beside Algorithm 6",
        "One-way and two-way compression of the Jacobian give nearly the same final accuracy.",
        f"Final mean test accuracy ({LATE}), MNIST + Fashion-MNIST, one seed.",
        "On one seed: for FedCMOO and for FedCMOO-Pref the final accuracies of the two differ by "
        "at most 1 point.",
        tuple(f"{ON}_{m}{x}" for m in ("fedcmoo", "pref") for x in ("", "_oneway")),
        rules.c12,
        figure="variants",
    ),
    claim(
        "C14",
        "Text beside Algorithm 8",
        "A small least weight makes FedCMOO-Pref faster.",
        f"{CROSSING}; MNIST + Fashion-MNIST, one seed, with least weight 0.1 and without.",
        "On one seed: for each level the run without takes at least 1.1 times as many rounds.",
        (f"{ON}_pref", f"{ON}_pref_free"),
        rules.c14,
        figure="variants",
    ),
    claim(
        "C18",
        "Table 4",
        "The mean relative loss of accuracy against training in one task alone is smallest for "
        "FedCMOO and largest for FSMGDA (MultiMNIST, MNIST + Fashion-MNIST).",
        f"Delta_M of the final test accuracies ({LATE}) with single-task runs of the same seed and "
        "data, 3 seeds, 100 rounds, no dropout; FedCMOO-Pref's step sizes for the single tasks.",
        "For each of the two data sets: FedCMOO below FedCMOO-Pref, FedCMOO-Pref below FSMGDA, "
        "FedCMOO below FSMGDA; intervals of the differences paired by seed off 0.",
        tuple(f"{data}_{m}" for data in GREY for m in (*METHODS, "single_1", "single_2")),
        rules.c18,
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
