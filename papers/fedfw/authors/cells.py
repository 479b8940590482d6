"""The printed values of FedFW's Tables 1 to 3, and what the authors' result files say of them."""

from __future__ import annotations

from typing import NamedTuple

from papers.fedfw.cells import METHODS, TABLES, as_coded, traced
from papers.fedfw.stochastic.numbers import TABLE_3

#: Classes of the generator by column; both have one labelling rule for all users.
SPLITS = {"iid": 10, "classes": 3}
SAME, NEAR = 1.0, 3.0  # points, fixed before the runs


class Traced(NamedTuple):
    """What an authors' file has of a cell: the value after round 100, and the last."""

    at_100: float
    last: float


#: Column, norm, method -> what the file that the printed value was matched with says, in %. The
#: printed value is the file's maximum, cut to two decimals.
FILES = {
    ("mclr_pictures_iid", "l2", "fedfw"): Traced(85.14, 86.59),
    ("mclr_pictures_labels", "l2", "fedfw"): Traced(84.08, 86.88),
    ("mclr_synthetic_iid", "l2", "fedfw"): Traced(80.16, 79.94),
    ("mclr_synthetic_labels", "l2", "fedfw"): Traced(94.48, 94.75),
    ("mclr_cifar10_iid", "l2", "fedfw"): Traced(35.59, 36.29),
    ("mclr_cifar10_labels", "l2", "fedfw"): Traced(38.02, 37.59),
    ("mclr_pictures_iid", "l2", "plus"): Traced(86.12, 86.46),
    ("mclr_synthetic_iid", "l2", "plus"): Traced(79.78, 79.89),
    ("mclr_cifar10_iid", "l2", "plus"): Traced(35.55, 36.29),
    ("mclr_pictures_labels", "l2", "plus"): Traced(83.79, 86.87),
    ("mclr_synthetic_labels", "l2", "plus"): Traced(94.38, 94.50),
    ("mclr_cifar10_labels", "l2", "plus"): Traced(35.79, 37.05),
    ("mclr_pictures_iid", "l1", "fedfw"): Traced(39.52, 78.08),
    ("mclr_pictures_labels", "l1", "fedfw"): Traced(79.78, 74.76),
    ("mclr_synthetic_iid", "l1", "fedfw"): Traced(78.43, 81.04),
    ("mclr_synthetic_labels", "l1", "fedfw"): Traced(90.04, 90.66),
    ("mclr_cifar10_iid", "l1", "fedfw"): Traced(18.12, 21.86),
    ("mclr_cifar10_labels", "l1", "fedfw"): Traced(24.81, 24.17),
    ("mclr_pictures_iid", "l1", "plus"): Traced(63.03, 66.83),
    ("mclr_synthetic_iid", "l1", "plus"): Traced(78.78, 80.22),
    ("mclr_cifar10_iid", "l1", "plus"): Traced(18.03, 22.00),
    ("mclr_pictures_labels", "l1", "plus"): Traced(46.25, 45.75),
    ("mclr_synthetic_labels", "l1", "plus"): Traced(91.12, 91.12),
    ("mclr_cifar10_labels", "l1", "plus"): Traced(24.84, 24.18),
    ("mclr_pictures_iid", "l1", "feddr"): Traced(15.79, 9.93),
    ("mclr_pictures_labels", "l1", "feddr"): Traced(30.55, 28.56),
    ("mclr_cifar10_iid", "l1", "feddr"): Traced(16.95, 12.90),
    ("mclr_cifar10_labels", "l1", "feddr"): Traced(10.06, 12.12),
    ("mclr_pictures_iid", "l2", "feddr"): Traced(82.5, 89.34),
    ("mclr_cifar10_iid", "l2", "feddr"): Traced(37.90, 38.81),
    ("mclr_cifar10_labels", "l2", "feddr"): Traced(33.54, 36.31),
    ("cnn_pictures_iid", "l2", "fedfw"): Traced(95.50, 95.80),
    ("cnn_pictures_labels", "l2", "fedfw"): Traced(92.20, 92.62),
    ("dnn_synthetic_iid", "l2", "fedfw"): Traced(81.60, 81.61),
    ("dnn_synthetic_labels", "l2", "fedfw"): Traced(95.00, 96.13),
    ("cnn_pictures_iid", "l1", "fedfw"): Traced(11.73, 23.81),
    ("cnn_pictures_labels", "l1", "fedfw"): Traced(28.91, 37.63),
    ("cnn_pictures_iid", "l1", "feddr"): Traced(10.39, 9.92),
    ("cnn_pictures_labels", "l1", "feddr"): Traced(10.87, 10.87),
    ("dnn_synthetic_iid", "l1", "feddr"): Traced(44.66, 32.93),
    ("dnn_synthetic_labels", "l1", "feddr"): Traced(36.09, 40.61),
    ("emnist_10_iid", "", "sto"): Traced(93.74, 93.61),
    ("emnist_62_iid", "", "sto"): Traced(40.89, 39.34),
    ("emnist_10_labels", "", "sto"): Traced(91.74, 91.35),
    ("emnist_62_labels", "", "sto"): Traced(59.92, 56.95),
    ("mclr_synthetic_iid", "", "sto"): Traced(69.72, 72.01),
    ("mclr_cifar10_iid", "", "sto"): Traced(38.31, 38.11),
    ("mclr_synthetic_labels", "", "sto"): Traced(84.12, 87.32),
    ("mclr_cifar10_labels", "", "sto"): Traced(36.68, 37.76),
    ("emnist_10_iid", "", "feddr"): Traced(91.13, 92.15),
    ("emnist_62_iid", "", "feddr"): Traced(36.71, 38.79),
    ("emnist_10_labels", "", "feddr"): Traced(85.35, 84.69),
    ("emnist_62_labels", "", "feddr"): Traced(38.98, 40.81),
    ("mclr_synthetic_iid", "", "feddr"): Traced(66.55, 67.61),
    ("mclr_cifar10_iid", "", "feddr"): Traced(34.80, 36.23),
    ("mclr_synthetic_labels", "", "feddr"): Traced(82.27, 84.68),
    ("mclr_cifar10_labels", "", "feddr"): Traced(33.68, 34.27),
}
#: Table 3's columns that were not to be had: FedDR, FedFW-sto.
EMNIST = {
    "emnist_10_iid": (92.18, 93.79),
    "emnist_62_iid": (39.58, 41.22),
    "emnist_10_labels": (85.70, 91.88),
    "emnist_62_labels": (41.09, 60.51),
}


