"""The runs of the study of two tasks in one picture, with the labels by which they are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

from fedlib.algorithms.fedcmoo import FedCMOOPref
from fedlib.compress import LowRank
from fedlib.core import Problem
from fedlib.core.describe import renamed_from
from fedlib.weights import OneWay, TwoWay
from papers.fedcmoo.common import GREY, METHODS, RATES, method, pair_problem, task
from papers.fedcmoo.data.pairs import MNIST_SCALE
from papers.fedcmoo.guarded import GuardedFedCMOOPref, with_plain_values
from papers.fedcmoo.problems.paired_digits import dropped
from papers.fedcmoo.standin import stands_in
from papers.kit.quantities import Defaults, Label, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

DATA = {**GREY, "cifar10_mnist": "CIFAR-10 + MNIST"}
MIXED = {"scalarized": "Scalarized", "fsmgda": "FSMGDA", "fedcmoo": "FedCMOO"}
#: Step sizes of server and clients: those that the paper gives FSMGDA, FedCMOO-Pref and FedCMOO.
STEP_SIZES = ((2.0, 0.1), (1.6, 0.3), (1.2, 0.5))
STEPPED = {"scalarized": "plain average", "fsmgda": "FSMGDA", "fedcmoo": "FedCMOO"}

#: The labels of runs, each with its usual value; None where there is none. `lr` is the step size of
#: clients in runs at the step sizes of another method; other runs have those of the paper.
DEFAULTS: Defaults = {
    "data": None,
    "losses": "likelihoods",
    "method": None,
    "task": None,
    "gram": "two-way",
    "least_weight": True,
    "lr": None,
    "dropout": False,
}

CURVES = ("loss", "loss_1", "loss_2", "accuracy", "accuracy_1", "accuracy_2")
HELD_OUT = tuple(f"held_{name}" for name in CURVES)
#: Curves of some methods and data sets.
OPTIONAL = (*HELD_OUT, "weight_1", "direction", "mu", "fallback", "rejected", "accepted")

JUDGES = 10  # the first clients, whose losses the guard of the authors' code looks at


def base(
    algorithm: Any,
    data: str,
    p: Params,
    seeds: Any,
    rounds: int,
    *,
    dropout: bool = False,
    **options: Any,
) -> Spec:
    """A run on two tasks; with dropout FedCMOO-Pref is that of the authors' code."""
    maker: Any = dropped_problem if dropout else pair_problem
    if dropout and isinstance(algorithm, FedCMOOPref):
        algorithm = guarded(algorithm, p)
        maker = valued_problem
    if stands_in("cmoo", p):
        options["stand_in"] = True
    problem = partial(
        maker,
        data=data,
        copies=p["copies"],
        **task(p),
        **options,
    )
    interval = p["evaluate_every"]
    return Spec(
        algorithm,
        problem,
        rounds,
        tuple(seeds),
        interval,
        CURVES,
        OPTIONAL,
    )


@renamed_from("papers.fedcmoo.pairs.dropped_problem")
def dropped_problem(seed: int, **task: Any) -> Problem:
    return dropped(pair_problem(seed, **task), MNIST_SCALE)


@renamed_from("papers.fedcmoo.pairs.valued_problem")
def valued_problem(seed: int, **task: Any) -> Problem:
    """Trained with dropout; clients evaluate losses without, as in the authors' code."""
    plain = pair_problem(seed, **task)
    return with_plain_values(dropped(plain, MNIST_SCALE), plain)


def guarded(method: Any, p: Params) -> GuardedFedCMOOPref:
    """FedCMOO-Pref with the guard of the authors' code."""
    settings = {f.name: getattr(method, f.name) for f in fields(method)}
    judges = min(JUDGES, p["clients"])
    return GuardedFedCMOOPref(**settings, judges=judges, judge_rows=p["loss_rows"])


def stepped(name: str, data: str, lr: float) -> dict[str, Label]:
    """The labels of a method at a client's step size of `STEP_SIZES`, with dropout."""
    labels: dict[str, Label] = {"data": data, "method": name, "dropout": True}
    is_own = name in METHODS and RATES[data][name][1] == lr
    return labels if is_own else {**labels, "lr": lr}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], DEFAULTS)


