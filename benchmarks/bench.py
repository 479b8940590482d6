"""How long a round takes: `python -m benchmarks [peers] [start] [scale] [--json PATH]`.

`peers`: fedlib beside a plain torch loop, and beside jax and FedJAX where they are installed (the
extra `peers`), on the workloads. All entries are alive in one process and take turns, A B C A B C,
with one thread, on the same data and batches; the medians of their CPU times are compared, and all
must reach one loss. `start`: a new process until its rounds are done, its caches empty or
filled. `scale`: time and memory of a round against clients, parameters and seeds, each case a
process of its own. `results.json` keeps one block for each processor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from multiprocessing import active_children, get_context
from operator import methodcaller
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus

from benchmarks.workloads import SCALE, WORKLOADS, Advance, Models, Work, Workload, drawn
from fedlib.algorithms import SSCA, FedAvg, FedCMOO, FedFW, FedSGM
from fedlib.compress import TopK
from fedlib.core import Problem
from fedlib.core.files import atomic_write
from fedlib.core.trees import index_tree
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.checkpoint import Progress
from fedlib.engine.kernels import product_library
from fedlib.engine.loop import CHUNK, RoundLoop
from fedlib.engine.start import first_progress
from fedlib.problems.neyman_pearson import logistic_gradient, logistic_losses
from fedlib.provenance import versions
from fedlib.sets import Ball
from fedlib.steps import PowerLaw
from papers.fedcmoo import networks

ROOT = Path(__file__).resolve().parents[1]
OURS = "fedlib FedAvg"
WITH_SWITCH = "fedlib FedSGM"
LOOP = "torch loop"
ORDERED = "torch loop, channels last"
LONG = 10**7  # rounds, so that they are compiled if any are
CLOSE = 2e-3  # how far the final losses may be apart, relatively: float32, in another order
GOAL = {"W2": 0.6}  # of the best peer's time; 0.8 elsewhere

Entry = tuple[Advance, Models]

# --- beside the peers ---


def measure_peers(name: str) -> dict[str, Any]:
    """CPU time of every entry of a workload, and its final loss."""
    torch.set_num_threads(1)
    workload = WORKLOADS[name]
    common = drawn(workload, workload.turns)
    entries = {key: make() for key, make in makers(name, common).items()}
    advances = {key: advance for key, (advance, _) in entries.items()}
    times = take_turns(advances, workload.turns, workload.rounds)
    losses = {}
    for key, (_, models) in entries.items():
        if key != WITH_SWITCH:
            losses[key] = common.loss(models())
    check_losses(name, losses)
    milliseconds = 1e3 / (workload.seeds * workload.sizes)  # of one run, in a second of all
    measured = {}
    for key, (_, *turns) in times.items():
        measured[key] = {
            "cpu_ms": milliseconds * median(turns),
            "cpu_ms_lowest": milliseconds * min(turns),
            "final_loss": losses.get(key),
        }
    return {"title": workload.title, "goal": GOAL.get(name, 0.8), "entries": measured}


def take_turns(entries: dict[str, Advance], turns: int, rounds: int) -> dict[str, list[float]]:
    """CPU seconds a round in every turn of every entry; the first turn captures and compiles.

    Of a turn of many rounds the first tenth, which finds cold caches, is not timed.
    """
    times: dict[str, list[float]] = {key: [] for key in entries}
    cold = rounds // 80 * 8  # whole calls of 8 compiled rounds
    for turn in range(turns + 1):
        for key, advance in entries.items():
            start = turn * rounds
            if cold:
                advance(start, start + cold)
            began = time.process_time()
            advance(start + cold, start + rounds)
            seconds = time.process_time() - began
            times[key].append(seconds / (rounds - cold))
    return times


def makers(name: str, common: Work) -> dict[str, Callable[[], Entry]]:
    """What takes turns on a workload; loops and FedJAX advance one run, not many together."""
    workload = common.workload

    def constrained() -> Entry:
        grid = workload.grid(constrained=True)
        return ours(grid, workload.problem(constrained=True), workload.seeds)

    entries: dict[str, Callable[[], Entry]] = {
        OURS: lambda: ours(common.grid, common.problem, workload.seeds),
        WITH_SWITCH: constrained,
    }
    alone = workload.seeds * workload.sizes == 1
    if alone:
        entries[LOOP] = lambda: torch_loop(common)
    if name == "W2":
        entries[ORDERED] = lambda: torch_loop(common, torch.channels_last)
    if find_spec("jax"):
        from benchmarks import peer_jax

        entries["jax scan"] = lambda: peer_jax.scan(common)
        if alone and find_spec("fedjax"):
            entries["FedJAX"] = lambda: peer_jax.fedjax_loop(common)
    return entries


def ours(grid: list[Any], problem: Problem, seeds: int) -> Entry:
    """Rounds as a long `fedlib.run` does them, drawing for themselves what others are given."""
    runs = BatchedRuns(grid, problem, tuple(range(seeds)), torch.device("cpu"), None)
    loop = RoundLoop(runs, LONG, LONG)
    progress = first_progress(runs)
    loop.prepare(progress.state)

    def advance(start: int, end: int) -> None:
        goal = progress.round + end - start
        while loop.compiled:
            calls = (goal - progress.round) // loop.compiled.rounds
            if not calls:
                break
            loop.advance(progress, min(CHUNK, calls))
        advance_plainly(runs, progress, goal - progress.round)

    return advance, lambda: progress.state.w


def advance_plainly(runs: BatchedRuns, progress: Progress, rounds: int) -> None:
    """Some rounds as `run` does them, draws included, one by one and without evaluation."""
    for done in range(0, rounds, CHUNK):
        draws = runs.draws(progress.rngs, min(CHUNK, rounds - done))
        for t in range(len(draws.participants)):
            progress.state, _ = runs.step(progress.state, index_tree(draws, t))
    progress.round += rounds


def check_losses(name: str, losses: dict[str, float]) -> None:
    """Raise ValueError unless all entries did the same."""
    expected = losses[OURS]
    for key, value in losses.items():
        if not abs(value - expected) <= CLOSE * abs(expected):
            raise ValueError(
                f"benchmarks: the entries of {name} must reach one loss, got {value:.6g} by "
                f"{key} and {expected:.6g} by {OURS}; one of them does something else."
            )


def torch_loop(work: Work, order: torch.memory_format = torch.contiguous_format) -> Entry:
    """FedAvg as one writes it without a library: a module, an optimizer, client by client."""
    module, loss = model(work.workload, order)
    parameters = list(module.parameters())
    (lr,) = work.lr
    optimizer = torch.optim.SGD(parameters, lr=lr)
    current = []
    for w, p in zip(work.start(), parameters, strict=True):
        current.append(w.clone().view_as(p))

    def train(rows: Tensor) -> None:
        for p, w in zip(parameters, current, strict=True):
            p.data.copy_(w)
        for step in range(work.steps):
            batch = rows[step % len(rows)]
            optimizer.zero_grad()
            loss(*(x[batch] for x in work.data)).backward()
            optimizer.step()

    def advance(start: int, end: int) -> None:
        for clients in work.rows[0, start:end]:
            means = [torch.zeros_like(w) for w in current]
            for rows in clients:
                train(rows)
                for mean, p in zip(means, parameters, strict=True):
                    mean.add_(p.detach(), alpha=1 / len(clients))
            for w, mean in zip(current, means, strict=True):
                w.copy_(mean)

    def models() -> Tensor:
        flat = [w.flatten() for w in current]
        return torch.cat(flat)[None, None]

    return advance, models


def model(
    workload: Workload, order: torch.memory_format
) -> tuple[nn.Module, Callable[..., Tensor]]:
    """The module of a workload, and the loss of a batch."""
    if workload.model == "lenet":
        network = networks.pair_lenet()
        network.encoder.to(memory_format=order)  # type: ignore[call-overload]
        mean, std = SCALE

        def tasks(x: Tensor, y: Tensor) -> Tensor:
            pictures = x.to(torch.float32).div_(255).sub_(mean).div_(std)
            code = network.encoder(pictures.to(memory_format=order))
            losses = []
            for task, head in enumerate(network.decoders):
                losses.append(cross_entropy(head(code), y[:, task]))
            return torch.stack(losses).mean()

        return network, tasks
    if workload.model == "logistic":
        line = nn.Linear(30, 1, bias=False)

        def logistic(x: Tensor, y: Tensor, share: Tensor) -> Tensor:
            z = line(x).squeeze(-1)
            losses = softplus(z) - y * z
            return (losses * share).mean()

        return line, logistic
    module: nn.Module = nn.Linear(784, 10, bias=False)
    if workload.model == "network":
        width = workload.shapes[0][0]
        module = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, 10))
    return module, lambda x, y: cross_entropy(module(x), y)


# --- to the first round ---

FIRST = """
from benchmarks.workloads import WORKLOADS
from fedlib.run import run
workload = WORKLOADS[{name!r}]
algorithm = workload.algorithm()
run(algorithm, workload.problem(), rounds={rounds}, evaluate_every={rounds}, progress=False)
"""
#: A case's title and the program.
STARTS = {
    "torch": ("`import torch`, for comparison", "import torch"),
    "fedlib": ("`import fedlib`", "import fedlib"),
    "W3": ("FedAvg on W3, one round", FIRST.format(name="W3", rounds=1)),
    "long": ("FedAvg on W3, 10,000 rounds", FIRST.format(name="W3", rounds=10_000)),
    "LeNet": ("FedAvg on W2, one round", FIRST.format(name="W2", rounds=1)),
}
#: Where programs keep what they compiled or downloaded.
CACHES = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "FEDLIB_DATA", "TORCHINDUCTOR_CACHE_DIR")


def measure_start(name: str, times: int = 3) -> dict[str, Any]:
    """Seconds of a cold start and the median of warm ones, on the clock and on the processor."""
    title, program = STARTS[name]
    with tempfile.TemporaryDirectory() as folder:
        cold, *warm = [time_process(program, Path(folder)) for _ in range(times + 1)]
    medians = {key: median(seconds[key] for seconds in warm) for key in cold}
    return {"title": title, "cold": cold, "warm": medians}


def time_process(program: str, folder: Path) -> dict[str, float]:
    """Seconds of one process whose caches lie in `folder`, on the clock and on the processor."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    for name in CACHES:
        cache = folder / name.lower()
        cache.mkdir(exist_ok=True)
        env[name] = str(cache)
    cpu_began = cpu_of_children()
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], env=env, check=True, cwd=ROOT)
    seconds = time.perf_counter() - began
    return {"s": seconds, "cpu_s": cpu_of_children() - cpu_began}


