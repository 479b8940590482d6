"""Study: Table 1 of the full paper as its sentence describes it.

The paper simulates Top-K "by zeroing out the gradient vector" and names error feedback for
quantization alone; study `cartpole` compresses the messages, with error feedback.
"""

from papers.fedsgm.cartpole.claims import CALIBRATED
from papers.fedsgm.cartpole.quantities import BUDGET
from papers.fedsgm.cartpole.simulator import HORIZON
from papers.fedsgm.cartpole_table import claims
from papers.fedsgm.cartpole_table.quantities import derive
from papers.fedsgm.cartpole_table.runs import specs
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study, Tolerance

PARAMETERS = parameters(
    seeds=("seeds that judge, which no run had before", tuple(range(200, 210)), (0, 1)),
    rounds=("communication rounds T", 500, 2),
    clients=("clients N, with budgets evenly spaced on [25, 35]", 10, 3),
    participants=("participants n", 7, 2),
    environments=("parallel environments of a client, each with 200 samples per round", 5, 2),
    tolerance=("switching threshold epsilon, in units of cost", 0.0),
    beta=("sharpness of soft switching", 0.2),
    damping=("damping of the Fisher matrix, the calibrated one", CALIBRATED, 0.03),
    formats=("bits of the number formats", (16, 8, 4), (4,)),
    fractions=("K/d of Top-K", (0.5, 0.25), (0.5,)),
    cg_steps=("iterations of conjugate gradient", 10, 3),
    evaluate_every=("rounds between two evaluations", 10, 2),
)

STUDY = Study(
    name="cartpole_table",
    title="Constrained cartpole, Table 1 as described",
    paper="F",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    watch={"*": HealthCheck("reward", best=float(HORIZON), guard="cost", level=BUDGET)},
    tolerances={"*": Tolerance(rounds=3, atol=2e-2)},
    **PARAMETERS,
)
