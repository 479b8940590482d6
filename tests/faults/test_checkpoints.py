"""A sample of the faults of checkpoints; the scripts beside this file have all of them."""

import subprocess
import sys
from pathlib import Path

import flipped_bits
import foreign_checkpoints

HERE = Path(__file__).parent


def good(found):
    short = [(outcome.name, outcome.said) for outcome in found if outcome.kind != "good"]
    assert not short


def test_a_flipped_bit_is_refused_or_harmless():
    good(flipped_bits.flips(10, seed=1, kinds=("FedDR",)))


def test_foreign_files_are_refused():
    good(foreign_checkpoints.foreign(every=5))


def test_killed_runs_end_as_those_that_were_left_alone():
    """Whenever the kills come: on a busy machine they come earlier in the run."""
    command = (sys.executable, HERE / "kills.py", "--count", "3")
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert "3 tried, 3 good" in done.stdout, done.stdout + done.stderr