def cpu_of_children() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- at scale ---

SECONDS = 60  # most that a case may take, with its data and its capture
GIGABYTES = 8  # most that it may allocate
CLIENT_ROWS = 4
BATCH = 4
PASSES = 7  # at most
ENOUGH = 3.0  # seconds after which no other pass begins


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
    "clients": [Size(N=10**k, n=100, rows=CLIENT_ROWS * 10**k) for k in (2, 3, 4, 5)],
    "many clients": [Size(N=10**k, n=100, d=100) for k in (3, 4, 5, 6)],
    "parameters": [Size(d=10**k, rows=20) for k in (3, 4, 5, 6, 7)],
    "seeds": [Size(S=s) for s in (1, 10, 100)],
}
METHODS = ("FedAvg", "FedSGM", "FedCMOO", "SSCA", "FedFW")
ALL_CLIENTS = ("SSCA",)  # methods in which all clients take part, for which a million is too many


def scale_cases() -> list[str]:
    """The names of all cases: method, axis, and number of the size."""
    cases = []
    for method in METHODS:
        for axis, sizes in AXES.items():
            if axis != "many clients" or method not in ALL_CLIENTS:
                cases += [f"{method}, {axis}, {number}" for number in range(len(sizes))]
    return cases


def measure_scale(case: str, results: dict[str, Any]) -> dict[str, Any]:
    """One case, or why there is none; nothing larger is tried after a case that was left out."""
    method, axis, number = case.split(", ")
    size = AXES[axis][int(number)]
    at = {"parameters": size.d, "seeds": size.S}.get(axis, size.N)
    result = {"method": method, "axis": axis, "at": at}
    smaller = results.get(f"{method}, {axis}, {int(number) - 1}", {})
    if "skipped" in smaller:
        return {**result, "skipped": f"not tried: at {smaller['at']:,} {smaller['skipped']}"}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        try:
            measured = process.submit(time_rounds, method, size).result(SECONDS)
        except TimeoutError:
            for child in active_children():
                child.terminate()
            return {**result, "skipped": f"more than {SECONDS} s"}
        except (MemoryError, BrokenProcessPool, RuntimeError) as error:
            full = isinstance(error, (MemoryError, BrokenProcessPool)) or "allocate" in str(error)
            if not full:
                raise
            return {**result, "skipped": f"more than {GIGABYTES} GB"}
    return {**result, **measured}


