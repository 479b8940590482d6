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
from fedlib.problems.neyman_pearson import logistic_gradient, logistic_losses
from fedlib.provenance import versions
from fedlib.sets import Ball
from fedlib.steps import PowerLaw
from papers.fedcmoo import networks

ROOT = Path(__file__).resolve().parents[1]
OURS, WITH_SWITCH, LOOP, ORDERED = (
    "fedlib FedAvg", "fedlib FedSGM", "torch loop", "torch loop, channels last",
)  # fmt: skip
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
    times = take_turns(
        {k: entry[0] for k, entry in entries.items()}, workload.turns, workload.rounds
    )
    losses = {k: common.loss(models()) for k, (_, models) in entries.items() if k != WITH_SWITCH}
    check_losses(name, losses)
    per = 1e3 / (workload.seeds * workload.sizes)
    each = {
        key: {
            "cpu_ms": per * median(own[1:]),
            "cpu_ms_lowest": per * min(own[1:]),
            "final_loss": losses.get(key),
        }
        for key, own in times.items()
    }
    return {"title": workload.title, "goal": GOAL.get(name, 0.8), "entries": each}


def take_turns(entries: dict[str, Advance], turns: int, rounds: int) -> dict[str, list[float]]:
    """CPU seconds a round in every turn of every entry; the first turn captures and compiles.

    Of a turn of many rounds the first tenth, which finds cold caches, is not timed.
    """
    times: dict[str, list[float]] = {key: [] for key in entries}
    cold = rounds // 80 * 8  # whole calls of 8 compiled rounds
    for turn in range(turns + 1):
        for key, advance in entries.items():
            first, last = turn * rounds, (turn + 1) * rounds
            if cold:
                advance(first, first + cold)
            began = time.process_time()
            advance(first + cold, last)
            times[key].append((time.process_time() - began) / (rounds - cold))
    return times


def makers(name: str, common: Work) -> dict[str, Callable[[], Entry]]:
    """What takes turns on a workload; loops and FedJAX advance one run, not many together."""
    workload = common.workload
    found: dict[str, Callable[[], Entry]] = {
        OURS: lambda: ours(common.grid, common.problem, workload.seeds),
        WITH_SWITCH: lambda: ours(
            workload.grid(constrained=True), workload.problem(constrained=True), workload.seeds
        ),
    }
    alone = workload.seeds * workload.sizes == 1
    if alone:
        found[LOOP] = lambda: torch_loop(common)
    if name == "W2":
        found[ORDERED] = lambda: torch_loop(common, torch.channels_last)
    if find_spec("jax"):
        from benchmarks import peer_jax

        found["jax scan"] = lambda: peer_jax.scan(common)
        if alone and find_spec("fedjax"):
            found["FedJAX"] = lambda: peer_jax.fedjax_loop(common)
    return found


