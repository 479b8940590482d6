"""Study of FedFW's Figure 1: what a message gives away of a client's picture."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core.trace import Array
from fedlib.sets import Ball, Blocks, L1Ball
from papers.fedfw.leakage.attacks import Attacker, Oracle, SmoothL1, Whole
from papers.fedfw.leakage.problem import DATA, Network, leak_problem
from papers.kit import plot
from papers.kit.claims import Claim, Reading
from papers.kit.health import HealthCheck, HealthChecks, Needs
from papers.kit.numbers import Number, mean, measured
from papers.kit.panels import Layer, grid, on
from papers.kit.parameters import parameters
from papers.kit.rules import EXCHANGED, Rule, of, stat, stat_value
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Tolerance, Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["STUDY", "network", "specs"]


SIGNALS = ("gradient", "l2", "tensors", "l1", "soft")
CLEAR = 60.0  # dB: an error below a thousandth of the range; eight bits a pixel have 59
SEEN = 25.0  # dB: a picture that one recognizes
FRESH = "fresh_"  # starts the names of runs with the seeds that judge the claim


def places(traces: Mapping[str, Any]) -> list[str]:
    """Data set and network of all attacks, such as `"mnist_lenet"`."""
    found = [name.removesuffix("_gradient") for name in traces if name.endswith("_gradient")]
    return [place for place in found if not place.startswith(FRESH)]


def capped(x: Array) -> Array:
    """PSNR in dB, where everything above 60 counts as 60: such pictures are equal to the eye."""
    return np.minimum(x, CLEAR)


def derive(traces: Traces, _: Params) -> dict[str, Number]:
    """Where every attack ends, and differences by seed.

    Keys are `run.measure`; `place.a_minus_b` is the difference of two signals' PSNR, each capped at
    60 dB, by seed, where `l1` is for every seed the better of the exact and the softened attack;
    `places.a_minus_b` is its mean over data sets and networks. Keys of the fresh seeds that judge
    the claim start with `fresh_`.
    """
    numbers = measured(traces, MEASURES)
    for seeds in ("", FRESH):
        each = {seeds + place: differences(traces, seeds + place) for place in places(traces)}
        for place, pairs in each.items():
            numbers |= {f"{place}.{k}": mean(x, "dB") for k, x in pairs.items()}
        for k in next(iter(each.values()), {}):
            over = np.mean([pairs[k] for pairs in each.values()], 0)
            numbers[f"{seeds}places.{k}"] = mean(over, "dB")
    return numbers


def last(x: Array) -> Array:
    return np.asarray(x[:, -1])


def first_seen(path: Array) -> Array:
    """Per seed, the first step with 25 dB or more; as many as there are if there is none."""
    good = path >= SEEN
    return np.asarray(np.where(good.any(1), good.argmax(1), path.shape[1] - 1), float)


MEASURES = {
    "psnr": (lambda t: last(t.metrics["psnr"]), "dB"),
    "best": (lambda t: t.metrics["psnr"].max(1), "dB"),
    "seen": (lambda t: last(t.metrics["psnr"]) >= SEEN, "%"),
    "steps": (lambda t: first_seen(t.metrics["psnr"]), "steps"),
}


def differences(traces: Traces, place: str) -> dict[str, Array]:
    end = {s: capped(last(traces[f"{place}_{s}"].metrics["psnr"])) for s in SIGNALS}
    end["l1"] = np.maximum(end["l1"], end["soft"])
    pairs = (("gradient", "l2"), ("gradient", "tensors"), ("l2", "l1"), ("tensors", "l1"))
    return {f"{a}_minus_{b}": end[a] - end[b] for a, b in pairs}


LABELS = {
    "gradient": "gradient",
    "l2": "ℓ2 oracle",
    "tensors": "ℓ2 oracle, each tensor",
    "l1": "ℓ1 oracle",
    "soft": "ℓ1 oracle, softened attack",
}
NAMES = {"digits": "digits 8 x 8", "mnist": "MNIST", "cifar10": "CIFAR-10, 16 x 16"}
NETWORKS = {"mlp": "one hidden layer", "lenet": "LeNet"}
ROWS = 2  # pictures shown of each data set and network


def title(place: str) -> str:
    name, kind = place.rsplit("_", 1)
    return f"{NAMES[name]}, {NETWORKS[kind]}"


def figure_1(traces: Traces) -> plot.Drawing:
    """What the attacks on the first pictures end with, a column for each."""
    where = places(traces)

    def line(place: str, k: int) -> list[Layer]:
        layers = []
        for signal, label in LABELS.items():
            above = label.replace(", ", ",\n") if (place, k) == (where[0], 0) else ""
            left = title(place).replace(", ", "\n") if signal == "gradient" else ""
            found = np.asarray(traces[f"{place}_{signal}"].state)[k]
            layers.append(on(picture, found, above, left))
        return layers

    count = min(ROWS, len(traces[f"{where[0]}_gradient"].seeds))
    return grid(*(line(place, k) for place in where for k in range(count)))


def picture(ax: Axes, w: Array, above: str, left: str) -> None:
    grey = round(len(w) ** 0.5) ** 2 == len(w)
    channels = 1 if grey else 3
    side = round((len(w) / channels) ** 0.5)
    values = w.reshape(channels, side, side).transpose(1, 2, 0).clip(0, 1)
    ax.imshow(values[..., 0] if grey else values, cmap="gray", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.set_title(above, fontsize=8)
    ax.set_ylabel(left, fontsize=6)


FIGURES = {"figure_1": figure_1}


PLACES = {
    place: place.replace("_", " ")
    for place in ("mnist_mlp", "mnist_lenet", "cifar10_mlp", "cifar10_lenet")
}


def order(l2: str, note: str) -> Rule:
    """The order of Figure 1, with one of the two forms of the l2 ball's oracle."""
    first, second = f"gradient_minus_{l2}", f"{l2}_minus_l1"
    return Rule(
        {
            "the PSNR is higher from gradients than from answers of the l2 oracle": of(
                f"{FRESH}places.{first}"
            )
            > 0,
            "the PSNR is higher from answers of the l2 oracle than of the l1 oracle": of(
                f"{FRESH}places.{second}"
            )
            > 0,
        },
        "mean PSNR over data sets and networks, gradient minus l2 "
        f"{stat(f'{FRESH}places.{first}', '.1f')}, l2 minus l1 "
        f"{stat(f'{FRESH}places.{second}', '.1f')}. Final "
        "PSNR in dB, gradient / l2 / l2 of each tensor / l1 / l1 softened: "
        + "; ".join(
            f"{words}: {' / '.join(stat_value(f'{FRESH}{place}_{s}.psnr') for s in SIGNALS)}"
            for place, words in PLACES.items()
        ),
        note,
        control=EXCHANGED,
    )


