"""The loaders: real files where the cache has them, tiny ones of every format."""

import hashlib
import io
import tarfile

import numpy as np
import pytest
import torch

from fedlib import data
from fedlib.data import loaders
from tests.helpers.expect import refuses
from tests.helpers.tiny_data import fill


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_real_pictures_of_every_class(real, name):
    real(name)
    train = getattr(data, name)("train")
    test = getattr(data, name)("test")
    assert train.X.shape == (60000, 28, 28)
    assert test.X.shape == (10000, 28, 28)
    assert len(train.y.unique()) == len(test.classes) == 10


@pytest.mark.parametrize(
    ("split", "rows", "missing", "poor"),
    [("train", 32561, 2399, 24720), ("test", 16281, 1221, 12435)],
)
def test_real_adults(real, split, rows, missing, poor):
    real("adult")
    frame = data.adult(split)
    assert frame.shape == (rows, 15)
    assert frame.isna().any(axis=1).sum() == missing
    assert frame["income"].value_counts().to_dict() == {
        "<=50K": poor,
        ">50K": rows - poor,
    }


def test_cifar10_exact_part_of_the_packed_test_set(real):
    real("cifar10")
    if (data.cache_folder() / "cifar10/cifar-10-binary.tar.gz").exists():
        pytest.skip("the canonical archive is there, so the packed set is not read")
    exact = data.cifar10("test", exact_only=True)
    packed = data.cifar10("test")
    assert exact.X.shape == (1000, 32, 32, 3)
    assert packed.X.shape == (10000, 32, 32, 3)
    assert packed.y.bincount().tolist() == [1000] * 10
    assert torch.equal(packed.X[packed.exact], exact.X)
    assert torch.equal(packed.y[packed.exact], exact.y)


def test_cifar10_packed_training_images_are_the_canonical_bytes(real):
    folder = real("cifar10") / "cifar10"
    if not (folder / "labels.npz").exists():
        pytest.skip("the packed set is not in the data cache")
    X = np.concatenate([loaders._read_mosaic(path) for path in sorted(folder.glob("train_0*"))])
    with np.load(folder / "labels.npz") as arrays:
        y = arrays["y_train"][:10000, None]
    pixels = X.transpose(0, 3, 1, 2).reshape(10000, 3072)
    records = np.concatenate([y, pixels], axis=1).astype(np.uint8)
    digest = hashlib.md5(records.tobytes()).hexdigest()
    assert digest == "5dd7e06a14cb22eb9f671a540d1b7c25"  # published, of data_batch_1.bin


def test_breast_cancer_has_malignant_as_one_unless_asked():
    table = data.breast_cancer()
    turned = data.breast_cancer(positive="benign")
    assert table.X.shape == (569, 30)
    assert table.X.dtype == torch.float64
    assert table.y.bincount().tolist() == [357, 212]
    assert table.classes == ("benign", "malignant")
    assert torch.equal(turned.y, 1 - table.y)
    assert turned.classes == ("malignant", "benign")
    radius = table.X[:, table.columns.index("mean radius")]
    assert radius[table.y == 1].mean() > radius[table.y == 0].mean()  # malignant ones are larger
    refuses("positive must be one of 'malignant', 'benign', got 'x'", data.breast_cancer, "x")


def test_digits_are_always_there():
    table = data.digits()
    assert table.X.shape == (1797, 8, 8)
    assert table.X.max() == 16
    assert len(table.y.unique()) == len(table.classes) == 10
    assert data.available("digits")
    assert data.fetch("digits") == ()


def test_adult_on_three_rows(cache, registered):
    row = (
        "39, State-gov, 77516, Bachelors, 13, Never-married, ?, Not-in-family, White, Male, "
        "1, 0, 40, ?, "
    )
    contents = {
        "adult/adult.data": f"{row}<=50K\n{row}>50K\n\n".encode(),
        "adult/adult.test": f"|1x3 Cross validator\n{row}<=50K.\n\n".encode(),
        "adult/adult.names": b"names",
    }
    fill(cache, registered("adult", contents))
    test = data.adult("test")
    assert data.adult("train")["income"].tolist() == ["<=50K", ">50K"]
    assert test["income"].tolist() == ["<=50K"]
    assert test["age"].tolist() == [39]
    assert test.columns[test.isna().any()].tolist() == ["occupation", "native_country"]


def test_cifar10_prefers_the_archive(cache, registered):
    rng = np.random.default_rng(0)
    buffer = io.BytesIO()
    records = {}
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
            records[name] = rng.integers(0, 10, (2, 3073)).astype(np.uint8)
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            member.size = records[name].size
            tar.addfile(member, io.BytesIO(records[name].tobytes()))
    (file,) = data.SOURCES["cifar10"].files
    fill(cache, registered("cifar10", {file.path: buffer.getvalue()}))
    fill(cache, {"cifar10/labels.npz": b"damaged, but not asked for"})
    test = data.cifar10("test", exact_only=True)
    train = data.cifar10("train")
    assert train.X.shape == (10, 32, 32, 3)
    assert train.exact.all()
    assert test.y.tolist() == records["test_batch"][:, 0].tolist()
    third = records["data_batch_2"][0, 1:].reshape(3, 32, 32)  # record 2 of the training set
    assert train.X[2, 5, 7].tolist() == third[:, 5, 7].tolist()
    assert data.available("cifar10")
