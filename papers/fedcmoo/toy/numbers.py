"""The derived numbers of the study on FedCMOO's toys."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from fedlib.compress import LowRank
from fedlib.compress.compressors import FLOAT_BITS
from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, mean, ratio
from papers.kit.study import Params, Traces

GUARD = 1.5  # the authors' code rolls back a model whose loss exceeds the last one so many times
#: Objectives and encoder parameters of the paper's networks: a picture pair, CelebA-5, QM9, CelebA.
NETWORKS = {2: 28_515, 5: 11_168_832, 11: 616_960, 40: 11_168_832}


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    found = {k: v for part in (plane, drift, rate, guard, probe) for k, v in part(traces).items()}
    return found | edge(traces, p) | scale(traces, p) | uploads()


def runs_of(traces: Traces, part: str) -> dict[str, Trace]:
    start = f"{part}_"
    return {n.removeprefix(start): t for n, t in traces.items() if n.startswith(start)}


def end(trace: Trace, name: str) -> Array:
    """Per seed a metric of the final model, or the last value of an info."""
    values = trace.metrics if name in trace.metrics else trace.info
    return np.asarray(values[name][:, -1])


def imbalance(losses: Array, ratios: Array) -> Array:
    """mu, the divergence of the shares of `r_k F_k`, `[..., M]`, from equal ones."""
    scaled = losses * ratios
    u = scaled / scaled.sum(-1, keepdims=True)
    return np.asarray((u * np.log(np.maximum(u, 1e-300) * u.shape[-1])).sum(-1))


def edge_ratios(tasks: int) -> tuple[float, ...]:
    """The preferences of the sweep over tolerances, evenly from 1 to 2."""
    return tuple(1 + k / (tasks - 1) for k in range(tasks))


def tolerated(epsilon: float) -> float:
    """The largest ratio of two losses whose imbalance is `epsilon`; the least is its inverse.

    Raises ValueError if every ratio is allowed (`epsilon >= log 2`).
    """
    if not 0 < epsilon < np.log(2):
        raise ValueError(f"tolerated: epsilon must be in (0, log 2), got {epsilon}.")
    both = np.ones(2)

    def excess(x: float) -> float:
        return float(imbalance(np.array([np.exp(x), 1.0]), both)) - epsilon

    return float(np.exp(brentq(excess, 0, 700)))


def plane(traces: Traces) -> dict[str, Number]:
    found = {}
    for name, trace in runs_of(traces, "plane").items():
        for k in ("f_1", "f_2", "distance", "stationarity"):
            found[f"plane_{name}.{k}"] = mean(end(trace, k))
        r = float(name[4:]) if name.startswith("pref") else 1.0
        both = np.stack([end(trace, "f_1"), end(trace, "f_2")], -1)
        found[f"plane_{name}.ratio"] = mean(both[:, 0] / (r * both[:, 1]))
        found[f"plane_{name}.mu"] = mean(imbalance(both, np.array([1.0, r])))
    return found


def drift(traces: Traces) -> dict[str, Number]:
    """Stationarity at the end, and FSMGDA's over FedCMOO's on the same instances."""
    runs = runs_of(traces, "drift")
    found = {f"drift_{n}.stationarity": mean(end(t, "stationarity")) for n, t in runs.items()}
    for name, trace in runs.items():
        method, setting = name.split("_", 1)
        if method == "fedcmoo" and not setting.endswith("_E1"):  # exact, both, with a single step
            other = end(runs[f"fsmgda_{setting}"], "stationarity")
            found[f"drift_gain_{setting}.stationarity"] = ratio(other, end(trace, "stationarity"))
    return found


def rate_squares(trace: Trace) -> Array:
    """Per seed the mean over the rounds of `|grad F(x) w|^2`, w from before the round."""
    G = {k: trace.of_rounds(k) for k in ("g_11", "g_12", "g_22")}
    later = trace.info["weight_1"]
    before = np.concatenate([np.full((len(later), 1), 0.5), later[:, :-1]], 1)
    a = before[:, trace.rounds[:-1] - trace.rounds[0]]
    b = 1 - a
    return np.asarray((a * a * G["g_11"] + 2 * a * b * G["g_12"] + b * b * G["g_22"]).mean(1))


def rate(traces: Traces) -> dict[str, Number]:
    """Mean squares by T, with exact messages and with Rand-K, and their log-log slopes."""
    found: dict[str, Number] = {}
    for name in ("exact", "randk"):
        runs = {int(n.rpartition("T")[2]): t for n, t in runs_of(traces, f"rate_{name}").items()}
        squares = {T: rate_squares(t) for T, t in sorted(runs.items())}
        found |= {f"rate_{name}_T{T}.square": mean(x) for T, x in squares.items()}
        if len(squares) > 1:
            logs = np.log(np.stack(list(squares.values())))
            found[f"rate_{name}.slope"] = mean(np.polyfit(np.log(list(squares)), logs, 1)[0])
    return found


def edge(traces: Traces, p: Params) -> dict[str, Number]:
    """Where FedCMOO-Pref stops, and the ratio of two losses that its epsilon allows."""
    found = {}
    for name, trace in runs_of(traces, "edge").items():
        count = sum(k.startswith("f_") for k in trace.metrics)
        losses = np.stack([end(trace, f"f_{k + 1}") for k in range(count)], -1)
        scaled = losses * edge_ratios(count)
        found[f"edge_{name}.mu"] = mean(imbalance(losses, np.array(edge_ratios(count))))
        found[f"edge_{name}.spread"] = mean(scaled.max(-1) / scaled.min(-1))
        found[f"edge_{name}.stationarity"] = mean(end(trace, "stationarity"))
        found[f"edge_{name}.fallback"] = mean(trace.info["fallback"].mean(1))
    for epsilon in p["tolerances"]:
        if 0 < epsilon < np.log(2):
            found[f"edge_M2_eps{epsilon:g}.allowed"] = mean([tolerated(float(epsilon))])
    return found


def scale(traces: Traces, p: Params) -> dict[str, Number]:
    found = {}
    for name, trace in runs_of(traces, "scale").items():
        found[f"scale_{name}.f_1"] = mean(end(trace, "f_1") / float(p["scale"]))
        found[f"scale_{name}.f_2"] = mean(end(trace, "f_2"))
        weight = end(trace, "weight_1") if "weight_1" in trace.info else np.full(2, 0.5)
        found[f"scale_{name}.weight_1"] = mean(weight)
    return found


def firings(loss: Array, ratio: float = GUARD) -> NDArray[np.bool_]:
    """At which rounds a loss exceeds `ratio` times the last accepted one, `[S, T]` of `[S, T+1]`.

    Nothing is rolled back here: the next model is compared with the same accepted value again.
    """
    accepted = loss[:, 0].copy()
    found = np.zeros((len(loss), loss.shape[1] - 1), dtype=bool)
    for t in range(1, loss.shape[1]):
        found[:, t - 1] = ~(loss[:, t] <= ratio * accepted)
        accepted = np.where(found[:, t - 1], accepted, loss[:, t])
    return found


def guard(traces: Traces) -> dict[str, Number]:
    """In how many rounds the guard would fire, in how many seeds at all, and how the runs end."""
    found = {}
    for name, trace in runs_of(traces, "guard").items():
        loss = trace.metrics["f"]
        fired = firings(loss)
        found[f"guard_{name}.rounds"] = mean(fired.sum(1))
        found[f"guard_{name}.seeds"] = mean(fired.any(1))
        found[f"guard_{name}.end"] = mean(loss[:, -1] / loss[:, 0])
    return found


def probe(traces: Traces) -> dict[str, Number]:
    """The measured slope of mu against the formula, and how often mu falls, per seed."""
    found = {}
    for name, trace in runs_of(traces, "probe").items():
        error = trace.info["error"]
        found[f"probe_{name}.points"] = mean([error.size])
        found[f"probe_{name}.error"] = mean(error.max(1))
        steps = {"falls": "change", "falls_1": "change_1", "falls_2": "change_2"}
        for key, change in (steps | {"falls_3": "change_3"}).items():
            found[f"probe_{name}.{key}"] = mean((trace.info[change] < 0).mean(1))
    return found


def uploads(networks: Mapping[int, int] = NETWORKS) -> dict[str, Number]:
    """What a client uploads in a round, in units of the shared model, from the wire formats.

    FedCMOO: the compressed Jacobian, `2 M^2` numbers of the second exchange, one update. With a
    preference also M losses. FSMGDA: M updates. Heads, which no method compresses, are left out.
    """
    found: dict[str, Number] = {}
    for M, d in networks.items():
        jacobian = LowRank().bits(M, d) / FLOAT_BITS
        two_way = jacobian + 2 * M**2 + d
        sent = {"fedcmoo": two_way, "pref": two_way + M, "fsmgda": float(M * d)}
        found |= {f"upload_{m}.M{M}": mean([x / d]) for m, x in sent.items()}
        found[f"upload_saving.M{M}"] = mean([sent["fsmgda"] / sent["fedcmoo"]])
    return found
