"""Study: SSCA beside baselines whose step sizes come from a fine grid, tuned on other seeds.

The grid of study `ssca_convergence` has neighbours that are a factor 3 apart. Here they are a
factor 1.4 apart, and momentum SGD, which SSCA is with weights of its own, is tuned likewise.
"""

from __future__ import annotations

from papers.kit.parameters import parameters
from papers.kit.study import Study
from papers.ssca import common
from papers.ssca.baselines import claims
from papers.ssca.baselines.quantities import derive
from papers.ssca.baselines.runs import specs

PARAMETERS = parameters(
    seeds=("seeds that judge, which no run had before", tuple(range(500, 520)), (0, 1)),
    tuning_seeds=("seeds on which the baselines are tuned", tuple(range(5)), (2, 3)),
    rounds=("rounds T", 100, 30),
    batches=("batch of a client, or of all clients if features are split", claims.BATCHES, (10,)),
    rates=("SGD's first step sizes a", (0.5, 0.7, 1.0, 1.4, 2.0, 2.8), (0.7, 1.4)),
    falls=("exponents p with which SGD's step sizes fall", (0.0, 0.15, 0.3, 0.45), (0.0,)),
    momentum_rates=("constant steps of momentum SGD", (0.1, 0.2, 0.4, 0.7, 1.0), (0.2, 0.4)),
    betas=("constant weights of its last change", (0.3, 0.5, 0.7, 0.85), (0.5,)),
    **common.TASK,
)

PLANNED = Study(
    name="ssca_baselines",
    title="SSCA beside tuned SGD and momentum SGD",
    paper="Y",
    data=("mnist",),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    **PARAMETERS,
)
