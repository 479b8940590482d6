"""FedCMOO's claims about two tasks in one picture, and the values that its tables print.

The authors' network has dropout, the paper's text has none: rules about the grey data sets are
made for both readings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from papers.fedcmoo.common import GREY, METHODS, NOTHING, cmoo
from papers.fedcmoo.pairs.quantities import END, LEVELS
from papers.fedcmoo.pairs.runs import DATA, DEFAULTS, MIXED, STEP_SIZES, stepped
from papers.kit.claims import Claim, PaperValue, Reading
from papers.kit.health import Needs
from papers.kit.quantities import Label, Labels, Query, name_of, names_of
from papers.kit.rules import Condition, Control, Rule, Size, Term, near, of

MARGIN = 1.0  # points: C12, a third of what Table 1 has between FedCMOO and FSMGDA on that set
ON = "mnist_fashion"
COLOUR = "cifar10_mnist"
GUARDED = (
    "As in the authors' code, FedCMOO-Pref evaluates its losses without dropout and resets the "
    "model when the loss grows by half, as the test losses of the other two methods never do. The "
    "linear program is the paper's; that of the code has other constraints in descent mode."
)

#: Table 1, final test accuracy in %: data -> method -> first and second task.
TABLE_1 = {
    data: dict(zip(("fsmgda", "fedcmoo", "pref", "single"), rows, strict=True))
    for data, rows in {
        "mnist_fashion": ((93.0, 75.4), (95.5, 78.8), (94.0, 79.2), (97.0, 90.1)),
        "multi_mnist": ((92.3, 88.2), (94.4, 92.6), (93.8, 91.1), (95.4, 93.1)),
        "cifar10_mnist": ((58.2, 96.2), (57.4, 96.8), (63.6, 89.1), (64.9, 97.1)),
    }.items()
}
#: Table 4, Delta_M in %: data -> method.
TABLE_4 = {
    "mnist_fashion": {"fsmgda": 10.22, "fedcmoo": 7.04, "pref": 7.60},
    "multi_mnist": {"fsmgda": 4.26, "fedcmoo": 0.79, "pref": 1.91},
    "cifar10_mnist": {"fsmgda": 5.63, "fedcmoo": 5.93, "pref": 5.12},
}
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
AUTHORS = "the authors' network, with dropout"
AT_DEMO = f"{AUTHORS}, after {END} rounds as in their demo"
AT_END = f"{AUTHORS}, after 500 rounds as in Figure 2"
#: What ends the name of a measure: of the round in which the authors' demo ends, or of the last.
DEMO = f"_{END}"
LAST = ""
PRINTED = "the network as printed, without dropout"
EQUAL = "both methods at equal step sizes, with dropout"


#: The three comparisons of two methods.
FIRST = ("fedcmoo", "fsmgda")
BALANCED = ("pref", "fsmgda")
STEERED = ("pref", "fedcmoo")
Pair = tuple[str, str]

names = partial(names_of, DEFAULTS)


def minus(measure: str, data: str, pair: Pair, dropout: bool, **labels: Label) -> Query:
    """A measure of the first method of a pair minus that of the second."""
    ours, theirs = pair
    run: Labels = {"data": data, "method": ours, "dropout": dropout, "minus": theirs}
    return Query.of(measure, **run, **labels)


def gap(measure: str, data: str, pair: Pair, dropout: bool) -> Term:
    """The same as a term of a condition."""
    return of(minus(measure, data, pair, dropout))


def nothing_of_three(*measures: str, dropout: bool) -> Control:
    """Null data for all three comparisons: each has another method, so that all could pass."""
    methods = {FIRST: "fedcmoo", BALANCED: "pref", STEERED: "fsmgda"}
    instead = {
        minus(measure, data, pair, dropout): minus(measure, data, (method, "nothing"), dropout)
        for measure in measures
        for data in GREY
        for pair, method in methods.items()
    }
    return Control(NOTHING.what, instead)


def place_of(data: str, pair: Pair) -> str:
    """Where Table 1 or 4 has the difference of two methods."""
    return f"{DATA[data]}, {' minus '.join(METHODS[name] for name in pair)}"


def when(at: str) -> str:
    """The time of a measure in words, before "accuracy"."""
    return "accuracy" if at == LAST else f"accuracy after {END} rounds"


def sizes(data: str, dropout: bool, pair: Pair, *tasks: int, at: str = LAST) -> tuple[Size, ...]:
    """What Table 1 has between two methods, in single tasks; of no task, in their mean."""
    ours, theirs = (TABLE_1[data][name] for name in pair)
    where = place_of(data, pair)
    if not tasks:
        printed = round((sum(ours) - sum(theirs)) / 2, 3)
        return (Size(minus(f"accuracy{at}", data, pair, dropout), printed, where),)
    return tuple(
        Size(
            minus(f"accuracy_{task}{at}", data, pair, dropout),
            round(ours[task - 1] - theirs[task - 1], 2),
            f"{where}, task {task}",
        )
        for task in tasks
    )


def declines(data: str, dropout: bool, pair: Pair) -> Size:
    """What Table 4 has between two methods."""
    ours, theirs = (TABLE_4[data][name] for name in pair)
    query = minus("decline", data, pair, dropout)
    return Size(query, round(ours - theirs, 2), place_of(data, pair))


def c1(dropout: bool, at: str) -> Rule:
    """FedCMOO ahead of FSMGDA, at the end and in reaching an accuracy."""
    return Rule(
        {
            f"FedCMOO's mean {when(at)} exceeds FSMGDA's": {
                text: gap(f"accuracy{at}", data, FIRST, dropout) > 0 for data, text in GREY.items()
            },
            "FedCMOO reaches an accuracy earlier than FSMGDA": {
                f"{text}, {level} %": gap(f"rounds_{level}", data, FIRST, dropout) < 0
                for data, text in GREY.items()
                for level in LEVELS
            },
        },
        note="Every run reaches both accuracies.",
        control=NOTHING,
        sizes=tuple(size for data in GREY for size in sizes(data, dropout, FIRST, at=at)),
    )


def at_equal_steps() -> Rule:
    """C1's first part where both methods have the same step sizes, one pair after another."""
    return Rule(
        {
            "FedCMOO's final mean accuracy exceeds FSMGDA's": {
                f"client step size {lr:g}": of(minus("accuracy", ON, FIRST, dropout=True, lr=lr))
                > 0
                for _, lr in STEP_SIZES
            }
        },
        note="The three values are the paper's step sizes of FSMGDA, FedCMOO-Pref and FedCMOO. We "
        "tried them on MNIST + Fashion-MNIST only.",
        control=Control(
            "training on the plain average instead of FSMGDA",
            labels={"minus": {"fsmgda": "scalarized"}},
        ),
    )


