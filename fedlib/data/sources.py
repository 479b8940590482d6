"""The data sets that `fedlib.data` can load: title, licence and files.

`registry.txt` lists paths inside the cache folder, checksums and addresses in pooch's format.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class File(NamedTuple):
    """One file: its path inside the cache folder, its checksum (sha256), and its URL."""

    path: str
    checksum: str
    url: str


@dataclass(frozen=True)
class Source:
    """One data set: title, licence, the files to download, substitutes for them, and a note."""

    title: str
    licence: str
    files: tuple[File, ...] = ()  # downloaded when missing
    instead: tuple[File, ...] = ()  # substitutes that are never downloaded
    note: str = ""  # why there is no download, or what to do


_REGISTRY = Path(__file__).with_name("registry.txt").read_text(encoding="utf-8")
_FILES = [File(*line.split()) for line in _REGISTRY.splitlines()]


def _files(*starts: str) -> tuple[File, ...]:
    """The registered files whose paths start with `starts`, in the order of the registry."""
    return tuple(file for file in _FILES if file.path.startswith(starts))


SOURCES: dict[str, Source] = {
    "breast_cancer": Source("Breast Cancer Wisconsin (Diagnostic)", "CC BY 4.0; in scikit-learn"),
    "digits": Source("Optical Recognition of Handwritten Digits", "CC BY 4.0; in scikit-learn"),
    "mnist": Source(
        "MNIST",
        "Y. LeCun, C. Cortes, C. Burges; usually given as CC BY-SA 3.0",
        _files("MNIST/"),
    ),
    "fashion_mnist": Source("Fashion-MNIST", "MIT, Zalando SE", _files("FashionMNIST/")),
    "adult": Source(
        "UCI Adult",
        "CC BY 4.0; B. Becker, R. Kohavi (1996), doi 10.24432/C5XW20",
        _files("adult/"),
    ),
    "cifar10": Source(
        "CIFAR-10",
        "no licence stated; cite A. Krizhevsky, Learning Multiple Layers of Features (2009)",
        _files("cifar10/cifar-10-binary.tar.gz"),
        _files("cifar10/labels", "cifar10/test", "cifar10/train"),
        "copy it from where the packed set came from, or put the archive "
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz there",
    ),
    "qm9": Source(
        "QM9",
        "CC0; cite Ramakrishnan et al., Scientific Data 1, 140022 (2014)",
        instead=_files("qm9/"),
        note="copy a packed qm9.npz there (it has no download of its own: the upstream "
        "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/molnet_publish/qm9.zip has "
        "another format, which fedlib does not read)",
    ),
}
IN_SCIKIT_LEARN = ("breast_cancer", "digits")
