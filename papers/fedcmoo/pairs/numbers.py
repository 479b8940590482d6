"""The derived numbers of the study of two tasks in one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedcmoo.common import GREY, METHODS, RATES, final
from papers.kit.numbers import Number, exact, mean, over_seeds
from papers.kit.study import Params, Traces

BLOCK, BLOCKS = 30, 10  # rounds of a mean, and how many means a curve has

#: Means over rounds 1-30, 31-60, ..., 271-300, both tasks, one seed; data set -> method.
#: MNIST + Fashion-MNIST: read off the plot in the demo notebook of github askinb/FedCMOO, commit
#: c336a97, reading error 0.2. MultiMNIST: that public code run as it stands, own settings, on CPU.
PUBLIC: dict[str, dict[str, tuple[float, ...]]] = {
    "multi_mnist": {
        "fsmgda": (42.7, 77.0, 85.0, 87.2, 88.9, 89.9, 90.4, 91.1, 91.7, 91.9),
        "fedcmoo": (59.2, 85.9, 89.9, 91.0, 91.6, 92.0, 92.3, 92.6, 92.5, 92.7),
    },
    "mnist_fashion": {
        "fsmgda": (60.3, 70.8, 78.5, 80.1, 80.6, 82.4, 82.1, 82.9, 83.2, 83.9),
        "fedcmoo": (65.2, 78.6, 83.0, 84.5, 84.8, 85.5, 85.3, 85.7, 86.2, 86.3),
        "pref": (58.3, 73.2, 80.6, 82.6, 83.7, 83.9, 84.3, 84.6, 84.8, 84.9),
    },
}
SOURCE = {"multi_mnist": "public code, run as it stands", "mnist_fashion": "plot in its demo"}
END = BLOCK * BLOCKS  # rounds of these curves


def blocks(trace: Trace) -> list[float]:
    """The mean test accuracy of a run in %, over seeds and each thirty rounds; nan where none."""
    at, x = trace.rounds, 100 * trace.metrics["accuracy"].mean(0)
    each = [(at > BLOCK * k) & (at <= BLOCK * (k + 1)) for k in range(BLOCKS)]
    return [float(x[some].mean()) if some.any() else np.nan for some in each]


DATA = {**GREY, "cifar10_mnist": "CIFAR-10 + MNIST"}
HOW = ("", "_dropout")  # how the grey runs are trained: without dropout, or with it
MIXED = {"scalarized": "Scalarized", "fsmgda": "FSMGDA", "fedcmoo": "FedCMOO"}
#: Step sizes of server and clients: those that the paper gives FSMGDA, FedCMOO-Pref and FedCMOO.
STEP_SIZES = ((2.0, 0.1), (1.6, 0.3), (1.2, 0.5))
STEPPED = {"scalarized": "plain average", "fsmgda": "FSMGDA", "fedcmoo": "FedCMOO"}

LEVELS = (60, 75)  # mean test accuracies, in %, to which rounds are counted

BySeed = dict[int, float]
CURVES = ("accuracy", "accuracy_1", "accuracy_2", "loss", "loss_1", "loss_2")
UNITS = {
    "loss": "",
    "accuracy": "%",
    "worst": "%",
    "gap": "points",
    "rounds": "rounds",
    "decline": "%",
    "from": "points",
}


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Final values and rounds of every run, Delta_M, and differences paired by seed.

    Accuracies are in %. Keys are `run.measure`, of differences `data_a_vs_b.measure`. Where a run
    is missing or two have no seed in common, the numbers that need them are missing.
    """
    del p
    found = {name: measures(trace) for name, trace in traces.items()}
    for data in GREY:
        add_single(found, data)
    numbers = {
        f"{run}.{k}": over_seeds([*each.values()], unit(k))
        for run, of_run in found.items()
        for k, each in of_run.items()
    }
    numbers |= {f"{run}.rounds": exact(t.rounds[-1], "rounds") for run, t in traces.items()}
    numbers |= {f"{run}.growth": exact(growth(t)) for run, t in traces.items()}
    for data, theirs in PUBLIC.items():
        for run, curve in ((f"{data}_{m}_dropout", x) for m, x in theirs.items()):
            if run in traces and traces[run].rounds[-1] >= END:
                far = np.abs(np.subtract(blocks(traces[run]), curve)[1:]).max()
                numbers[f"{run}.from_authors"] = exact(far, "points")
    for run in [run for run, trace in traces.items() if "rejected" in trace.info]:
        numbers |= {f"{run}.{k}": x for k, x in of_guard(traces[run]).items()}
    for name, (a, b) in pairs().items():
        if a in found and b in found:
            numbers |= differences(name, found[a], found[b])
    return numbers


def at_step(method: str, lr: float) -> str:
    """The run on MNIST + Fashion-MNIST, with dropout, at a client's step size of `STEP_SIZES`."""
    own = method in METHODS and RATES["mnist_fashion"][method][1] == lr
    return f"mnist_fashion_{method}_dropout" if own else f"mnist_fashion_{method}_lr{lr:g}"


def unit(measure: str) -> str:
    return UNITS.get(measure.removeprefix("held_").partition("_")[0], "")


