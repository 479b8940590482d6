"""What `benchmarks.start` times: `python -m benchmarks.firsts CASE` runs it and ends."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.workloads import WORKLOADS
from fedlib.run import run


def main(case: str) -> None:
    """One call of `fedlib.run`."""
    if case == "LeNet":
        lenet()
    elif case == "cartpole":
        cartpole()
    else:
        chosen = WORKLOADS["W3"]
        rounds = 10_000 if case == "long" else 1
        method, problem = chosen.algorithm("FedAvg"), chosen.problem("FedAvg")
        run(method, problem, rounds=rounds, evaluate_every=rounds, progress=False)


def lenet() -> None:
    """A round of FedCMOO on the network of W2."""
    from benchmarks.multiobjective import BATCH, PARTICIPANTS, STEPS, generated
    from fedlib.algorithms.fedcmoo import FedCMOO

    problem = generated()
    work: dict[str, Any] = {"local_steps": STEPS, "participants": PARTICIPANTS}
    method = FedCMOO(0.01, batch_size=BATCH, shared=problem.config["shared"], **work)
    run(method, problem, rounds=1, progress=False)


def cartpole() -> None:
    """A round of cartpole for one seed."""
    from fedlib.steps import Soft
    from papers.fedsgm.cartpole.method import PolicyFedSGM
    from papers.fedsgm.cartpole.simulator import cartpole

    method = PolicyFedSGM(participants=7, tolerance=0.0, switch=Soft(0.2))
    run(method, cartpole, rounds=1, progress=False)


if __name__ == "__main__":
    main(sys.argv[1])