def time_rounds(method: str, size: Size) -> dict[str, Any]:
    """CPU ms of a round of all seeds, the process's growth in memory, and the data in it."""
    torch.set_num_threads(1)
    limit = GIGABYTES * 10**9
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    empty = peak()
    problem = problem_at(method, size)
    grid = [algorithm_at(method, size)]
    runs = BatchedRuns(grid, problem, tuple(range(size.S)), torch.device("cpu"), None)
    progress = first_progress(runs)

    def clocked(rounds: int) -> float:
        began = time.process_time()
        advance_plainly(runs, progress, rounds)
        return time.process_time() - began

    began = time.perf_counter()
    capture = clocked(1)
    second_round = clocked(1)
    rounds = max(1, min(50, int(0.05 / second_round)))
    passes: list[float] = []
    while len(passes) < PASSES and time.perf_counter() - began < ENOUGH:
        passes.append(1e3 * clocked(rounds) / rounds)
    data_bytes = sum(x.nbytes for x in (*problem.data, problem.rows))
    return {
        "cpu_ms": median(passes or [1e3 * second_round]),
        "first_round_s": capture,
        "peak_mib": peak() - empty,
        "data_mib": data_bytes / 2**20,
    }


def peak() -> float:
    """The largest memory so far in MiB."""
    unit = 1 if platform.system() == "Darwin" else 1024  # ru_maxrss is in bytes or in KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def algorithm_at(method: str, size: Size) -> Any:
    """A method with one local step on small batches."""
    work: dict[str, Any] = {"local_steps": 1, "participants": size.n, "batch_size": BATCH}
    if method == "FedAvg":
        return FedAvg(0.1, **work)
    if method == "FedSGM":
        wires: dict[str, Any] = {"uplink": TopK(0.1), "downlink": TopK(0.1)}
        return FedSGM(0.1, tolerance=0.05, value_batch_size=BATCH, **wires, **work)
    if method == "FedCMOO":
        return FedCMOO(0.1, **work)
    if method == "SSCA":
        return SSCA(1.0, PowerLaw(0.9, 0.3), PowerLaw(0.9, 0.35), batch_size=BATCH)
    return FedFW(0.01, participation=size.n / size.N, batch_size=BATCH)


