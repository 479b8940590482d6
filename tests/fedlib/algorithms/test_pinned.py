"""Three rounds of every algorithm, pinned: any change of what it computes is noticed here.

Beside every example stands one whose options are all other than their defaults. The numbers are
those of the code; that they are the papers' is what the twins, reductions and closed forms of the
other files show. An example without a pin is none of these: `python -m
tests.fedlib.algorithms.test_pinned NAME` prints the lines that pin the algorithm NAME. Policies
are left out: rounding in another order can end one of their episodes a step earlier.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import fedlib as fl
from fedlib.compress import Exact, Largest, RandK, Rounding, TopK
from fedlib.steps import Soft
from fedlib.steps.schedules import Convex, Fixed, Nonconvex
from fedlib.testing.examples import Example, examples
from fedlib.vertical import VerticalProblem
from fedlib.weights import (
    FindWeights,
    Least,
    MeanOfGrams,
    MinNorm,
    OneWay,
    Preference,
)
from papers.ssca.network import swish_network, vertical_network
from tests.helpers.rounds import walk

PINS = Path(__file__).with_name("pinned.json")
ROUNDS = 3
BATCHES = {"batch_size": 3, "value_batch_size": 4}
LIMITS = {"level": 0.3, "tolerance": 0.02}
PREFERENCE = Preference(
    ratios=(3.0, 1.0, 0.5),
    epsilon=0.05,
    star_ratio=0.9,
    dominance=True,
)
TASKS = {"server_lr": 0.7, "local_steps": 3, "batch_size": 2, "shared": 200}
LIMITED = {
    "objective": "norm",
    "growth": 1.5,
    "patience": 1,
    "tolerance": 0.1,
    "debias": True,
}
FACTORS = {"uplink": TopK(0.3), "downlink": TopK(0.4), "error_feedback": True}
#: Options that are other than their defaults, by the algorithm.
OTHER = {
    "PenaltyFedAvg": ({**BATCHES, **LIMITS},),
    "SGM": ({**BATCHES, **LIMITS, "switch": Soft(2.0)},),
    "PenaltySGM": ({**BATCHES, **LIMITS},),
    "ConEx": (
        {
            **BATCHES,
            **LIMITS,
            "theta": 0.5,
            "inner_steps": 7,
            "prox": 0.2,
            "constraint_prox": 0.3,
        },
    ),
    "FedCMOO": (
        {**TASKS, "gram": OneWay(Largest()), "weights": FindWeights(0.01, 50, False)},
        {**TASKS, "gram": MeanOfGrams(), "weights": MinNorm(), "shared_batch": True},
    ),
    "FedCMOOPref": (
        {**TASKS, "preference": PREFERENCE, "value_batch_size": 2, "least": None},
        {**TASKS, "gram": OneWay(Exact()), "least": Least(0.3, mixture=False)},
    ),
    "FedCMOOTheory": ({"server_lr": 0.7, "local_steps": 3},),
    "FedDR": ({"eta": 3.0, "relaxation": 0.8, "participation": 0.6},),
    "FedFW": ({"batch_size": 2, "participation": 0.7, "schedule": Nonconvex(5)},),
    "FedFWPlus": ({"batch_size": 2, "schedule": Fixed(0.3)},),
    "FedFWSto": ({"participation": 0.7, "schedule": Convex(grows=False)},),
    "FedFWReset": ({"schedule": Nonconvex(5, grows=False)},),
    "FedSGM": (
        {
            **BATCHES,
            **LIMITS,
            **FACTORS,
            "switch": Soft(2.0),
            "resample_for_update": True,
        },
        {
            **BATCHES,
            **LIMITS,
            "uplink": RandK(0.5, scaled=False),
            "downlink": Rounding(2),
        },
    ),
    "FSMGDA": ({**TASKS, "least": Least(0.3), "weights": FindWeights(0.01, 50)},),
    "Scalarized": ({"server_lr": 0.7, "task": 2},),
    "MGDA": ({"batch_size": 2, "weights": FindWeights(0.01, 50)},),
    "MultiFedSGM": (
        {
            **BATCHES,
            **LIMITS,
            **FACTORS,
            "switch": Soft(0.05),
            "weights": FindWeights(0.01, 50),
        },
        {**BATCHES, "weights": (3, 1, 2), "resample_for_update": True},
    ),
    "NaiveFW": ({"batch_size": 2},),
    "SSCA": ({"ridge": 0.01, "debias": True},),
    "ConstrainedSSCA": ({"levels": 0.3, **LIMITED}, {"levels": 0.5, "growth": 2.0}),
    "MiniBatchSGD": ({"ridge": 0.05, "local_steps": 3},),
    "VerticalSGD": ({"ridge": 0.05, "head": 2},),
    "VerticalSSCA": ({"ridge": 0.05, "debias": True, "head": 2},),
    "ConstrainedVerticalSSCA": ({"levels": 0.3, **LIMITED, "head": 2},),
}


def digits_network():
    """The network of the SSCA paper with eight hidden cells, on scikit-learn's digits."""
    rows = fl.data.digits()
    flat = replace(rows, X=rows.X.flatten(1).double())
    options = {
        "clients": 4,
        "hidden": 8,
        "evaluate": 100,
        "scale": 16.0,
        "dtype": torch.float64,
    }
    return swish_network(flat, flat, **options)


def cases():
    """Name, algorithm and problem: the examples, and the first of each with other options."""
    on_paper = vertical_network(digits_network(), clients=4, scale=16.0)
    for name, listed in examples().items():
        if isinstance(listed[0].problem, VerticalProblem):
            example, *further = listed
            listed = (Example(example.algorithm, on_paper), *further)  # the network of the paper
        for i, (algorithm, problem) in enumerate(listed):
            yield f"{name} {i}", algorithm, problem
        algorithm, problem = listed[0]
        for i, options in enumerate(OTHER.get(name, ())):
            yield f"{name} other {i}", replace(algorithm, **options), problem


CASES = {name: (algorithm, problem) for name, algorithm, problem in cases()}


def summary(algorithm, problem):
    """What the rounds leave: two numbers of the model, the last reports, the metrics."""
    fed = fl.Vectorized(problem)  # one for all rounds, so their bits add up
    *_, (_, _, state, info) = walk(
        algorithm,
        problem,
        ROUNDS,
        lambda _: fed,
        seed=3,
    )
    w = state.w.double()
    waves = torch.arange(len(state.w)).cos().double()
    values = {"size": w.norm(), "waves": w @ waves, **info}
    if hasattr(algorithm, "output"):
        values["output"] = algorithm.output(state).nan_to_num() @ waves
    values |= {f"metric {k}": v for k, v in problem.metrics(state.w, problem).items()}
    return {k: float(f"{torch.as_tensor(v).double().sum():.9g}") for k, v in values.items()}


PINNED = json.loads(PINS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PINNED)
def test_three_rounds_are_pinned(name):
    pinned = pytest.approx(PINNED[name], rel=1e-6, abs=1e-9)
    assert summary(*CASES[name]) == pinned, (
        f"{name}: three rounds no longer give what is pinned; if that is meant, run "
        f"`python -m tests.fedlib.algorithms.test_pinned {name.split()[0]}` and `make recheck`"
    )


if __name__ == "__main__":
    for name, case in CASES.items():
        if name.split()[0] in sys.argv[1:]:
            print(f"{json.dumps(name)}: {json.dumps(summary(*case))},")
