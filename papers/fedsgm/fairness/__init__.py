"""Study of the full paper's Figure 7: fair classification on Adult, ten unequal clients."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from fedlib.algorithms.conex import ConEx
from fedlib.algorithms.fedavg import FedAvg
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.penalty import PenaltyFedAvg, PenaltySGM
from fedlib.algorithms.sgm import SGM
from fedlib.core import Problem
from fedlib.problems import fairness
from fedlib.problems.fairness import Sign
from fedlib.steps import Adam, Hard, Soft
from fedlib.steps.switching import Switch
from papers import adult
from papers.fedsgm.curves import FEASIBLE, oscillation, tuned
from papers.fedsgm.fairness import claims, figures, many, thirty
from papers.kit.health import HealthCheck
from papers.kit.numbers import Number, exact, measured
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Traces

METRICS = ("f", "f_clients", "g", "test_loss", "test_accuracy", "test_gap")


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Late means, infeasible seeds, speed and oscillation of every run and tuned penalty."""
    in_all = {}
    if p["many"]:
        for fields in many.fair(traces, p["tolerance"]).to_dict("records"):
            ends = (fields["value"], fields["low"], fields["high"])
            in_all[fields["measure"]] = Number(*ends, fields["per_seed"], fields["unit"])
    traces = {name: trace for name, trace in traces.items() if name not in many.FAIR}
    late = ("f", "f_clients", "g", "test_accuracy")
    measures: dict[str, Any] = {k: lambda t, k=k: t.late(k) for k in late} | {
        "infeasible": (lambda t: t.late("g") > FEASIBLE * p["tolerance"], "of seeds"),
        "mean_f": lambda t: t.of_rounds("f").mean(1),
        "oscillation": (oscillation, "1e-3"),
    }
    numbers = in_all | measured(traces, measures)
    for group in ("penalty", "central_penalty", "fresh_penalty"):
        best = tuned(traces, [f"{group}_rho{rho:g}" for rho in p["rhos"]], p["tolerance"])
        numbers |= measured({group: traces[best]}, measures)
        numbers[f"{group}.rho"] = exact(float(best.rpartition("rho")[2]))
    numbers |= thirty.null(traces)
    return numbers | {"majority": exact(traces["hard"].config["problem"]["majority"])}


PARAMETERS = parameters(
    seeds=("seeds; each fixes start, partition and participants", (0, 1, 2, 3, 4), (0, 1)),
    sweep_seeds=("seeds of the runs on what the printed step size may mean", (0, 1, 2), (0,)),
    fresh=(
        "seeds that judge claims C30 and C33, and C31 and C32 anew",
        tuple(range(1000, 1030)),
        (1000, 1001),
    ),
    rounds=("communication rounds T", 500, 20),
    lr=("step size where no other entry sets it", 0.1, 0.3),
    tolerance=("switching threshold and level of the gap, epsilon", 0.05),
    beta=("sharpness of soft switching", 40.0),
    clients=("clients N", 10),
    participants=("clients a round", 5),
    alpha=("concentration of the Dirichlet split", 2.0),
    local_steps=("local steps E, a minibatch each", 2),
    batch=(
        "rows of a client's minibatch; a centralized one has those of all participants",
        64,
        16,
    ),
    central_values=("rows of a centralized method's batch for the gap", 1024, 256),
    rhos=("penalties", (0.1, 1.0, 10.0)),
    duals=("dual steps of IPP ConEx", (1.0, 10.0)),
    conex_steps=(
        "more step sizes of IPP ConEx; 0.3 with a dual step of 100 diverges",
        (0.03, 0.03, 0.03, 0.1, 0.3, 0.3),
        (0.03,),
    ),
    conex_duals=(
        "dual step for each entry of conex_steps",
        (1.0, 10.0, 100.0, 100.0, 1.0, 10.0),
        (1.0,),
    ),
    printed_lr=("the step size that the paper prints", 0.0001),
    epoch_steps=("local steps that are two epochs of a client of mean size", 94, 4),
    many=("whether the settings that the paper leaves open are run", True, False),
    stand_in_rows=("0: the official files of Adult; else that many generated rows", 0, 2000),
)


@lru_cache(maxsize=4)
def people(stand_in_rows: int) -> adult.Adult:
    """The official rows, or generated ones (half as many for the test)."""
    return adult.stand_in(stand_in_rows) if stand_in_rows else adult.official()


@lru_cache(maxsize=64)
def problem(
    seed: int, clients: int, alpha: float, sign: Sign = "pooled", stand_in_rows: int = 0
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
        rows.train, rows.test, clients=clients, seed=seed, alpha=alpha, sign=sign, config=config
    )


