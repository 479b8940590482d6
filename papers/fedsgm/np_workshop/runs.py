"""The runs of study W, with the labels by which everything else finds them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

from fedlib.algorithms.fedsgm import FedSGM, State
from fedlib.compress import Identity, RandK
from fedlib.core import Problem
from fedlib.core.client import ClientState
from fedlib.core.describe import renamed_from
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.shapes import Scalar
from papers.fedsgm.common import breast_cancer, switch_of, usual_labels
from papers.kit.quantities import Defaults, Label, Labels, by_name, completed
from papers.kit.store import Spec
from papers.kit.study import Params

MODES = ("hard", "soft")
#: What the paper leaves open: step size, K/d, and the class whose loss is the constraint; and the
#: sharpness, from the theory's value to three times it, as the authors say.
OPEN_LRS = (0.1, 0.3, 1.0)
OPEN_FRACTIONS = (0.1, 1.0)
CLASSES = ("malignant", "benign")
OPEN_BETAS = (20.0, 40.0, 60.0)
OPEN_SEEDS = tuple(range(8200, 8240))
#: The labels of runs at the paper's setting; None where there is none.
PAPER: Defaults = {
    "switch": None,
    "beta": 20.0,
    "lr": 0.3,
    "fraction": 0.1,
    "positive": CLASSES[0],
    "splits": "main",
    "settled": False,
}


class Measured(NamedTuple):
    """The state after a round, and how far the local models were from their mean."""

    state: State
    drift: Scalar


@dataclass(frozen=True)
class DriftingFedSGM(FedSGM):
    """FedSGM without compression that reports the drift of its clients.

    The report `drift` of a round is the root mean square distance of the local models, after their
    local steps, from the mean of these models.
    """

    def server_step(
        self,
        fed: Federation,
        state: Any,
        draw: Draw,
        clients: ClientState,
        answers: Any,
        sigma: Scalar,
    ) -> Any:
        """Step as FedSGM does, and measure what the clients sent."""
        apart = self.lr * (answers - answers.mean(0))
        drift = apart.square().sum(1).mean().sqrt()
        return Measured(
            super().server_step(
                fed,
                state,
                draw,
                clients,
                answers,
                sigma,
            ),
            drift,
        )

    def round(
        self,
        fed: Federation,
        state: Any,
        draw: Draw,
    ) -> tuple[Any, Info]:
        """Make a round of FedSGM."""
        measured: Any
        measured, info = super().round(fed, state, draw)
        return measured.state, {**info, "drift": measured.drift}


def defaults(p: Params) -> Defaults:
    """The labels of runs and quantities, each with its usual value; None where there is none."""
    return {**usual_labels(PAPER, p), "prediction": None}


@renamed_from("papers.fedsgm.np_workshop.problem")
@lru_cache(maxsize=64)
def problem(seed: int, positive: str = CLASSES[0], clients: int = 10) -> Problem:
    """560 of the 569 samples on equal, stratified clients."""
    return breast_cancer(seed, clients=clients, positive=positive)


def specs(p: Params) -> dict[str, Spec]:
    """Hard and soft at the main setting, along each sweep, and settled; and all open settings."""
    return by_name([*runs(p)], defaults(p))


def runs(p: Params) -> Iterator[Spec]:
    """The runs of both ways of switching, one after the other."""
    for mode in MODES:
        yield from of_mode(mode, p)
    for mode, lr in product(MODES, p["drift_lrs"]):
        labels: Labels = {"switch": mode, "lr": lr, "fraction": 1.0, "splits": "drift"}
        yield labelled(p, labels, seeds=p["drift_seeds"], keep=("f", "g", "drift"))
    if p["many"]:
        for start in open_starts():
            for labels in open_modes(start):
                yield labelled(p, labels, seeds=OPEN_SEEDS)


def of_mode(mode: str, p: Params) -> Iterator[Spec]:
    """One way of switching at the main setting, along each sweep, and settled."""
    with_weights = ("f", "g", "sigma")
    main = {"switch": mode}
    yield labelled(p, main, keep=with_weights)
    yield labelled(p, {**main, "splits": "fresh"}, seeds=p["fresh"], evaluate_every=5)
    for lr in p["lrs"]:
        yield labelled(p, {**main, "lr": lr})
    if mode == "soft":
        for beta in p["betas"]:
            yield labelled(p, {**main, "beta": beta})
    yield labelled(
        p,
        {**main, "fraction": 1.0, "settled": True},
        rounds=p["settle_rounds"],
        evaluate_every=5,
        keep=with_weights,
    )


def open_starts() -> Iterator[Labels]:
    """The labels of every combination of step size, K/d, and class."""
    for lr, fraction, positive in product(OPEN_LRS, OPEN_FRACTIONS, CLASSES):
        yield {"lr": lr, "fraction": fraction, "positive": positive, "splits": "open"}


def open_modes(start: Mapping[str, Label]) -> Iterator[Labels]:
    """The labels of hard switching and three sharpnesses from one start."""
    yield {**start, "switch": "hard"}
    for beta in OPEN_BETAS:
        yield {**start, "switch": "soft", "beta": beta}


def labelled(p: Params, labels: Mapping[str, Label], **changes: Any) -> Spec:
    """The run with these labels, others at their defaults; `changes` are other fields of it."""
    without = ["beta"] if labels["switch"] == "hard" else []
    complete = completed(labels, defaults(p), without)
    task = partial(problem, positive=complete["positive"], clients=p["clients"])
    run = Spec(
        algorithm(p, complete),
        task,
        p["rounds"],
        p["seeds"],
        labels=complete,
    )
    return replace(run, **changes)


def algorithm(p: Params, labels: Mapping[str, Any]) -> FedSGM:
    """The algorithm that labels describe."""
    drifts = labels["splits"] == "drift"
    method = DriftingFedSGM if drifts else FedSGM
    return method(
        lr=labels["lr"],
        local_steps=p["local_steps"],
        participants=p["clients"],
        tolerance=p["tolerance"],
        switch=switch_of(labels),
        uplink=Identity() if labels["settled"] or drifts else RandK(labels["fraction"]),
        error_feedback=False,
    )