def as_in_table_1(data: str, task: int, dropout: bool, at: str) -> Condition:
    """Whether FedCMOO and FedCMOO-Pref are ordered as Table 1 has them."""
    printed = TABLE_1[data]
    apart = gap(f"accuracy_{task}{at}", data, STEERED, dropout)
    higher = printed["pref"][task - 1] > printed["fedcmoo"][task - 1]
    return apart > 0 if higher else apart < 0


def c3(dropout: bool, at: str) -> Rule:
    """The order of all three methods in each task."""

    def cells(pair: Pair) -> dict[str, Condition]:
        return {
            f"{text}, task {task}": gap(f"accuracy_{task}{at}", data, pair, dropout) > 0
            for data, text in GREY.items()
            for task in (1, 2)
        }

    return Rule(
        {
            f"FedCMOO's {when(at)} exceeds FSMGDA's": cells(FIRST),
            f"FedCMOO-Pref's {when(at)} exceeds FSMGDA's": cells(BALANCED),
            f"FedCMOO and FedCMOO-Pref are ordered in {when(at)} as in Table 1": {
                f"{text}, task {task}": as_in_table_1(data, task, dropout, at)
                for data, text in GREY.items()
                for task in (1, 2)
            },
        },
        note=GUARDED if dropout else "",
        control=nothing_of_three(*(f"accuracy_{task}{at}" for task in (1, 2)), dropout=dropout),
        sizes=tuple(
            size
            for data in GREY
            for pair in (FIRST, BALANCED, STEERED)
            for size in sizes(data, dropout, pair, 1, 2, at=at)
        ),
    )


