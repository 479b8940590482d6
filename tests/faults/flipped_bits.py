"""One flipped bit in a checkpoint: it must be refused in one sentence, or change nothing.

    python tests/faults/flipped_bits.py [--store]

Checkpoints of six algorithms, finished and not; the bits are drawn, a quarter of them from the
head of the file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import judging
import numpy as np
from judging import Outcome
from resuming import Run, runs

from fedlib.engine import loop as walk
from fedlib.engine.batch import BatchedRuns

WHAT = "one flipped bit in a checkpoint"
KINDS = ("FedSGM", "FedCMOO", "FedFWPlus", "SSCA", "FedDR", "PenaltyFedAvg")
COUNT = 120
HEAD = 800  # bits


def flips(count: int, seed: int = 0, kinds: Sequence[str] = KINDS) -> Iterator[Outcome]:
    """Flip one bit after another, each in a fresh copy."""
    every = runs()
    chosen = [next(run for run in every if f" {kind} " in run.name) for kind in kinds]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pt"
        for place, run in enumerate(chosen):
            whole = halfway(run, path) if place % 2 else finished(run, path)
            alone = run()
            for number in range(place, count, len(chosen)):
                rng = np.random.default_rng((seed, number))
                bit = int(rng.integers(HEAD if number % 4 == 0 else 8 * len(whole)))
                broken = bytearray(whole)
                broken[bit // 8] ^= 1 << bit % 8
                path.write_bytes(broken)
                yield outcome(run, path, alone, f"{run.name}, bit {bit} of {8 * len(whole)}")


def finished(run: Run, path: Path) -> bytes:
    """The checkpoint of a run that is done."""
    run(checkpoint=path)
    return path.read_bytes()


def halfway(run: Run, path: Path) -> bytes:
    """The checkpoint of a run that was stopped after half of its rounds."""
    step, done = BatchedRuns.step, []

    def counted(self, *arguments):
        done.append(1)
        if len(done) > 20:
            raise KeyboardInterrupt
        return step(self, *arguments)

    path.unlink(missing_ok=True)
    with patch.object(BatchedRuns, "step", counted), patch.object(walk, "SHORT", float("inf")):
        try:
            run(checkpoint=path, checkpoint_seconds=0)
        except KeyboardInterrupt:
            return path.read_bytes()
    raise AssertionError("the run was not stopped")


def outcome(run: Run, path: Path, alone: str, name: str) -> Outcome:
    """What a run makes of a file with a flipped bit."""
    try:
        found = run(checkpoint=path)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        one = judging.kind_of(str(error), ["checkpoint run.pt"])
        return Outcome(name, one if isinstance(error, judging.REFUSALS) else "obscure", said)
    return Outcome(name, "good" if found == alone else "accepted", "other numbers")


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """The cases of the command line."""
    return flips(options.count or COUNT, options.seed)


if __name__ == "__main__":
    sys.exit(judging.main(WHAT, outcomes))
