"""How long a round takes: `python benchmarks/bench.py [W1 W3 W4] [--json PATH]`.

Every variant of a workload is timed in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import active_children, get_context
from pathlib import Path
from statistics import median
from typing import Any

import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.workloads import ALGORITHMS, WORKLOADS
from fedlib.core import Loop, Vectorized
from fedlib.core.batched import Batched
from fedlib.core.checkpoint import write_whole
from fedlib.core.commands import Parser, carried_out, count, nearest, new_file
from fedlib.core.run import resolve_device

VARIANTS = ("closed form", "general", "33 runs", "loop")
AFTER_STOP = "nothing was written"
PASSES = 7
LOOP_ROUNDS = 3  # the plain twin is slow
#: Makes glibc keep freed memory: fetching large arrays anew each round costs page faults.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "268435456", "MALLOC_MMAP_THRESHOLD_": "33554432"}


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks", AFTER_STOP)


def timed(arguments: list[str] | None) -> int:
    """Time what the command line asks for, print a table, write JSON where it is asked to."""
    options = _parse(arguments)
    resolve_device(options.device)
    results = []
    print(f"{'':31}{'ms a round':>12}{'CPU ms':>10}{'first s':>9}{'MiB':>7}  final loss")
    for case, memory in _cases(options):
        for name, size in KEEP_MEMORY.items():  # read by the C library when a process starts
            os.environ.pop(name, None)
            os.environ.update({name: size} if memory == "kept" else {})
        result = apart(case)
        results.append({**result, "memory": memory})
        print(
            f"{result['workload']} {result['algorithm']:7} {result['variant']:12}{memory:9}"
            f"{result['ms_per_run_and_round']:12.4f}{result['cpu_ms_per_run_and_round']:10.4f}"
            f"{result['first_round_s']:9.2f}{result['peak_mib']:7.0f}  {result['final_loss']:.6f}"
        )
    where = machine(options.device, options.threads)
    save(options.json, {"machine": where, "results": results})
    return 0


def apart(case: dict[str, Any]) -> dict[str, Any]:
    """`measure` in a process of its own, which leaves Ctrl-C to this one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the process inherits it
        found = alone.submit(measure, **case)
        signal.signal(signal.SIGINT, before)
        try:
            return found.result()
        except KeyboardInterrupt:
            for child in active_children():
                child.terminate()
            raise


def save(path: Path | None, report: dict[str, Any]) -> None:
    """Write a report as JSON, if a file is asked for."""
    if path is not None:
        text = json.dumps(report, indent=1) + "\n"
        write_whole(path, lambda file: file.write(text.encode()))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="benchmarks", description="Seconds a round of fedlib.")
    # no `choices`: with nargs="*" they would refuse the empty default on Python 3.11
    parser.add_argument("workloads", nargs="*", metavar="W", help=", ".join(WORKLOADS) + "; all")
    parser.add_argument("--algorithm", choices=(*ALGORITHMS, "both"), default="FedAvg")
    parser.add_argument("--variant", choices=(*VARIANTS, "all"), default="all")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, auto")
    parser.add_argument("--threads", type=count, default=1, help="on the CPU")
    parser.add_argument(
        "--memory",
        choices=("default", "kept", "both"),
        default="default",
        help="whether the C library gives freed memory back, or keeps it (glibc only)",
    )
    parser.add_argument(
        "--passes", type=count, default=PASSES, help="the median of them is reported"
    )
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options = parser.parse_args(arguments)
    for name in options.workloads:
        if name not in WORKLOADS:
            known = nearest(name, WORKLOADS)
            parser.error(f"argument workloads: must be known names, got {name!r}, {known}")
    return options


