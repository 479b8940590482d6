"""The runs of study `fw_common`: the authors' rows and loop, FedDR's clients from one start."""

from __future__ import annotations

from typing import Any

from papers.fedfw.authors import KEEP, problem_of
from papers.fedfw.authors.loop import NORMS, AuthorsFedDR, AuthorsFW
from papers.fedfw.authors.numbers import lambdas
from papers.fedfw.authors.rows import NETS
from papers.kit.store import Spec
from papers.kit.study import Params

USERS = 100  # of Table 3
STO = 1e-3  # lambda_0 of FedFW-sto


def specs(p: Params) -> dict[str, Spec]:
    """The cells of Tables 1 and 2, `NET_SPLIT_NORM_METHOD`, and those of Table 3, `many_`."""
    found: dict[str, Spec] = {}
    for net in NETS:
        for split in p["splits"]:
            problem = problem_of(net, split)
            for norm in NORMS:
                cell = f"{net}_{split}_{norm}"
                for lam in lambdas(net, split, norm):
                    method = AuthorsFW(lam, norm, ordered=True)
                    found[f"{cell}_fw_{lam:g}"] = run(method, problem, p["rounds"], p)
                other = AuthorsFedDR(norm, common=True, ordered=True)
                found[f"{cell}_feddr"] = run(other, problem, p["feddr_rounds"], p)
    for split in p["splits"] if p["many_rounds"] else ():
        problem = problem_of("mclr", split, users=USERS)
        sto = AuthorsFW(STO, averaged=True, ordered=True)
        found[f"many_{split}_sto"] = run(sto, problem, p["many_rounds"], p)
        other = AuthorsFedDR(common=True, ordered=True)
        found[f"many_{split}_feddr"] = run(other, problem, p["many_feddr_rounds"], p)
    return found


def run(method: Any, problem: Any, rounds: int, p: Params) -> Spec:
    """A run on the splits of this study, evaluated after every round."""
    return Spec(method, problem, rounds, p["seeds"], 1, KEEP)
