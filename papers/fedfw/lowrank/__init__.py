"""Study of what FedFW sends, and of what its oracle costs beside a projection."""

from __future__ import annotations

from papers.fedfw.lowrank import claims
from papers.fedfw.lowrank.quantities import derive
from papers.fedfw.lowrank.runs import specs
from papers.kit.health import nothing
from papers.kit.parameters import parameters
from papers.kit.study import Study, Tolerance

PARAMETERS = parameters(
    seeds=("seeds; each fixes the generated data", (0, 1, 2, 3, 4), (0, 1)),
    rounds=("rounds in which all messages are looked at", 100, 3),
    clients=("clients N of the regression", 10, 5),
    rank=("rank of the true matrix", 3, 2),
    rows=("rows of the matrix: features", 60, 12),
    columns=("columns of the matrix: tasks", 40, 8),
    samples=("rows of a client", 60, 20),
    lanczos=("steps of Lanczos in the oracle", 15),
    pictures=("digits in the other sets", 1000, 100),
    sides=(
        "sides of the square matrices that the oracles are timed on",
        (100, 200, 500, 1000, 2000),
        (50, 100),
    ),
    repetitions=("repetitions of each timing", 5, 2),
)

STUDY = Study(
    name="fw_lowrank",
    title="The low-rank case",
    paper="D",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch={
        "clock_*": nothing("times of single oracle calls"),
        "messages_*": nothing("messages of a run, which are counted"),
    },
    tolerances={"clock_*": Tolerance(timed=("lmo", "project")), "messages_*": Tolerance()},
    **PARAMETERS,
)
