"""What compiling does to every algorithm: seconds, and how far its iterates move.

`python -m benchmarks.compiled [METHOD ...] [--json PATH]`

The first example of every algorithm runs for some rounds twice, replayed and compiled, two seeds
together, from the same draws. Rounds and calls are fewer than in a long run, so that compiling all
of them takes some minutes. The differences are those of the models, relative to the largest entry.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench import KEPT, collected, machine
from fedlib.core.federation import Vectorized
from fedlib.core.schedule import Schedule
from fedlib.engine import compile as compiled
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.checkpoint import Progress
from fedlib.engine.loop import RoundLoop
from fedlib.testing.examples import examples
from papers.kit.commands import Parser, carried_out, nearest, new_file

ROUNDS, CALL, SEEDS, REPEATS = 12, 2, (0, 1), 5


@dataclass(frozen=True)
class Row:
    """One algorithm: seconds of processor time, and the largest difference of a model's entry."""

    algorithm: str
    dtype: str
    operations: int
    compile_s: float
    replayed_ms: float  # a round of both seeds, draws included
    compiled_ms: float
    difference: float


def measured(name: str) -> Row | None:
    """One algorithm's row; None if its rounds are not compiled, however many there are."""
    example = examples()[name][0]
    loop = BatchedRuns([example.algorithm], example.problem, SEEDS, torch.device("cpu"), Vectorized)
    plain = RoundLoop(loop, ROUNDS, Schedule(ROUNDS))
    began = time.process_time()
    with patch.object(compiled, "LONG", 0.0), patch.object(compiled, "MOST", CALL):
        fast = RoundLoop(loop, ROUNDS, Schedule(ROUNDS))
    took = time.process_time() - began
    if fast.compiled is None:
        return None
    ends, times = [], []
    for walk in (plain, fast):
        each = []
        for _ in range(REPEATS):
            now, began = loop.start(), time.process_time()
            while now.round < ROUNDS:
                walk.advance(now, ROUNDS)
            each.append((time.process_time() - began) / ROUNDS)
        ends.append(now)
        times.append(min(each))
    return Row(
        name,
        str(example.problem.w0.dtype).removeprefix("torch."),
        sum(n.op == "call_function" for n in fast.compiled.kernels.graph.graph.nodes) // CALL,
        round(took, 1),
        round(1e3 * times[0], 4),
        round(1e3 * times[1], 4),
        distance(*ends),
    )


def distance(one: Progress, other: Progress) -> float:
    """The largest difference of two models, relative to their largest entry."""
    scale = float(one.state.w.abs().max()) or 1.0
    return float((one.state.w - other.state.w).abs().max()) / scale


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks.compiled", KEPT)


def timed(arguments: list[str] | None) -> int:
    """Measure the named algorithms, or all of them."""
    parser = Parser(prog="benchmarks.compiled", description="Compiled rounds beside replayed ones.")
    parser.add_argument("names", nargs="*", metavar="METHOD", help="a method's name; all")
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in examples():
            known = nearest(name, examples())
            parser.error(f"argument names: must be known methods, got {name!r}, {known}")
    torch.set_num_threads(1)

    def one(name: str) -> dict[str, Any]:
        found = measured(name)
        row = asdict(found) if found else {"algorithm": name, "skipped": True}
        print(*row.values(), flush=True)
        return row

    collected(options.json, machine("cpu", 1), options.names or [*examples()], one)
    return 0


if __name__ == "__main__":
    sys.exit(main())
