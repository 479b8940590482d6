"""C22 in settings that the full paper leaves open."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from fedlib.algorithms.baselines import PenaltyFedAvg
from fedlib.steps import SGD, Adam, Hard, Soft
from papers.fedsgm import multiverse
from papers.fedsgm.curves import tuned
from papers.kit.numbers import Number, exact, mean, ratio
from papers.kit.rules import all_of, of
from papers.kit.store import Spec
from papers.kit.study import Traces

SEEDS = (5, 6, 7)
#: What the printed step size may mean -> the local step and its size.
STEPS = {"step 0.1": (SGD(), 0.1), "step 0.3": (SGD(), 0.3), "Adam, step 0.0001": (Adam(), 1e-4)}
BETAS = (40.0, 80.0, 120.0)  # from the theory's value to three times it, as the authors say
RHOS = (0.1, 1.0, 10.0)
MEASURES = {"training rows": ("f", "g"), "test rows": ("test_loss", "test_gap")}
SETTINGS = [f"{s}, beta {b:g}, on {m}" for s, b, m in product(STEPS, BETAS, MEASURES)]
METHODS = ("hard", *(f"soft{b:g}" for b in BETAS), *(f"penalty{r:g}" for r in RHOS))


def run(method: str, step: int) -> str:
    return f"many_{method}_step{step}"


RUNS = tuple(run(m, i) for i in range(len(STEPS)) for m in METHODS)


def specs(hard: Spec) -> dict[str, Spec]:
    """Hard switching, three sharpnesses and three penalties with every step."""
    start: Any = hard.algorithm
    found = {}
    for i, (local, lr) in enumerate(STEPS.values()):
        shared: dict[str, Any] = {
            "local": local,
            "lr": lr,
            "local_steps": start.local_steps,
            "participants": start.participants,
            "batch_size": start.batch_size,
            "tolerance": start.tolerance,
        }
        methods = {"hard": replace(start, **shared, switch=Hard())}
        methods |= {f"soft{b:g}": replace(start, **shared, switch=Soft(b)) for b in BETAS}
        methods |= {f"penalty{r:g}": PenaltyFedAvg(**shared, rho=r) for r in RHOS}
        for name, method in methods.items():
            found[run(name, i)] = replace(hard, algorithm=method, seeds=SEEDS)
    return found


def derive(traces: Traces, tolerance: float) -> dict[str, Number]:
    """In which settings soft switching has both the smaller gap and no larger loss."""
    cells: list[multiverse.Cell] = []
    control: list[multiverse.Cell] = []
    for i, b, (f, g) in product(range(len(STEPS)), BETAS, MEASURES.values()):
        hard = traces[run("hard", i)]
        best = traces[tuned(traces, [run(f"penalty{r:g}", i) for r in RHOS], tolerance)]
        for found, one in ((cells, traces[run(f"soft{b:g}", i)]), (control, hard)):
            runs = {"one": one, "hard": hard, "penalty": best}
            numbers = {f"{n}_{k}": mean(t.late(k)) for n, t in runs.items() for k in (f, g)}
            better = [of(f"one_{g}") < of(f"{x}_{g}") for x in ("hard", "penalty")]
            better += [of(f"one_{f}") <= of(f"{x}_{f}") for x in ("hard", "penalty")]
            worst = max(
                ratio(one.late(k), other.late(k)).value for k in (f, g) for other in (hard, best)
            )
            found.append(multiverse.cell(all_of(*better), **numbers, shown=exact(worst)))
    return multiverse.shares("C22", cells, control)


C22 = multiverse.rule(
    "C22",
    SETTINGS,
    "the largest of the four ratios of soft switching's gap and loss to those of its rivals",
    0.0,
    "hard switching in the place of soft",
    "The rivals are hard switching and, at each step size, the best penalty of three. With Adam "
    "hard switching predicts no better than the majority on two of three seeds; it counts.",
)
