"""Study cartpole: constrained Markov decision process, full paper, Figures 3 and 4, Table 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import cast

from fedlib import checks
from fedlib.compress import Identity, Rounding, TopK
from fedlib.compress.compressors import Compressor
from fedlib.steps import Hard, Soft
from papers.fedsgm.cartpole import claims, figures
from papers.fedsgm.cartpole.method import PolicyFedSGM
from papers.fedsgm.cartpole.numbers import BUDGET, derive
from papers.fedsgm.cartpole.simulator import HORIZON, cartpole
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Tolerance

KEEP = ("reward", "cost", "g_hat", "sigma")
#: Names of the paper's number formats -> binary digits after the leading one.
FORMATS = {16: 10, 8: 3, 4: 1}

PARAMETERS = parameters(
    seeds=(
        "seeds of the main rows; each fixes the policy's start and all simulations",
        tuple(range(10)),
        (0, 1),
    ),
    sweep_seeds=("seeds of the sweeps", tuple(range(5)), (0,)),
    fresh=("seeds that judge claim C18 alone", tuple(range(100, 134)), (100,)),
    rounds=("communication rounds T", 500, 2),
    free_rounds=("rounds of the run without constraint", 60, 2),
    clients=("clients N, with budgets evenly spaced on [25, 35]", 10, 3),
    participants=("participants n of the main rows (the paper's m)", 7, 2),
    sweep_participants=("participants of the sweep of Figure 4", (3, 5, 10), (1, 3)),
    environments=("parallel environments of a client, each with 200 samples per round", 5, 2),
    tolerance=("switching threshold epsilon, in units of cost", 0.0),
    beta=("sharpness of soft switching", 0.2),
    betas=("sharpnesses of the sweep", (0.1, 0.5, 1.0), (1.0,)),
    damping=("damping of the Fisher matrix", 0.1),
    dampings=("the damping of the sweep", (1.0,)),
    calibration=(
        "dampings of the full runs that try to meet the uncompressed row of Table 1",
        claims.CALIBRATION,
        (0.03,),
    ),
    calibrated=("damping at which the Top-K rows are run, too", claims.CALIBRATED, 0.03),
    formats=("bits of the number formats of Table 1", (16, 8, 4), (4,)),
    fractions=("K/d of Table 1", (0.5, 0.25), (0.5,)),
    cg_steps=("iterations of conjugate gradient", 10, 3),
    evaluate_every=("rounds between two evaluations", 10, 2),
)


def specs(p: Params) -> dict[str, Spec]:
    """Table 1 under soft switching, Figure 3's other curves, Figure 4, and the open choices."""
    environments, clients = p["environments"], p["clients"]
    federated = partial(cartpole, clients=clients, environments=environments)
    central = partial(cartpole, clients=1, environments=clients * environments)
    soft = PolicyFedSGM(
        participants=p["participants"],
        tolerance=float(p["tolerance"]),
        switch=Soft(float(p["beta"])),
        damping=float(p["damping"]),
        cg_steps=p["cg_steps"],
    )
    main = Spec(soft, federated, p["rounds"], p["seeds"], p["evaluate_every"], KEEP)
    found = {
        f"soft_{name}": replace(main, algorithm=replace(soft, uplink=wire, downlink=wire))
        for name, wire in wires(p).items()
    }
    half = replace(soft, uplink=TopK(0.5), downlink=TopK(0.5))
    found["hard_top0.5"] = replace(main, algorithm=replace(half, switch=Hard()))
    # with as many curvature states as one client has, and as the clients have together
    one = replace(soft, participants=1)
    fine = replace(one, curvature_states=clients * soft.curvature_states)
    for mode, switch in {"soft": soft.switch, "hard": Hard()}.items():
        for name, method in {"central": one, "central_fine": fine}.items():
            at_server = replace(method, switch=switch)
            found[f"{name}_{mode}"] = replace(main, algorithm=at_server, problem=central)
    sweep = replace(main, seeds=p["sweep_seeds"])
    free = replace(soft, tolerance=math.inf)
    found["free"] = replace(sweep, algorithm=free, rounds=p["free_rounds"])
    swept = {
        **{f"half_n{n}": replace(half, participants=n) for n in p["sweep_participants"]},
        **{f"beta{x:g}": replace(soft, switch=Soft(float(x))) for x in p["betas"]},
        **{f"damping{x:g}": replace(soft, damping=float(x)) for x in p["dampings"]},
    }
    found |= {name: replace(sweep, algorithm=method) for name, method in swept.items()}
    for n in {min(p["sweep_participants"]), max(p["sweep_participants"])}:
        found[f"fresh_n{n}"] = replace(found[f"half_n{n}"], seeds=p["fresh"])
    return found | calibration(found, p)


def wires(p: Params) -> dict[str, Compressor]:
    """The formats of Table 1 by name."""
    for bits in p["formats"]:
        checks.one_of("cartpole", "formats", bits, tuple(FORMATS))
    return {
        **{"none": Identity(), "top0.5": TopK(0.5)},
        **{f"float{bits}": Rounding(FORMATS[bits]) for bits in p["formats"]},
        **{f"top{x:g}": TopK(float(x)) for x in p["fractions"]},
    }


def calibration(rows: Mapping[str, Spec], p: Params) -> dict[str, Spec]:
    """Rows of Table 1 with another damping, everything else as in the main rows."""
    here = (p["calibrated"],)
    tried = {"none": p["calibration"], "top0.5": here, "top0.25": here}
    found = {}
    for row, dampings in tried.items():
        if (spec := rows.get(f"soft_{row}")) is not None:
            for x in dampings:
                method = replace(cast(PolicyFedSGM, spec.algorithm), damping=float(x))
                found[f"{row}_damping{x:g}"] = replace(spec, algorithm=method)
    return found


STUDY = Study(
    name="cartpole",
    title="Constrained cartpole",
    paper="F",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    figures=figures.FIGURES,
    watch={"*": HealthCheck("reward", best=float(HORIZON), guard="cost", level=BUDGET)},
    # two thirds of an environment's step at the least: another processor's rounding ends an
    # episode a step earlier
    tolerances={"*": Tolerance(rounds=3, atol=2e-2)},
    **PARAMETERS,
)
