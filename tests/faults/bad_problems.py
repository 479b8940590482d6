"""Bad arguments of `run`, `Problem`, the makers of problems, splits, metrics and `compare`.

`python tests/faults/bad_problems.py [--store]`: every call must be refused in one sentence that
names the argument, the column or the client.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator

import bad_compare
import bad_makers
import bad_own
import bad_papers
import bad_runs
import numpy as np
from judging import Case, Outcome, judge, main

WHAT = "bad arguments of problems, runs and comparisons"


def cases() -> Iterator[Case]:
    """All calls; files that some need are there while the next case is taken."""
    for group in (bad_makers, bad_papers, bad_own, bad_runs, bad_compare):
        yield from group.cases()


def outcomes(options: argparse.Namespace) -> list[Outcome]:
    """What became of all, or of some that are drawn."""
    rng = np.random.default_rng(options.seed)
    share = 1.0 if options.count is None else options.count / sum(1 for _ in cases())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about a complex number that becomes real
        return [judge(case) for case in cases() if rng.random() < share]


if __name__ == "__main__":
    sys.exit(main(WHAT, outcomes))
