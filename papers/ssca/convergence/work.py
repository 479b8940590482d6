"""The claims about SSCA's messages and work, which are counted, and what judges them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from papers.kit.claims import Claim
from papers.kit.needs import Needs
from papers.kit.rules import Condition, Control, Rule, least, value, within
from papers.ssca.common import SPLITS
from papers.ssca.convergence.names import LIMITS, OWN, SEARCHED, grid, values
from papers.ssca.leaks import BATCHES

NEAR_LINEAR = 0.05  # C8: how far the growth of the server's work may be from proportional
ALIKE = 1.5  # C8: so many times the work of SGD's clients is of the same order
ALGORITHMS = (1, 2, 3, 4)


def by_number(condition: Callable[[int], Condition], *numbers: int) -> dict[str, Condition]:
    return {f"Algorithm {k}": condition(k) for k in numbers}


def each(measure: str, *numbers: int) -> str:
    return values(*(f"alg_{k}.{measure}" for k in numbers))


C8 = Rule(
    {
        "the server's work proportional to d": by_number(
            lambda k: within(f"alg_{k}.linearity", 1, NEAR_LINEAR), 1, 2
        ),
        "a client's work of the order of SGD's": by_number(
            lambda k: value(f"alg_{k}.client_ratio") <= ALIKE, *ALGORITHMS
        ),
    },
    "numbers written at the server a parameter and round, Algorithms 1 / 2: "
    f"{each('per_parameter', 1, 2)}; at the clients, beside SGD, Algorithms 1 / 2 / 3 / 4: "
    + each("client_ratio", *ALGORITHMS),
    note=f"Of one order means at most {ALIKE:g} times as much. SGD's messages also carry its step "
    "size, so that SSCA's may be shorter.",
    control=Control(
        "work that grows like the square of d, and clients that work twice as long",
        {f"alg_{k}.linearity": 2.0 for k in ALGORITHMS}
        | {f"alg_{k}.client_ratio": 2.0 for k in ALGORITHMS},
    ),
)
C12 = Rule(
    {
        "the messages of the list": by_number(
            lambda k: value(f"alg_{k}.wrong_messages") <= 0, *ALGORITHMS
        ),
        "and the bits that follow": by_number(
            lambda k: value(f"alg_{k}.bits_off") <= 0, *ALGORITHMS
        ),
    },
    f"Algorithms 1 / 2 / 3 / 4: {each('wrong_messages', *ALGORITHMS)} messages and, in the runs, "
    f"{each('bits_off', *ALGORITHMS)} bits that differ from the list",
    control=Control(
        "one message more than the list has", {f"alg_{k}.wrong_messages": 1.0 for k in ALGORITHMS}
    ),
)
LEFT = {f"B = {b}": f"privacy.free_B{b}" for b in BATCHES}
C13 = Rule(
    {
        "one sample is not found": least("privacy.error_B1") > 0.01,
        "a batch is not isolated": {text: least(key) >= 1 for text, key in LEFT.items()},
    },
    lambda n: (
        f"largest error of the sample read off {max(n['privacy.error_B1'].per_seed):.0e}; "
        "directions in which a batch can change without a change of its message, "
        + ", ".join(f"{text}: {n[key].value:g}" for text, key in LEFT.items())
        + f"; in the other clients' view {n['privacy.free_clients'].value:g}"
    ),
    note="The paper calls a message safe if its equations have infinitely many solutions. For one "
    "sample the note proves that they have one; larger batches are tried on small networks, with "
    "known labels.",
    control=Control(
        "messages that are the samples",
        {"privacy.error_B1": 0.0} | dict.fromkeys(LEFT.values(), 0.0),
    ),
)

claim = partial(Claim, paper="Y")

CLAIMS = (
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
        needs=Needs(exact=True, dead=SEARCHED),
        kind="counted",
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
        needs=Needs(exact=True),
        kind="counted",
    ),
    claim(
        id="ssca/C13",
        place="abstract; security analysis, samples split",
        wording="The messages of a client do not give its samples away.",
        measure="On ten random networks: the error of the sample that is read off the gradients of "
        "a batch of one (error_B1), and for larger batches the number of pixels less the rank of "
        "the messages' derivative by them (free); the dimension of the features and weights that "
        "give the messages to the other clients where features are split (free_clients).",
        rule=C13,
        runs=("samples_ssca_B1",),
        needs=Needs(exact=True),
    ),
)
