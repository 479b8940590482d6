"""The runs of study `cmoo_mixed`: three methods on MultiMNIST, with the authors' dropout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from papers.fedcmoo.common import method
from papers.fedcmoo.pairs.runs import MIXED, base
from papers.kit.quantities import Defaults, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

DATA = "multi_mnist"
DEFAULTS: Defaults = {"method": None}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], DEFAULTS)


def runs(p: Params) -> Iterator[Spec]:
    """A run a method; the first digit has the named loss, the second the log-likelihood."""
    kinds = (str(p["kind"]), "nll")
    for name in MIXED:
        algorithm = method(name, DATA, p)
        run = base(
            algorithm,
            DATA,
            p,
            p["seeds"],
            p["rounds"],
            dropout=True,
            kinds=kinds,
        )
        yield replace(run, labels={"method": name})