def runs(p: Params) -> Iterator[Spec]:
    """All methods on all data sets, single tasks, exchanged step sizes, and variants."""
    for data in GREY:
        yield from on_grey(data, p)
    yield from at_steps_of_others("mnist_fashion", p)
    yield from variants("mnist_fashion", p)
    yield from with_two_losses("multi_mnist", p)
    yield from on_colour("cifar10_mnist", p)


def labelled(spec: Spec, **labels: Label) -> Spec:
    """A run with its labels, and those that all runs have."""
    usual = {name: value for name, value in DEFAULTS.items() if value is not None}
    complete: dict[str, Any] = {**usual, **labels}
    return replace(spec, labels={name: complete[name] for name in DEFAULTS if name in complete})


def with_dropout(algorithm: Any, data: str, p: Params, **options: Any) -> Spec:
    """A run with the dropout of the authors' network."""
    seeds = p["dropout_seeds"]
    rounds = p["dropout_rounds"]
    return base(
        algorithm,
        data,
        p,
        seeds,
        rounds,
        dropout=True,
        **options,
    )


def on_grey(data: str, p: Params) -> Iterator[Spec]:
    """The three methods without and with dropout, and training in one task alone."""
    for name in METHODS:
        algorithm = method(name, data, p)
        plain = base(
            algorithm,
            data,
            p,
            p["seeds"],
            p["rounds"],
        )
        yield labelled(plain, data=data, method=name)
        yield labelled(with_dropout(algorithm, data, p), data=data, method=name, dropout=True)
    server_lr, lr = RATES[data]["pref"]  # at FedCMOO's step sizes a run diverged
    for number in (1, 2):
        algorithm = method(
            "scalarized",
            data,
            p,
            task=number,
            lr=lr,
            server_lr=server_lr,
        )
        single = base(
            algorithm,
            data,
            p,
            p["single_seeds"],
            p["rounds"],
        )
        yield labelled(single, data=data, method="single", task=number)


def at_steps_of_others(data: str, p: Params) -> Iterator[Spec]:
    """Each method, and the plain average, at the step sizes of all."""
    if not p["exchanged"]:
        return
    for name in STEPPED:
        for server_lr, lr in STEP_SIZES:
            labels = stepped(name, data, lr)
            if "lr" in labels:
                algorithm = method(
                    name,
                    data,
                    p,
                    lr=lr,
                    server_lr=server_lr,
                )
                yield labelled(with_dropout(algorithm, data, p), **labels)


def variants(data: str, p: Params) -> Iterator[Spec]:
    """One-way compression, and FedCMOO-Pref without a least weight."""
    free = method("pref", data, p, least=None)
    plain = base(
        free,
        data,
        p,
        p["variant_seeds"],
        p["rounds"],
    )
    yield labelled(plain, data=data, method="pref", least_weight=False)
    for name in ("fedcmoo", "pref"):
        run = with_dropout(method(name, data, p, gram=OneWay()), data, p)
        yield labelled(
            run,
            data=data,
            method=name,
            gram="one-way",
            dropout=True,
        )
    run = with_dropout(free, data, p)
    yield labelled(
        run,
        data=data,
        method="pref",
        least_weight=False,
        dropout=True,
    )


def with_two_losses(data: str, p: Params) -> Iterator[Spec]:
    """The squared loss in one task, the negative log-likelihood in the other."""
    for name in MIXED:
        run = base(
            method(name, data, p),
            data,
            p,
            p["seeds"],
            p["mixed_rounds"],
            dropout=True,
            kinds=("squared", "nll"),
        )
        yield labelled(
            run,
            data=data,
            losses="mixed",
            method=name,
            dropout=True,
        )


def on_colour(data: str, p: Params) -> Iterator[Spec]:
    """The three methods on CIFAR-10 with digits, the Jacobian compressed both ways."""
    sketch = LowRank(budget=float(p["colour_budget"]))
    for name in METHODS:
        sketched = {} if name == "fsmgda" else {"gram": TwoWay(sketch)}
        algorithm = method(name, data, p, **sketched)
        run = base(
            algorithm,
            data,
            p,
            p["colour_seeds"],
            p["colour_rounds"],
        )
        yield labelled(run, data=data, method=name)
