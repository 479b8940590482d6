"""The claims about limits of SSCA's iterates, and what judges them."""

from __future__ import annotations

from fedlib.claims import Claim, PaperValue
from fedlib.studies.ssca_long_rules import BATCHES, LEVELS, PENALTIES, c7, c10, c11

__all__ = ["CLAIMS", "PAPER_VALUES"]

CLAIMS = (
    Claim(
        "ssca/C7",
        "Y",
        "Section VII",
        "The constrained algorithms return models that strictly satisfy the constraint F <= U.",
        "F - U on all training pictures after 100 rounds, as in the paper, and after 1000, "
        "Algorithm 2 with the paper's step sizes and batch 100; also reported with step sizes that "
        "satisfy (4) and (6).",
        "For U = 0.3 and U = 0.6, at T = 100 and at T = 1000 (four parts): F - U is at most 0, by "
        "the upper end of its interval.",
        tuple(f"limit_paper_U{u:g}" for u in LEVELS),
        c7,
        figure="violation",
    ),
    Claim(
        "ssca/C10",
        "Y",
        "Theorem 1",
        "The gradient of the objective tends to zero with step sizes that satisfy (4) and (6).",
        "Norm of the gradient of F + lambda |w|^2 on all training pictures over 1000 rounds, "
        "Algorithm 1 with rho = t^-0.6 and gamma = t^-0.65, batches 100 and 10: its value at the "
        "end by that at the start, and the slope of its logarithm over that of t from round 500 "
        "on.",
        "For each batch: (1) the gradient at the end is below a tenth of that at the start; "
        "(2) the slope is negative; both by the upper end of the interval. A finite run shows no "
        "limit: this asks whether it is on the way.",
        tuple(f"ssca_valid_B{b}" for b in BATCHES),
        c10,
        figure="gradient",
    ),
    Claim(
        "ssca/C11",
        "Y",
        "Theorem 2",
        "With a growing penalty c the slack of the constraint goes to zero.",
        "Mean slack of the server's problem over the last 50 rounds of 1000, in units of the cost; "
        "c starts at 1 or at 30 and grows tenfold every 50 rounds as long as the slack exceeds "
        "0.001.",
        "For U = 0.3 and U = 0.6, c from 1 and from 30 (four parts): the slack is below 0.001, by "
        "the upper end of its interval.",
        tuple(f"limit_c{c:g}_U{u:g}" for u in LEVELS for c in PENALTIES),
        c11,
        figure="penalty",
    ),
)

PAPER_VALUES: tuple[PaperValue, ...] = ()
