"""What a round costs: `python -m benchmarks.scale [METHOD ...] [--json PATH]`.

CPU time and peak memory of a round against the number of clients, of parameters and of seeds, for
five methods on logistic regression. Every case is a process of its own, one thread; what would
take too long or too much memory is left out, and why is stored.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import set_forkserver_preload
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench import KEEP_MEMORY, KEPT, apart, clocked, collected, machine, peak
from fedlib.algorithms.baselines import FedAvg
from fedlib.algorithms.fedcmoo import FedCMOO
from fedlib.algorithms.fedfw import FedFW
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.ssca import SSCA
from fedlib.compress import TopK
from fedlib.core import Problem
from fedlib.engine.batch import BatchedRuns
from fedlib.problems.neyman_pearson import logistic_gradient, logistic_losses
from fedlib.sets import Ball
from fedlib.steps import PowerLaw
from papers.kit.commands import Parser, carried_out, nearest, new_file

SECONDS, GIGABYTES = 60, 8  # most that a case may take, with its data and its recording
OWN = BATCH = 4  # rows of a client, and of a batch
PASSES, ENOUGH = 7, 3.0  # passes at most, and seconds after which no other begins


@dataclass(frozen=True)
class Size:
    """How large a case is: clients, participants, parameters, seeds; distinct rows of data."""

    N: int = 100
    n: int = 10
    d: int = 1000
    S: int = 1
    rows: int = 400


#: Along each axis one number grows. Of many parameters only few rows fit into memory.
AXES = {
    "clients": [Size(N=10**k, n=100, rows=OWN * 10**k) for k in (2, 3, 4, 5)],
    "parameters": [Size(d=10**k, rows=20) for k in (3, 4, 5, 6, 7)],
    "seeds": [Size(S=s) for s in (1, 10, 100)],
}
METHODS = ("FedAvg", "FedSGM", "FedCMOO", "SSCA", "FedFW")


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks.scale", KEPT)


def timed(arguments: list[str] | None) -> int:
    """Time every method along every axis, print a table, write JSON where it is asked to."""
    options = _parse(arguments)
    chosen = options.methods or METHODS
    places = [(axis, i) for axis, sizes in AXES.items() for i in range(len(sizes))]
    cases = [f"{method}, {axis}, {i}" for method in chosen for axis, i in places]
    for name in KEEP_MEMORY:  # so that a process holds what it needs, not what it once needed
        os.environ.pop(name, None)
    set_forkserver_preload(["benchmarks.bench", "fedlib", "torch._dynamo"])
    found: dict[str, dict[str, Any]] = {}

    def one(case: str) -> dict[str, Any]:
        method, axis, place = case.split(", ")
        before = found.get(f"{method}, {axis}, {int(place) - 1}", {})
        found[case] = its = tried(method, axis, AXES[axis][int(place)], before)
        print(f"{method:8} {axis:11}{its['at']:>9}  {said(its)}", flush=True)
        return its

    collected(options.json, machine("cpu", 1), cases, one)
    return 0


def said(its: dict[str, Any]) -> str:
    """What was found, on one line."""
    if "skipped" in its:
        return str(its["skipped"])
    memory = f"{its['peak_mib']:.0f} MiB, data {its['data_mib']:.0f}"
    return f"{its['cpu_ms']:.3f} ms, {memory}"


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="benchmarks.scale", description="Time and memory of a round at scale.")
    parser.add_argument("methods", nargs="*", metavar="METHOD", help=", ".join(METHODS) + "; all")
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options = parser.parse_args(arguments)
    for name in options.methods:
        if name not in METHODS:
            known = nearest(name, METHODS)
            parser.error(f"argument methods: must be known names, got {name!r}, {known}")
    return options


def tried(method: str, axis: str, size: Size, before: dict[str, Any]) -> dict[str, Any]:
    """One case, or why there is none; nothing larger is tried after a case that was left out."""
    at = {"clients": size.N, "parameters": size.d, "seeds": size.S}[axis]
    case = {"method": method, "axis": axis, "at": at}
    if "skipped" in before:
        return {**case, "skipped": f"not tried: at {before['at']:,} {before['skipped']}"}
    try:
        return case | apart(measure, limit=SECONDS, start="forkserver", method=method, size=size)
    except TimeoutError:
        return {**case, "skipped": f"more than {SECONDS} s"}
    except (MemoryError, BrokenProcessPool):
        return {**case, "skipped": f"more than {GIGABYTES} GB"}
    except RuntimeError as error:
        if "allocate" not in str(error):
            raise
        return {**case, "skipped": f"more than {GIGABYTES} GB"}


def measure(method: str, size: Size) -> dict[str, Any]:
    """CPU ms of a round of all seeds, the process's growth in memory, and the data in it."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTES * 10**9,) * 2)
    device = torch.device("cpu")
    empty = peak(device)
    problem = problem_of(method, size)
    seeds = tuple(range(size.S))
    loop = BatchedRuns([algorithm_of(method, size)], problem, seeds, device, None)
    now = loop.start()
    first, _ = clocked(loop, now, 1)
    began = time.perf_counter()
    _, again = clocked(loop, now, 1)  # warms up, and counts where a round takes long
    rounds, each = max(1, min(50, int(0.05 / again))), list[float]()
    while len(each) < PASSES and time.perf_counter() - began < ENOUGH:
        each.append(1e3 * clocked(loop, now, rounds)[1] / rounds)
    each = each or [1e3 * again]
    tensors = [*problem.data, problem.rows]
    return {
        "cpu_ms": median(each),
        "cpu_ms_lowest": min(each),
        "first_round_s": first,
        "peak_mib": peak(device) - empty,
        "data_mib": sum(x.numel() * x.element_size() for x in tensors) / 2**20,
    }


