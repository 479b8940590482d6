"""How long a round of constrained cartpole takes: `python benchmarks/cartpole.py [--json PATH]`.

Seven of ten clients, 1,000 samples each, one TRPO step a client; 1, 5 and 10 seeds advanced
together, without compression and with Top-K 0.5 both ways.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from typing import Any

import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench import AFTER_STOP, clocked, machine, save
from fedlib.compress import Identity, TopK
from fedlib.core import Vectorized
from fedlib.engine.batch import BatchedRuns
from fedlib.run import resolve_device
from fedlib.steps import Soft
from papers.fedsgm.cartpole.method import PolicyFedSGM
from papers.fedsgm.cartpole.simulator import cartpole
from papers.kit.commands import Parser, carried_out, count, new_file

SEEDS = (1, 5, 10)
WIRES = {"none": Identity(), "Top-K 0.5": TopK(0.5)}


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks.cartpole", AFTER_STOP)


def timed(arguments: list[str] | None) -> int:
    """Time every case, print a table, write JSON where it is asked to."""
    parser = Parser(prog="benchmarks.cartpole", description="Seconds a round of cartpole.")
    parser.add_argument("--seeds", type=count, nargs="*", default=SEEDS)
    parser.add_argument("--rounds", type=count, default=5, help="rounds of a pass")
    parser.add_argument("--passes", type=count, default=5, help="the median of them is reported")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, auto")
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options = parser.parse_args(arguments)
    resolve_device(options.device)
    torch.set_num_threads(1)
    results = []
    print(f"{'compression':12}{'seeds':>6}{'s a round':>11}{'CPU s':>8}{'first s':>9}")
    for name, wire in WIRES.items():
        for seeds in options.seeds:
            found = measure(wire, seeds, options.rounds, options.passes, options.device)
            results.append({"compression": name, **found})
            print(
                f"{name:12}{seeds:6d}{found['s_per_round']:11.3f}{found['cpu_s_per_round']:8.3f}"
                f"{found['first_round_s']:9.1f}"
            )
    save(options.json, {"machine": machine(options.device, 1), "results": results})
    return 0


def measure(wire: Any, seeds: int, rounds: int, passes: int, device: str) -> dict[str, Any]:
    """Seconds a round of all seeds together: draws and rounds, without evaluation."""
    method = PolicyFedSGM(
        participants=7, tolerance=0.0, switch=Soft(0.2), uplink=wire, downlink=wire
    )
    loop = BatchedRuns([method], cartpole, tuple(range(seeds)), resolve_device(device), Vectorized)
    now = loop.start()
    first, _ = clocked(loop, now, 1)
    wall, cpu = [], []
    for timed in range(passes + 1):
        seconds, processor = clocked(loop, now, rounds)
        if timed:  # the first pass warms up
            wall.append(seconds / rounds)
            cpu.append(processor / rounds)
    return {
        "seeds": seeds,
        "device": device,
        "s_per_round": median(wall),
        "cpu_s_per_round": median(cpu),
        "first_round_s": first,
    }


if __name__ == "__main__":
    sys.exit(main())