def ours(grid: list[Any], problem: Problem, seeds: int) -> Entry:
    """Rounds as a long `fedlib.run` does them, drawing for themselves what others are given."""
    runs = BatchedRuns(grid, problem, tuple(range(seeds)), torch.device("cpu"), None)
    loop, now = RoundLoop(runs, LONG, LONG), runs.start()
    loop.prepare(now.state)

    def go(first: int, last: int) -> None:
        end, call = now.round + last - first, loop.compiled.rounds if loop.compiled else 1
        while loop.compiled and end - now.round >= call:
            loop.advance(now, min(CHUNK, (end - now.round) // call))
        advance_plainly(runs, now, end - now.round)

    return go, lambda: now.state.w


def advance_plainly(runs: BatchedRuns, now: Progress, rounds: int) -> None:
    """Some rounds as `run` does them, draws included, one by one and without evaluation."""
    for done in range(0, rounds, CHUNK):
        draws = runs.draws(now.rngs, min(CHUNK, rounds - done))
        for t in range(len(draws.participants)):
            now.state, _ = runs.step(now.state, index_tree(draws, t))
    now.round += rounds


def check_losses(name: str, losses: dict[str, float]) -> None:
    """Raise ValueError unless all entries did the same."""
    for key, value in losses.items():
        if not abs(value - losses[OURS]) <= CLOSE * abs(losses[OURS]):
            raise ValueError(
                f"benchmarks: the entries of {name} must reach one loss, got {value:.6g} by "
                f"{key} and {losses[OURS]:.6g} by {OURS}; one of them does something else."
            )


def torch_loop(work: Work, order: torch.memory_format = torch.contiguous_format) -> Entry:
    """FedAvg as one writes it without a library: a module, an optimizer, client by client."""
    module, loss = model(work.workload, order)
    parameters = list(module.parameters())
    (lr,) = work.lr
    optimizer = torch.optim.SGD(parameters, lr=lr)
    now = [s.clone().view_as(p) for s, p in zip(work.start(), parameters, strict=True)]

    def client(rows: Tensor) -> None:
        for p, start in zip(parameters, now, strict=True):
            p.data.copy_(start)
        for step in range(work.steps):
            batch = rows[step % len(rows)]
            optimizer.zero_grad()
            loss(*(x[batch] for x in work.data)).backward()
            optimizer.step()

    def advance(first: int, last: int) -> None:
        for each in work.rows[0, first:last]:
            total = [torch.zeros_like(p) for p in now]
            for rows in each:
                client(rows)
                for t, p in zip(total, parameters, strict=True):
                    t.add_(p.detach(), alpha=1 / len(each))
            for w, t in zip(now, total, strict=True):
                w.copy_(t)

    return advance, lambda: torch.cat([w.flatten() for w in now])[None, None]


def model(
    workload: Workload, order: torch.memory_format
) -> tuple[nn.Module, Callable[..., Tensor]]:
    """The module of a workload, and the loss of a batch."""
    kind = workload.kind
    if kind == "lenet":
        network = networks.pair_lenet()
        network.encoder.to(memory_format=order)  # type: ignore[call-overload]
        mean, std = SCALE

        def tasks(x: Tensor, y: Tensor) -> Tensor:
            pictures = x.to(torch.float32).div_(255).sub_(mean).div_(std).to(memory_format=order)
            code = network.encoder(pictures)
            losses = [cross_entropy(head(code), y[:, k]) for k, head in enumerate(network.decoders)]
            return torch.stack(losses).mean()

        return network, tasks
    if kind == "logistic":
        line = nn.Linear(30, 1, bias=False)

        def logistic(x: Tensor, y: Tensor, share: Tensor) -> Tensor:
            z = line(x).squeeze(-1)
            return ((softplus(z) - y * z) * share).mean()

        return line, logistic
    module: nn.Module = nn.Linear(784, 10, bias=False)
    if kind == "network":
        width = workload.shapes[0][0]
        module = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, 10))
    return module, lambda x, y: cross_entropy(module(x), y)


# --- to the first round ---

FIRST = """
from benchmarks.workloads import WORKLOADS
from fedlib.run import run
one = WORKLOADS[{name!r}]
run(one.algorithm(), one.problem(), rounds={rounds}, evaluate_every={rounds}, progress=False)
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
        cold, *warm = (time_process(program, Path(folder)) for _ in range(times + 1))
    seconds, cpu = (median(column) for column in zip(*warm, strict=True))
    pairs = {"cold": cold, "warm": (seconds, cpu)}
    return {"title": title, **{k: {"s": s, "cpu_s": c} for k, (s, c) in pairs.items()}}


def time_process(program: str, folder: Path) -> tuple[float, float]:
    """Seconds of one process whose caches lie in `folder`."""
    places = {name: str(folder / name.lower()) for name in CACHES}
    for place in places.values():
        Path(place).mkdir(exist_ok=True)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **places}
    before, began = cpu_of_children(), time.perf_counter()
    subprocess.run([sys.executable, "-c", program], env=env, check=True, cwd=ROOT)
    return time.perf_counter() - began, cpu_of_children() - before


def cpu_of_children() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- at scale ---

SECONDS, GIGABYTES = 60, 8  # most that a case may take, with its data and its capture
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
    "many clients": [Size(N=10**k, n=100, d=100) for k in (3, 4, 5, 6)],
    "parameters": [Size(d=10**k, rows=20) for k in (3, 4, 5, 6, 7)],
    "seeds": [Size(S=s) for s in (1, 10, 100)],
}
METHODS = ("FedAvg", "FedSGM", "FedCMOO", "SSCA", "FedFW")
ALL_CLIENTS = ("SSCA",)  # methods in which all clients take part, for which a million is too many
CASES = [
    f"{method}, {axis}, {place}"
    for method in METHODS
    for axis, sizes in AXES.items()
    if not (axis == "many clients" and method in ALL_CLIENTS)
    for place in range(len(sizes))
]


def measure_scale(case: str, before: dict[str, Any]) -> dict[str, Any]:
    """One case, or why there is none; nothing larger is tried after a case that was left out."""
    method, axis, place = case.split(", ")
    size = AXES[axis][int(place)]
    at = {"parameters": size.d, "seeds": size.S}.get(axis, size.N)
    found = {"method": method, "axis": axis, "at": at}
    last = before.get(f"{method}, {axis}, {int(place) - 1}", {})
    if "skipped" in last:
        return {**found, "skipped": f"not tried: at {last['at']:,} {last['skipped']}"}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        try:
            return found | alone.submit(time_rounds, method, size).result(SECONDS)
        except TimeoutError:
            for child in active_children():
                child.terminate()
            return {**found, "skipped": f"more than {SECONDS} s"}
        except (MemoryError, BrokenProcessPool, RuntimeError) as error:
            full = isinstance(error, (MemoryError, BrokenProcessPool)) or "allocate" in str(error)
            if not full:
                raise
            return {**found, "skipped": f"more than {GIGABYTES} GB"}


def time_rounds(method: str, size: Size) -> dict[str, Any]:
    """CPU ms of a round of all seeds, the process's growth in memory, and the data in it."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTES * 10**9,) * 2)
    empty, problem = peak(), problem_at(method, size)
    runs = BatchedRuns(
        [algorithm_at(method, size)], problem, tuple(range(size.S)), torch.device("cpu"), None
    )
    now = runs.start()

    def clocked(rounds: int) -> float:
        began = time.process_time()
        advance_plainly(runs, now, rounds)
        return time.process_time() - began

    began, first, again = time.perf_counter(), clocked(1), clocked(1)
    rounds, each = max(1, min(50, int(0.05 / again))), list[float]()
    while len(each) < PASSES and time.perf_counter() - began < ENOUGH:
        each.append(1e3 * clocked(rounds) / rounds)
    tensors = [*problem.data, problem.rows]
    return {
        "cpu_ms": median(each or [1e3 * again]),
        "first_round_s": first,
        "peak_mib": peak() - empty,
        "data_mib": sum(x.numel() * x.element_size() for x in tensors) / 2**20,
    }


