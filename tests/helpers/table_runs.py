"""Made-up runs of the studies of FedFW's tables."""

import numpy as np

from fedlib.core import Trace
from papers.fedfw import stochastic, tables

STUDY = tables.STUDY
STUDY_3 = stochastic.STUDY


def curve(accuracy, loss, rounds=(0, 5, 10, 15, 20), seeds=(0, 1, 2), pictures="mnist"):
    """A trace with these curves for every seed, accuracy a hundredth higher by seed."""
    shift = np.arange(len(seeds))[:, None] / 100
    losses = np.array(loss) - 0 * shift
    metrics = {
        "accuracy": np.array(accuracy) + shift,
        "loss": losses,
        "gap": losses,
        "size": 0 * losses,
    }
    config = {"problem": {"data": pictures}}
    return Trace(metrics, {}, np.array(rounds), tuple(seeds), config)


def fake(study, params):
    """A made-up trace for every run of a study."""
    traces = {}
    for number, (name, spec) in enumerate(study.specs(params).items()):
        height = 0.3 + (37 * number % 50) / 100
        low = 0.3 + (17 * number % 40) / 100
        accuracy = [0.1, 0.2, 0.3, height, height]
        loss = [2.3, 1.5, 1.2, 1.0, low]
        options = {"seeds": spec.seeds, "pictures": params["pictures"]}
        traces[name] = curve(accuracy, loss, **options)
    return traces
