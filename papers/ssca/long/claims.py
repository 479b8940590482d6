"""The claims about limits of SSCA's iterates, and what judges them."""

from __future__ import annotations

from functools import partial

from papers.kit.claims import Claim
from papers.kit.rules import Rule, of, told

LEVELS = (0.3, 0.6)
BATCHES = (100, 10)
PENALTIES = (1.0, 30.0)  # of the first rounds, below the multipliers that the levels need
TIMES = {"early": "T = 100", "end": "T = 1000"}
TENTH = 0.1  # of the gradient at the start
NO_SLACK = 1e-3  # in units of the cost
RUNS = {f"U = {u:g}, c from {c:g}": f"limit_c{c:g}_U{u:g}" for u in LEVELS for c in PENALTIES}

C7 = Rule(
    {
        f"F <= {u:g} at {text}": of(f"limit_paper_U{u:g}.violation_{key}") <= 0
        for u in LEVELS
        for key, text in TIMES.items()
    },
    "F - U on all training pictures: "
    + "; ".join(
        f"U = {u:g}, {text}: {told(f'limit_paper_U{u:g}.violation_{key}')}"
        for u in LEVELS
        for key, text in TIMES.items()
    ),
)
C10 = Rule(
    {
        text: condition
        for b in BATCHES
        for text, condition in {
            f"the gradient below a tenth of that at the start, B = {b}": of(
                f"ssca_valid_B{b}.gradient_share"
            )
            < TENTH,
            f"the gradient still falling, B = {b}": of(f"ssca_valid_B{b}.fall") < 0,
        }.items()
    },
    "gradient at T = 1000 by that at the start, log-log slope: "
    + "; ".join(
        f"B = {b}: share {told(f'ssca_valid_B{b}.gradient_share')}, "
        f"slope {told(f'ssca_valid_B{b}.fall')}"
        for b in BATCHES
    ),
    note="A finite run shows no limit: this asks whether it is on the way.",
)
C11 = Rule(
    {
        f"no slack at the end, {where}": of(f"{run}.slack_end") < NO_SLACK
        for where, run in RUNS.items()
    },
    "; ".join(
        f"{where}: slack {told(f'{run}.slack_end')}, at first {told(f'{run}.slack_first')}; "
        f"last c {told(f'{run}.penalty_end')}"
        for where, run in RUNS.items()
    ),
)

claim = partial(Claim, paper="Y")

CLAIMS = (
    claim(
        id="ssca/C7",
        place="Section VII",
        wording="The constrained algorithms return models that strictly satisfy the constraint "
        "F <= U.",
        measure="F - U on all training pictures after 100 rounds, as in the paper "
        "(violation_early), and after 1000 (violation_end), Algorithm 2 with the paper's step "
        "sizes and batch 100; also reported with step sizes that satisfy (4) and (6).",
        rule=C7,
        runs=tuple(f"limit_paper_U{u:g}" for u in LEVELS),
        figure="violation",
    ),
    claim(
        id="ssca/C10",
        place="Theorem 1",
        wording="The gradient of the objective tends to zero with step sizes that satisfy (4) and "
        "(6).",
        measure="Norm of the gradient of F + lambda |w|^2 on all training pictures over 1000 "
        "rounds, Algorithm 1 with rho = t^-0.6 and gamma = t^-0.65, batches 100 and 10: its value "
        "at the end by that at the start (gradient_share), and the slope of its logarithm over "
        "that of t from round 500 on (fall).",
        rule=C10,
        runs=tuple(f"ssca_valid_B{b}" for b in BATCHES),
        figure="gradient",
    ),
    claim(
        id="ssca/C11",
        place="Theorem 2",
        wording="With a growing penalty c the slack of the constraint goes to zero.",
        measure="Mean slack of the server's problem over the last 50 rounds of 1000 (slack_end), "
        "in units of the cost; c starts at 1 or at 30 and grows tenfold every 50 rounds as long as "
        "the slack exceeds 0.001.",
        rule=C11,
        runs=tuple(RUNS.values()),
        figure="penalty",
    ),
)