PICTURES = (
    "The paper's two pictures are of CIFAR-100, that of the code is of MNIST. The PSNR is capped "
    "at 60 dB, so two attacks that both reach it differ by 0. 52 fresh seeds, after ten earlier "
    "ones."
)
C12 = order("l2", f"{PICTURES} The l2 oracle only rescales the gradient, and hides nothing.")
C12_CODE = order("tensors", "")
RUNS = tuple(f"{FRESH}{place}_{s}" for place in PLACES for s in SIGNALS)
#: The code's steps of L-BFGS. How far an attack gets is measured, also where that is nowhere.
NEEDS = Needs(paper={"rounds": 300}, dead=RUNS)
COMMIT = "64363e74"  # that fixed both rules

CLAIMS = (
    Claim(
        id="fedfw/C12",
        paper="D",
        place="Figure 1",
        wording="A picture is recovered best from gradients, less well from answers of the l2 "
        "ball's oracle, and least from those of the l1 ball's.",
        rule=C12,
        runs=RUNS,
        figure="figure_1",
        needs=NEEDS,
        rule_fixed=COMMIT,
        reading="one ball, as the text",
        readings=(Reading("an l2 ball for each tensor", C12_CODE, RUNS, NEEDS, COMMIT),),
    ),
)


PARAMETERS = parameters(
    seeds=("seeds; each fixes picture, network and dummies", tuple(range(10)), (0, 1)),
    fresh=("seeds that judge claim C12 alone", tuple(range(100, 152)), (100,)),
    steps=("steps of L-BFGS, of up to 20 inner iterations each", 100, 4),
    data=("data sets", ("mnist", "cifar10"), ("digits",)),
    networks=(
        "networks: one hidden layer of sigmoids, and a LeNet without pooling",
        ("mlp", "lenet"),
    ),
    hidden=("hidden cells of the mlp", 32),
    radius=("radius of the balls", 10.0),
    sharpness=("sharpness of the softened arg max with which l1 messages are attacked", 20.0),
)


def network(name: str, kind: str, hidden: int) -> Network:
    return Network(kind, 3 if name == "cifar10" else 1, DATA[name][1], hidden)


def specs(p: Params) -> dict[str, Spec]:
    """All attacks, `DATA_NETWORK_SIGNAL`, and with the fresh seeds `fresh_DATA_NETWORK_SIGNAL`."""
    found: dict[str, Spec] = {}
    seeds, radius, steps = tuple(p["seeds"]), float(p["radius"]), p["steps"]
    whole, ball, cross = Whole(), Oracle(Ball(radius)), Oracle(L1Ball(radius))
    soft = SmoothL1(radius, float(p["sharpness"]))
    for name in p["data"]:
        for kind in p["networks"]:
            net = network(name, kind, p["hidden"])
            task = partial(leak_problem, name=name, network=net)
            tensors = Oracle(Blocks.of_shapes(net.shapes(), Ball(radius)))
            sent: dict[str, Any] = {"gradient": whole, "l2": ball, "tensors": tensors, "l1": cross}
            attacks = {k: Attacker(net, what, None, steps) for k, what in sent.items()}
            attacks["soft"] = Attacker(net, cross, soft, steps)
            keep = ("psnr", "cosine", "mismatch", "final_w")
            for signal, attacker in attacks.items():
                run, fresh = f"{name}_{kind}_{signal}", tuple(p["fresh"])
                found[run] = Spec(attacker, task, steps, seeds, 1, keep)
                found[FRESH + run] = Spec(attacker, task, steps, fresh, steps, ("psnr",))
    return found


WATCH: HealthChecks = {
    "*": HealthCheck("psnr", exact="the attacker searches with exact gradients until none is left"),
}


STUDY = Study(
    name="fw_leakage",
    title="Leakage from gradients and from oracle answers",
    paper="D",
    data=("mnist", "cifar10"),
    specs=specs,
    derive=derive,
    claims=CLAIMS,
    figures=FIGURES,
    watch=WATCH,
    tolerances={"*": Tolerance(rounds=1)},
    **PARAMETERS,
)
