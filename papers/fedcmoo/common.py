"""What the FedCMOO studies of picture pairs share: the problem, the methods, their step sizes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref
from fedlib.algorithms.fsmgda import FSMGDA
from fedlib.algorithms.scalarized import Scalarized
from fedlib.core import Problem, Trace
from fedlib.core.trace import Array
from fedlib.weights import Least
from papers.fedcmoo.data import pairs
from papers.fedcmoo.problems.paired_digits import paired_digits
from papers.fedcmoo.standin import DIGITS, standin_pairs
from papers.kit.claims import Claim
from papers.kit.plot import COLORS
from papers.kit.rules import Control
from papers.kit.study import Params

cmoo = partial(Claim, paper="C")

#: Null data; of fewer than three seeds there are none.
NOTHING = Control(
    "one method on its first seeds and on its last instead of both methods",
    labels={"minus": "nothing"},
)

METHODS = {"fsmgda": "FSMGDA", "fedcmoo": "FedCMOO", "pref": "FedCMOO-Pref"}
#: A method has one colour in all figures.
COLOR = dict(zip(METHODS.values(), COLORS, strict=False))
TWO = {"fedcmoo": "FedCMOO", "fsmgda": "FSMGDA"}

GREY = {"multi_mnist": "MultiMNIST", "mnist_fashion": "MNIST + Fashion-MNIST"}
HELD = 5000  # training pictures of CIFAR-10 that no client has, for evaluation

#: Server and client step sizes of the paper (section D), by data set and method.
RATES = {
    "multi_mnist": {"fsmgda": (2.0, 0.1), "fedcmoo": (1.2, 0.5), "pref": (1.6, 0.3)},
    "mnist_fashion": {"fsmgda": (2.0, 0.1), "fedcmoo": (1.2, 0.5), "pref": (1.6, 0.3)},
    "cifar10_mnist": dict.fromkeys(("fsmgda", "fedcmoo", "pref"), (1.6, 0.3)),
}

#: Parameters of the encoder, which the tasks share, by data set: of `pair_lenet` and `pair_cnn`.
ENCODERS = {"multi_mnist": 28_515, "mnist_fashion": 28_515, "cifar10_mnist": 1_685_888}

#: FSMGDA's weights for two objectives end at 0.001 and 0.999 in the authors' code.
CLIPPED = Least(0.002, mixture=False)

SHARED: dict[str, tuple[Any, ...]] = {
    "source": (
        "0: the paper's pictures, 2: stand-ins of scikit-learn's digits, without a download",
        0,
        2,
    ),
    "clients": ("clients N", 100, 6),
    "participants": ("clients a round", 10, 2),
    "local_steps": ("local steps E, a minibatch each", 10, 2),
    "batch": ("rows of a client's minibatch", 128, 16),
    "loss_rows": ("rows on which a client of FedCMOO-Pref estimates its losses", 600, 32),
    "alpha": ("concentration of the Dirichlet split over composite labels", 0.3),
    "copies": ("turned copies of every training picture", 3, 1),
    "pictures": ("0: all training pictures; else the first so many", 0, 480),
    "test_pictures": ("0: all test pictures; else the first so many", 0, 80),
    "evaluate_every": ("rounds between two evaluations", 5, 1),
}


def shared(**quick: int) -> dict[str, tuple[Any, ...]]:
    """The shared parameters, some with another value in the quick profile."""
    declared = dict(SHARED)
    for name, value in quick.items():
        meaning, full, *_ = SHARED[name]
        declared[name] = (meaning, full, value)
    return declared


@lru_cache(maxsize=3)
def pair_problem(
    seed: int,
    *,
    data: str,
    clients: int,
    alpha: float,
    copies: int,
    pictures: int,
    test_pictures: int,
    kinds: tuple[str, str] = ("nll", "nll"),
    stand_in: bool = False,
) -> Problem:
    """The two tasks of one composite set, split by the seed; CIFAR-10 with held-out pictures."""
    load = standin_pairs if stand_in else pairs.load
    train = load(data, "train", pictures)
    test = load(data, "test", 0)
    heldout = None
    if data == "cifar10_mnist":
        count = len(train.y)
        kept = count - min(HELD, count // 5)
        heldout = slice_pairs(train, slice(kept, None))
        train = slice_pairs(train, slice(kept))
    config = {"data": data}
    if stand_in:
        config["stand_in"] = DIGITS
    return paired_digits(
        train,
        test,
        clients=clients,
        seed=seed,
        alpha=alpha,
        copies=copies,
        kinds=kinds,
        evaluate=test_pictures or None,
        held=heldout,
        config=config,
    )


def final(
    trace: Trace,
    name: str,
    share: float = 0.1,
    end: int | None = None,
) -> Array:
    """Per seed the mean of a metric over the models evaluated in the last share of the rounds.

    The final model is among them. `end` is the last round that is looked at.
    """
    rounds = trace.rounds
    end = int(rounds[-1]) if end is None else end
    late = (rounds > (1 - share) * end) & (rounds <= end)
    return np.asarray(trace.metrics[name][:, late].mean(1))


def slice_pairs(pictures: pairs.Pairs, rows: slice) -> pairs.Pairs:
    """Some of the pictures, with their labels."""
    return replace(pictures, X=pictures.X[rows], y=pictures.y[rows])


def task(p: Params) -> dict[str, Any]:
    """What every problem on pictures is told."""
    return {
        "clients": p["clients"],
        "pictures": p["pictures"],
        "test_pictures": p["test_pictures"],
        "alpha": float(p["alpha"]),
    }


def work(p: Params, rates: tuple[float, float]) -> dict[str, Any]:
    """What every method is told; `rates` are the step sizes of the server and of the clients."""
    server_lr, lr = rates
    return {
        "lr": lr,
        "server_lr": server_lr,
        "batch_size": p["batch"],
        "local_steps": p["local_steps"],
        "participants": p["participants"],
    }


def method(name: str, data: str, p: Params, **changes: Any) -> Any:
    """An algorithm with the paper's step sizes on a data set.

    `name` is `"fsmgda"`, `"fedcmoo"`, `"pref"`, or `"scalarized"`, which has FedCMOO's step sizes.
    """
    if name == "scalarized":
        settings = work(p, RATES[data]["fedcmoo"])
        return Scalarized(**(settings | changes))
    settings = work(p, RATES[data][name])
    settings["shared"] = ENCODERS[data]
    if name == "fsmgda":
        settings["least"] = CLIPPED
        return FSMGDA(**(settings | changes))
    if name == "fedcmoo":
        return FedCMOO(**(settings | changes))
    settings["value_batch_size"] = p["loss_rows"]
    return FedCMOOPref(**(settings | changes))
