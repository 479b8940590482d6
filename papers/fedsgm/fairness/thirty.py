"""C31 and C32 on thirty seeds: centralized methods and IPP ConEx beside the federated ones.

The rules, and what was tuned on the five seeds before, were committed before a centralized method
or ConEx had run on these seeds. The federated runs of the same seeds are those of C30 and C33,
which were known.
"""

from __future__ import annotations

from dataclasses import replace

from fedlib.core import Trace
from papers.kit.claims import Reading
from papers.kit.health import Needs
from papers.kit.numbers import Number, mean
from papers.kit.rules import Control, Rule, of, stat
from papers.kit.store import Spec
from papers.kit.study import Params, Traces

#: The penalty that tuning on the first five seeds picks, for the federated and the pooled data.
RHO = "penalty_rho1"
TWINS = {
    "hard": "hard switching",
    "soft": "soft switching",
    RHO: "the tuned penalty",
}
#: The setting of ConEx with the second smallest late gap on the first five seeds. That with the
#: smallest, step size 0.1 and dual step 100, was named first; on the first of the thirty seeds it
#: leaves the finite numbers in round 256. The change was committed before this setting had run.
CONEX = "grid_conex_lr0.3_dual10"
CONEX_TEXT = "ConEx with step size 0.3 and dual step 10"
ADDED = (*(f"central_{x}" for x in TWINS), CONEX)
FROZEN = (
    "Rule, control and settings were committed before the centralized methods and ConEx had run on "
    "these thirty seeds; the federated runs were known. ConEx's best setting on five other seeds, "
    "step size 0.1 and dual step 100, diverges on one of the thirty; this is the next best."
)


def specs(found: dict[str, Spec], p: Params) -> dict[str, Spec]:
    """The centralized methods and ConEx on the seeds of C30 and C33."""
    there = [name for name in ADDED if name in found]
    return {f"fresh_{name}": replace(found[name], seeds=p["fresh"]) for name in there}


def null(traces: Traces) -> dict[str, Number]:
    """Hard FedSGM on two disjoint halves of the seeds: between them there is no effect."""
    trace: Trace = traces["fresh_hard"]
    gap = trace.late("g")
    half = len(gap) // 2
    return {"fresh_null0.g": mean(gap[:half]), "fresh_null1.g": mean(gap[half : 2 * half])}


C31 = Rule(
    {
        "the centralized method has the smaller late gap": {
            text: of(f"fresh_central_{x}.g") < of(f"fresh_{x}.g") for x, text in TWINS.items()
        }
    },
    "late gap; "
    + "; ".join(
        f"{text}: centralized {stat(f'fresh_central_{x}.g')}, federated {stat(f'fresh_{x}.g')}"
        for x, text in TWINS.items()
    ),
    FROZEN,
    control=Control(
        "hard FedSGM on two disjoint halves of the seeds instead of both methods",
        {f"fresh_central_{x}": "fresh_null0" for x in TWINS}
        | {f"fresh_{x}": "fresh_null1" for x in TWINS},
    ),
)
OTHERS = {text: f"fresh_{x}" for x, text in TWINS.items()}
OTHERS |= {f"centralized {text}": f"fresh_central_{x}" for x, text in TWINS.items()}
C32 = Rule(
    {
        "ConEx has a smaller late gap than each other method": {
            text: of(f"fresh_{CONEX}.g") < of(f"{run}.g") for text, run in OTHERS.items()
        }
    },
    "late gap and late loss; "
    + "; ".join(
        f"{text}: {stat(f'{run}.g')}, {stat(f'{run}.f')}"
        for text, run in {CONEX_TEXT: f"fresh_{CONEX}", **OTHERS}.items()
    ),
    FROZEN,
    control=Control("soft FedSGM instead of ConEx", {f"fresh_{CONEX}": "fresh_soft"}),
)
NAME = "on thirty seeds"
FEDERATED = tuple(f"fresh_{x}" for x in TWINS)
CENTRAL = tuple(f"fresh_central_{x}" for x in TWINS)
READINGS = {
    "fedsgm/C31": Reading(
        NAME, C31, (*FEDERATED, *CENTRAL), Needs(parameters=("fresh",)), "67b7b5ba"
    ),
    "fedsgm/C32": Reading(
        NAME,
        C32,
        (*FEDERATED, *CENTRAL, f"fresh_{CONEX}"),
        Needs(parameters=("fresh",)),
        "c6629fe9",
    ),
}
