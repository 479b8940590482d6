"""A program for a process of its own: a run with the library alone, digests, an end by a signal.

    python -m tests.helpers.other_process FOLDER

It writes `report.json` into the folder. It ends by SIGKILL within a run that stores checkpoints,
while it writes a file into the subfolder `half`.
"""

import json
import os
import signal
import sys
from pathlib import Path

OPTIONAL = ("papers", "matplotlib", "gymnasium")  # extras, and what its users alone import
LATE = ("scipy", "sklearn", "pandas", "pooch", "requests", "PIL")  # imported where it is needed
ROUNDS = 100
EVALUATE_EVERY = 10


def main(folder):
    for name in (*OPTIONAL, *LATE):
        sys.modules[name] = None  # importing it raises ImportError
    import torch

    import fedlib as fl
    from fedlib.core.files import atomic_write
    from fedlib.problems import quadratics
    from tests.fedlib.engine.test_identity import digests

    uplink = fl.TopK(0.5)
    switching = fl.FedSGM(
        0.1,
        local_steps=2,
        participants=2,
        tolerance=0.05,
        uplink=uplink,
    )
    constrained = quadratics(torch.eye(2), -torch.eye(2), level=0.5)
    trace = fl.run(switching, constrained, rounds=3, progress=False)
    report = {"shape": trace.metrics["f"].shape, "digests": digests()}
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")

    def end(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def end_within_a_file(number, *_):
        if number == ROUNDS // 2:
            atomic_write(folder / "half" / "written", end)

    centres = torch.ones(4, 2, dtype=torch.float64)
    fl.run(
        fl.FedAvg(lr=0.1, local_steps=1, participants=2),
        quadratics(centres, 0 * centres, level=0.5),
        rounds=ROUNDS,
        evaluate_every=EVALUATE_EVERY,
        checkpoint=folder / "run.pt",
        checkpoint_seconds=0.0,
        callback=end_within_a_file,
        progress=False,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
