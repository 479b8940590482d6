"""The rules that judge what FedFW's Tables 1 and 2 are said to show; each can fail."""

from __future__ import annotations

from fedlib.claims import Numbers, Outcome, judge
from fedlib.numbers import Number
from fedlib.studies.fw_cells import COLUMNS, NORMS, column_text

__all__ = ["BEST_FEDDR", "CELLS", "COLUMNS_C8", "FEDFW_AHEAD", "ahead", "c7", "c8", "c10", "fewer"]

ONE_SEED = 1.0  # points, or rounds: what a difference on a single seed must exceed

#: C7, l2: columns in which the tables have FedFW before FedDR, and those with FedDR first of three.
FEDFW_AHEAD = (
    "mclr_synthetic_iid",
    "mclr_pictures_labels",
    "mclr_synthetic_labels",
    "mclr_cifar10_labels",
    "dnn_synthetic_iid",
    "cnn_pictures_labels",
    "dnn_synthetic_labels",
)
BEST_FEDDR = ("mclr_pictures_iid", "mclr_cifar10_iid", "cnn_pictures_iid")
#: C8, l1: the columns of MNIST.
COLUMNS_C8 = (
    "mclr_pictures_iid",
    "mclr_pictures_labels",
    "cnn_pictures_iid",
    "cnn_pictures_labels",
)
CELLS = tuple(
    (column, norm) for norm in NORMS for column in COLUMNS if not column.endswith("_classes")
)


def ahead(x: Number) -> bool:
    """Whether the whole interval lies above 0; of a single seed, whether it exceeds one point."""
    return x.low > (0.0 if len(x.per_seed) > 1 else ONE_SEED)


def fewer(x: Number) -> bool:
    """Whether the whole interval lies below 0; of a single seed, below minus one round."""
    return x.high < (0.0 if len(x.per_seed) > 1 else -ONE_SEED)


def flipped(x: Number) -> Number:
    """Minus a difference."""
    return Number(-x.value, -x.high, -x.low, tuple(-v for v in x.per_seed), x.unit)


def name(column: str) -> str:
    """A column in words."""
    return column_text(column, "mnist")


def listed(n: Numbers, keys: dict[str, str]) -> str:
    """Differences in one text, without intervals."""
    return "; ".join(f"{text} {n[key].value:+.1f}" for text, key in keys.items())


def c7(n: Numbers) -> Outcome:
    """Seven columns with FedFW ahead, three with FedDR ahead of both others."""
    n["whole.pictures"]
    parts, keys = {}, {}
    for column in FEDFW_AHEAD:
        key = f"{column}_l2_fedfw_vs_feddr.accuracy"
        parts[f"FedFW above FedDR, {name(column)}"] = ahead(n[key])
        keys[name(column)] = key
    for column in BEST_FEDDR:
        pairs = [f"{column}_l2_{m}_vs_feddr.accuracy" for m in ("fedfw", "plus")]
        parts[f"FedDR above both, {name(column)}"] = all(ahead(flipped(n[k])) for k in pairs)
        keys[name(column)] = pairs[0]
    return judge(parts, f"final accuracy of FedFW minus FedDR, points: {listed(n, keys)}")


def c8(n: Numbers) -> Outcome:
    """FedFW above FedDR in the four columns of MNIST with the l1 ball."""
    n["whole.pictures"]
    keys = {name(c): f"{c}_l1_fedfw_vs_feddr.accuracy" for c in COLUMNS_C8}
    parts = {f"FedFW above FedDR, {text}": ahead(n[key]) for text, key in keys.items()}
    return judge(parts, f"final accuracy of FedFW minus FedDR, points: {listed(n, keys)}")


def c10(n: Numbers) -> Outcome:
    """FedFW+ in fewer rounds than FedFW, cell by cell."""
    n["whole.pictures"]
    keys = {f"{NORMS[norm]} {name(c)}": f"{c}_{norm}_plus_vs_fedfw.rounds" for c, norm in CELLS}
    parts = {f"fewer rounds, {text}": fewer(n[key]) for text, key in keys.items()}
    return judge(parts, f"rounds of FedFW+ minus those of FedFW: {listed(n, keys)}")