def problem_at(method: str, size: Size) -> Problem:
    """Logistic regression on random rows; clients beyond them share rows with others."""
    rng = torch.Generator().manual_seed(0)
    X = torch.rand(size.rows, size.d, generator=rng).sub_(0.5)
    y = torch.arange(size.rows) % 2  # both classes at every client
    shares = torch.ones(size.rows, 1)
    if method in ("FedSGM", "FedCMOO"):
        shares = torch.stack([2.0 * (y == 0), 2.0 * (y == 1)], 1)
    clients = torch.arange(size.N * CLIENT_ROWS).view(size.N, CLIENT_ROWS)
    problem = Problem(
        name="scale",
        data=(X, y.to(X.dtype), shares),
        rows=clients % size.rows,
        sizes=(CLIENT_ROWS,) * size.N,
        losses=logistic_losses,
        gradient=logistic_gradient,
        num_objectives=2 if method == "FedCMOO" else 1,
        num_constraints=1 if method == "FedSGM" else 0,
        w0=torch.zeros(size.d),
        metrics=lambda w, _: {"norm": w.norm()},
    )
    return problem.within(Ball(1.0)) if method == "FedFW" else problem


# --- the command ---

PARTS: dict[str, tuple[list[str], Callable[[str, dict[str, Any]], dict[str, Any]]]] = {
    "peers": ([*WORKLOADS], lambda case, _: measure_peers(case)),
    "start": ([*STARTS], lambda case, _: measure_start(case)),
    "scale": (scale_cases(), measure_scale),
}


def main(arguments: list[str] | None = None) -> None:
    """Measure what is asked for; write every case as soon as it is there."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="How long a round takes.")
    parser.add_argument("parts", nargs="*", metavar="PART", help="peers, start, scale; all")
    parser.add_argument("--cases", help="those whose name begins with this, such as W3")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks" / "results.json")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"PART must be one of {', '.join(PARTS)}, got {', '.join(unknown)}")
    stored = {}
    if options.json.exists():
        stored = json.loads(options.json.read_text(encoding="utf-8"))
    block = stored.setdefault(processor(), {})
    for name in options.parts or PARTS:
        cases, measure = PARTS[name]
        results = {}
        if options.cases:
            results = block.get(name, {}).get("results", {})
        for case in cases:
            if not case.startswith(options.cases or ""):
                continue
            results[case] = measure(case, results)
            print(name, case, json.dumps(results[case]), flush=True)
            block[name] = {"machine": machine(), "results": results}
            text = json.dumps(stored, indent=1) + "\n"
            atomic_write(options.json, methodcaller("write", text.encode()))


def processor() -> str:
    """The name of the processor."""
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        for line in cpu.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """What the numbers depend on beside the processor: instruction set, kernels, versions."""
    facts: dict[str, Any] = {
        "cores": os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "products": product_library(),
        "threads": 1,
    }
    environment = versions()
    for name in ("torch", "numpy", "python", "commit", "dirty", "date"):
        facts[name] = environment[name]
    for name in ("jax", "fedjax"):
        if find_spec(name):
            facts[name] = metadata.version(name)
    return facts
