"""Study cartpole: constrained Markov decision process, full paper, Figures 3 and 4, Table 1."""

from papers.fedsgm.cartpole import claims
from papers.fedsgm.cartpole.quantities import BUDGET, derive
from papers.fedsgm.cartpole.runs import specs
from papers.fedsgm.cartpole.simulator import HORIZON
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study, Tolerance

PARAMETERS = parameters(
    seeds=(
        "seeds of the main rows; each fixes the policy's start and all simulations",
        tuple(range(10)),
        (0, 1),
    ),
    sweep_seeds=("seeds of the sweeps", tuple(range(5)), (0,)),
    fresh=("seeds that judge claim C18 alone", tuple(range(100, 134)), (100,)),
    rounds=("communication rounds T", 500, 2),
    free_rounds=("rounds of the run without constraint", 60, 2),
    clients=("clients N, with budgets evenly spaced on [25, 35]", 10, 3),
    participants=("participants n of the main rows (the paper's m)", 7, 2),
    sweep_participants=("participants of the sweep of Figure 4", (3, 5, 10), (1, 3)),
    environments=("parallel environments of a client, each with 200 samples per round", 5, 2),
    tolerance=("switching threshold epsilon, in units of cost", 0.0),
    beta=("sharpness of soft switching", 0.2),
    betas=("sharpnesses of the sweep", (0.1, 0.5, 1.0), (1.0,)),
    damping=("damping of the Fisher matrix", 0.1),
    dampings=("the damping of the sweep", (1.0,)),
    calibration=(
        "dampings of the full runs that try to meet the uncompressed row of Table 1",
        claims.CALIBRATION,
        (0.03,),
    ),
    calibrated=("damping at which the Top-K rows are run, too", claims.CALIBRATED, 0.03),
    formats=("bits of the number formats of Table 1", (16, 8, 4), (4,)),
    fractions=("K/d of Table 1", (0.5, 0.25), (0.5,)),
    cg_steps=("iterations of conjugate gradient", 10, 3),
    evaluate_every=("rounds between two evaluations", 10, 2),
)

STUDY = Study(
    name="cartpole",
    title="Constrained cartpole",
    paper="F",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    watch={"*": HealthCheck("reward", best=float(HORIZON), guard="cost", level=BUDGET)},
    # two thirds of an environment's step at the least: another processor's rounding ends an
    # episode a step earlier
    tolerances={"*": Tolerance(rounds=3, atol=2e-2)},
    **PARAMETERS,
)
