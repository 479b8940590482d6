"""Data sets: one loader for each, from the verified files of `fedlib.data.cache`.

Loaders return torch tensors on the CPU (`Table`); Adult is a pandas frame. Loaders import pandas,
Pillow and scikit-learn only when needed, so `import fedlib` stays quick. `fedlib.data.sources` says
where files come from, and `fedlib.data.cache` handles their faults.
"""

import gzip
import io
import tarfile
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped, UInt8
from torch import Tensor

from fedlib import checks
from fedlib.data.cache import get, use_instead
from fedlib.data.sources import SOURCES

if TYPE_CHECKING:
    from pandas import DataFrame

_ADULT_COLUMNS = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race "
    "sex capital_gain capital_loss hours_per_week native_country income"
)
ADULT_COLUMNS = tuple(_ADULT_COLUMNS.split())
DIGITS = tuple("0123456789")

_one_split = partial(checks.one_of, options=("train", "test"))
_one_diagnosis = partial(checks.one_of, options=("malignant", "benign"))
Split = Annotated[str, checks.Takes(_one_split)]
Diagnosis = Annotated[str, checks.Takes(_one_diagnosis)]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and their labels on the CPU; `exact` tells which images have their original pixels."""

    X: Shaped[Tensor, "R *shape"]
    y: Int[Tensor, " R"]
    classes: tuple[str, ...]  # classes[y] is the name of label y
    columns: tuple[str, ...] = ()  # names of the features, if they have names
    exact: Bool[Tensor, " R"] | None = None  # CIFAR-10: whether an image has its original pixels

    def __post_init__(self) -> None:
        checks.fields(self)
        rows = len(self.X)
        labels = len(self.y)
        rule = f"have a label for each of the {rows} rows of X"
        checks.require(labels == rows, "Table", "y", rule, labels)
        if self.classes and labels:
            ends = [int(self.y.min()), int(self.y.max())]
            last_label = len(self.classes) - 1
            fits = ends[0] >= 0 and ends[1] <= last_label
            checks.require(fits, "Table", "y", f"lie in 0..{last_label} (the classes)", ends)


def breast_cancer(positive: Diagnosis = "malignant") -> Table:
    """Load Breast Cancer Wisconsin: X [569, 30] float64 as published, unscaled; y 1 for `positive`.

    Parameters
    ----------
    positive : str
        The class with label 1, "malignant" (212 rows) or "benign" (357 rows). In scikit-learn the
        label 1 means benign.
    """
    checks.arguments(breast_cancer, locals())
    raw = _read_breast_cancer()
    names = list(map(str, raw.target_names))
    number = names.index(positive)
    negative = names[1 - number]
    is_positive = torch.from_numpy(raw.target == number)
    return Table(
        X=torch.tensor(raw.data),
        y=is_positive.long(),
        classes=(negative, positive),
        columns=tuple(map(str, raw.feature_names)),
    )


@cache
def _read_breast_cancer() -> Any:
    """The file of scikit-learn, which is parsed once; its arrays may not be changed."""
    from sklearn.datasets import load_breast_cancer

    return load_breast_cancer()


def digits() -> Table:
    """Load the handwritten digits of scikit-learn: X [1797, 8, 8] uint8 in 0..16, y 0..9."""
    from sklearn.datasets import load_digits

    raw = load_digits()
    return Table(
        X=torch.from_numpy(raw.images.astype(np.uint8)),
        y=torch.from_numpy(raw.target.astype(np.int64)),
        classes=DIGITS,
    )


def mnist(split: Split) -> Table:
    """Load MNIST: X [60000 or 10000, 28, 28] uint8, y 0..9, for split "train" or "test"."""
    checks.arguments(mnist, locals())
    return _idx_table("mnist", split, DIGITS)


def fashion_mnist(split: Split) -> Table:
    """Load Fashion-MNIST: X [60000 or 10000, 28, 28] uint8, y 0..9, for split "train" or "test"."""
    names = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
    checks.arguments(fashion_mnist, locals())
    return _idx_table("fashion_mnist", split, tuple(names.split(",")))


def adult(split: Split) -> "DataFrame":
    """Load UCI Adult: 32561 ("train") or 16281 ("test") rows of 15 named columns, gaps as "?".

    The first line of the test file and the dot after its labels are dropped, so `income` is "<=50K"
    or ">50K" in both splits.
    """
    import pandas as pd

    checks.arguments(adult, locals())
    file, test, _ = SOURCES["adult"].files
    comments = 0
    if split == "test":
        file = test
        comments = 1
    frame = pd.read_csv(
        get("adult", file),
        names=ADULT_COLUMNS,
        skiprows=comments,
        skipinitialspace=True,
        na_values="?",
        keep_default_na=False,
    )
    frame["income"] = frame["income"].str.rstrip(".")
    return frame


def cifar10(split: Split, exact_only: bool = False) -> Table:
    """Load CIFAR-10: X [50000 or 10000, 32, 32, 3] uint8, y 0..9, in the original order.

    If the original archive is in the cache, it is used; else the packed set is used; else the
    archive is downloaded. Only the test images 0..999 of the packed set have their original pixels.
    The others are lossy copies (JPEG, about 7.5 of 255 root mean square) with `exact` False, so an
    accuracy over all 10000 of them is not the standard test accuracy.

    Parameters
    ----------
    split : str
        "train" or "test".
    exact_only : bool
        Whether to leave out images that are lossy copies. The packed set, which replaces a missing
        archive, then has 1000 test rows.
    """
    checks.arguments(cifar10, locals())
    source = SOURCES["cifar10"]
    if use_instead(source):
        table = _cifar10_packed(split, exact_only)
    else:
        table = _cifar10_archive(get("cifar10", source.files[0]), split)
    names = "airplane automobile bird cat deer dog frog horse ship truck"
    return replace(table, classes=tuple(names.split()))


def _idx_table(
    name: str,
    split: str,
    classes: tuple[str, ...],
) -> Table:
    images, labels, test_images, test_labels = SOURCES[name].files
    if split == "test":
        images = test_images
        labels = test_labels
    X = _read_idx(get(name, images))
    y = _read_idx(get(name, labels))
    return Table(X, y.long(), classes)


def _read_idx(path: Path) -> UInt8[Tensor, "..."]:
    """Read an IDX file of bytes: two zeros, type 8, number of axes, the big-endian lengths."""
    raw = gzip.decompress(path.read_bytes())
    axes = raw[3]
    shape = np.frombuffer(raw, ">i4", count=axes, offset=4)
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * axes)
    return torch.from_numpy(values.reshape(shape).copy())


def _cifar10_archive(path: Path, split: str) -> Table:
    """Read the binary version: each record is a label byte and 3 x 32 x 32 pixels."""
    batches = ["test_batch"]
    if split == "train":
        batches = [f"data_batch_{i}" for i in range(1, 6)]
    raw = bytearray()
    with tarfile.open(path) as archive:
        for batch in batches:
            member = archive.extractfile(f"cifar-10-batches-bin/{batch}.bin")
            if member:
                raw += member.read()
    entries = torch.frombuffer(raw, dtype=torch.uint8)
    records = entries.reshape(-1, 3073)
    flat = records[:, 1:]
    pixels = flat.reshape(-1, 3, 32, 32)
    images = pixels.permute(0, 2, 3, 1)
    y = records[:, 0].long()
    return Table(
        X=images.contiguous(),
        y=y,
        classes=(),
        exact=torch.ones_like(y, dtype=torch.bool),
    )


def _cifar10_packed(split: str, exact_only: bool) -> Table:
    """Read lossless mosaics of 1000 images; the last 9000 test images are JPEG files."""
    labels, head, tail, *train = SOURCES["cifar10"].instead
    with np.load(get("cifar10", labels)) as arrays:
        y = torch.from_numpy(arrays[f"y_{split}"].astype(np.int64))
    mosaics = [head]
    if split == "train":
        mosaics = train
    images = [_read_mosaic(get("cifar10", file)) for file in mosaics]
    exact_images = sum(map(len, images))
    if split == "test" and not exact_only:
        images.append(_read_jpegs(get("cifar10", tail)))
    X = np.concatenate(images)
    return Table(
        X=torch.from_numpy(X),
        y=y[: len(X)],
        classes=(),
        exact=torch.arange(len(X)) < exact_images,
    )


def _read_mosaic(path: Path) -> UInt8[np.ndarray, "R 32 32 3"]:
    """Read the images of a mosaic, 40 in each row, in reading order."""
    from PIL import Image

    with Image.open(path) as mosaic:
        pixels = np.asarray(mosaic.convert("RGB"))
    lines = pixels.reshape(-1, 32, 40, 32, 3)
    images = lines.transpose(0, 2, 1, 3, 4)
    return images.reshape(-1, 32, 32, 3)


def _read_jpegs(path: Path) -> UInt8[np.ndarray, "R 32 32 3"]:
    """Read concatenated JPEG files; file i has the bytes offset[i]:offset[i + 1]."""
    from PIL import Image

    with np.load(path) as arrays:
        content = arrays["jpeg"].tobytes()
        offset = arrays["offset"].tolist()
    images = []
    for start, end in pairwise(offset):
        image = Image.open(io.BytesIO(content[start:end]))
        images.append(np.asarray(image.convert("RGB")))
    return np.stack(images)
