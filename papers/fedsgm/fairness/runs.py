"""The runs of the study of fair classification, with the labels by which they are found."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from fedlib.algorithms.conex import ConEx
from fedlib.algorithms.fedavg import FedAvg
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.penalty import PenaltyFedAvg, PenaltySGM
from fedlib.algorithms.sgm import SGM
from fedlib.core import Problem
from fedlib.core.describe import renamed_from
from fedlib.problems import fairness
from fedlib.problems.fairness import Sign
from fedlib.steps import SGD, Adam
from papers import adult
from papers.fedsgm.common import switch_of, usual_labels
from papers.kit.parameters import pairs
from papers.kit.quantities import Defaults, Label, Labels, by_name, completed
from papers.kit.store import Spec
from papers.kit.study import Params

#: The labels of runs at the study's setting; None where there is none.
USUAL: Defaults = {
    "training": "federated",
    "method": None,
    "beta": 40.0,
    "rho": None,
    "lr": 0.1,
    "dual": None,
    "local": "SGD",
    "local_steps": 2,
    "sign": "pooled",
    "splits": "first",
    "setting": None,
}
METRICS = ("f", "f_clients", "g", "test_loss", "test_accuracy", "test_gap")
MODES = ("hard", "soft")
STEPS = {"SGD": SGD(), "Adam": Adam()}
#: What the printed step size may mean where the paper's other settings are kept.
OPEN_STEPS: tuple[Labels, ...] = (
    {"lr": 0.1},
    {"lr": 0.3},
    {"lr": 1e-4, "local": "Adam"},
)
OPEN_BETAS = (40.0, 80.0, 120.0)  # from the theory's value to three times it, as the authors say
OPEN_RHOS = (0.1, 1.0, 10.0)
OPEN_SEEDS = (5, 6, 7)
#: Settings of C31 and C32 on thirty seeds, named before these had run: the penalty that tuning on
#: the first five seeds picks, for the federated and the pooled data, and the setting of ConEx with
#: the second smallest late gap there. That with the smallest, step size 0.1 and dual step 100, was
#: named first; on the first of the thirty seeds it leaves the finite numbers in round 256. The
#: change was committed before this setting had run.
BEST_RHO = 1.0
BEST_CONEX: Labels = {
    "training": "central",
    "method": "conex",
    "lr": 0.3,
    "dual": 10.0,
    "setting": "grid",
}


def defaults(p: Params) -> Defaults:
    """The labels of runs and quantities, each with its usual value; None where there is none."""
    return usual_labels(USUAL, p)


@lru_cache(maxsize=4)
def people(stand_in_rows: int) -> adult.Adult:
    """The official rows, or generated ones (half as many for the test)."""
    return adult.stand_in(stand_in_rows) if stand_in_rows else adult.official()


@renamed_from("papers.fedsgm.fairness.problem")
@lru_cache(maxsize=64)
def problem(
    seed: int,
    clients: int,
    alpha: float,
    sign: Sign = "pooled",
    stand_in_rows: int = 0,
) -> Problem:
    """The federated problem of a seed; clients = 1 is the centralized one."""
    rows = people(stand_in_rows)
    source = "generated stand-in" if stand_in_rows else "adult"
    test = rows.test.y
    config = {
        "data": source,
        "train_rows": len(rows.train.y),
        "test_rows": len(test),
        "majority": round(1 - float(test.mean()), 6),
    }
    return fairness(
        rows.train,
        rows.test,
        clients=clients,
        seed=seed,
        alpha=alpha,
        sign=sign,
        config=config,
    )


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], defaults(p))


def runs(p: Params) -> Iterator[Spec]:
    """Figure 7's curves, the penalties, fresh seeds, and what the printed step size may mean."""
    constrained = [*with_constraint(p)]
    federated = [*constrained, {"method": "fedavg"}]
    for labels in (*federated, *centralized_twins(constrained), *conex(p)):
        yield labelled(p, labels)
    chosen: list[Labels] = [{"method": mode} for mode in MODES]
    chosen.append({"method": "penalty", "rho": BEST_RHO})
    fresh = [*federated, *centralized_twins(chosen)]
    if BEST_CONEX in [*conex(p)]:
        fresh.append(BEST_CONEX)
    for labels in fresh:
        yield labelled(p, {**labels, "splits": "fresh"}, seeds=p["fresh"])
    for method in (*MODES, "fedavg"):
        for labels in meanings(method, p):
            yield labelled(p, labels, seeds=p["sweep_seeds"])
    if p["many"]:
        for step in OPEN_STEPS:
            for labels in open_methods(step):
                yield labelled(p, labels, seeds=OPEN_SEEDS)