class Printed(NamedTuple):
    """A printed value in %: its table, column, norm (none in Table 3) and method."""

    table: int
    column: str
    norm: str
    method: str
    value: float

    @property
    def file(self) -> Traced | None:
        return FILES.get((self.column, self.norm, self.method))

    @property
    def run(self) -> str:
        """The run with the authors' rows and loop; empty where there is none."""
        net, source, split = self.column.split("_")
        if source != "synthetic":
            return ""
        split = "iid" if split == "iid" else "classes"
        if not self.norm:
            return f"many_{split}_{self.method}"
        cell = f"{net}_{split}_{self.norm}"
        if self.method == "feddr":
            return f"{cell}_feddr"
        return f"{cell}_fw_{lambda_of(self.column, self.norm, self.method):g}"


def lambda_of(column: str, norm: str, method: str) -> float:
    return traced(as_coded(column), norm)[method == "plus"][0]


def lambdas(net: str, split: str, norm: str) -> tuple[float, ...]:
    """lambda_0 of FedFW's and of FedFW+'s files, which are runs of one code; each once."""
    column = f"{net}_synthetic_{'iid' if split == 'iid' else 'labels'}"
    return tuple(dict.fromkeys(lambda_of(column, norm, m) for m in ("fedfw", "plus")))


def printed() -> list[Printed]:
    """All values of Tables 1 to 3, each once."""
    found = [
        Printed(2 if column[:3] in ("cnn", "dnn") else 1, column, norm, method, x)
        for (column, norm), values in TABLES.items()
        if not column.endswith("_classes")
        for method, x in zip(METHODS, values, strict=True)
    ]
    third = EMNIST | {c: v for c, v in TABLE_3.items() if "_synthetic_" in c or "_cifar10_" in c}
    return found + [
        Printed(3, column, "", method, x)
        for column, values in third.items()
        if not column.endswith("_classes")
        for method, x in zip(("feddr", "sto"), values, strict=True)
    ]
