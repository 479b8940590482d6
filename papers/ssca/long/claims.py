"""The claims about limits of SSCA's iterates, and what judges them."""

from __future__ import annotations

from functools import partial

from papers.kit.claims import Claim, Reading
from papers.kit.rules import Control, Numbers, Rule, falls, most, of, stat, stat_value

LEVELS = (0.3, 0.6)
BATCHES = (100, 10)
PENALTIES = (1.0, 30.0)  # of the first rounds, below the multipliers that the levels need
TIMES = {"early": "T = 100", "end": "T = 1000"}
THIRDS = ("first", "middle", "last")  # of a run
TENTH = 0.1  # of the gradient at the start
NO_SLACK = 1e-3  # in units of the cost: up to here the runs leave c as it is
RUNS = {f"U = {u:g}, c from {c:g}": f"limit_c{c:g}_U{u:g}" for u in LEVELS for c in PENALTIES}
VALID, PRINTED = (
    "step sizes that satisfy (4) and (6), which the algorithms ask for",
    "the step sizes of the experiments, which break (6)",
)


def kept(steps: str) -> Rule:
    """Every model below U, after the paper's 100 rounds and after 1000."""
    cells = {
        f"U = {u:g}, {text}": f"limit_{steps}_U{u:g}.violation_{key}"
        for u in LEVELS
        for key, text in TIMES.items()
    }

    def measured(n: Numbers) -> str:
        told = []
        for cell, key in cells.items():
            each = n[key].per_seed
            below = f"{sum(x < 0 for x in each)} of {len(each)} models below U"
            told.append(f"{cell}: {below}, mean F - U {n[key].text('+.2g')}")
        return "; ".join(told)

    return Rule(
        {"every returned model has F < U": {cell: most(key) < 0 for cell, key in cells.items()}},
        measured,
        control=Control(
            "a penalty that starts at 1, below the multiplier",
            {f"limit_{steps}_U{u:g}": f"limit_c1_U{u:g}" for u in LEVELS},
        ),
    )


def thirds(run: str) -> tuple[str, ...]:
    return tuple(f"{run}.gradient_{part}" for part in THIRDS)


C7 = kept("paper")
C10 = Rule(
    {
        "the mean gradient falls from each third of the run to the next": {
            f"B = {b}": falls(*thirds(f"ssca_valid_B{b}")) for b in BATCHES
        }
    },
    "mean gradient in the first / middle / last third of 1000 rounds, gradient at the end as a "
    "share of its start, log-log slope of the second half: "
    + "; ".join(
        f"B = {b}: {' / '.join(map(stat_value, thirds(f'ssca_valid_B{b}')))}, "
        f"{stat(f'ssca_valid_B{b}.gradient_share')}, {stat(f'ssca_valid_B{b}.fall')}"
        for b in BATCHES
    ),
    note="A finite run cannot show a limit; the rule asks whether the gradient keeps falling.",
    control=Control(
        "step sizes that break (6)", {f"ssca_valid_B{b}": f"ssca_paper_B{b}" for b in BATCHES}
    ),
)
C11 = Rule(
    {
        "the last slack of the run is below the first": {
            where: of(f"{run}.slack_end") < of(f"{run}.slack_first") for where, run in RUNS.items()
        },
        f"the last slack is below {NO_SLACK:g}, where c stops growing": {
            where: of(f"{run}.slack_end") < NO_SLACK for where, run in RUNS.items()
        },
    },
    "; ".join(
        f"{where}: last slack {stat(f'{run}.slack_end')}, first {stat(f'{run}.slack_first')}, "
        f"last c {stat_value(f'{run}.penalty_end')}"
        for where, run in RUNS.items()
    ),
    note="Here c grows within a run, whereas the theorem is about a sequence of limit points.",
    control=Control(
        "the slack at the first penalty",
        {f"{run}.slack_end": f"{run}.slack_first" for run in RUNS.values()},
    ),
)

claim = partial(Claim, paper="Y")

CLAIMS = (
    claim(
        id="ssca/C7",
        place="Section VII",
        wording="The constrained algorithms return models that strictly satisfy the constraint "
        "F <= U.",
        rule=C7,
        runs=tuple(f"limit_paper_U{u:g}" for u in LEVELS),
        reading=PRINTED,
        readings=(Reading(VALID, kept("valid"), tuple(f"limit_valid_U{u:g}" for u in LEVELS)),),
        figure="violation",
    ),
    claim(
        id="ssca/C10",
        place="Theorem 1",
        wording="The gradient of the objective tends to zero with step sizes that satisfy (4) and "
        "(6).",
        rule=C10,
        runs=tuple(f"ssca_valid_B{b}" for b in BATCHES),
        figure="gradient",
        kind="proved",
    ),
    claim(
        id="ssca/C11",
        place="Theorem 2",
        wording="As the penalty c grows, the slack of the constraint goes to zero.",
        rule=C11,
        runs=tuple(RUNS.values()),
        figure="penalty",
    ),
)
