"""fedlib beside its peers: `python -m benchmarks.peers [W1 ...] [--json PATH]`.

A plain torch loop always; jax and FedJAX where they are installed (the extra `peers`). All entries
of a workload are alive in one process and take turns, A B C A B C, with one thread, on the same
data and batches; the medians of their CPU times are compared, and all must reach one loss.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench import KEPT, advance, apart, collected, machine, walked
from benchmarks.tasks import TASKS, Advance, Models, Work, algorithm_of, problem_of, work
from benchmarks.workloads import WORKLOADS
from fedlib.core.schedule import Schedule
from fedlib.engine.batch import CAPTURE, BatchedRuns
from fedlib.engine.loop import RoundLoop
from papers.kit.commands import Parser, carried_out, count, nearest, new_file

OURS, REPLAYED, WITH_SWITCH = "fedlib FedAvg", "fedlib FedAvg, replayed", "fedlib FedSGM"
LOOP, ORDERED = "torch loop", "torch loop, channels last"
SCAN, FEDJAX = "jax scan", "FedJAX"
RATES = "GFLOP/s"
LONG = 10**7  # rounds, so that they are compiled if any are
CLOSE = 2e-3  # how far the final losses may be apart, relatively: float32, in another order

Entry = tuple[Advance, Models]


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks.peers", KEPT)


def timed(arguments: list[str] | None) -> int:
    """Time every workload, print a table, write JSON where it is asked to."""
    options = _parse(arguments)
    held = versions()
    print(f"peers: {', '.join(f'{k} {v}' for k, v in held.items()) or 'torch alone'}", flush=True)

    def one(name: str) -> dict[str, Any]:
        if name == RATES:
            return dict(apart(rates))
        found: dict[str, Any] = apart(measure, name=name, turns=options.turns)
        for entry, its in found["entries"].items():
            print(f"{name:13}{entry:27}{its['cpu_ms']:10.4f}  ({its['cpu_ms_lowest']:.4f})")
        sys.stdout.flush()
        return found

    cases = [RATES, *(options.workloads or TASKS)]
    collected(options.json, {**machine("cpu", 1), **held}, cases, one)
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="benchmarks.peers", description="CPU time a round, beside the peers.")
    parser.add_argument("workloads", nargs="*", metavar="W", help=", ".join(TASKS) + "; all")
    parser.add_argument("--turns", type=count, help="in place of a workload's own number")
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options = parser.parse_args(arguments)
    for name in options.workloads:
        if name not in TASKS:
            known = nearest(name, TASKS)
            parser.error(f"argument workloads: must be known names, got {name!r}, {known}")
    return options


def versions() -> dict[str, str]:
    """The peers that are installed."""
    return {name: metadata.version(name) for name in ("jax", "fedjax") if find_spec(name)}


def rates(side: int = 1024, times: int = 10) -> dict[str, float]:
    """Gigaflops a second of one thread in products of square matrices, by torch and by jax."""
    torch.set_num_threads(1)
    x = torch.ones(side, side)
    products: dict[str, Callable[[], object]] = {"torch": lambda: x @ x}
    if find_spec("jax"):
        from benchmarks import peer_jax

        products["jax"] = peer_jax.product(side)
    seconds = in_turn({k: lambda *_, f=f: f() for k, f in products.items()}, times, 1)
    return {k: 2e-9 * side**3 / median(own[1:]) for k, own in seconds.items()}


def measure(name: str, turns: int | None) -> dict[str, Any]:
    """CPU time of every entry of a workload, and its final loss."""
    torch.set_num_threads(1)
    task = TASKS[name]
    turns = task.turns if turns is None else turns
    common = work(name, turns)
    entries = {key: make() for key, make in makers(name, common).items()}
    times = in_turn({key: entry[0] for key, entry in entries.items()}, turns, task.rounds)
    runs = task.seeds * task.sizes
    losses = {k: common.loss(models()) for k, (_, models) in entries.items() if k != WITH_SWITCH}
    check_losses(name, losses)
    found = {
        "title": task.title,
        "goal": task.goal,
        "runs": runs,
        "rounds": task.rounds * (turns + 1),
        "turns": turns,
    }
    each = {
        key: {
            "cpu_ms": 1e3 * median(own[1:]) / task.rounds / runs,
            "cpu_ms_lowest": 1e3 * min(own[1:]) / task.rounds / runs,
            "final_loss": losses.get(key),
        }
        for key, own in times.items()
    }
    return {**found, "entries": each}


def in_turn(entries: dict[str, Advance], turns: int, rounds: int) -> dict[str, list[float]]:
    """CPU seconds of every turn of every entry; the first one records, compiles and warms up."""
    times: dict[str, list[float]] = {key: [] for key in entries}
    for turn in range(turns + 1):
        for key, go in entries.items():
            began = time.process_time()
            go(turn * rounds, (turn + 1) * rounds)
            times[key].append(time.process_time() - began)
    return times


def makers(name: str, common: Work) -> dict[str, Callable[[], Entry]]:
    """What takes turns on a workload; loops and FedJAX advance one run, not many together."""
    from benchmarks import peer_torch

    found: dict[str, Callable[[], Entry]] = {
        OURS: lambda: ours(common.grid, common.problem, common.task.seeds),
        WITH_SWITCH: lambda: switched(name, common),
    }
    if name != "W2":  # where clients are taken one by one, nothing is compiled
        found[REPLAYED] = lambda: replayed(common.grid, common.problem, common.task.seeds)
    alone = common.task.seeds * common.task.sizes == 1
    if alone:
        found[LOOP] = lambda: peer_torch.loop(common)
    if name == "W2":
        found[ORDERED] = lambda: peer_torch.loop(common, torch.channels_last)
    if find_spec("jax"):
        from benchmarks import peer_jax

        found[SCAN] = lambda: peer_jax.scan(common)
        if alone and find_spec("fedjax"):
            found[FEDJAX] = lambda: peer_jax.fedjax_loop(common)
    return found


def ours(grid: list[Any], problem: Any, seeds: int) -> Entry:
    """Rounds as a long `fedlib.run` does them, drawing for themselves what others are given."""
    loop = BatchedRuns(grid, problem, tuple(range(seeds)), torch.device("cpu"), None)
    walk, now = RoundLoop(loop, LONG, Schedule(LONG)), loop.start()
    return lambda first, last: walked(walk, now, last - first), lambda: now.state.w


def replayed(grid: list[Any], problem: Any, seeds: int) -> Entry:
    """The same as a run of some hundred rounds does them: captured, one by one."""
    loop = BatchedRuns(grid, problem, tuple(range(seeds)), torch.device("cpu"), None)
    loop.speed_up(CAPTURE, Schedule(CAPTURE))
    now = loop.start()
    return lambda first, last: advance(loop, now, last - first), lambda: now.state.w


def switched(name: str, common: Work) -> Entry:
    """FedSGM with hard switching, on the same data with a constraint."""
    many = common.task.sizes > 1
    grid = WORKLOADS["W3"].grid("FedSGM") if many else [algorithm_of(name, constrained=True)]
    return ours(grid, problem_of(name, constrained=True), common.task.seeds)


def check_losses(name: str, losses: dict[str, float]) -> None:
    """Raise ValueError unless all entries did the same."""
    for key, value in losses.items():
        if not abs(value - losses[OURS]) <= CLOSE * abs(losses[OURS]):
            raise ValueError(
                f"benchmarks.peers: the entries of {name} must reach one loss, got {value:.6g} by "
                f"{key} and {losses[OURS]:.6g} by {OURS}; one of them does something else."
            )


if __name__ == "__main__":
    sys.exit(main())