def with_constraint(p: Params) -> Iterator[Labels]:
    """The labels of both modes of switching and of every penalty."""
    for mode in MODES:
        yield {"method": mode}
    for rho in p["rhos"]:
        yield {"method": "penalty", "rho": rho}


def centralized_twins(methods: Iterable[Mapping[str, Label]]) -> Iterator[Labels]:
    """The labels of the centralized twins of methods."""
    for labels in methods:
        yield {"training": "central", **labels}


def conex(p: Params) -> Iterator[Labels]:
    """The labels of IPP ConEx: the step size of the others with each dual step, and a grid."""
    start: Labels = {"training": "central", "method": "conex"}
    for dual in p["duals"]:
        yield {**start, "lr": p["lr"], "dual": dual}
    for lr, dual in pairs("fairness", p, "conex_steps", "conex_duals"):
        yield {**start, "lr": lr, "dual": dual, "setting": "grid"}


def meanings(method: str, p: Params) -> Iterator[Labels]:
    """The printed step size: as it is, with Adam, with two epochs for two steps, with both.

    With both also under the client's own sign, which follows the gap within a round.
    """
    start: Labels = {"method": method, "lr": p["printed_lr"]}
    epochs: Labels = {"local_steps": p["epoch_steps"]}
    yield start
    yield {**start, **epochs}
    yield {**start, "local": "Adam"}
    yield {**start, "local": "Adam", **epochs}
    if method != "fedavg":
        yield {**start, "local": "Adam", **epochs, "sign": "client"}


def open_methods(step: Mapping[str, Label]) -> Iterator[Labels]:
    """The labels of hard switching, three sharpnesses and three penalties with one kind of step."""
    start = {**step, "splits": "open"}
    yield {**start, "method": "hard"}
    for beta in OPEN_BETAS:
        yield {**start, "method": "soft", "beta": beta}
    for rho in OPEN_RHOS:
        yield {**start, "method": "penalty", "rho": rho}


def labelled(p: Params, labels: Mapping[str, Label], **changes: Any) -> Spec:
    """The run with these labels, others at their defaults; evaluated every tenth round."""
    without = [] if labels["method"] == "soft" else ["beta"]
    complete = completed(labels, defaults(p), without)
    pooled = complete["training"] == "central"
    task = partial(
        problem,
        clients=1 if pooled else p["clients"],
        alpha=p["alpha"],
        sign=complete["sign"],
        stand_in_rows=p["stand_in_rows"],
    )
    algorithm = centralized(p, complete) if pooled else of_clients(p, complete)
    run = Spec(
        algorithm,
        task,
        p["rounds"],
        p["seeds"],
        10,
        METRICS,
        labels=complete,
    )
    return replace(run, **changes)


def of_clients(p: Params, labels: Mapping[str, Any]) -> Any:
    """The federated method that labels describe."""
    work: dict[str, Any] = {
        "lr": labels["lr"],
        "local_steps": labels["local_steps"],
        "participants": p["participants"],
        "batch_size": p["batch"],
        "local": STEPS[labels["local"]],
    }
    if labels["method"] == "fedavg":
        return FedAvg(**work)
    work["tolerance"] = p["tolerance"]
    if labels["method"] == "penalty":
        return PenaltyFedAvg(**work, rho=labels["rho"])
    return FedSGM(**work, switch=switch_of(labels, "method"))


def centralized(p: Params, labels: Mapping[str, Any]) -> Any:
    """The centralized method: E steps a round, on batches as large as all participants'."""
    work: dict[str, Any] = {
        "lr": labels["lr"],
        "tolerance": p["tolerance"],
        "steps": labels["local_steps"],
        "batch_size": p["batch"] * p["participants"],
        "value_batch_size": p["central_values"],
    }
    if labels["method"] == "conex":
        return ConEx(dual_lr=labels["dual"], **work)
    if labels["method"] == "penalty":
        return PenaltySGM(rho=labels["rho"], **work)
    return SGM(switch=switch_of(labels, "method"), **work)
