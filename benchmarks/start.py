"""Time to the first round: `python -m benchmarks.start [CASE ...] [--json PATH]`.

Every start is a process of its own, from its first instruction to its end. A cold one finds every
cache folder empty, the warm ones after it what the cold one left there.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench import KEPT, collected, machine
from papers.kit.commands import Parser, carried_out, count, nearest, new_file

ROOT = Path(__file__).resolve().parents[1]
#: A case's title and the words after `python`.
CASES = {
    "torch": ("`import torch`, for comparison", ("-c", "import torch")),
    "fedlib": ("`import fedlib`", ("-c", "import fedlib")),
    "claims": ("`python -m papers claims`", ("-m", "papers", "claims")),
    "W3": ("FedAvg on W3, one round", ("-m", "benchmarks.firsts", "W3")),
    "long": ("FedAvg on W3, 10,000 rounds", ("-m", "benchmarks.firsts", "long")),
    "LeNet": ("FedCMOO on LeNet, one round", ("-m", "benchmarks.firsts", "LeNet")),
    "cartpole": ("Policy FedSGM on cartpole, one round", ("-m", "benchmarks.firsts", "cartpole")),
}
#: Where programs keep what they compiled or downloaded.
CACHES = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "FEDLIB_DATA", "TORCHINDUCTOR_CACHE_DIR")


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks.start", KEPT)


def timed(arguments: list[str] | None) -> int:
    """Start every case, print a table, write JSON where it is asked to."""
    options = _parse(arguments)
    print(f"{'':40}{'cold s':>9}{'CPU':>7}{'warm s':>9}{'CPU':>7}", flush=True)

    def one(case: str) -> dict[str, Any]:
        found = started(case, options.times)
        cold, warm = (f"{found[k]['s']:9.2f}{found[k]['cpu_s']:7.2f}" for k in ("cold", "warm"))
        print(f"{found['title']:40}{cold}{warm}", flush=True)
        return found

    collected(options.json, machine("cpu", 1), options.cases or list(CASES), one)
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="benchmarks.start", description="Seconds to the first round.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES) + "; all")
    parser.add_argument("--times", type=count, default=3, help="warm starts; their median counts")
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options = parser.parse_args(arguments)
    for name in options.cases:
        if name not in CASES:
            known = nearest(name, CASES)
            parser.error(f"argument cases: must be known names, got {name!r}, {known}")
    return options


def started(case: str, times: int) -> dict[str, Any]:
    """Seconds of a cold start and of some warm ones, on the clock and on the processor."""
    title, words = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        cold, *warm = (process(words, Path(folder)) for _ in range(times + 1))
    seconds, cpu = (median(column) for column in zip(*warm, strict=True))
    return {
        "title": title,
        "cold": {"s": cold[0], "cpu_s": cold[1]},
        "warm": {"s": seconds, "cpu_s": cpu},
    }


def process(words: tuple[str, ...], folder: Path) -> tuple[float, float]:
    """Seconds of one process whose caches lie in `folder`."""
    places = {name: str(folder / name.lower()) for name in CACHES}
    for place in places.values():
        Path(place).mkdir(exist_ok=True)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **places}
    before, began = used(), time.perf_counter()
    subprocess.run(
        (sys.executable, *words), cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - began, used() - before


def used() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of_children.ru_utime + of_children.ru_stime


if __name__ == "__main__":
    sys.exit(main())
