"""W2, convolutions, and a round of FedCMOO: `python benchmarks/multiobjective.py [--json PATH]`.

The small network of the FedCMOO paper on generated pictures of MNIST's shape, 100 clients of 600,
10 a round, batch 128, 10 local steps, in float32. All cases advance in turn, A B C A B C, so that
what else the machine does falls on all of them alike; the medians of their CPU times are compared.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.nn.functional import cross_entropy

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench import AFTER_STOP, advance, machine, save
from fedlib.algorithms.fedcmoo import FSMGDA, FedCMOO, FedCMOOPref, Scalarized
from fedlib.core import Problem, Sequential, Vectorized
from fedlib.core.federation import Federation
from fedlib.engine.batch import BatchedRuns
from fedlib.run import resolve_device
from papers.fedcmoo import networks
from papers.fedcmoo.data.pairs import MNIST_SCALE, Pairs
from papers.fedcmoo.problems.paired_digits import paired_digits
from papers.kit.commands import Parser, carried_out, count, new_file

CLIENTS, ROWS, PARTICIPANTS, BATCH, STEPS = 100, 600, 10, 128, 10
PLAIN, LOCAL = "plain torch loop", "local steps"

Round = Callable[[], object]


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks.multiobjective", AFTER_STOP)


def timed(arguments: list[str] | None) -> int:
    """Time every case in turn, print a table, write JSON where it is asked to."""
    parser = Parser(prog="benchmarks.multiobjective", description="CPU time of W2.")
    parser.add_argument("--passes", type=count, default=9, help="the median of them is reported")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, auto")
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options = parser.parse_args(arguments)
    resolve_device(options.device)
    torch.set_num_threads(1)
    found = measure(cases(generated(), options.device), options.passes)
    print(f"{'':34}{'CPU ms a round':>15}{'/ plain':>9}{'/ local':>9}")
    for r in found:
        print(f"{r['case']:34}{r['cpu_ms']:15.0f}{r['to_plain']:9.2f}{r['to_local_steps']:9.2f}")
    save(options.json, {"machine": machine(options.device, 1), "results": found})
    return 0


def generated(rows: int = ROWS) -> Problem:
    """Two tasks on random pictures: what is learned does not matter to the clock."""
    rng = torch.Generator().manual_seed(0)
    count = CLIENTS * rows
    X = torch.randint(256, (count, 1, 28, 28), generator=rng, dtype=torch.uint8)
    y = torch.randint(10, (count, 2), generator=rng)
    whole = Pairs(X, y, ("first", "second"), MNIST_SCALE)
    return paired_digits(whole, whole, clients=CLIENTS, evaluate=BATCH)


def cases(problem: Problem, device: str) -> dict[str, Round]:
    """What is timed: every call advances by one round."""
    shared = problem.config["shared"]
    common: dict[str, Any] = {"lr": 0.01, "local_steps": STEPS, "participants": PARTICIPANTS}
    common["batch_size"] = BATCH
    many = {**common, "shared": shared}
    return {
        PLAIN: plain(problem, torch.contiguous_format),
        "plain torch loop, channels last": plain(problem, torch.channels_last),
        LOCAL: alone(Scalarized(**common), problem, device, Sequential),
        "local steps, all clients by vmap": alone(
            Scalarized(**common), problem, device, Vectorized
        ),
        "FedCMOO": alone(FedCMOO(**many), problem, device, Sequential),
        "FedCMOO-Pref": alone(
            FedCMOOPref(**many, value_batch_size=ROWS), problem, device, Sequential
        ),
        "FSMGDA": alone(FSMGDA(**many), problem, device, Sequential),
    }


def alone(
    algorithm: Any, problem: Problem, device: str, engine: type[Federation]
) -> Callable[[], object]:
    """A round as `fedlib.run` does it, draws included."""
    loop = BatchedRuns([algorithm], problem, (0,), resolve_device(device), engine)
    now = loop.start()

    def one() -> object:
        advance(loop, now, 1)
        return float(now.state.w.sum())

    return one


def plain(problem: Problem, order: torch.memory_format) -> Callable[[], object]:
    """What one writes without a library: a module, an optimizer, a client after another."""
    module = networks.pair_lenet()
    encoder = module.encoder.to(memory_format=order)  # type: ignore[call-overload]
    parameters = list(module.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    rng = torch.Generator().manual_seed(0)
    pictures, labels = problem.data
    mean, std = (float(x[0]) for x in (MNIST_SCALE.mean, MNIST_SCALE.std))
    start = [p.detach().clone() for p in parameters]

    def one() -> object:
        total = [torch.zeros_like(p) for p in start]
        for j in torch.randperm(len(problem.rows), generator=rng)[:PARTICIPANTS].tolist():
            for p, s in zip(parameters, start, strict=True):
                p.data.copy_(s)
            for _ in range(STEPS):
                some = torch.randperm(problem.rows.shape[1], generator=rng)[:BATCH]
                rows = problem.rows[j, some]
                x = pictures[rows].to(torch.float32).div_(255).sub_(mean).div_(std)
                code = encoder(x.to(memory_format=order))
                losses = [
                    cross_entropy(decoder(code), labels[rows, k])
                    for k, decoder in enumerate(module.decoders)
                ]
                optimizer.zero_grad()
                (sum(losses) / len(losses)).backward()  # type: ignore[union-attr]
                optimizer.step()
            for t, p in zip(total, parameters, strict=True):
                t.add_(p.detach(), alpha=1 / PARTICIPANTS)
        for s, t in zip(start, total, strict=True):
            s.copy_(t)
        return start

    return one


def measure(rounds: dict[str, Round], passes: int) -> list[dict[str, Any]]:
    """Median CPU time of every case, and medians of the ratios within a pass."""
    times: dict[str, list[float]] = {name: [] for name in rounds}
    for p in range(passes + 1):
        for name, one in rounds.items():
            began = time.process_time()
            one()
            if p:  # the first pass warms up
                times[name].append(time.process_time() - began)
    return [
        {
            "case": name,
            "cpu_ms": 1e3 * median(own),
            "to_plain": median(a / b for a, b in zip(own, times[PLAIN], strict=True)),
            "to_local_steps": median(a / b for a, b in zip(own, times[LOCAL], strict=True)),
        }
        for name, own in times.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
