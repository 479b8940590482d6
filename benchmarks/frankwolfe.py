"""The nuclear ball's oracle beside its projection, and FedFW on W1.

    python benchmarks/frankwolfe.py [--sides 200 500 1000 2000] [--passes 5] [--json PATH]

Both oracles get one and the same random square matrix in every pass, float32, one thread; the ratio
is the median of those within a pass. A round of FedFW on W1 (100 clients, 784 x 10, batches of 64,
all take part) is timed beside one of FedAvg, A B C A B C.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench import AFTER_STOP, clocked, machine, save
from benchmarks.workloads import WORKLOADS
from fedlib.algorithms.fedfw import FedFW
from fedlib.compress import Identity
from fedlib.core.problem import ConvexSet
from fedlib.engine.batch import BatchedRuns
from fedlib.run import resolve_device
from fedlib.sets import Ball, L1Ball, NuclearBall
from papers.kit.commands import Parser, carried_out, count, new_file

SIDES = (200, 500, 1000, 2000)
RADIUS = 10.0
BATCH = 64


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks.frankwolfe", AFTER_STOP)


def timed(arguments: list[str] | None) -> int:
    """Time everything, print two tables, write JSON where it is asked to."""
    parser = Parser(prog="benchmarks.frankwolfe", description="LMO against projection.")
    parser.add_argument("--sides", type=count, nargs="*", default=SIDES, help="of the matrices")
    parser.add_argument("--passes", type=count, default=5, help="the median of them is reported")
    parser.add_argument("--rows", type=count, default=60_000, help="data rows of W1")
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print(f"{'side':>6}{'LMO, ms':>11}{'SVD, ms':>11}{'ratio':>8}{'kbit':>9}{'dense':>9}")
    found = [oracles(side, options.passes) for side in options.sides]
    for r in found:
        print(
            f"{r['side']:6}{r['lmo_ms']:11.2f}{r['project_ms']:11.2f}{r['ratio']:8.1f}"
            f"{r['rank_one_kbit']:9.0f}{r['dense_kbit']:9.0f}"
        )
    print(f"\n{'W1':20}{'CPU ms a round':>15}")
    rounds = workload(options.rows, options.passes)
    for r in rounds:
        print(f"{r['case']:20}{r['cpu_ms']:15.2f}")
    save(options.json, {"machine": machine("cpu", 1), "oracles": found, "W1": rounds})
    return 0


def oracles(side: int, passes: int) -> dict[str, Any]:
    """CPU time of the two oracles for one side, and the bits of their answers."""
    ball, rng = NuclearBall(1.0, side, side), torch.Generator().manual_seed(side)
    times: list[tuple[float, float]] = []
    for p in range(passes + 1):
        x = torch.randn(side**2, generator=rng)
        both = clock(lambda x=x: ball.lmo(x)), clock(lambda x=x: ball.project(x))
        if p:  # the first pass warms up
            times.append(both)
    return {
        "side": side,
        "lmo_ms": 1e3 * median(a for a, _ in times),
        "project_ms": 1e3 * median(b for _, b in times),
        "ratio": median(b / a for a, b in times),
        "rank_one_kbit": ball.wire(side**2).bits(side**2) / 1e3,
        "dense_kbit": Identity().bits(side**2) / 1e3,
    }


def clock(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def workload(rows: int, passes: int, rounds: int = 20) -> list[dict[str, Any]]:
    """CPU time of a round of FedFW on W1 in two sets, and of FedAvg, in turn."""
    chosen = WORKLOADS["W1"]
    problem = chosen.problem("FedAvg", rows)
    sets: dict[str, ConvexSet] = {"FedFW, l1 ball": L1Ball(RADIUS), "FedFW, l2 ball": Ball(RADIUS)}
    loops = {"FedAvg": BatchedRuns([chosen.algorithm("FedAvg")], problem, (0,), device(), None)}
    for name, convex_set in sets.items():
        method = FedFW(0.01, batch_size=BATCH)
        loops[name] = BatchedRuns([method], problem.within(convex_set), (0,), device(), None)
    states = {name: loop.start() for name, loop in loops.items()}
    times: dict[str, list[float]] = {name: [] for name in loops}
    for p in range(passes + 1):
        for name, loop in loops.items():
            _, seconds = clocked(loop, states[name], rounds)
            if p:  # the first pass records the round and warms up
                times[name].append(1e3 * seconds / rounds)
    return [summary(name, own) for name, own in times.items()]


def summary(case: str, each: Sequence[float]) -> dict[str, Any]:
    """The median and the ends of some times."""
    return {"case": case, "cpu_ms": median(each), "lowest": min(each), "highest": max(each)}


def device() -> torch.device:
    """The CPU, on which these times are taken."""
    return resolve_device("cpu")


if __name__ == "__main__":
    sys.exit(main())