def c4(dropout: bool, at: str) -> Rule:
    """FedCMOO-Pref best on the harder task, at some cost on the easier one."""
    return Rule(
        {
            f"FedCMOO-Pref's {when(at)} on Fashion-MNIST is higher": {
                f"against {METHODS[pair[1]]}": gap(f"accuracy_2{at}", ON, pair, dropout) > 0
                for pair in (STEERED, BALANCED)
            },
            f"FedCMOO-Pref's {when(at)} on MNIST is lower than FedCMOO's": gap(
                f"accuracy_1{at}", ON, STEERED, dropout
            )
            < 0,
        },
        control=NOTHING,
        sizes=(
            *sizes(ON, dropout, STEERED, 1, 2, at=at),
            *sizes(ON, dropout, BALANCED, 2, at=at),
        ),
    )


def c5(dropout: bool) -> Rule:
    """FedCMOO-Pref later than FedCMOO."""
    return Rule(
        {
            "FedCMOO-Pref reaches an accuracy later than FedCMOO": {
                f"{text}, {level} %": gap(f"rounds_{level}", data, STEERED, dropout) > 0
                for data, text in GREY.items()
                for level in LEVELS
            }
        },
        note="Every run reaches both accuracies.",
        control=NOTHING,
    )


def c17(dropout: bool, at: str) -> Rule:
    """FedCMOO-Pref's losses more even than those of the others."""
    return Rule(
        {
            "FedCMOO-Pref's ratio of test losses is smaller"
            + ("" if at == LAST else f" after {END} rounds"): {
                f"{text}, against {METHODS[pair[1]]}": gap(f"loss_ratio{at}", data, pair, dropout)
                < 0
                for data, text in GREY.items()
                for pair in (STEERED, BALANCED)
            }
        },
        note="All ratios exceed one, so a smaller one is more even.",
        control=NOTHING,
    )


def c18(dropout: bool) -> Rule:
    """The order of the methods in their loss of accuracy against single tasks."""

    def loses_less(pair: Pair) -> dict[str, Condition]:
        return {text: gap("decline", data, pair, dropout) < 0 for data, text in GREY.items()}

    def loses_more(pair: Pair) -> dict[str, Condition]:
        return {text: gap("decline", data, pair, dropout) > 0 for data, text in GREY.items()}

    return Rule(
        {
            "FedCMOO loses less accuracy than FSMGDA": loses_less(FIRST),
            "FedCMOO-Pref loses less accuracy than FSMGDA": loses_less(BALANCED),
            "FedCMOO loses less accuracy than FedCMOO-Pref": loses_more(STEERED),
        },
        note="The models trained in one task alone have no dropout. Their accuracies only weigh "
        "the tasks in a difference of two methods, nearly equally."
        if dropout
        else "",
        control=nothing_of_three("decline", dropout=dropout),
        sizes=tuple(
            declines(data, dropout, pair) for data in GREY for pair in (FIRST, BALANCED, STEERED)
        ),
    )


def c14(dropout: bool) -> Rule:
    """FedCMOO-Pref faster with a least weight than without."""
    free: Labels = {"data": ON, "method": "pref", "least_weight": False, "dropout": dropout}
    earlier = {level: Query.of(f"rounds_{level}", **free, minus="least_weight") for level in LEVELS}
    return Rule(
        {
            "with a least weight FedCMOO-Pref reaches an accuracy earlier": {
                f"{level} %": of(query) > 0 for level, query in earlier.items()
            }
        },
        control=Control(
            "FedCMOO-Pref on its first seeds and on its last instead of both variants",
            {
                query: minus(f"rounds_{level}", ON, ("pref", "nothing"), dropout)
                for level, query in earlier.items()
            },
        ),
    )


