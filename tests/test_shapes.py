"""The shapes in the signatures are true: real runs with every annotation checked at run time."""

import os
import subprocess
import sys
from pathlib import Path

CHECKED = """
from jaxtyping import install_import_hook
import fedlib_checker

with install_import_hook("fedlib", "fedlib_checker.check"):
    import fedlib as fl
    import fedlib.sets
    from fedlib import metrics
from fedlib.problems import pareto
from problems import np_problem
import torch

sgm = fl.FedSGM(lr=0.3, local_steps=2, participants=10, tolerance=0.05, switch=fl.Soft(40.0),
                uplink=fl.TopK(0.1), downlink=fl.Rounding(3))
more = [fl.FedAvg(lr=0.1, local_steps=2, participants=4, batch_size=5),
        fl.PenaltyFedAvg(lr=0.1, local_steps=2, participants=4, tolerance=0.05, rho=1.0),
        fl.FedSGM(lr=0.1, local_steps=1, participants=3, tolerance=0.05, uplink=fl.RandK(0.2),
                  error_feedback=False, batch_size=4, value_batch_size=6)]
for engine in (fl.Vectorized, fl.Loop):
    for algorithm in (sgm, *more):
        fl.run(algorithm, np_problem, rounds=3, seeds=[0, 1], progress=False, engine=engine)
for convex_set in (fl.L1Ball(2.0), fl.NuclearBall(2.0, 5, 6), fl.Simplex(2.0),
                   fl.Blocks((fl.Ball(1.0), fl.Box(1.0)), (12, 18))):
    def task(seed):
        centres = torch.randn(4, 3, 1, 30, generator=torch.Generator().manual_seed(seed))
        return pareto(centres).within(convex_set)
    methods = (fl.FedFW(0.1, participation=0.5), fl.FedFWPlus(0.1), fl.NaiveFW(),
               fl.FedFWSto(0.1, batch_size=2), fl.FedDR(0.1, 2), fl.FedProx(0.1, 2, 3))
    for algorithm in methods:
        end = fl.run(algorithm, task, rounds=2, seeds=[0], progress=False, engine=fl.Loop)
    metrics.fw_gap(task(0), end.state.w[0])
    fl.run(methods[0], task, rounds=2, seeds=[0, 1], progress=False)
a, b = metrics.client_gradients(np_problem(), torch.zeros(30).double())
metrics.skewness(a, b)
try:
    fl.TopK(0.1)(torch.zeros(3, 4))
except Exception as error:
    assert "f32[3,4]" in str(error), error
else:
    raise SystemExit("a matrix passed for a vector")
print("checked")
"""

CHECKER = """
from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int counts as a float
"""


def test_runs_keep_to_the_shapes_of_their_signatures(tmp_path):
    (tmp_path / "fedlib_checker.py").write_text(CHECKER)
    paths = os.pathsep.join((str(tmp_path), str(Path(__file__).parent)))
    done = subprocess.run(
        (sys.executable, "-c", CHECKED),
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "checked", done.stderr[-3000:]
