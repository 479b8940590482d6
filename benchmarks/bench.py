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
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
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
from fedlib.core.files import atomic_write
from fedlib.core.provenance import versions
from fedlib.core.trees import index_tree
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.checkpoint import Progress
from fedlib.engine.loop import CHUNK, RoundLoop
from fedlib.run import resolve_device
from papers.kit.commands import Parser, carried_out, count, nearest, new_file

VARIANTS = ("closed form", "general", "33 runs", "loop")
AFTER_STOP = "nothing was written"
KEPT = "with --json the cases so far are kept, and the same command goes on"
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
        result = apart(measure, **case)
        results.append({**result, "memory": memory})
        print(
            f"{result['workload']} {result['algorithm']:7} {result['variant']:12}{memory:9}"
            f"{result['ms_per_run_and_round']:12.4f}{result['cpu_ms_per_run_and_round']:10.4f}"
            f"{result['first_round_s']:9.2f}{result['peak_mib']:7.0f}  {result['final_loss']:.6f}"
        )
    where = machine(options.device, options.threads)
    save(options.json, {"machine": where, "results": results})
    return 0


def apart(
    function: Callable[..., Any], *, limit: float | None = None, start: str = "spawn", **case: Any
) -> Any:
    """`function` in a process of its own, which leaves Ctrl-C to this one.

    `start` is how the process is made; "forkserver" spares the imports where many follow.

    Raises
    ------
    TimeoutError
        if it takes longer than `limit` seconds; the process is ended.
    """
    with ProcessPoolExecutor(1, mp_context=get_context(start)) as alone:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the process inherits it
        found = alone.submit(function, **case)
        signal.signal(signal.SIGINT, before)
        try:
            return found.result(limit)
        except (KeyboardInterrupt, TimeoutError):
            for child in active_children():
                child.terminate()
            raise


def collected(
    path: Path | None, where: dict[str, Any], cases: list[str], one: Callable[[str], Any]
) -> dict[str, Any]:
    """What `one` finds for every case, each written to the file as soon as it is there.

    A file that another process began on such a machine and left unfinished is carried on.
    """
    report: dict[str, Any] = {"machine": where, "finished": False, "results": {}}
    with suppress(OSError, ValueError):  # not there, or no such file
        held = json.loads((path or Path()).read_text(encoding="utf-8"))
        if isinstance(held, dict) and held.get("machine") == where and not held.get("finished"):
            report = held
    for case in cases:
        if case not in report["results"]:
            report["results"][case] = one(case)
            save(path, report)
    report["finished"] = True
    save(path, report)
    return report


def save(path: Path | None, report: dict[str, Any]) -> None:
    """Write a report as JSON, if a file is asked for."""
    if path is not None:
        text = json.dumps(report, indent=1) + "\n"
        atomic_write(path, lambda file: file.write(text.encode()))


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
    first, _ = clocked(timed, now, 1)
    clocked(timed, now, rounds)
    wall, cpu = [], []
    for _ in range(passes):
        seconds, processor = clocked(timed, now, rounds)
        wall.append(seconds / rounds / runs * 1e3)
        cpu.append(processor / rounds / runs * 1e3)
    values = timed.measure(now.state.w)
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
        "peak_mib": peak(timed.device),
        "final_loss": float(loss[0, 0]),
    }


def _prepare(
    workload: str, algorithm: str, variant: str, device: str
) -> tuple[BatchedRuns, int, int]:
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
    timed = BatchedRuns(grid, problem, seeds, resolve_device(device), engine)
    return timed, len(grid) * len(seeds), rounds


def advance(timed: BatchedRuns, now: Progress, rounds: int) -> None:
    """Some rounds as `run` does them, draws included, one by one and without evaluation."""
    for done in range(0, rounds, CHUNK):
        draws = timed.draws(now.rngs, min(CHUNK, rounds - done))
        for t in range(len(draws.participants)):
            now.state, _ = timed.step(now.state, index_tree(draws, t))
    now.round += rounds
    if timed.device.type == "cuda":
        torch.cuda.synchronize(timed.device)


def walked(walk: RoundLoop, now: Progress, rounds: int) -> None:
    """Some rounds as a long `run` does them, in compiled calls if it has such."""
    last, call = now.round + rounds, walk.compiled.rounds if walk.compiled else 1
    while last - now.round >= call:
        walk.advance(now, min(CHUNK, (last - now.round) // call))
    advance(walk.runs, now, last - now.round)


def clocked(timed: BatchedRuns, now: Progress, rounds: int) -> tuple[float, float]:
    """`advance`, and its seconds on the clock and on the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    advance(timed, now, rounds)
    return time.perf_counter() - wall, time.process_time() - cpu


def peak(device: torch.device) -> float:
    """Largest memory so far in MiB: the process's, or the GPU's."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    unit = 1 if platform.system() == "Darwin" else 1024  # ru_maxrss is in bytes or in KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def machine(device: str, threads: int) -> dict[str, Any]:
    """What the numbers depend on: processor, instruction set, threads, versions, memory."""
    where, known = resolve_device(device), versions()
    kept = all(os.environ.get(name) == size for name, size in KEEP_MEMORY.items())
    return {
        "device": torch.cuda.get_device_name(where) if where.type == "cuda" else "cpu",
        "processor": model_of_processor(),
        "cores": os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": threads,
        "memory": "kept" if kept else "default",
        **{name: known[name] for name in ("torch", "numpy", "python", "commit", "dirty", "date")},
    }


def model_of_processor() -> str:
    """The model of the CPU, as Linux names it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
