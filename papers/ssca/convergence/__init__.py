"""Study of SSCA's Figures 2 and 3: convergence by samples and by features, beside SGD."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from fedlib.core import Problem
from fedlib.steps import PowerLaw
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study
from papers.ssca import common
from papers.ssca.common import LEVELS, SPLITS, digits_problem, vertical_problem
from papers.ssca.convergence import claims
from papers.ssca.convergence.numbers import FIGURES, HE, derive, halves

KEEP = ("cost", "accuracy", "norm")
WIDER = 6**0.5  # He's start is uniform, within +-sqrt(6 / inputs) of a layer

PARAMETERS = parameters(
    seeds=(
        "seeds; each fixes start, split, evaluated pictures and batches",
        tuple(range(20)),
        (0, 1),
    ),
    rounds=("rounds T", 100, 30),
    evaluate_every=("rounds between two evaluations", 5),
    sgd_every=("rounds between two evaluations of SGD", 10),
    batches=(
        "batch of a client, or of all clients if features are split",
        claims.BATCHES,
        (10,),
    ),
    levels=("levels U of the constrained algorithms", LEVELS, (1.0,)),
    rates=("the grid of SGD's first step sizes", claims.RATES, (0.3, 3.0)),
    falls=("the grid of the exponents with which SGD's step sizes fall", claims.FALLS, (0.0,)),
    start_seeds=(
        "seeds of the runs from He's start, with the smallest batch",
        tuple(range(10)),
        (0, 1),
    ),
    **common.TASK,
)


def specs(p: Params) -> dict[str, Spec]:
    """Algorithms 1 to 4, Algorithms 1 and 3 without their bias, and SGD over its grid."""
    found: dict[str, Spec] = {}
    n = int(p["clients"])
    for split in SPLITS:
        for b in map(int, p["batches"]):
            made = common.ssca(split, b, clients=n)
            found[f"{split}_ssca_B{b}"] = base(made, split, p)
            found[f"{split}_ssca_B{b}_debiased"] = base(replace(made, debias=True), split, p)
            for level in p["levels"]:
                limited = common.constrained(split, b, float(level), clients=n)
                found[f"{split}_limit_B{b}_U{level:g}"] = base(limited, split, p)
            for point, lr in grid(p).items():
                plain = common.sgd(split, b, 1, lr, clients=n)
                found[f"{split}_sgd_B{b}_{point}"] = base(plain, split, p, p["sgd_every"])
    for b in halves(p["batches"]):
        for point, lr in grid(p).items():
            twice = common.sgd("samples", b, 2, lr, clients=n)
            found[f"samples_sgd2_B{b}_{point}"] = base(twice, "samples", p, p["sgd_every"])
    return found | starts(p)


def grid(p: Params) -> dict[str, PowerLaw]:
    return {
        f"a{a:g}_p{fall:g}": PowerLaw(float(a), float(fall))
        for a in p["rates"]
        for fall in p["falls"]
    }


def base(algorithm: Any, split: str, p: Params, every: int = 0) -> Spec:
    problem = digits_problem if split == "samples" else vertical_problem
    made: Any = partial(problem, **common.task(p))
    every = every or p["evaluate_every"]
    return Spec(algorithm, made, p["rounds"], p["seeds"], every, KEEP)


def starts(p: Params) -> dict[str, Spec]:
    """Algorithms 1 and 3 with the smallest batch, and SGD over its grid, from He's start."""
    n, b = int(p["clients"]), min(map(int, p["batches"]))
    found: dict[str, Spec] = {}
    for split in SPLITS:
        problem: Any = partial(he_problem, split=split, **common.task(p))
        methods: dict[str, Any] = {f"ssca_B{b}": common.ssca(split, b, clients=n)}
        for point, lr in grid(p).items():
            methods[f"sgd_B{b}_{point}"] = common.sgd(split, b, 1, lr, clients=n)
        for name, made in methods.items():
            seeds, every = p["start_seeds"], p["sgd_every"]
            run = Spec(made, problem, p["rounds"], seeds, every, KEEP)
            found[f"{HE}{split}_{name}"] = run
    return found


@lru_cache(maxsize=64)
def he_problem(seed: int, *, split: str, **task: Any) -> Problem:
    """The problem of the other runs, its start wider: what the paper may have meant, or not."""
    known = (digits_problem if split == "samples" else vertical_problem)(seed, **task)
    return replace(known, w0=WIDER * known.w0, config={**known.config, "start": "He, uniform"})


STUDY = Study(
    name="ssca_convergence",
    title="Convergence of SSCA",
    paper="Y",
    data=("mnist",),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    figures=FIGURES,
    at_paper={"seeds": tuple(range(100)), "evaluate": 60_000},
    **PARAMETERS,
)