def rounds_to(trace: Trace, level: float) -> Array:
    """Per seed the round in which the mean test accuracy first reaches `level` %, T if none does.

    Between two evaluations the curve is taken as straight. T in place of "never" makes differences
    between runs smaller than they are, not larger.
    """
    curves, t = 100 * trace.metrics["accuracy"], trace.rounds
    found = np.full(len(curves), float(t[-1]))
    for s, x in enumerate(curves):
        above = np.flatnonzero(x >= level)
        if len(above):
            i = above[0]
            found[s] = t[0] if i == 0 else np.interp(level, x[i - 1 : i + 1], t[i - 1 : i + 1])
    return found


def growth(trace: Trace) -> float:
    """The most, over seeds and evaluations, by which the mean test loss has multiplied since one.

    The authors' code sets a model back whose training loss has grown by half in a round.
    """
    loss = trace.metrics["loss"]
    before = np.where(loss[:, :-1] > 0, loss[:, :-1], np.inf)
    return float((loss[:, 1:] / before).max(initial=0.0))


def of_guard(trace: Trace) -> dict[str, Number]:
    """In how many rounds it set a model back: of all seeds, and of the seed with the most."""
    each = trace.info["rejected"].sum(1)
    return {
        "judge_rows": exact(trace.config["algorithm"]["judge_rows"], "rows"),
        "rejected": exact(each.sum(), "rounds"),
        "rejected_most": exact(each.max(), "rounds"),
        "all_rounds": exact(trace.info["rejected"].size, "rounds"),
    }


def measures(trace: Trace) -> dict[str, BySeed]:
    found: dict[str, Array] = {}
    for name in [f"{prefix}{curve}" for prefix in ("", "held_") for curve in CURVES]:
        if name in trace.metrics:
            found[name] = (100 if "accuracy" in name else 1) * final(trace, name)
    if trace.rounds[-1] > END:
        for name in ("accuracy", "accuracy_1", "accuracy_2"):
            found[f"{name}_{END}"] = 100 * final(trace, name, end=END)
    one, two = found["accuracy_1"], found["accuracy_2"]
    found["worst"], found["gap"] = np.minimum(one, two), one - two
    found["loss_ratio"] = found["loss_2"] / found["loss_1"]
    found |= {f"rounds_{level}": rounds_to(trace, level) for level in LEVELS}
    return {k: dict(zip(trace.seeds, x.tolist(), strict=True)) for k, x in found.items()}


def decline(own: Sequence[ArrayLike], alone: Sequence[ArrayLike]) -> Array:
    r"""$\Delta_M$ in %: the mean over tasks of (alone - own) / alone, for accuracies.

    `alone` are those of models trained in one task alone (the caption of Table 4).
    """
    loss = [(np.asarray(b) - np.asarray(a)) / b for a, b in zip(own, alone, strict=True)]
    return np.asarray(100 * np.mean(loss, axis=0))


def add_single(found: dict[str, dict[str, BySeed]], data: str) -> None:
    """Accuracies of single-task training as one run, and Delta_M of the methods on its seeds.

    Single tasks have no dropout; the methods are measured by them with and without it.
    """
    alone = [found.get(f"{data}_single_{k}", {}).get(f"accuracy_{k}", {}) for k in (1, 2)]
    if not all(alone):
        return
    found[f"{data}_single"] = {f"accuracy_{k}": x for k, x in enumerate(alone, 1)}
    for run in (f"{data}_{m}{how}" for m in METHODS for how in HOW):
        own = [found.get(run, {}).get(f"accuracy_{k}", {}) for k in (1, 2)]
        seeds = [s for s in alone[0] if all(s in x for x in (alone[1], *own))]
        if seeds:
            each = {s: decline([x[s] for x in own], [x[s] for x in alone]) for s in seeds}
            found[run]["decline"] = {s: float(x) for s, x in each.items()}


def pairs() -> dict[str, tuple[str, str]]:
    found = {
        f"{data}{how}_{a}_vs_{b}": (f"{data}_{a}{how}", f"{data}_{b}{how}")
        for data in DATA
        for how in HOW
        for a, b in (("fedcmoo", "fsmgda"), ("pref", "fedcmoo"), ("pref", "fsmgda"))
    }
    of = "mnist_fashion"
    for a, b in (("fedcmoo_oneway", "fedcmoo"), ("pref_oneway", "pref"), ("pref_free", "pref")):
        found[f"{of}_dropout_{a}_vs_{b}"] = (f"{of}_{a}_dropout", f"{of}_{b}_dropout")
    found[f"{of}_pref_free_vs_pref"] = (f"{of}_pref_free", f"{of}_pref")
    for _, lr in STEP_SIZES:
        for b in ("fsmgda", "scalarized"):
            found[f"{of}_lr{lr:g}_fedcmoo_vs_{b}"] = at_step("fedcmoo", lr), at_step(b, lr)
    for b in ("fsmgda", "scalarized"):
        found[f"mixed_fedcmoo_vs_{b}"] = ("mixed_fedcmoo", f"mixed_{b}")
    return found


def differences(name: str, a: Mapping[str, BySeed], b: Mapping[str, BySeed]) -> dict[str, Number]:
    found = {}
    for k, first in a.items():
        apart = [x - b[k][s] for s, x in first.items() if s in b.get(k, {})]
        if apart:
            found[f"{name}.{k}"] = mean(apart, "points" if unit(k) == "%" else unit(k))
    return found
