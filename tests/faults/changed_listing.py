"""Changes in stored runs with their digests and the listing beside the numbers made to match.

Whoever changes a run and makes both match leaves nothing that the files could contradict but the
study, the history, the derived numbers, and a recomputation of that very run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np
from changed_results import LISTED, OF_RUN, RUN, of_file
from judging import Outcome, main


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """Every change of the run."""
    rng = np.random.default_rng(options.seed)
    for name, change in OF_RUN.items():
        yield of_file(name, change, RUN, LISTED, rng)


if __name__ == "__main__":
    sys.exit(main("a change in stored results, digest and listing made to match", outcomes))
