"""Study of FedCMOO's Figures 1, 8, 9, 10 with many objectives: 2, 5 and 40 tasks of one picture.

The paper's forty attributes are those of CelebA's faces, which may not be passed on. The study has
them for whoever owns a copy (`source` 1); by default it takes the forty attributes of a digit and
an item (`papers.fedcmoo.data.attributes`), and in the quick profile the same attributes of
scikit-learn's digits, which need no download.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import torch

from fedlib import checks, data
from fedlib.algorithms.fedcmoo import FSMGDA, FedCMOO, FedCMOOPref
from fedlib.core import Problem
from papers.fedcmoo import networks
from papers.fedcmoo.common import CLIPPED, task, work
from papers.fedcmoo.data import celeba, pairs
from papers.fedcmoo.data.attributes import GROUPS, Labelled, labelled
from papers.fedcmoo.many import claims, figures
from papers.fedcmoo.many.numbers import METHODS, SETS, derive, per_task
from papers.fedcmoo.problems.attributes import attributes
from papers.fedcmoo.standin import noted
from papers.kit.health_checks import HealthCheck, HealthChecks
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Traces, parameters
from papers.kit.tolerance import Tolerance

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RATES", "STUDY", "attribute_table", "many_problem", "own_pictures", "specs"]

#: Where the pictures come from, by the parameter `source`.
SOURCES = ("mnist_fashion", "celeba", "stand-in")
HELD = 597  # of scikit-learn's 1797 digits, for the test

#: Server and client step size, the same for all methods: CelebA-5's of the paper, and CelebA's.
RATES = {"halves": (1.6, 0.3), "groups": (1.6, 0.3), "attributes": (1.0, 0.2)}

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split, participants and batches", (0,)),
    rounds=("communication rounds T", 25, 2),
    source=(
        "0: a digit and an item, 1: CelebA (your copy), 2: pairs of scikit-learn's digits",
        0,
        2,
    ),
    clients=("clients N", 100, 6),
    participants=("clients a round", 5, 1),
    local_steps=("local steps E, a minibatch each", 10, 2),
    batch=("rows of a client's minibatch", 128, 8),
    loss_rows=("rows on which a client of FedCMOO-Pref estimates its losses", 600, 16),
    alpha=("concentration of the Dirichlet split", 0.3),
    pictures=("0: all training pictures; else the first so many", 0, 600),
    test_pictures=("0: all test pictures; else the first so many", 5000, 100),
)


@lru_cache(maxsize=3)
def many_problem(
    seed: int,
    *,
    source: str,
    tasks: str,
    clients: int,
    alpha: float,
    pictures: int,
    test_pictures: int,
) -> Problem:
    train, test = (
        own_pictures(source, "train", pictures),
        own_pictures(source, "test", test_pictures),
    )
    share = test.a.float().mean(0)
    majority = round(float(torch.maximum(share, 1 - share).mean()), 6)
    return attributes(
        train,
        test,
        groups=members(train, source, tasks),
        clients=clients,
        seed=seed,
        alpha=alpha,
        config={"data": source, "tasks": tasks, "majority": majority},
    )


@lru_cache(maxsize=4)
def own_pictures(source: str, split: str, limit: int) -> Labelled:
    if source == "celeba":
        return celeba.celeba(split, limit or None)
    if source == "stand-in":
        return labelled(two_digits(split, limit))
    return labelled(pairs.load(source, split, limit or None))


def two_digits(split: str, limit: int, seed: int = 0) -> pairs.Pairs:
    """Two of scikit-learn's digits on 28 x 28 pixels; the class of the second is the item's."""
    table = data.digits()
    part = slice(-HELD, None) if split == "test" else slice(-HELD)
    X, y = (table.X[part] * 15).repeat_interleave(2, 1).repeat_interleave(2, 2), table.y[part]
    partner = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    canvas = torch.zeros(len(y), 28, 28, dtype=torch.uint8)
    canvas[:, :16, :16] = X
    canvas[:, 12:, 12:] = torch.maximum(canvas[:, 12:, 12:], X[partner])
    many = limit or len(y)
    labels = torch.stack([y, y[partner]], 1)[:many]
    return pairs.Pairs(
        canvas[:many].unsqueeze(1), labels, ("digit", "other digit"), pairs.MNIST_SCALE
    )


def members(pictures: Labelled, source: str, tasks: str) -> tuple[tuple[int, ...], ...] | None:
    """The attributes of every task: halves and groups as numbers, None for one task each."""
    count = len(pictures.names)
    if tasks == "halves":
        return tuple(range(count // 2)), tuple(range(count // 2, count))
    if tasks == "groups":
        return celeba.group_numbers(pictures.names) if source == "celeba" else GROUPS
    return None


@lru_cache(maxsize=2)
def encoder(source: str) -> int:
    made = networks.resnet if source == "celeba" else networks.pair_lenet
    return networks.encoder_size(made(torch.Generator()))


def source_of(p: Params) -> str:
    checks.one_of("cmoo_many", "source", p["source"], range(len(SOURCES)))
    return SOURCES[p["source"]]


def method(name: str, tasks: str, p: Params) -> Any:
    """An algorithm with the paper's step sizes: `"fsmgda"`, `"fedcmoo"` or `"pref"`."""
    common = {**work(p, RATES[tasks]), "shared": encoder(source_of(p))}
    if name == "fsmgda":
        return FSMGDA(**common, least=CLIPPED if tasks == "halves" else None)
    if name == "fedcmoo":
        return FedCMOO(**common)
    return FedCMOOPref(**common, value_batch_size=p["loss_rows"])


def specs(p: Params) -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    for tasks, count in SETS.items():
        each = [f"{what}_{k}" for k in range(1, count + 1) for what in ("loss", "accuracy")]
        keep = ("loss", "accuracy", *each, "direction", "mu", "fallback")
        problem = partial(many_problem, source=source_of(p), tasks=tasks, **task(p))
        for name in reversed(METHODS):
            made = method(name, tasks, p)
            found[f"{tasks}_{name}"] = Spec(
                made, problem, p["rounds"], tuple(p["seeds"]), keep=keep
            )
    return found


def attribute_table(p: Params, traces: Traces) -> pd.DataFrame:
    """The attributes: number, task among five, share of positives, final test losses as tasks."""
    import pandas as pd

    source = source_of(p)
    train = own_pictures(source, "train", p["pictures"])
    groups = members(train, source, "groups") or ()
    where = {k: g + 1 for g, group in enumerate(groups) for k in group}
    share = train.a.float().mean(0)
    table = pd.DataFrame(
        {
            "attribute": train.names,
            "task of five": [where[k] for k in range(len(train.names))],
            "share of positives": [f"{float(x):.0%}" for x in share],
        },
        index=range(1, len(train.names) + 1),
    )
    for name, label in figures.LABELS.items():
        loss = per_task(traces[f"attributes_{name}"], "loss").mean(0)
        table[f"loss, {label}"] = [f"{x:.3f}" for x in loss]
    return table


WATCH: HealthChecks = {
    "*": (
        HealthCheck("loss"),
        HealthCheck("loss_*"),
        HealthCheck("accuracy", chance="problem.majority"),
    ),
}


STUDY = Study(
    name="cmoo_many",
    title="Many objectives",
    paper="C",
    data=("mnist", "fashion_mnist"),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    figures=noted(figures.FIGURES),
    watch=WATCH,
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={"rounds": 200, "participants": 10, "seeds": (0, 1, 2)},
    **PARAMETERS,
)
