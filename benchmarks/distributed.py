"""Whether one round's clients are worth several processes: `python -m benchmarks.distributed`.

Ten thousand clients answer in every round of FedAvg and of FedSGM with Top-K and error feedback,
five local steps each. They are mapped over by one process, on one thread and on two, with the round
recorded or not; and by two processes of torch.distributed (gloo), which take half of them each and
gather all answers before they go on. Wall time of a round, and how far the models are apart.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils import _pytree as pytree

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench import clocked, collected, machine
from benchmarks.scale import OWN, Size, algorithm_of, problem_of
from fedlib import Vectorized
from fedlib.core.client import ClientState
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw
from fedlib.core.sampling import seeded
from fedlib.engine.batch import BatchedRuns
from papers.kit.commands import Parser, carried_out, new_file

METHODS = ("FedAvg", "FedSGM")
CLIENTS, LENGTHS, ROUNDS = 10_000, (100, 1000), 12
WAYS = {  # processes, threads of each, whether rounds are recorded
    "one process, recorded": (1, 1, True),
    "one process, recorded, two threads": (1, 2, True),
    "one process": (1, 1, False),
    "two processes": (2, 1, False),
}


class Sharded(Vectorized):
    """Every process maps over its part of the clients, and gathers all answers.

    The number of those who answer must be a multiple of that of processes.
    """

    def clients(self, draw: Draw, model: Any = (), memory: Any = ()) -> ClientState:
        """As in `Federation`, of this process's part alone."""
        share = slice(dist.get_rank(), None, dist.get_world_size())
        own = [name for name in Draw._fields if name not in ("downlink", "others")]
        parts = {name: getattr(draw, name) for name in own}
        cut = {name: x[share] if isinstance(x, Tensor) else x for name, x in parts.items()}
        return super().clients(draw._replace(**cut), model, memory)

    def _map(self, *arguments: Any) -> Any:
        return pytree.tree_map(everybodys, super()._map(*arguments))


def everybodys(own: Tensor) -> Tensor:
    """All processes' entries, each where its client stands in the draw."""
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, own.contiguous())
    return torch.stack(parts, 1).flatten(0, 1)


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks.distributed", "finished cases stay")


def timed(arguments: list[str] | None) -> int:
    """Time all cases, print a table, write JSON where it is asked to."""
    parser = Parser(prog="benchmarks.distributed", description=__doc__)
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options: argparse.Namespace = parser.parse_args(arguments)
    cases = [f"{method}, {dim}" for method in METHODS for dim in LENGTHS]
    collected(options.json, machine("cpu", 1), cases, compared)
    return 0


def compared(case: str) -> dict[str, Any]:
    """One method at one number of parameters, every way."""
    method, dim = case.split(", ")
    with tempfile.TemporaryDirectory() as folder:
        for way, (processes, threads, recorded) in WAYS.items():
            context, file = get_context("spawn"), Path(folder) / way
            told = (method, int(dim), processes, threads, recorded, file)
            started = [context.Process(target=work, args=(i, *told)) for i in range(processes)]
            for process in started:
                process.start()
            for process in started:
                process.join()
        held = {way: torch.load(Path(folder) / f"{way}.pt", weights_only=True) for way in WAYS}
    first = next(iter(held.values()))["w"]
    found = {
        way: {"ms": its["ms"], "difference": float((its["w"] - first).abs().max())}
        for way, its in held.items()
    }
    for way, its in found.items():
        print(f"{case:14} {way:36} {its['ms']:9.1f} ms  {its['difference']:.1e}", flush=True)
    return found


def work(
    rank: int, method: str, dim: int, processes: int, threads: int, recorded: bool, file: Path
) -> None:
    """One process's part of a case."""
    torch.set_num_threads(threads)
    size = Size(N=CLIENTS, n=CLIENTS, d=dim, rows=OWN * CLIENTS)
    problem = problem_of(method, size)
    algorithm = replace(algorithm_of(method, size), local_steps=5)
    if recorded:
        each, w = recorded_rounds(algorithm, problem)
    else:
        where: dict[str, Any] = {"init_method": f"file://{file}.rendezvous", "rank": rank}
        dist.init_process_group("gloo", world_size=processes, **where)
        engine = Sharded if processes > 1 else Vectorized
        each, w = plain_rounds(algorithm, problem, engine)
        dist.destroy_process_group()
    if rank == 0:
        torch.save({"ms": 1e3 * median(each), "w": w}, f"{file}.pt")


def recorded_rounds(algorithm: Any, problem: Any) -> tuple[list[float], Tensor]:
    """Seconds of every round but the first two, and the model after all of them."""
    loop = BatchedRuns([algorithm], problem, (0,), torch.device("cpu"), None)
    now = loop.start()
    clocked(loop, now, 2)
    each = [clocked(loop, now, 1)[0] for _ in range(ROUNDS - 2)]
    return each, now.state.w[0, 0]


def plain_rounds(
    algorithm: Any, problem: Any, engine: type[Federation]
) -> tuple[list[float], Tensor]:
    """The same where rounds are not recorded."""
    state, rng, each = algorithm.init(problem), seeded(0, "rounds"), []
    for _ in range(ROUNDS):
        draw, start = algorithm.draw(problem, rng), time.perf_counter()
        state, _ = algorithm.round(engine(problem), state, draw)
        each.append(time.perf_counter() - start)
    return each[2:], state.w


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
