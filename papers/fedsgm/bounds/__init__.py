"""Study: the theorems' bounds against what their own step sizes and thresholds reach."""

from __future__ import annotations

from papers.fedsgm.bounds import figures
from papers.fedsgm.bounds.numbers import derive
from papers.fedsgm.bounds.runs import plans
from papers.kit.store import Spec
from papers.kit.study import Params, Study

__all__ = ["STUDY"]

PARAMETERS = {
    "seeds": "instances, of twelve kinds in turn; a seed also fixes participants and batches",
    "rounds": "T where it is not varied",
    "horizons": "T of the sweep",
    "local_steps": "E where it is not varied",
    "local_steps_grid": "E of the sweep",
    "participants": "n of the theorems with sampled clients, of N = 10",
    "participants_grid": "n of the sweep",
    "up": "K/d of the uplink, Top-K or Rand-K, where it is not varied",
    "down": "K/d of the downlink where it is not varied",
    "fractions": "K/d of the sweeps, one direction at a time",
    "threshold_factors": "multiples of the prescribed threshold",
    "step_factors": "multiples of the prescribed step size",
    "stairs": "T on the hard instance",
    "stairs_local_steps": "E on the hard instance, at E T = the largest of these T",
}
FULL: Params = {
    "seeds": tuple(range(12)),
    "rounds": 1000,
    "horizons": (30, 100, 300, 1000, 3000, 10000),
    "local_steps": 2,
    "local_steps_grid": (1, 2, 5, 10),
    "participants": 5,
    "participants_grid": (1, 2, 5, 10),
    "up": 0.5,
    "down": 0.5,
    "fractions": (0.1, 0.2, 0.5, 1.0),
    "threshold_factors": (0.0, 0.03, 0.1, 0.3, 1.0),
    "step_factors": (1.0, 3.0, 10.0),
    "stairs": (10, 30, 100, 300, 1000),
    "stairs_local_steps": (2, 5, 10),
}
QUICK: Params = {
    **FULL,
    "rounds": 200,
    "horizons": (30, 100, 200),
    "local_steps_grid": (5,),
    "participants_grid": (2,),
    "fractions": (0.1,),
    "threshold_factors": (0.0, 0.1, 1.0),
    "step_factors": (1.0,),
    "stairs": (10, 100),
    "stairs_local_steps": (5,),
}


def specs(p: Params) -> dict[str, Spec]:
    """Every theorem along T, some along E, n and the compressors, and the hard instance."""
    return {name: planned.spec for name, planned in plans(p).items()}


STUDY = Study(
    name="bounds",
    title="Bound against practice",
    paper="F",
    profiles={"quick": QUICK, "full": FULL},
    parameters=PARAMETERS,
    specs=specs,
    derive=derive,
    figures=figures.FIGURES,
)
