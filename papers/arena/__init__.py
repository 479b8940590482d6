"""Study of the arena: every method that applies, on three common problems, under one protocol."""

from __future__ import annotations

from papers.arena.methods import COUNT, METHODS
from papers.arena.problems import LEVELS, NAMES
from papers.arena.quantities import derive
from papers.arena.runs import specs
from papers.kit.health import HealthCheck, nothing
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    problems=("the problems", tuple(NAMES), ("np", "sparse")),
    methods=(
        "the methods; each problem leaves out those that do not apply",
        tuple(METHODS),
        ("soft", "fedfw"),
    ),
    seeds=(
        "seeds; each fixes the data or their split, and the batches",
        tuple(range(10)),
        (0, 1, 2),
    ),
    passes=("gradients of every client in a run: the budget of every configuration", 1200, 60),
    local_steps=("local steps E of the methods with local steps", 5, 2),
    batch=("largest batch of a client, on the problems with minibatches", 64),
    grid=("configurations of every method", COUNT, 4),
    stand_in=("0: the files of Adult; else that many generated people in their place", 0, 2000),
)

STUDY = Study(
    name="arena",
    title="One problem, every method that applies",
    paper="all",
    specs=specs,
    derive=derive,
    watch={
        "*_reference": nothing("the optimum, solved beforehand"),
        **{f"{name}_*": HealthCheck("f", guard="g", level=LEVELS[name]) for name in NAMES},
    },
    **PARAMETERS,
)
