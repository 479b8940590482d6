"""Study of Federated Frank-Wolfe's theorems against runs, and of the paper's Figures 2, 3 and 4."""

from __future__ import annotations

from papers.fedfw.cells import guessing
from papers.fedfw.rates import claims
from papers.fedfw.rates.quantities import derive
from papers.fedfw.rates.runs import specs
from papers.kit.health import HealthCheck, learning, nothing
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=("seeds; each fixes a split, a network's start, coins and batches", (*range(5),), (0, 1)),
    figure_seeds=(
        "seeds of logistic regression in Figure 2 and of Figure 4, which no run had before",
        (400, 401, 402, 403, 404),
        (0, 1),
    ),
    network_seeds=(
        "seeds of the network of Figure 3 on the authors' rows, which no run had before",
        (433, 434, 435),
        (0,),
    ),
    balls=("sets: 1 for the l1 ball, 2 for the l2 ball", (1, 2), (1,)),
    pair_rounds=("rounds on the counterexample", 2000, 100),
    pair_penalties=("lambda_0 on the counterexample", claims.PAIR_PENALTIES, (0.1, 1.0)),
    rows=("digits for Theorems 1 to 3, all clients together", 600, 150),
    convex_rounds=("rounds for Theorem 1 and with wrong oracles", claims.CONVEX_ROUNDS, 60),
    convex_penalties=("lambda_0 for Theorem 1", claims.CONVEX_PENALTIES, (0.01, 0.1)),
    stochastic_rounds=("rounds for Theorem 3", 10_000, 60),
    stochastic_penalties=("lambda_0 for Theorem 3", claims.STOCHASTIC_PENALTIES, (0.1,)),
    batch=("rows of a client's minibatch for Theorem 3", 10, 4),
    horizons=("rounds T for Theorem 2", claims.HORIZONS, (16, 64)),
    nonconvex_penalties=("lambda_0 for Theorem 2", claims.NONCONVEX_PENALTIES, (0.1,)),
    shares=("participation p", claims.SHARES, (0.5, 1.0)),
    share_penalties=("lambda_0 of Figure 2", claims.SHARE_PENALTIES),
    share_rounds=("rounds of Figures 2 and 3", 300, 15),
    network_rounds=("rounds of the network of Figure 3 on the authors' rows", 600, 15),
    most=("generated rows of a client, at most", 2000, 200),
    penalties=("lambda_0 of Figure 4", claims.PENALTIES, (0.01, 1.0)),
    penalty_rounds=("rounds of Figure 4", 100, 21),
    data=("pictures of Figure 4", "mnist", "digits"),
    pictures=("training pictures, all clients together", 4000, 300),
    tested=("test pictures", 2000, 60),
    wrong_penalty=("lambda_0 with wrong oracles", 0.01),
    qualities=("share of the gap that a wrong oracle attains", claims.QUALITIES, (0.5,)),
    slips=("additive error of the oracles of all clients together", claims.SLIPS, (0.1,)),
    noises=(
        "standard deviation of the noise with which an oracle is asked",
        claims.NOISES,
        (0.01,),
    ),
    noise_seeds=(
        "seeds of the runs with this noise, which no run had before",
        tuple(range(420, 430)),
        (0, 1),
    ),
    lanczos=("steps of the nuclear ball's oracle", claims.LANCZOS, (1, 40)),
    lanczos_rounds=("rounds with the nuclear ball", 1000, 30),
)

STUDY = Study(
    name="fw_rates",
    title="Rates of Federated Frank-Wolfe",
    paper="D",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch={
        "*_reference": nothing("constants of a problem"),
        "nonconvex_*": HealthCheck("fw_gap", best=0.0),
        "nuclear_*": HealthCheck("loss"),
        "penalty_mclr_*": learning(0.1),
        "share_*_theirs": learning(0.660),
        **{f"{part}_*": learning(guessing(0.34, 0.41)) for part in ("penalty", "share")},
        "*": HealthCheck("excess"),
    },
    at_paper={"pictures": 60_000, "tested": 10_000, "most": 100_000},
    **PARAMETERS,
)