C19 = Rule(
    {
        "FedCMOO-Pref is more accurate on the object": {
            f"against {METHODS[pair[1]]}": gap("held_accuracy_1", COLOUR, pair, False) > 0
            for pair in (BALANCED, STEERED)
        },
        "FedCMOO-Pref is less accurate than FedCMOO on the digit": gap(
            "held_accuracy_2", COLOUR, STEERED, False
        )
        < 0,
        "FedCMOO and FSMGDA are each more accurate than the other in one task": {
            "FSMGDA on the object": gap("held_accuracy_1", COLOUR, FIRST, False) < 0,
            "FedCMOO on the digit": gap("held_accuracy_2", COLOUR, FIRST, False) > 0,
        },
    },
    control=Control(
        "the two tasks exchanged",
        {
            minus(f"held_accuracy_{task}", COLOUR, pair, dropout=False): minus(
                f"held_accuracy_{3 - task}", COLOUR, pair, dropout=False
            )
            for task in (1, 2)
            for pair in (FIRST, BALANCED, STEERED)
        },
    ),
)


TWO_LOSSES: dict[str, Any] = {"data": "multi_mnist", "losses": "mixed", "dropout": True}


def one_way(name: str) -> Query:
    """The final accuracy with one-way compression minus that with two-way."""
    return Query.of("accuracy", data=ON, method=name, gram="one-way", dropout=True, minus="two-way")


ONE_WAY = {METHODS[name]: one_way(name) for name in ("fedcmoo", "pref")}
C12 = Rule(
    {
        f"one-way and two-way compression differ by at most {MARGIN:g} point in final accuracy": {
            text: near(query, 0, MARGIN) for text, query in ONE_WAY.items()
        }
    },
    note="The runs are on MNIST + Fashion-MNIST. The margin is a third of the 2.95 points by which "
    "FedCMOO leads FSMGDA there in Table 1.",
    control=Control(
        "FSMGDA instead of one-way compression",
        dict.fromkeys(ONE_WAY.values(), minus("accuracy", ON, FIRST, dropout=True)),
    ),
)


def read_twice(
    rule: Callable[[bool], Rule], runs: Callable[[bool], tuple[str, ...]], **fields: Any
) -> Claim:
    """A claim on the authors' network, and beside it on the network as the paper prints it."""
    printed = Reading(PRINTED, rule(False), runs(False), GREY_NEEDS)
    return cmoo(
        rule=rule(True),
        runs=runs(True),
        needs=GREY_NEEDS,
        reading=AUTHORS,
        readings=(printed,),
        **fields,
    )


def read_at_both_ends(
    rule: Callable[[bool, str], Rule],
    runs: Callable[[bool], tuple[str, ...]],
    also: tuple[Reading, ...] = (),
    **fields: Any,
) -> Claim:
    """A claim about the end of training, whose round is not printed: by two rounds with a source.

    Figure 2 has 500 rounds, the authors' demo of these data 300. The network as the paper prints
    it, without dropout, stands beside.
    """
    longer = Reading(AT_END, rule(True, LAST), runs(True), GREY_NEEDS)
    printed = Reading(PRINTED, rule(False, LAST), runs(False), GREY_NEEDS)
    return cmoo(
        rule=rule(True, DEMO),
        runs=runs(True),
        needs=GREY_NEEDS,
        reading=AT_DEMO,
        readings=(longer, printed, *also),
        **fields,
    )


def grey(*methods: str) -> Callable[[bool], tuple[str, ...]]:
    """The runs of some methods on both grey data sets, trained in one way."""
    return lambda dropout: names(data=[*GREY], method=methods, dropout=dropout)


def at_steps_of_all(*methods: str) -> tuple[str, ...]:
    """The runs of some methods at the step sizes of all."""
    return tuple(
        name_of(stepped(method, ON, lr), DEFAULTS) for method in methods for _, lr in STEP_SIZES
    )


def with_single(dropout: bool) -> tuple[str, ...]:
    """The runs of the three methods, and those of single tasks."""
    single = names(data=[*GREY], method="single", task=(1, 2))
    return (*grey(*METHODS)(dropout), *single)


