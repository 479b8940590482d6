"""The runs of the study of local steps and preferences, with the labels that they are found by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fedlib.weights import Preference
from papers.fedcmoo.common import GREY, method
from papers.fedcmoo.pairs.runs import base
from papers.kit.quantities import Defaults, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

EPSILON = 0.01  # the divergence below which FedCMOO-Pref stops balancing
#: `steps` are local steps, `ratio` is r_2 / r_1 of the preference.
DEFAULTS: Defaults = {"data": None, "method": "pref", "steps": None, "ratio": None}


def ratios(second: float) -> tuple[float, float]:
    """`(r_1, r_2)` with the smaller one 1."""
    return (1.0, second) if second >= 1 else (1 / second, 1.0)


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([run for data in GREY for run in runs(data, p)], DEFAULTS)


def runs(data: str, p: Params) -> Iterator[Spec]:
    """Two methods with each number of local steps, and FedCMOO-Pref with each preference."""
    for steps in p["steps"]:
        for name in ("fsmgda", "fedcmoo"):
            algorithm = method(name, data, p, local_steps=int(steps))
            run = base(
                algorithm,
                data,
                p,
                p["seeds"],
                p["step_rounds"],
                dropout=True,
            )
            yield replace(run, labels={"data": data, "method": name, "steps": int(steps)})
    for second in p["ratios"]:
        preference = Preference(ratios=ratios(float(second)), epsilon=EPSILON)
        algorithm = method(
            "pref",
            data,
            p,
            preference=preference,
            least=None,
        )
        run = base(
            algorithm,
            data,
            p,
            p["seeds"],
            p["preference_rounds"],
            dropout=True,
        )
        yield replace(run, labels={"data": data, "method": "pref", "ratio": float(second)})
