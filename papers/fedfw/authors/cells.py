"""The runs with the authors' rows and loop that stand beside printed values of Tables 1 to 3."""

from __future__ import annotations

from papers.fedfw.cells import Printed, as_coded, traced

#: Classes of the generator by column; both have one labelling rule for all users.
SPLITS = {"iid": 10, "classes": 3}
SAME, NEAR = 1.0, 3.0  # points, fixed before the runs


def run_of(x: Printed) -> str:
    """The run of a printed value; empty where there is none."""
    net, source, split = as_coded(x.column).split("_")
    if source != "synthetic":
        return ""
    if not x.norm:
        return f"many_{split}_{x.method}"
    setting = "" if x.method == "feddr" else f"_{traced(x.column, x.norm, x.method)[0]:g}"
    return f"{net}_{split}_{x.norm}_{'feddr' if x.method == 'feddr' else 'fw'}{setting}"


def lambdas(net: str, split: str, norm: str) -> tuple[float, ...]:
    """lambda_0 of FedFW's and of FedFW+'s files, which are runs of one code; each once."""
    cells = (traced(f"{net}_synthetic_{split}", norm, m) for m in ("fedfw", "plus"))
    return tuple(dict.fromkeys(lam for lam, _ in cells))
