"""Data sets, their files, and how rows are dealt to clients."""

from fedlib.data.cache import DataError, available, cache_folder, fetch
from fedlib.data.loaders import (
    Molecules,
    Table,
    adult,
    breast_cancer,
    cifar10,
    digits,
    emnist,
    fashion_mnist,
    mnist,
    qm9,
)
from fedlib.data.sources import SOURCES, File, Source

__all__ = [
    "SOURCES",
    "DataError",
    "File",
    "Molecules",
    "Source",
    "Table",
    "adult",
    "available",
    "breast_cancer",
    "cache_folder",
    "cifar10",
    "digits",
    "emnist",
    "fashion_mnist",
    "fetch",
    "mnist",
    "qm9",
]
