"""Study of FedCMOO's Figures 2 and 4: how many local steps, and which preference."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fedlib.core import Trace
from fedlib.core.trace import Array
from fedlib.weights import Preference
from fedlib.weights.preference import balancing
from papers.fedcmoo.common import COLOR, GREY, TWO, cmoo, method, shared
from papers.fedcmoo.pairs.runs import base
from papers.fedcmoo.standin import noted
from papers.kit import plot
from papers.kit.health import HealthCheck, Needs, learning
from papers.kit.numbers import Number, mean
from papers.kit.panels import columns, row
from papers.kit.parameters import parameters
from papers.kit.rules import EXCHANGED, Rule, of, rises, stat_value
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Tolerance, Traces, after, swept

LATE = 0.9  # final: the mean over the evaluations from this share of the rounds on
CURVES = ("accuracy", "accuracy_1", "accuracy_2")


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        numbers |= {f"{name}.{k}": mean(final(trace, k)) for k in CURVES}
        if "_ratio" in name:
            numbers |= {f"{name}.{k}": v for k, v in balance(trace).items()}
    for data in GREY:
        leads = {}
        for steps in p["steps"]:
            ours, other = (traces[f"{data}_{m}_steps{steps}"] for m in ("fedcmoo", "fsmgda"))
            leads[steps] = 100 * (final(ours, "accuracy") - final(other, "accuracy"))
            numbers[f"{data}.lead{steps}"] = mean(leads[steps], "points")
        fewest, most = min(leads), max(leads)
        numbers[f"{data}.growth"] = mean(leads[most] - leads[fewest], "points")
    return numbers


def final(trace: Trace, name: str) -> Array:
    late = trace.rounds >= LATE * trace.rounds[-1]
    return np.asarray(trace.metrics[name][:, late].mean(1))


def ratios_of(trace: Trace) -> tuple[float, float]:
    first, second = trace.config["algorithm"]["preference"]["ratios"]
    return float(first), float(second)


def balance(trace: Trace) -> dict[str, Number]:
    """How near the final test losses are to the preference.

    `quotient` is F_1 / F_2, `mu` the divergence of (r_1 F_1, r_2 F_2) from equal shares.
    """
    r = torch.tensor(ratios_of(trace)).double()
    losses = np.stack([final(trace, "loss_1"), final(trace, "loss_2")], 1)  # [S, 2]
    pairs = [balancing(torch.tensor(row), r)[1] for row in losses]
    return {
        "quotient": mean(losses[:, 0] / losses[:, 1]),
        "mu": mean([float(mu) for mu in pairs]),
    }


AXES = {
    "multi_mnist": ("F₁, first digit", "F₂, second digit"),
    "mnist_fashion": ("F₁, digit", "F₂, item"),
}


def by_preference(traces: Traces, data: str) -> dict[str, Trace]:
    """The runs with different preferences, as `r_1 : r_2`."""
    runs = after(traces, f"{data}_ratio").values()
    ordered = sorted(runs, key=lambda t: ratios_of(t)[1] / ratios_of(t)[0])
    return {"{:g} : {:g}".format(*ratios_of(t)): t for t in ordered}


def figure_2(traces: Traces) -> plot.Drawing:
    def fill(ax: plot.Axes, data: str) -> None:
        runs = {label: swept(traces, f"{data}_{name}_steps") for name, label in TWO.items()}
        steps = list(runs["FedCMOO"])
        rows = {k: [mean(final(t, "accuracy")) for t in v.values()] for k, v in runs.items()}
        plot.dots(ax, steps, rows, colors=[COLOR[k] for k in rows])
        plot.log_ticks(ax, steps)

    frame: Any = {"ylabel": "final mean test accuracy", "xlabel": "local steps"}
    return row(*columns(fill, GREY, legend=True, **frame), sharey=True)


def figure_4(traces: Traces) -> plot.Drawing:
    """Final test losses for every preference, with its ray r1 F1 = r2 F2."""

    def fill(ax: plot.Axes, data: str) -> None:
        runs = by_preference(traces, data)
        top = 1.25 * max(final(t, k).max() for t in runs.values() for k in ("loss_1", "loss_2"))
        for i, (label, trace) in enumerate(runs.items()):
            preferred(ax, trace, label, plot.COLORS[i], top)
        first, second = (f"test loss {text}" for text in AXES[data])
        ax.set(xlim=(0, top), ylim=(0, top), aspect="equal", xlabel=first, ylabel=second)

    outside = {"title": "r₁ : r₂", "loc": "upper left", "bbox_to_anchor": (1, 1.03)}
    return row(*columns(fill, GREY, legend=outside, at=-1))


def preferred(ax: plot.Axes, trace: Trace, label: str, color: str, top: float) -> None:
    """One preference: its ray, the path of the test losses, and where it ends."""
    first, second = ratios_of(trace)
    ax.plot([0, top], [0, top * first / second], "--", color=color, linewidth=1)
    x, y = (trace.metrics[k].mean(0) for k in ("loss_1", "loss_2"))
    ax.plot(x, y, color=color, linewidth=1, alpha=0.7)
    ax.scatter(final(trace, "loss_1"), final(trace, "loss_2"), color=color, label=label, zorder=3)


STEPS = (1, 20)  # local steps, the fewest and the most
EPSILON = 0.01  # the divergence below which FedCMOO-Pref stops balancing
ALL = ("0.25", "0.5", "1", "2", "4")  # r_2 / r_1
AUTHORS = "the authors' network, with dropout"
#: Figure 2 has 500 rounds; those of Figure 4 are not printed, their authors' demo has 300.
CLIENTS = {"problem.clients": 100, "algorithm.participants": 10, "algorithm.batch_size": 128}
STEP_NEEDS = Needs(paper={"rounds": 500, **CLIENTS})
#: A preference of 1 : 4 may leave a task untrained; that is what the claim is about.
PREFERENCE_NEEDS = Needs(
    paper={"rounds": 300, "algorithm.local_steps": 10, **CLIENTS},
    dead=("mnist_fashion_ratio4_*",),
)


def run(data: str, second: str) -> str:
    """The run with a preference, at the paper's tolerance."""
    return f"{data}_ratio{second}_tolerance{EPSILON:g}"