CLAIMS = (
    read_at_both_ends(
        c1,
        grey("fsmgda", "fedcmoo"),
        id="fedcmoo/C1",
        place="Figures 1, 8, 9",
        wording="FedCMOO reaches a higher mean test accuracy than FSMGDA, and reaches it earlier.",
        figure="dropout",
        also=(Reading(EQUAL, at_equal_steps(), at_steps_of_all("fsmgda", "fedcmoo"), GREY_NEEDS),),
    ),
    read_at_both_ends(
        c3,
        grey(*METHODS),
        id="fedcmoo/C3",
        place="Table 1, grey pictures",
        wording="FedCMOO has the highest final accuracy on both digits of MultiMNIST and on the "
        "digit of MNIST + Fashion-MNIST. FedCMOO-Pref has the highest on the item of clothing. "
        "FSMGDA has the lowest on all four tasks.",
        figure="tasks",
    ),
    read_at_both_ends(
        c4,
        lambda dropout: names(data=ON, method=[*METHODS], dropout=dropout),
        id="fedcmoo/C4",
        place="Table 1, MNIST + Fashion-MNIST",
        wording="With a uniform preference, FedCMOO-Pref is best on the harder task, "
        "Fashion-MNIST, at some cost on the easier one.",
        figure="tasks",
    ),
    read_twice(
        c5,
        grey("fedcmoo", "pref"),
        id="fedcmoo/C5",
        place="Figures 1, 8",
        wording="FedCMOO-Pref needs more rounds than FedCMOO.",
        figure="dropout",
    ),
    cmoo(
        id="fedcmoo/C12",
        place="Text beside Algorithm 6",
        wording="One-way and two-way compression of the Jacobian lead to nearly the same final "
        "accuracy.",
        rule=C12,
        runs=names(data=ON, method=("fedcmoo", "pref"), gram=("two-way", "one-way"), dropout=True),
        needs=GREY_NEEDS,
        reading=AUTHORS,
    ),
    read_twice(
        c14,
        lambda dropout: names(data=ON, method="pref", least_weight=(True, False), dropout=dropout),
        id="fedcmoo/C14",
        place="Text beside Algorithm 8",
        wording="A small least weight makes FedCMOO-Pref faster.",
    ),
    read_at_both_ends(
        c17,
        grey(*METHODS),
        id="fedcmoo/C17",
        place="Figure 8, caption",
        wording="FedCMOO-Pref with equal preference trains the tasks more evenly than FedCMOO and "
        "FSMGDA (Table 1).",
        figure="tasks",
    ),
    read_twice(
        c18,
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
        rule=C19,
        runs=names(data=COLOUR, method=[*METHODS]),
        figure="tasks",
        needs=COLOUR_NEEDS,
        reading=PRINTED,
    ),
)


def printed() -> list[PaperValue]:
    """Tables 1, 2 and 4, as far as there are runs, on the authors' network."""
    values = []
    for data, words in GREY.items():
        for method, both in TABLE_1[data].items():
            text = f"{words}, {METHODS.get(method, 'one task alone')}"
            for task, accuracy in enumerate(both, 1):
                run: Labels = {"data": data, "method": method, "dropout": True}
                if method == "single":
                    run = {"data": data, "method": method, "task": task}
                query = Query.of(f"accuracy_{task}{DEMO}", **run)
                values.append(value(f"{text}, task {task}", query, accuracy, 1))
        for method, percent in TABLE_4[data].items():
            query = Query.of("decline", data=data, method=method, dropout=True)
            values.append(value(f"{words}, {METHODS[method]}, Delta_M", query, percent, 4))
    for method, both in TABLE_2.items():
        for task, accuracy in enumerate(both, 1):
            text = f"mixed losses, {MIXED[method]}, Digit {task}"
            query = Query.of(f"accuracy_{task}", **TWO_LOSSES, method=method)
            values.append(value(text, query, accuracy, 2))
    return values


def value(label: str, query: Query, paper: float, table: int) -> PaperValue:
    """A number of the paper in %: accuracies to a tenth, Table 4's Delta_M to a hundredth."""
    text, rtol = (f"{paper:.2f} %", 0.25) if table == 4 else (f"{paper:.1f} %", 0.03)
    return PaperValue(label, query, paper, text, f"C, Table {table}", rtol)


PAPER_VALUES = tuple(printed())