def peak() -> float:
    """The largest memory so far in MiB."""
    unit = 1 if platform.system() == "Darwin" else 1024  # ru_maxrss is in bytes or in KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def algorithm_at(method: str, size: Size) -> Any:
    """A method with one local step on small batches."""
    work: dict[str, Any] = {"local_steps": 1, "participants": size.n, "batch_size": BATCH}
    wire = TopK(0.1)
    made: dict[str, Callable[[], Any]] = {
        "FedAvg": lambda: FedAvg(0.1, **work),
        "FedSGM": lambda: FedSGM(
            0.1, tolerance=0.05, uplink=wire, downlink=wire, value_batch_size=BATCH, **work
        ),
        "FedCMOO": lambda: FedCMOO(0.1, **work),
        "SSCA": lambda: SSCA(1.0, PowerLaw(0.9, 0.3), PowerLaw(0.9, 0.35), batch_size=BATCH),
        "FedFW": lambda: FedFW(0.01, participation=size.n / size.N, batch_size=BATCH),
    }
    return made[method]()


def problem_at(method: str, size: Size) -> Problem:
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
        metrics=lambda w, _: {"norm": w.norm()},
    )
    return problem.within(Ball(1.0)) if method == "FedFW" else problem


# --- the command ---

PARTS: dict[str, tuple[list[str], Callable[[str, dict[str, Any]], dict[str, Any]]]] = {
    "peers": ([*WORKLOADS], lambda case, _: measure_peers(case)),
    "start": ([*STARTS], lambda case, _: measure_start(case)),
    "scale": (CASES, measure_scale),
}


def main(arguments: list[str] | None = None) -> None:
    """Measure what is asked for; write every case as soon as it is there."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="How long a round takes.")
    parser.add_argument("parts", nargs="*", metavar="PART", help="peers, start, scale; all")
    parser.add_argument("--cases", help="those whose name begins with this, such as W3")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks" / "results.json")
    options = parser.parse_args(arguments)
    if unknown := {*options.parts} - {*PARTS}:
        parser.error(f"PART must be one of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    stored = json.loads(options.json.read_text(encoding="utf-8")) if options.json.exists() else {}
    block = stored.setdefault(processor(), {})
    for part in options.parts or PARTS:
        cases, measure = PARTS[part]
        chosen = [case for case in cases if case.startswith(options.cases or "")]
        results = block.get(part, {}).get("results", {}) if options.cases else {}
        for case in chosen:
            results[case] = measure(case, results)
            print(part, case, json.dumps(results[case]), flush=True)
            block[part] = {"machine": machine(), "results": results}
            text = json.dumps(stored, indent=1) + "\n"
            atomic_write(options.json, lambda file, text=text: file.write(text.encode()))


def processor() -> str:
    """The name of the processor."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text(encoding="utf-8").splitlines() if cpu.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """What the numbers depend on beside the processor: instruction set, kernels, versions."""
    known = versions()
    return {
        "cores": os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "products": product_library(),
        "threads": 1,
        **{name: known[name] for name in ("torch", "numpy", "python", "commit", "dirty", "date")},
        **{name: metadata.version(name) for name in ("jax", "fedjax") if find_spec(name)},
    }
