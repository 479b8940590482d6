"""The runs of study `cmoo_mixed`: three methods on MultiMNIST, with the authors' dropout."""

from __future__ import annotations

from papers.fedcmoo.common import method
from papers.fedcmoo.pairs.runs import MIXED, base
from papers.kit.store import Spec
from papers.kit.study import Params

DATA = "multi_mnist"


def specs(p: Params) -> dict[str, Spec]:
    """A run a method; the first digit has the named loss, the second the log-likelihood."""
    found: dict[str, Spec] = {}
    for name in MIXED:
        kinds = (str(p["kind"]), "nll")
        made = method(name, DATA, p)
        found[name] = base(made, DATA, p, p["seeds"], p["rounds"], dropout=True, kinds=kinds)
    return found
