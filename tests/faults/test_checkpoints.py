"""A sample of the faults of checkpoints; the scripts beside this file have all of them."""

from pathlib import Path

import flipped_bits
import foreign_checkpoints
from process import python


def good(found):
    short = [(outcome.name, outcome.said) for outcome in found if outcome.kind != "good"]
    assert not short


def test_a_flipped_bit_is_refused_or_harmless():
    good(flipped_bits.flips(10, seed=1, kinds=("FedDR",)))


def test_foreign_files_are_refused():
    good(foreign_checkpoints.foreign(every=5))


def test_killed_runs_end_as_those_that_were_left_alone():
    """Whenever the kills come: on a busy machine they come earlier in the run."""
    done = python(Path(__file__).with_name("kills.py"), "--count", "3")
    assert "3 tried, 3 good" in done.stdout, done.stdout + done.stderr
