"""What SSCA's Figures 2 and 3 are said to show, and the claims about messages and work."""

from __future__ import annotations

from collections.abc import Callable

from fedlib.claims import Claim, Numbers, Outcome
from fedlib.studies import ssca_convergence_rules as rules
from fedlib.studies.ssca_common import LEVELS, SPLITS
from fedlib.studies.ssca_convergence_numbers import BATCHES

__all__ = ["CLAIMS"]

RATES, FALLS = (0.1, 0.3, 1.0, 3.0), (0.0, 0.3)
COST = "Training cost on 10,000 pictures of MNIST, 20 seeds, 100 rounds"
GRID = (
    "SGD with the step a / t^p of the grid a in {0.1, 0.3, 1, 3}, p in {0, 0.3} that has the "
    "lowest mean cost at round 100, and again the one at round 30"
)
BELOW = (
    "For each batch, each of the two baselines and each of the rounds 10, 30, 50, 100: the "
    "interval of the difference of the costs, paired by seed, lies below 0."
)


def own(split: str, *batches: int) -> tuple[str, ...]:
    """The runs of Algorithm 1 or 3."""
    return tuple(f"{split}_ssca_B{b}" for b in batches)


def limits() -> tuple[str, ...]:
    """All runs of Algorithms 2 and 4."""
    return tuple(f"{s}_limit_B{b}_U{u:g}" for s in SPLITS for b in BATCHES for u in LEVELS)


def grid(kind: str, *batches: int) -> tuple[str, ...]:
    """The runs of SGD's grid."""
    return tuple(f"{kind}_B{b}_a{a:g}_p{p:g}" for b in batches for a in RATES for p in FALLS)


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
    """A claim of the SSCA paper."""
    return Claim(f"ssca/{number}", "Y", place, wording, measure, rule, runs, judged, figure)


CLAIMS = (
    claim(
        "C1",
        "Figures 2, 3",
        "A larger batch converges faster, for every algorithm.",
        f"{COST}: at rounds 10, 30, 50, 100, and its mean over the rounds, of Algorithms 1 and 3; "
        "rounds until the cost of Algorithms 2 and 4 is first below 1.",
        "Both splits, batch 10 against 1 and 100 against 10, paired by seed: the intervals of the "
        "differences of the four costs, of the mean cost and, for both levels U, of the rounds to "
        "a cost of 1 lie below 0.",
        (*own("samples", *BATCHES), *own("features", *BATCHES), *limits()),
        rules.c1,
        figure="figure_2",
    ),
    claim(
        "C2",
        "Figure 2",
        "With samples split, SSCA converges faster than SGD with one step a round on the same "
        "batch.",
        f"{COST}; Algorithm 1 against {GRID}.",
        BELOW,
        (*own("samples", *BATCHES), *grid("samples_sgd", *BATCHES)),
        rules.c2,
        figure="figure_2",
    ),
    claim(
        "C3",
        "Figure 2",
        "With batch 10 (100) SSCA converges faster than SGD with two steps a round on batches of 5 "
        "(50), the same number of gradients at the clients.",
        f"{COST}; Algorithm 1 against {GRID}.",
        BELOW,
        (*own("samples", 10, 100), *grid("samples_sgd2", 5, 50)),
        rules.c3,
        figure="figure_2",
    ),
    claim(
        "C4",
        "Figure 3",
        "With features split, SSCA converges faster than SGD on the same batch.",
        f"{COST}; Algorithm 3 against {GRID}. Batches are named by their tenth, the samples that a "
        "client has of them when samples are split.",
        BELOW,
        (*own("features", *BATCHES), *grid("features_sgd", *BATCHES)),
        rules.c4,
        figure="figure_3",
    ),
    claim(
        "C5",
        "Figures 2, 3",
        "With equally many gradients in all, SSCA is about as fast with features split as with "
        "samples split.",
        f"{COST}; Algorithm 3 minus Algorithm 1 from the same start.",
        "For each batch and each of the rounds 10, 30, 50, 100: the interval of the difference, "
        "paired by seed, lies within 10 % of Algorithm 1's mean cost around 0.",
        (*own("samples", *BATCHES), *own("features", *BATCHES)),
        rules.c5,
        figure="figure_3",
    ),
    claim(
        "C8",
        "Sections III to V",
        "All updates have closed forms; the server's work is O(d) a round, a client's that of SGD.",
        "Bits of the rounds; numbers that the tensor operations of a round write, at the server "
        "and at the clients, counted on small networks of 32, 64 and 96 hidden cells.",
        "Algorithms 1 and 3 send no more bits up, down and between clients than SGD (equally many, "
        "the rule said, until a run showed that SGD also sends its step size). Algorithms 1 and "
        "2: enlarging the network a second time by as much adds what the first time added to "
        "the server's work, within 5 %. Algorithms 1 and 2: the clients write at most 1.5 times "
        "what those of SGD write; 3 and 4: the whole round at most 1.5 times that of SGD.",
        (
            *(f"{s}_ssca_B{BATCHES[0]}" for s in SPLITS),
            *(run for s in SPLITS for run in grid(f"{s}_sgd", BATCHES[0])),
        ),
        rules.c8,
    ),
    claim(
        "C12",
        "Steps 3 to 6 of the algorithms",
        "What a round sends is what the algorithms list: no raw features, and no parameters of "
        "other clients.",
        "Senders, receivers, numbers and indices of all messages of a recorded round of Algorithms "
        "3 and 4, and a client's numbers up and down of Algorithms 1 and 2, on a small network; "
        "bits up and down of all runs of the four on MNIST.",
        "For each algorithm: no message that the list does not have, none of the list missing; "
        "bits up and down exactly those that follow from the list.",
        (*own("samples", *BATCHES), *own("features", *BATCHES), *limits()),
        rules.c12,
    ),
)
