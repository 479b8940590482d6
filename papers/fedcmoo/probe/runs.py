"""The runs of the study of Gram estimates and local progress."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from fedlib.algorithms.fedcmoo import FedCMOOPref
from fedlib.core import Problem
from fedlib.core.describe import renamed_from
from papers.fedcmoo.common import ENCODERS, GREY, method, task, work
from papers.fedcmoo.many.runs import STAND_IN, many_problem, own_pictures
from papers.fedcmoo.pairs.runs import base
from papers.fedcmoo.probe.methods import (
    ERRORS,
    SCALE_FREE,
    TRAINED,
    GramProbe,
    ProgressProbe,
)
from papers.fedcmoo.problems.attributes import attributes
from papers.fedcmoo.standin import stands_in
from papers.kit.quantities import Defaults, Label, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

#: `steps` are the step sizes of FSMGDA's local training: its printed ones, or equal to FedCMOO's.
#: `trained`, `exchange` and `sketch` are labels of quantities alone.
DEFAULTS: Defaults = {
    "probe": None,
    "data": None,
    "steps": "printed",
    "trained": None,
    "exchange": None,
    "sketch": None,
}
ATTRIBUTE_RATES = 1.0, 0.2  # server and client step size of the paper's forty attributes
CURVES = ("loss", "accuracy")
#: What training gains: means over both objectives, and of each.
GAINS = tuple(f"{curve}{objective}" for curve in CURVES for objective in ("", "_1", "_2"))


@renamed_from("papers.fedcmoo.probe.attribute_problem")
@lru_cache(maxsize=2)
def attribute_problem(
    seed: int,
    *,
    clients: int,
    alpha: float,
    pictures: int,
    test_pictures: int,
) -> Problem:
    """Forty attributes of the pictures of MNIST + Fashion-MNIST, split by the seed."""
    return attributes(
        own_pictures("mnist_fashion", "train", pictures),
        own_pictures("mnist_fashion", "test", test_pictures),
        clients=clients,
        seed=seed,
        alpha=alpha,
        config={"data": "mnist_fashion attributes"},
    )


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*gram(p), *progress(p)], DEFAULTS)


def gram(p: Params) -> Iterator[Spec]:
    """FedCMOO-Pref with errors of Gram estimates, on grey pictures as in the authors' code.

    There it has their dropout and their guard. Data with 0 rounds are left out.
    """
    for data in GREY:
        pref = method("pref", data, p)
        run = base(
            pref,
            data,
            p,
            p["gram_seeds"],
            p["gram_rounds"],
            dropout=True,
        )
        guarded: Any = run.algorithm
        run = replace(run, algorithm=GramProbe(guarded))
        yield labelled(run, (*ERRORS, *SCALE_FREE), probe="gram", data=data)
    if p["colour_rounds"]:
        probe = GramProbe(method("pref", "cifar10_mnist", p))
        run = base(
            probe,
            "cifar10_mnist",
            p,
            p["seeds"],
            p["colour_rounds"],
        )
        yield labelled(run, ERRORS, probe="gram", data="cifar10_mnist")
    if p["attribute_rounds"]:
        yield labelled(of_attributes(p), ERRORS, probe="gram", data="attributes")


def of_attributes(p: Params) -> Spec:
    """The run with forty attributes."""
    pref = FedCMOOPref(
        **work({**p, "participants": p["attribute_participants"]}, ATTRIBUTE_RATES),
        value_batch_size=p["loss_rows"],
        shared=ENCODERS["mnist_fashion"],
        shared_batch=True,
    )
    problem: Any = attribute_problem
    if stands_in("cmoo_probe", p):
        problem = partial(many_problem, source=STAND_IN, tasks="attributes")
    problem = partial(problem, **task(p))
    seeds = tuple(p["seeds"])
    return Spec(
        GramProbe(pref),
        problem,
        p["attribute_rounds"],
        seeds,
        p["evaluate_every"],
    )


def progress(p: Params) -> Iterator[Spec]:
    """FedCMOO with gains of its local training, and of FSMGDA's at both step sizes.

    Both train with the dropout of the authors' code.
    """
    gains = tuple(f"{trained}_{gain}" for trained in TRAINED for gain in GAINS)
    for data in GREY:
        followed = method("fedcmoo", data, p)
        rivals = {
            "printed": (method("fsmgda", data, p), p["progress_rounds"]),
            "equal": (method("fsmgda", data, p, lr=followed.lr), p["equal_rounds"]),
        }
        for steps, (rival, rounds) in rivals.items():
            probe = ProgressProbe(followed, rival)
            run = base(
                probe,
                data,
                p,
                p["progress_seeds"],
                rounds,
                dropout=True,
            )
            yield labelled(
                run,
                gains,
                probe="progress",
                data=data,
                steps=steps,
            )


def labelled(run: Spec, infos: tuple[str, ...], **labels: Label) -> Spec:
    """A run with labels, that keeps what was measured in every round."""
    return replace(run, keep=(*CURVES, *infos), labels=labels)
