"""Study of FedCMOO's Figures 1, 8, 9 and Tables 1, 2, 4 on two tasks of one picture."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

from fedlib.algorithms.fedcmoo import FedCMOOPref
from fedlib.compress import LowRank
from fedlib.core import Problem
from fedlib.weights import OneWay, TwoWay
from papers.fedcmoo.common import GREY, METHODS, RATES, method, pair_problem, shared, task
from papers.fedcmoo.data.pairs import MNIST_SCALE
from papers.fedcmoo.guarded import GuardedFedCMOOPref, with_plain_values
from papers.fedcmoo.pairs import claims, figures
from papers.fedcmoo.pairs.numbers import MIXED, STEP_SIZES, STEPPED, at_step, derive
from papers.fedcmoo.problems.paired_digits import dropped
from papers.fedcmoo.standin import stands_in
from papers.kit.health import HealthCheck, learning
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Tolerance

CURVES = ("loss", "loss_1", "loss_2", "accuracy", "accuracy_1", "accuracy_2")
HELD_OUT = tuple(f"held_{name}" for name in CURVES)
#: Curves of some methods and data sets.
OPTIONAL = (*HELD_OUT, "weight_1", "direction", "mu", "fallback", "rejected", "accepted")

JUDGES = 10  # the first clients, whose losses the guard of the authors' code looks at

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split, participants and batches", (0, 1, 2), (0, 1)),
    single_seeds=("seeds of training in one task alone", (0, 1, 2), (0,)),
    variant_seeds=("seeds without a least weight and without dropout", (0,)),
    rounds=("communication rounds T on the two grey data sets", 100, 2),
    mixed_rounds=("rounds with two kinds of loss, with dropout", 100, 1),
    dropout_seeds=("seeds of the runs with dropout", (0, 1, 2), (0,)),
    dropout_rounds=("rounds with dropout", 100, 1),
    exchanged=(
        "1: on MNIST + Fashion-MNIST, each method also with the others' step sizes",
        1,
        0,
    ),
    colour_seeds=("seeds on CIFAR-10 with digits", (0,)),
    colour_rounds=("rounds on CIFAR-10 with digits", 3, 1),
    colour_budget=(
        "length of a compressed Jacobian on CIFAR-10 with digits, in gradients",
        1.0,
        0.02,
    ),
    **shared(participants=1, local_steps=1, batch=8, loss_rows=16),
)


def base(
    algorithm: Any,
    data: str,
    p: Params,
    seeds: Any,
    rounds: int,
    *,
    dropout: bool = False,
    **more: Any,
) -> Spec:
    """A run on two tasks; with dropout FedCMOO-Pref is that of the authors' code."""
    made: Any = dropped_problem if dropout else pair_problem
    if dropout and isinstance(algorithm, FedCMOOPref):
        algorithm, made = guarded(algorithm, p), valued_problem
    if stands_in("cmoo", p):
        more["stand_in"] = True
    problem = partial(made, data=data, copies=p["copies"], **task(p), **more)
    every = p["evaluate_every"]
    return Spec(algorithm, problem, rounds, tuple(seeds), every, CURVES, OPTIONAL)


def dropped_problem(seed: int, **task: Any) -> Problem:
    return dropped(pair_problem(seed, **task), MNIST_SCALE)


def valued_problem(seed: int, **task: Any) -> Problem:
    """Trained with dropout; clients evaluate losses without, as in the authors' code."""
    plain = pair_problem(seed, **task)
    return with_plain_values(dropped(plain, MNIST_SCALE), plain)


def guarded(method: Any, p: Params) -> GuardedFedCMOOPref:
    """FedCMOO-Pref with the guard of the authors' code."""
    own = {f.name: getattr(method, f.name) for f in fields(method)}
    judges = min(JUDGES, p["clients"])
    return GuardedFedCMOOPref(**own, judges=judges, judge_rows=p["loss_rows"])


def specs(p: Params) -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    trained = p["dropout_seeds"], p["dropout_rounds"]
    for data in GREY:
        for name in METHODS:
            made = method(name, data, p)
            found[f"{data}_{name}"] = base(made, data, p, p["seeds"], p["rounds"])
            found[f"{data}_{name}_dropout"] = base(made, data, p, *trained, dropout=True)
        for k in (1, 2):
            server_lr, lr = RATES[data]["pref"]  # at FedCMOO's step sizes a run diverged
            made = method("scalarized", data, p, task=k, lr=lr, server_lr=server_lr)
            found[f"{data}_single_{k}"] = base(made, data, p, p["single_seeds"], p["rounds"])
    data, free = "mnist_fashion", method("pref", "mnist_fashion", p, least=None)
    for name in STEPPED if p["exchanged"] else ():
        for server_lr, lr in STEP_SIZES:
            if (run := at_step(name, lr)) not in found:
                made = method(name, data, p, lr=lr, server_lr=server_lr)
                found[run] = base(made, data, p, *trained, dropout=True)
    found[f"{data}_pref_free"] = base(free, data, p, p["variant_seeds"], p["rounds"])
    variants = {
        "fedcmoo_oneway": method("fedcmoo", data, p, gram=OneWay()),
        "pref_oneway": method("pref", data, p, gram=OneWay()),
        "pref_free": free,
    }
    for name, made in variants.items():
        found[f"{data}_{name}_dropout"] = base(made, data, p, *trained, dropout=True)
    for name in MIXED:
        made = method(name, "multi_mnist", p)
        long, kinds = p["mixed_rounds"], ("squared", "nll")
        found[f"mixed_{name}"] = base(
            made, "multi_mnist", p, p["seeds"], long, dropout=True, kinds=kinds
        )
    sketch = LowRank(budget=float(p["colour_budget"]))
    for name in METHODS:
        sketched = {} if name == "fsmgda" else {"gram": TwoWay(sketch)}
        made = method(name, "cifar10_mnist", p, **sketched)
        found[f"cifar10_mnist_{name}"] = base(
            made, "cifar10_mnist", p, p["colour_seeds"], p["colour_rounds"]
        )
    return found


STUDY = Study(
    name="cmoo_pairs",
    title="FedCMOO on two tasks in one picture",
    paper="C",
    data=("mnist", "fashion_mnist", "cifar10"),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    figures=figures.FIGURES,
    watch={
        **{
            f"*_single_{k}": (HealthCheck(f"loss_{k}"), HealthCheck(f"accuracy_{k}", chance=0.1))
            for k in (1, 2)
        },
        "*": (*learning(0.1), HealthCheck("loss_*"), HealthCheck("accuracy_*", chance=0.1)),
    },
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={  # rounds as printed for Figure 2, and the authors' default on CIFAR-10 + MNIST
        "rounds": 500,
        "mixed_rounds": 500,
        "dropout_rounds": 500,
        "colour_rounds": 200,
        "seeds": (0, 1, 2, 3, 4),
        "dropout_seeds": (0, 1, 2, 3, 4),
        "single_seeds": (0, 1, 2, 3, 4),
        "variant_seeds": (0, 1, 2),
        "colour_seeds": (0, 1, 2),
        "exchanged": 0,
    },
    **PARAMETERS,
)
