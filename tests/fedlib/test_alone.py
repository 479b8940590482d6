"""The library stands alone: it runs without the papers, and imports what it needs when it does."""

from tests.helpers.process import python

ALONE = """
import sys

optional = ("papers", "matplotlib", "gymnasium")  # extras, and what is imported by its users alone
late = ("scipy", "sklearn", "pandas", "pooch", "requests", "PIL")
sys.modules.update(dict.fromkeys((*optional, *late)))  # importing one of them raises ImportError

import fedlib as fl
import torch
from fedlib.problems import quadratics

method = fl.FedSGM(lr=0.1, local_steps=2, participants=2, tolerance=0.05, uplink=fl.TopK(0.5))
problem = quadratics(torch.eye(2), -torch.eye(2), level=0.5)
trace = fl.run(method, lambda seed: problem, rounds=3, progress=False)
print(trace.metrics["f"].shape)
"""


def test_the_library_runs_without_what_only_the_papers_need():
    done = python("-c", ALONE)
    assert done.stdout.strip() == "(1, 4)", done.stderr[-2000:]
