"""What the authors' public code gives beside the stored runs: mean test accuracies in %."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace

BLOCK, BLOCKS = 30, 10  # rounds of a mean, and how many means a curve has

#: Means over rounds 1-30, 31-60, ..., 271-300, both tasks, one seed; data set -> method.
#: MNIST + Fashion-MNIST: read off the plot in the demo notebook of github askinb/FedCMOO, commit
#: c336a97, reading error 0.2. MultiMNIST: that public code run as it stands, own settings, on CPU.
PUBLIC: dict[str, dict[str, tuple[float, ...]]] = {
    "multi_mnist": {
        "fsmgda": (42.7, 77.0, 85.0, 87.2, 88.9, 89.9, 90.4, 91.1, 91.7, 91.9),
        "fedcmoo": (59.2, 85.9, 89.9, 91.0, 91.6, 92.0, 92.3, 92.6, 92.5, 92.7),
    },
    "mnist_fashion": {
        "fsmgda": (60.3, 70.8, 78.5, 80.1, 80.6, 82.4, 82.1, 82.9, 83.2, 83.9),
        "fedcmoo": (65.2, 78.6, 83.0, 84.5, 84.8, 85.5, 85.3, 85.7, 86.2, 86.3),
        "pref": (58.3, 73.2, 80.6, 82.6, 83.7, 83.9, 84.3, 84.6, 84.8, 84.9),
    },
}
SOURCE = {"multi_mnist": "public code, run as it stands", "mnist_fashion": "plot in its demo"}
END = BLOCK * BLOCKS  # rounds of these curves


def blocks(trace: Trace) -> list[float]:
    """The mean test accuracy of a run in %, over seeds and each thirty rounds; nan where none."""
    at, x = trace.rounds, 100 * trace.metrics["accuracy"].mean(0)
    each = [(at > BLOCK * k) & (at <= BLOCK * (k + 1)) for k in range(BLOCKS)]
    return [float(x[some].mean()) if some.any() else np.nan for some in each]
