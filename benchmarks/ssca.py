"""W4, rounds of SSCA over samples and over features: `python benchmarks/ssca.py [--json PATH]`.

The network 784-128-10 with swish on generated pictures of MNIST's shape, bytes, 10 clients of 6000,
batch 100 each, or 1000 in all where the features are split; in float32. All cases advance in turn,
A B C A B C, so that what else the machine does falls on all of them alike; the medians of their CPU
times, and of the ratios within a pass, are compared.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench import AFTER_STOP, advance, machine, save
from fedlib.algorithms.ssca import (
    SSCA,
    ConstrainedSSCA,
    ConstrainedVerticalSSCA,
    MiniBatchSGD,
    VerticalSGD,
    VerticalSSCA,
)
from fedlib.core import Problem, Vectorized
from fedlib.data import Table
from fedlib.engine.batch import BatchedRuns
from fedlib.run import resolve_device
from fedlib.steps import PowerLaw
from papers.kit.commands import Parser, carried_out, count, new_file
from papers.ssca.network import swish_network, vertical_network

CLIENTS, ROWS, BATCH, HIDDEN, SEEDS = 10, 60_000, 100, 128, 20
RATE, SCALE = 0.1, 255.0
PLAIN, SGD = "plain torch loop", "SGD"

Round = Callable[[], object]


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks.ssca", AFTER_STOP)


def timed(arguments: list[str] | None) -> int:
    """Time every case in turn, print a table, write JSON where it is asked to."""
    parser = Parser(prog="benchmarks.ssca", description="CPU time of SSCA on W4.")
    parser.add_argument("--passes", type=count, default=21, help="the median of them is reported")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, auto")
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options = parser.parse_args(arguments)
    resolve_device(options.device)
    torch.set_num_threads(1)
    found = measure(cases(generated(), options.device), options.passes)
    print(f"{'':34}{'CPU ms a run and round':>23}{'/ plain':>9}{'/ SGD':>9}")
    for r in found:
        print(f"{r['case']:34}{r['cpu_ms']:23.2f}{r['to_plain']:9.2f}{r['to_sgd']:9.2f}")
    save(options.json, {"machine": machine(options.device, 1), "results": found})
    return 0


def generated(rows: int = ROWS) -> list[Problem]:
    """A problem a seed on common random pictures: what is learned does not matter to the clock."""
    rng = torch.Generator().manual_seed(0)
    X = torch.randint(256, (rows, 784), generator=rng, dtype=torch.uint8)
    y = torch.randint(10, (rows,), generator=rng)
    whole = Table(X, y, tuple(map(str, range(10))))
    few = Table(X[:BATCH], y[:BATCH], whole.classes)
    options: dict[str, Any] = {"clients": CLIENTS, "hidden": HIDDEN, "evaluate": BATCH}
    return [swish_network(whole, few, seed=seed, **options) for seed in range(SEEDS)]


def cases(problems: list[Problem], device: str) -> dict[str, tuple[Round, int]]:
    """What is timed, and how many runs it advances: every call advances by one round."""
    split: list[Problem] = [vertical_network(p, clients=CLIENTS) for p in problems]
    steps: dict[str, Any] = {
        "tau": 0.1,
        "rho": PowerLaw(0.9, 0.3),
        "gamma": PowerLaw(0.9, 0.35),
        "batch_size": BATCH,
    }
    limit: dict[str, Any] = {**steps, "penalty": 1e5, "levels": 0.6, "objective": "norm"}
    whole = {"batch_size": CLIENTS * BATCH}
    rate = PowerLaw(RATE)
    methods: dict[str, tuple[Any, list[Problem]]] = {
        SGD: (MiniBatchSGD(lr=rate, batch_size=BATCH), problems),
        "SSCA": (SSCA(**steps), problems),
        "ConstrainedSSCA": (ConstrainedSSCA(**limit), problems),
        "features: SGD": (VerticalSGD(lr=rate, **whole), split),
        "features: SSCA": (VerticalSSCA(**steps | whole), split),
        "features: ConstrainedSSCA": (ConstrainedVerticalSSCA(**limit | whole), split),
    }
    found: dict[str, tuple[Round, int]] = {PLAIN: (plain(problems[0]), 1)}
    for name, (method, own) in methods.items():
        found[name] = together(method, own[:1], device), 1
    for name in ("SSCA", "features: SSCA"):
        method, own = methods[name]
        found[f"{name}, {SEEDS} seeds"] = together(method, own, device), SEEDS
    return found


def together(algorithm: Any, problems: list[Problem], device: str) -> Round:
    """A round as `fedlib.run` does it, draws included, of all seeds together."""
    seeds = tuple(range(len(problems)))
    loop = BatchedRuns([algorithm], problems.__getitem__, seeds, resolve_device(device), Vectorized)
    now = loop.start()

    def one() -> object:
        advance(loop, now, 1)
        return float(now.state.w.sum())

    return one


def plain(problem: Problem) -> Round:
    """What one writes without a library: SGD with a module, a client after another."""
    K, L = problem.data[0].shape[1], 10
    first, second = (torch.nn.Linear(*s, bias=False) for s in ((K, HIDDEN), (HIDDEN, L)))
    module = torch.nn.Sequential(first, torch.nn.SiLU(), second)
    parameters = list(module.parameters())
    cut = torch.split(problem.w0, [HIDDEN * K, L * HIDDEN])
    with torch.no_grad():
        for p, start in zip(parameters, cut, strict=True):
            p.copy_(start.view_as(p))
    rng = torch.Generator().manual_seed(0)
    pictures, labels = problem.data

    def one() -> object:
        total = [torch.zeros_like(p) for p in parameters]
        for own in problem.rows:
            rows = own[torch.randperm(len(own), generator=rng)[:BATCH]]
            out = module(pictures[rows].to(torch.float32).div_(SCALE))
            loss = torch.nn.functional.cross_entropy(out, labels[rows])
            for t, g in zip(total, torch.autograd.grad(loss, parameters), strict=True):
                t.add_(g, alpha=1 / CLIENTS)
        with torch.no_grad():
            for p, t in zip(parameters, total, strict=True):
                p.sub_(t, alpha=RATE)
        return float(sum(p.detach().sum() for p in parameters))

    return one


def measure(rounds: dict[str, tuple[Round, int]], passes: int) -> list[dict[str, Any]]:
    """Median CPU time of every case a run and round, and medians of the ratios within a pass."""
    times: dict[str, list[float]] = {name: [] for name in rounds}
    for p in range(passes + 1):
        for name, (one, runs) in rounds.items():
            began = time.process_time()
            one()
            if p:  # the first pass warms up
                times[name].append((time.process_time() - began) / runs)
    return [
        {
            "case": name,
            "cpu_ms": 1e3 * median(own),
            "to_plain": median(a / b for a, b in zip(own, times[PLAIN], strict=True)),
            "to_sgd": median(a / b for a, b in zip(own, times[SGD], strict=True)),
        }
        for name, own in times.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
