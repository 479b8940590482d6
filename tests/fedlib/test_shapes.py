"""The shapes in the signatures are true: real runs with every annotation checked at run time."""

import os
from pathlib import Path

import pytest

from tests.helpers.process import python

ROOT = Path(__file__).resolve().parents[2]

CHECKED = """
from pathlib import Path
from jaxtyping import install_import_hook
import fedlib_checker

files = [p.relative_to(ROOT) for p in Path(ROOT, "fedlib").rglob("*.py")]
names = [".".join(p.with_suffix("").parts) for p in files if p.stem != "__init__"]
with install_import_hook(names, "fedlib_checker.check"):
    import fedlib as fl
    import fedlib.sets
    from fedlib import metrics
    from fedlib.problems import pareto
from fedlib.testing.examples import examples
from tests.helpers.problems import np_problem
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
               fl.FedFWSto(0.1, batch_size=2), fl.FedDR(0.1, 2))
    for algorithm in methods:
        end = fl.run(algorithm, task, rounds=2, seeds=[0], progress=False, engine=fl.Loop)
    metrics.fw_gap(task(0), end.state.w[0])
    fl.run(methods[0], task, rounds=2, seeds=[0, 1], progress=False)
metrics.mean_gradient(np_problem(), torch.zeros(30).double())

def one_round(algorithm, problem):
    rng = torch.Generator().manual_seed(0)
    for engine in (fl.Loop,):
        state, draw = algorithm.init(problem), algorithm.draw(problem, rng)
        after, _ = algorithm.round(engine(problem), state, draw)
        if hasattr(algorithm, "output"):
            algorithm.output(after)

for example, *_ in examples().values():
    one_round(*example)
several = pareto(torch.randn(6, 3, 3, 20))
settings = {"lr": 0.1, "local_steps": 2, "participants": 4}
for kind in (fl.FedCMOO, fl.FedCMOOPref, fl.FSMGDA):
    one_round(kind(**settings, batch_size=2, local=fl.Adam()), several)
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


@pytest.mark.weekly
def test_runs_keep_to_the_shapes_of_their_signatures(tmp_path):
    (tmp_path / "fedlib_checker.py").write_text(CHECKER, encoding="utf-8")
    places = tmp_path, ROOT
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
    done = python("-c", f"ROOT = {str(ROOT)!r}\n{CHECKED}", env=env)
    assert done.stdout.strip() == "checked", done.stderr[-3000:]
