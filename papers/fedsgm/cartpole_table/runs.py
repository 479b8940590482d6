"""The runs of study `cartpole_table`: Table 1 by the readings that its sentence allows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fedlib.compress import Rounding, TopK
from fedlib.steps import Soft
from papers.fedsgm.cartpole import FORMATS, KEEP
from papers.fedsgm.cartpole.method import PolicyFedSGM
from papers.fedsgm.cartpole.simulator import cartpole
from papers.kit.store import Spec
from papers.kit.study import Params


def specs(p: Params) -> dict[str, Spec]:
    """A row of Table 1 a run; of Top-K one by each reading."""
    environments, clients = p["environments"], p["clients"]
    federated = partial(cartpole, clients=clients, environments=environments)
    central = partial(cartpole, clients=1, environments=clients * environments)
    plain = PolicyFedSGM(
        participants=p["participants"],
        tolerance=float(p["tolerance"]),
        switch=Soft(float(p["beta"])),
        damping=float(p["damping"]),
        cg_steps=p["cg_steps"],
    )
    base = Spec(plain, federated, p["rounds"], p["seeds"], p["evaluate_every"], KEEP)
    methods = {"none": plain, "none_all": replace(plain, participants=clients)}
    for bits in p["formats"]:
        wire = Rounding(FORMATS[bits])
        methods[f"float{bits}"] = replace(plain, uplink=wire, downlink=wire)
    for x in p["fractions"]:
        topk = TopK(float(x))
        both = replace(plain, uplink=topk, downlink=topk)
        methods[f"gradient{x:g}"] = replace(plain, on_gradient=topk)
        methods[f"feedback{x:g}"] = both
        methods[f"update{x:g}"] = replace(both, error_feedback=False)
    found = {name: replace(base, algorithm=method) for name, method in methods.items()}
    states = clients * plain.curvature_states
    pooled = replace(plain, participants=1, curvature_states=states)
    found["central"] = replace(base, algorithm=pooled, problem=central)
    return found
