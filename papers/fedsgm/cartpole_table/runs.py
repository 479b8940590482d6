"""The runs of study `cartpole_table`: Table 1 by the readings that its sentence allows."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fedlib.compress import Identity
from papers.fedsgm.cartpole import runs as cartpole
from papers.fedsgm.cartpole.runs import STATES
from papers.kit.quantities import Defaults, Label, Labels, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

#: How Top-K is simulated. The paper: "by zeroing out the gradient vector".
WAYS = ("gradient", "feedback", "update")


def defaults(p: Params) -> Defaults:
    """The labels of runs, each with its usual value; None where there is none."""
    return {**cartpole.defaults(p), "topk": None}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], defaults(p))


def runs(p: Params) -> Iterator[Spec]:
    """A row of Table 1 a run; of Top-K one by each reading."""
    soft: Labels = {"switch": "soft"}
    yield cartpole.labelled(p, soft)
    yield cartpole.labelled(p, {**soft, "participants": p["clients"]})
    for bits in p["formats"]:
        yield cartpole.labelled(p, {**soft, "bits": bits})
    for fraction in p["fractions"]:
        for topk in WAYS:
            yield sparse(p, {**soft, "fraction": fraction}, topk)
    yield cartpole.labelled(p, {**soft, "training": "central", "states": STATES * p["clients"]})


def sparse(p: Params, labels: Mapping[str, Label], topk: str) -> Spec:
    """A row with Top-K on the policy gradient, or on the messages without or with feedback."""
    run = cartpole.labelled(p, labels)
    method: Any = run.algorithm
    if topk == "gradient":
        method = replace(
            method,
            on_gradient=method.uplink,
            uplink=Identity(),
            downlink=Identity(),
        )
    elif topk == "update":
        method = replace(method, error_feedback=False)
    return replace(run, algorithm=method, labels={**run.labels, "topk": topk})
