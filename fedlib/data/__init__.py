"""Data sets and their files."""

from fedlib.data.cache import DataError, available, cache_folder, fetch
from fedlib.data.loaders import (
    Table,
    adult,
    breast_cancer,
    cifar10,
    digits,
    fashion_mnist,
    mnist,
)
from fedlib.data.sources import SOURCES, File, Source

__all__ = [
    "SOURCES",
    "DataError",
    "File",
    "Source",
    "Table",
    "adult",
    "available",
    "breast_cancer",
    "cache_folder",
    "cifar10",
    "digits",
    "fashion_mnist",
    "fetch",
    "mnist",
]