def algorithm_of(method: str, size: Size) -> Any:
    """A method with one local step on small batches."""
    work: dict[str, Any] = {"local_steps": 1, "participants": size.n, "batch_size": BATCH}
    if method == "FedAvg":
        return FedAvg(0.1, **work)
    if method == "FedSGM":
        wire = TopK(0.1)
        more: dict[str, Any] = {"uplink": wire, "downlink": wire, "value_batch_size": BATCH}
        return FedSGM(0.1, tolerance=0.05, **work, **more)
    if method == "FedCMOO":
        return FedCMOO(0.1, **work)
    if method == "SSCA":
        return SSCA(1.0, PowerLaw(0.9, 0.3), PowerLaw(0.9, 0.35), batch_size=BATCH)
    return FedFW(0.01, participation=size.n / size.N, batch_size=BATCH)


def problem_of(method: str, size: Size) -> Problem:
    """Logistic regression on random rows; clients beyond them share rows with others."""
    X = torch.rand(size.rows, size.d, generator=torch.Generator().manual_seed(0)).sub_(0.5)
    y = torch.arange(size.rows) % 2  # both classes at every client
    two = method in ("FedSGM", "FedCMOO")
    shares = torch.stack([2.0 * (y == 0), 2.0 * (y == 1)], 1) if two else torch.ones(len(y), 1)
    problem = Problem(
        name="scale",
        data=(X, y.to(X.dtype), shares),
        rows=torch.arange(size.N * OWN).view(size.N, OWN) % size.rows,
        sizes=(OWN,) * size.N,
        losses=logistic_losses,
        gradient=logistic_gradient,
        num_objectives=2 if method == "FedCMOO" else 1,
        num_constraints=1 if method == "FedSGM" else 0,
        w0=torch.zeros(size.d),
        metrics=norm,
    )
    return problem.within(Ball(1.0)) if method == "FedFW" else problem


def norm(w: Tensor, problem: Problem) -> dict[str, Tensor]:  # noqa: ARG001 - what metrics look like
    """The model's length; nothing here is evaluated."""
    return {"norm": w.norm()}


if __name__ == "__main__":
    sys.exit(main())
