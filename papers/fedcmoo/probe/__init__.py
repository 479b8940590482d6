"""Study of FedCMOO's Table 3 and Figure 11: errors of Gram estimates, local progress."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from fedlib.algorithms.fedcmoo import FedCMOOPref
from fedlib.core import Problem
from papers.fedcmoo.common import ENCODERS, GREY, method, shared, task, work
from papers.fedcmoo.many.runs import STAND_IN, many_problem, own_pictures
from papers.fedcmoo.pairs.runs import base
from papers.fedcmoo.probe import claims, figures
from papers.fedcmoo.probe.methods import ERRORS, GramProbe, ProgressProbe
from papers.fedcmoo.probe.numbers import derive
from papers.fedcmoo.problems.attributes import attributes
from papers.fedcmoo.standin import noted, stands_in
from papers.kit.health import learning, nothing
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Tolerance

ATTRIBUTE_RATES = 1.0, 0.2  # server and client step size of the paper's forty attributes
GAINS = tuple(
    f"{who}_{what}{k}"
    for who in ("method", "alone", "share")
    for what in ("loss", "accuracy")
    for k in ("", "_1", "_2")
)
CURVES = ("loss", "accuracy")

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split, participants and batches", (0,)),
    gram_rounds=("rounds with two grey tasks in which the Gram estimates are measured", 30, 1),
    colour_rounds=("the same number on CIFAR-10 with digits; 0: none", 2, 0),
    attribute_rounds=("the same number with forty attributes; 0: none", 3, 1),
    attribute_participants=("clients a round with forty attributes", 6, 2),
    progress_rounds=("rounds in which local progress is measured", 40, 2),
    equal_rounds=("rounds in which FSMGDA's local training has FedCMOO's step size", 12, 1),
    **shared(),
)


@lru_cache(maxsize=2)
def attribute_problem(
    seed: int, *, clients: int, alpha: float, pictures: int, test_pictures: int
) -> Problem:
    return attributes(
        own_pictures("mnist_fashion", "train", pictures),
        own_pictures("mnist_fashion", "test", test_pictures),
        clients=clients,
        seed=seed,
        alpha=alpha,
        config={"data": "mnist_fashion attributes"},
    )


def specs(p: Params) -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    lengths = {**dict.fromkeys(GREY, p["gram_rounds"]), "cifar10_mnist": p["colour_rounds"]}
    for data, rounds in lengths.items():
        if rounds:
            probe = GramProbe(method("pref", data, p))
            found[f"gram_{data}"] = kept(base(probe, data, p, p["seeds"], rounds), ERRORS)
    if p["attribute_rounds"]:
        found["gram_attributes"] = kept(of_attributes(p), ERRORS)
    for data in GREY:
        followed = method("fedcmoo", data, p)
        rivals = {
            "": method("fsmgda", data, p),
            "_equal": method("fsmgda", data, p, lr=followed.lr),
        }
        for suffix, rival in rivals.items():
            rounds = p["equal_rounds"] if suffix else p["progress_rounds"]
            run = base(ProgressProbe(followed, rival), data, p, p["seeds"], rounds)
            found[f"progress_{data}{suffix}"] = kept(run, GAINS)
    return found


def kept(run: Spec, infos: tuple[str, ...]) -> Spec:
    return replace(run, keep=(*CURVES, *infos))


def of_attributes(p: Params) -> Spec:
    few = {**p, "participants": p["attribute_participants"]}
    pref = FedCMOOPref(
        **work(few, ATTRIBUTE_RATES),
        value_batch_size=p["loss_rows"],
        shared=ENCODERS["mnist_fashion"],
        shared_batch=True,
    )
    made: Any = attribute_problem
    if stands_in("cmoo_probe", p):
        made = partial(many_problem, source=STAND_IN, tasks="attributes")
    rounds, seeds = p["attribute_rounds"], tuple(p["seeds"])
    return Spec(GramProbe(pref), partial(made, **task(p)), rounds, seeds, p["evaluate_every"])


STUDY = Study(
    name="cmoo_probe",
    title="Gram estimates and local progress, FedCMOO",
    paper="C",
    data=("mnist", "fashion_mnist", "cifar10"),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    figures=noted(figures.FIGURES),
    watch={
        "gram_*": nothing("estimates of Gram matrices along a few rounds, whatever these gain"),
        "*": learning(0.1),
    },
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={  # the rounds of the authors' demo
        "gram_rounds": 300,
        "colour_rounds": 300,
        "attribute_rounds": 300,
        "attribute_participants": 10,
        "progress_rounds": 300,
        "equal_rounds": 300,
        "seeds": (0, 1, 2),
    },
    **PARAMETERS,
)
