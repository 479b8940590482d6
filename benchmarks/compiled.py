"""What compiling does to every algorithm: seconds, and how far its iterates move.

`python benchmarks/compiled.py [NAME ...] [--json FILE]`

The first example of every algorithm runs for some rounds twice, replayed and compiled, two seeds
together, from the same draws. Rounds and calls are fewer than in a long run, so that compiling all
of them takes some minutes. The differences are those of the models, relative to the largest entry.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import torch

from benchmarks.bench import machine
from fedlib.core import compiled
from fedlib.core.batched import Batched
from fedlib.core.checkpoint import Progress
from fedlib.core.federation import Vectorized
from fedlib.core.walk import Walk
from fedlib.testing.examples import examples

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


def measured(name: str) -> Row:
    """One algorithm's row."""
    example = examples()[name][0]
    loop = Batched([example.algorithm], example.problem, SEEDS, torch.device("cpu"), Vectorized)
    plain = Walk(loop, ROUNDS, ROUNDS)
    began = time.process_time()
    with patch.object(compiled, "LONG", 0.0), patch.object(compiled, "MOST", CALL):
        fast = Walk(loop, ROUNDS, ROUNDS)
    took = time.process_time() - began
    if fast.compiled is None:
        raise RuntimeError(f"compiled: {name} could not be compiled.")
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
        apart(*ends),
    )


def apart(one: Progress, other: Progress) -> float:
    """The largest difference of two models, relative to their largest entry."""
    scale = float(one.state.w.abs().max()) or 1.0
    return float((one.state.w - other.state.w).abs().max()) / scale


def main(words: Sequence[str] | None = None) -> int:
    """Measure the named algorithms, or all of them."""
    parser = argparse.ArgumentParser(description="replayed rounds beside compiled ones")
    parser.add_argument("name", nargs="*", help="an algorithm; all if none")
    parser.add_argument("--json", type=Path, help="file for the rows")
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    rows = []
    for name in given.name or examples():
        rows.append(measured(name))
        print(*asdict(rows[-1]).values(), flush=True)
        if given.json:
            content = {"machine": machine("cpu", 1), "rows": [asdict(row) for row in rows]}
            given.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