def specs(p: Params) -> dict[str, Spec]:
    """All runs: Figure 7's curves, the penalties, and what the printed step size may mean."""
    local: dict[str, Any] = {
        "lr": float(p["lr"]),
        "local_steps": p["local_steps"],
        "participants": p["participants"],
        "batch_size": p["batch"],
    }
    limit: dict[str, Any] = {**local, "tolerance": float(p["tolerance"])}
    modes: dict[str, Switch] = {"hard": Hard(), "soft": Soft(float(p["beta"]))}
    found = {name: base(FedSGM(**limit, switch=s), p) for name, s in modes.items()}
    for rho in p["rhos"]:
        found[f"penalty_rho{rho:g}"] = base(PenaltyFedAvg(**limit, rho=float(rho)), p)
    found |= _central(p, modes)
    found["fedavg"] = base(FedAvg(**local), p)
    for name in (*modes, *(f"penalty_rho{rho:g}" for rho in p["rhos"]), "fedavg"):
        found[f"fresh_{name}"] = replace(found[name], seeds=p["fresh"])
    main = {k: found[k] for k in ("hard", "soft", "fedavg")}
    extra = many.fair_specs(found["hard"]) if p["many"] else {}
    found |= _readings(main, p) | _conex(found, p) | extra
    return found | thirty.specs(found, p)


def base(algorithm: Any, p: Params, clients: int | None = None) -> Spec:
    """One run on the problem of the study; evaluated every tenth round."""
    task = partial(
        problem,
        clients=p["clients"] if clients is None else clients,
        alpha=float(p["alpha"]),
        stand_in_rows=p["stand_in_rows"],
    )
    return Spec(algorithm, task, p["rounds"], p["seeds"], evaluate_every=10, keep=METRICS)


def _central(p: Params, modes: dict[str, Switch]) -> dict[str, Spec]:
    """The centralized methods: E steps a round, on batches as large as all participants'."""
    shared: dict[str, Any] = {
        "lr": float(p["lr"]),
        "tolerance": float(p["tolerance"]),
        "steps": p["local_steps"],
        "batch_size": p["batch"] * p["participants"],
        "value_batch_size": p["central_values"],
    }
    found = {f"central_{m}": base(SGM(switch=s, **shared), p, 1) for m, s in modes.items()}
    for rho in p["rhos"]:
        found[f"central_penalty_rho{rho:g}"] = base(PenaltySGM(rho=float(rho), **shared), p, 1)
    for dual in p["duals"]:
        found[f"conex_dual{dual:g}"] = base(ConEx(dual_lr=float(dual), **shared), p, 1)
    return found


def _readings(main: dict[str, Spec], p: Params) -> dict[str, Spec]:
    """The printed step size: as it is, with Adam, with two epochs for two steps, with both.

    With both also under the client's own sign, which follows the gap within a round.
    """
    found: dict[str, Spec] = {}
    for name, full in main.items():
        plain: Any = replace(full.algorithm, lr=float(p["printed_lr"]))  # type: ignore[type-var]
        adam = replace(plain, local=Adam())
        long = {"local_steps": p["epoch_steps"]}
        for reading, method in {
            f"lr{p['printed_lr']:g}": plain,
            "epochs": replace(plain, **long),
            "adam": adam,
            "adam_epochs": replace(adam, **long),
        }.items():
            found[f"{name}_{reading}"] = replace(full, algorithm=method, seeds=p["sweep_seeds"])
        if name != "fedavg":
            task: Any = full.problem
            spec = found[f"{name}_adam_epochs"]
            found[f"{name}_adam_epochs_client"] = replace(
                spec, problem=partial(task, sign="client")
            )
    return found


def _conex(found: dict[str, Spec], p: Params) -> dict[str, Spec]:
    """The rest of IPP ConEx's grid."""
    steps, duals = p["conex_steps"], p["conex_duals"]
    if len(steps) != len(duals):
        raise ValueError(
            f"fairness: conex_duals must have an entry for each of conex_steps, got {len(duals)} "
            f"for {len(steps)}."
        )
    spec = found[f"conex_dual{p['duals'][0]:g}"]
    grid: dict[str, Spec] = {}
    for lr, dual in zip(steps, duals, strict=True):
        method: Any = replace(spec.algorithm, lr=float(lr), dual_lr=float(dual))  # type: ignore[type-var]
        grid[f"grid_conex_lr{lr:g}_dual{dual:g}"] = replace(spec, algorithm=method)
    return grid


LEVEL = PARAMETERS["profiles"]["full"]["tolerance"]


STUDY = Study(
    name="fairness",
    title="Fair classification, full paper",
    paper="F",
    data=("adult",),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    figures=figures.FIGURES,
    watch={
        "*": (
            HealthCheck("f", guard="g", level=LEVEL),
            HealthCheck("test_accuracy", chance=lambda c: c["problem"]["majority"]),
        )
    },
    **PARAMETERS,
)
