"""Study of FedCMOO's Figures 2 and 4: how many local steps, and which preference."""

from __future__ import annotations

from typing import Any

from fedlib.weights import Preference
from papers.fedcmoo.common import GREY, method, shared
from papers.fedcmoo.pairs import base
from papers.fedcmoo.standin import noted
from papers.fedcmoo.sweeps import claims, figures
from papers.fedcmoo.sweeps.claims import EPSILON
from papers.fedcmoo.sweeps.numbers import derive
from papers.kit.health import HealthCheck, HealthChecks, learning
from papers.kit.store import Spec
from papers.kit.study import Params, Study, parameters
from papers.kit.tolerance import Tolerance

__all__ = ["STUDY", "ratios", "specs"]

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split, participants and batches", (0,)),
    step_rounds=("communication rounds T of the runs with different local steps", 30, 2),
    steps=("numbers of local steps", (1, 5, 20), (1, 2)),
    preference_rounds=("rounds T of the runs with preferences", 30, 2),
    ratios=("r_2 / r_1 of the preferences", (0.25, 0.5, 1.0, 2.0, 4.0), (0.5, 1.0)),
    **shared(),
)


def ratios(second: float) -> tuple[float, float]:
    """`(r_1, r_2)` with the smaller one 1."""
    return (1.0, second) if second >= 1 else (1 / second, 1.0)


def specs(p: Params) -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    for data in GREY:
        for steps in p["steps"]:
            for name in ("fsmgda", "fedcmoo"):
                made: Any = method(name, data, p, local_steps=int(steps))
                run = base(made, data, p, p["seeds"], p["step_rounds"])
                found[f"{data}_{name}_steps{steps}"] = run
        for second in p["ratios"]:
            rule = Preference(ratios=ratios(float(second)), epsilon=EPSILON)
            made = method("pref", data, p, preference=rule, least=None)
            name = f"{data}_ratio{second:g}_tolerance{EPSILON:g}"
            found[name] = base(made, data, p, p["seeds"], p["preference_rounds"])
    return found


WATCH: HealthChecks = {
    "*": (*learning(0.1), HealthCheck("loss_*"), HealthCheck("accuracy_*", chance=0.1))
}


STUDY = Study(
    name="cmoo_sweeps",
    title="Local steps and preferences, FedCMOO",
    paper="C",
    data=("mnist", "fashion_mnist"),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    figures=noted(figures.FIGURES),
    watch=WATCH,
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={"step_rounds": 500, "preference_rounds": 300, "seeds": (0, 1, 2)},
    **PARAMETERS,
)
