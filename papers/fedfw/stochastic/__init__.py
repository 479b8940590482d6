"""Study of FedFW's Table 3: FedFW-sto against FedDR, 100 clients, minibatches."""

from __future__ import annotations

from papers.fedfw.cells import guessing
from papers.fedfw.stochastic import claims, runs
from papers.fedfw.stochastic.quantities import derive
from papers.kit.health import learning
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    pictures=("mnist, or digits: the 8 x 8 pictures of scikit-learn", "mnist", "digits"),
    seeds=("seeds; each fixes rows, split, test rows and batches", runs.SEEDS, (0, 1)),
    rounds=("rounds T", 300, 40),
    evaluate_every=("rounds between two evaluations", 10, 4),
    clients=("clients", 100, 10),
    batch=("rows of a client's minibatch", 64, 16),
    rows=("training pictures of all clients, grey ones", 20_000, 1400),
    tested=("most test pictures", 2000, 360),
    cifar_rows=("training pictures of CIFAR-10; 0: without CIFAR-10", 10_000, 0),
    most=("most generated rows of a client, a quarter of them for testing; 0: without", 600, 0),
    lambdas=("grid of lambda_0", runs.LAMBDAS, (0.001, 0.01)),
    rates=("grid of FedDR's step sizes on pictures", runs.RATES, (0.05, 0.2)),
    cifar_lambdas=("grid of lambda_0 on CIFAR-10", runs.CIFAR_LAMBDAS),
    cifar_rates=("grid of FedDR's step sizes on CIFAR-10", runs.CIFAR_RATES),
    synthetic_rates=("grid of FedDR's step sizes on generated data", runs.SYNTHETIC_RATES),
    code_seeds=("seeds of the protocol behind the printed values", runs.SEEDS, (0, 1)),
)

STUDY = Study(
    name="fw_stochastic",
    title="FedFW's Table 3",
    paper="D",
    specs=runs.specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    watch={"*_synthetic_*": learning(guessing(0.39, 0.41)), "*": learning(0.1)},
    at_paper={"rows": 60_000, "tested": 10_000, "cifar_rows": 50_000, "most": 100_000},
    **PARAMETERS,
)