def _cases(options: argparse.Namespace) -> Iterator[tuple[dict[str, Any], str]]:
    """Every variant of every workload, the 33 runs only where it has them; and the memory."""
    memories = ("default", "kept") if options.memory == "both" else (options.memory,)
    algorithms = ALGORITHMS if options.algorithm == "both" else (options.algorithm,)
    chosen = VARIANTS if options.variant == "all" else (options.variant,)
    shared = {"device": options.device, "threads": options.threads, "passes": options.passes}
    for workload in options.workloads or WORKLOADS:
        for algorithm in algorithms:
            for variant in chosen:
                if variant == "33 runs" and not WORKLOADS[workload].together:
                    continue
                names = {"workload": workload, "algorithm": algorithm, "variant": variant}
                yield from ((names | shared, memory) for memory in memories)


def measure(
    workload: str, algorithm: str, variant: str, device: str, threads: int, passes: int
) -> dict[str, Any]:
    """Seconds a round of one variant: draws and rounds, without evaluation.

    The first round is timed apart (it records the computation), one pass warms up, the median of
    `passes` counts.
    """
    torch.set_num_threads(threads)
    timed, runs, rounds = _prepare(workload, algorithm, variant, device)
    now = timed.start()
    state, first, _ = _pass(timed, now.state, now.rngs, 1)
    state, _, _ = _pass(timed, state, now.rngs, rounds)
    wall, cpu = [], []
    for _ in range(passes):
        state, seconds, processor = _pass(timed, state, now.rngs, rounds)
        wall.append(seconds / rounds / runs * 1e3)
        cpu.append(processor / rounds / runs * 1e3)
    values = timed.measure(state.w)
    loss = values.get("loss", values.get("f"))
    assert loss is not None
    return {
        "workload": workload,
        "algorithm": algorithm,
        "variant": variant,
        "device": device,
        "runs": runs,
        "rounds": 1 + rounds * (1 + passes),
        "ms_per_run_and_round": median(wall),
        "ms_lowest": min(wall),
        "ms_highest": max(wall),
        "cpu_ms_per_run_and_round": median(cpu),
        "first_round_s": first,
        "peak_mib": _peak(timed.device),
        "final_loss": float(loss[0, 0]),
    }


def _prepare(workload: str, algorithm: str, variant: str, device: str) -> tuple[Batched, int, int]:
    """The loop of `fedlib.run`, how many runs it advances, and the rounds of a pass."""
    chosen = WORKLOADS[workload]
    problem, grid, seeds = chosen.problem(algorithm), [chosen.algorithm(algorithm)], (0,)
    rounds = chosen.rounds
    if variant == "general":
        problem = replace(problem, gradient=None)
    if variant == "33 runs":
        grid, seeds, rounds = chosen.grid(algorithm), (0, 1, 2), max(1, rounds // 5)
    if variant == "loop":
        rounds = LOOP_ROUNDS
    engine = Loop if variant == "loop" else Vectorized
    timed = Batched(grid, problem, seeds, resolve_device(device), engine)
    return timed, len(grid) * len(seeds), rounds


def _pass(timed: Batched, state: Any, rngs: Any, rounds: int) -> tuple[Any, float, float]:
    """Some rounds as `run` does them, their seconds on the clock and on the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    for draw in [timed.draws(rngs) for _ in range(rounds)]:
        state, _ = timed.step(state, draw)
    if timed.device.type == "cuda":
        torch.cuda.synchronize(timed.device)
    return state, time.perf_counter() - wall, time.process_time() - cpu


def _peak(device: torch.device) -> float:
    """Largest memory so far in MiB: the process's, or the GPU's."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    unit = 1 if platform.system() == "Darwin" else 1024  # ru_maxrss is in bytes or in KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def machine(device: str, threads: int) -> dict[str, Any]:
    """What the numbers depend on: processor, instruction set, threads, versions."""
    where = resolve_device(device)
    return {
        "device": torch.cuda.get_device_name(where) if where.type == "cuda" else "cpu",
        "cores": os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": threads,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


if __name__ == "__main__":
    sys.exit(main())
