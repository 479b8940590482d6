"""The runs of study `fw_common`: the authors' rows and loop, FedDR's clients from one start."""

from __future__ import annotations

from papers.fedfw.authors.runs import DEFAULTS, cells
from papers.kit.quantities import by_name
from papers.kit.store import Spec
from papers.kit.study import Params


def specs(p: Params) -> dict[str, Spec]:
    """The cells of Tables 1 to 3, as the published code runs them, by name."""
    return by_name([*cells(p, published=True)], DEFAULTS)
