"""Made-up runs of the studies of FedFW's tables."""

import numpy as np

from fedlib.core import Trace
from papers.fedfw import stochastic, tables

STUDY, STUDY_3 = tables.STUDY, stochastic.STUDY


def curve(accuracy, loss, rounds=(0, 5, 10, 15, 20), seeds=(0, 1, 2), pictures="mnist"):
    """A trace with these curves for every seed, accuracy a hundredth higher by seed."""
    shift = np.arange(len(seeds))[:, None] / 100
    a, b = np.array(accuracy) + shift, np.array(loss) - 0 * shift
    metrics = {"accuracy": a, "loss": b, "gap": b, "size": 0 * b}
    config = {"problem": {"data": pictures}}
    return Trace(metrics, {}, np.array(rounds), tuple(seeds), config)


def fake(study, params):
    """A made-up trace for every run of a study."""
    found = {}
    for i, (name, spec) in enumerate(study.specs(params).items()):
        height, low = 0.3 + (37 * i % 50) / 100, 0.3 + (17 * i % 40) / 100
        loss = [2.3, 1.5, 1.2, 1.0, low]
        found[name] = curve(
            [0.1, 0.2, 0.3, height, height], loss, seeds=spec.seeds, pictures=params["pictures"]
        )
    return found