def quotient(data: str, second: str) -> str:
    return f"{run(data, second)}.quotient"


def listed(data: str, measure: str, spec: str) -> str:
    return ", ".join(f"{stat_value(f'{run(data, r)}.{measure}', spec)} ({r})" for r in ALL)


LEADS = {title: [f"{data}.lead{steps}" for steps in STEPS] for data, title in GREY.items()}
C6 = Rule(
    {
        "FSMGDA behind with many local steps, and more so than with one": {
            title: (of(f"{data}.lead{STEPS[-1]}") > 0) & (of(f"{data}.growth") > 0)
            for data, title in GREY.items()
        }
    },
    "lead of FedCMOO in points (local steps): "
    + "; ".join(
        f"{title} " + ", ".join(f"{stat_value(k, '.1f')} ({k.rpartition('lead')[2]})" for k in keys)
        for title, keys in LEADS.items()
    ),
    note="The rule was fixed before these runs, with dropout, were computed.",
    control=EXCHANGED,
)
C10 = Rule(
    {
        "the losses follow the preference": {
            title: rises(*(quotient(data, r) for r in ALL)) for data, title in GREY.items()
        }
    },
    "F1/F2 (r2/r1): "
    + "; ".join(f"{title} {listed(data, 'quotient', '.2f')}" for data, title in GREY.items())
    + f"; mu on MultiMNIST {listed('multi_mnist', 'mu', '.2g')}",
    note="The rule judges only the trend, because the paper does not say how near the losses come "
    "to the preference. It was fixed before these runs were computed. After them we admitted the "
    "run at r2/r1 = 4 on MNIST + Fashion-MNIST, in which the preference leaves the digit "
    "untrained.",
    control=EXCHANGED,
)

CLAIMS = (
    cmoo(
        id="fedcmoo/C6",
        place="Figure 2",
        wording="With more local steps FSMGDA falls behind FedCMOO.",
        rule=C6,
        runs=tuple(f"{d}_{m}_steps{s}" for d in GREY for m in ("fsmgda", "fedcmoo") for s in STEPS),
        figure="figure_2",
        needs=STEP_NEEDS,
        reading=AUTHORS,
    ),
    cmoo(
        id="fedcmoo/C10",
        place="Figure 4",
        wording="The final losses of FedCMOO-Pref reflect the trend of the preference. On "
        "MultiMNIST they are near r1 F1 = r2 F2 for moderate preferences, and follow strongly "
        "unequal ones in part. On MNIST + Fashion-MNIST the smaller loss stays with MNIST.",
        rule=C10,
        runs=tuple(run(d, r) for d in GREY for r in ALL),
        figure="figure_4",
        needs=PREFERENCE_NEEDS,
        reading=AUTHORS,
    ),
)


PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split, participants and batches", (0, 1, 2), (0,)),
    step_rounds=("communication rounds T of the runs with different local steps", 167, 2),
    steps=("numbers of local steps", (1, 20), (1, 2)),
    preference_rounds=("rounds T of the runs with preferences", 100, 2),
    ratios=("r_2 / r_1 of the preferences", (0.25, 0.5, 1.0, 2.0, 4.0), (0.5, 1.0)),
    **shared(),
)


def ratios(second: float) -> tuple[float, float]:
    """`(r_1, r_2)` with the smaller one 1."""
    return (1.0, second) if second >= 1 else (1 / second, 1.0)


def specs(p: Params) -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    for data in GREY:
        for steps in p["steps"]:
            for name in ("fsmgda", "fedcmoo"):
                made: Any = method(name, data, p, local_steps=int(steps))
                run = base(made, data, p, p["seeds"], p["step_rounds"], dropout=True)
                found[f"{data}_{name}_steps{steps}"] = run
        for second in p["ratios"]:
            rule = Preference(ratios=ratios(float(second)), epsilon=EPSILON)
            made = method("pref", data, p, preference=rule, least=None)
            name = f"{data}_ratio{second:g}_tolerance{EPSILON:g}"
            found[name] = base(made, data, p, p["seeds"], p["preference_rounds"], dropout=True)
    return found


STUDY = Study(
    name="cmoo_sweeps",
    title="Local steps and preferences, FedCMOO",
    paper="C",
    data=("mnist", "fashion_mnist"),
    specs=specs,
    derive=derive,
    claims=CLAIMS,
    figures=noted({"figure_2": figure_2, "figure_4": figure_4}),
    watch={"*": (*learning(0.1), HealthCheck("loss_*"), HealthCheck("accuracy_*", chance=0.1))},
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={"step_rounds": 500, "preference_rounds": 300},
    **PARAMETERS,
)
