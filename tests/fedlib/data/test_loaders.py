"""The loaders: real files where the cache has them, tiny ones of every format."""

import hashlib
import io
import tarfile
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedlib import data
from fedlib.data import loaders
from tests.helpers.expect import refuses
from tests.helpers.tiny_data import DEAD, fill, listing, sha


def test_mnist(real):
    folder = real("mnist")
    listed = listing(folder)
    train = data.mnist("train")
    test = data.mnist("test")
    assert train.X.shape == (60000, 28, 28)
    assert test.X.shape == (10000, 28, 28)
    assert train.X.dtype == torch.uint8
    expected = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert train.y.bincount().tolist() == expected
    assert test.y.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    pixels = train.X[::7].double() / 255  # an odd step: even and odd images differ in the mean
    assert float(pixels.mean()) == pytest.approx(0.1307, abs=2e-3)
    assert float(pixels.std()) == pytest.approx(0.3081, abs=2e-3)
    assert listing(folder) == listed


def test_fashion_mnist(real):
    real("fashion_mnist")
    test = data.fashion_mnist("test")
    assert test.X.shape == (10000, 28, 28)
    assert test.y.bincount().tolist() == [1000] * 10
    assert test.classes[9] == "Ankle boot"
    assert float((test.X.double() / 255).mean()) == pytest.approx(0.2868, abs=1e-3)


@pytest.mark.parametrize(
    ("split", "rows", "missing", "poor", "male"),
    [("train", 32561, 2399, 24720, 21790), ("test", 16281, 1221, 12435, 10860)],
)
def test_adult(real, split, rows, missing, poor, male):
    real("adult")
    frame = data.adult(split)
    assert frame.shape == (rows, 15)
    assert int(frame.isna().any(axis=1).sum()) == missing
    assert frame["income"].value_counts().to_dict() == {"<=50K": poor, ">50K": rows - poor}
    assert frame["sex"].value_counts().to_dict() == {"Male": male, "Female": rows - male}
    assert frame["age"].between(17, 90).all()
    assert not (frame == "?").any(axis=None)


def test_cifar10_exact_part_of_the_packed_test_set(real):
    real("cifar10")
    if (data.cache_folder() / "cifar10/cifar-10-binary.tar.gz").exists():
        pytest.skip("the canonical archive is there, so the packed set is not read")
    exact = data.cifar10("test", exact_only=True)
    packed = data.cifar10("test")
    assert exact.X.shape == (1000, 32, 32, 3)
    assert exact.exact.all()
    assert packed.X.shape == (10000, 32, 32, 3)
    assert packed.y.bincount().tolist() == [1000] * 10
    assert int(packed.exact.sum()) == 1000
    assert torch.equal(packed.X[packed.exact], exact.X)
    assert torch.equal(packed.y[packed.exact], exact.y)
    assert exact.classes[int(exact.y[0])] == "cat"


def test_cifar10_packed_training_images_are_the_canonical_bytes(real):
    folder = real("cifar10")
    if not (folder / "cifar10/labels.npz").exists():
        pytest.skip("the packed set is not in the data cache")
    mosaics = [folder / f"cifar10/train_{i:02d}.webp" for i in range(10)]
    X = np.concatenate([loaders._read_mosaic(path) for path in mosaics])
    with np.load(folder / "cifar10/labels.npz") as arrays:
        y = arrays["y_train"][:10000, None]
    records = np.concatenate([y, X.transpose(0, 3, 1, 2).reshape(10000, 3072)], axis=1)
    digest = hashlib.md5(records.astype(np.uint8).tobytes()).hexdigest()
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


def test_digits():
    table = data.digits()
    assert table.X.shape == (1797, 8, 8)
    assert (int(table.X.min()), int(table.X.max())) == (0, 16)
    assert len(table.y.unique()) == len(table.classes) == 10
    assert data.available("digits")
    assert data.fetch("digits") == ()


def test_adult_on_three_rows(cache, monkeypatch):
    row = (
        "39, State-gov, 77516, Bachelors, 13, Never-married, ?, Not-in-family, White, Male, "
        "1, 0, 40, ?, "
    )
    contents = {
        "adult/adult.data": f"{row}<=50K\n{row}>50K\n\n".encode(),
        "adult/adult.test": f"|1x3 Cross validator\n{row}<=50K.\n\n".encode(),
        "adult/adult.names": b"names",
    }
    files = tuple(data.File(path, sha(c), f"{DEAD}/{path}") for path, c in contents.items())
    monkeypatch.setitem(data.SOURCES, "adult", replace(data.SOURCES["adult"], files=files))
    fill(cache, contents)
    train = data.adult("train")
    test = data.adult("test")
    assert train["income"].tolist() == ["<=50K", ">50K"]
    assert test["income"].tolist() == ["<=50K"]
    assert test["age"].tolist() == [39]
    assert test.columns[test.isna().any()].tolist() == ["occupation", "native_country"]


@pytest.fixture
def archive(cache, monkeypatch):
    """A canonical archive of two records a batch, in the cache; gives its records."""
    generator = np.random.default_rng(0)
    batches = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    records = {name: generator.integers(0, 10, (2, 3073)).astype(np.uint8) for name in batches}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, values in records.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            member.size = values.size
            tar.addfile(member, io.BytesIO(values.tobytes()))
    old = data.SOURCES["cifar10"]
    file = old.files[0]._replace(checksum=sha(buffer.getvalue()), url=f"{DEAD}/cifar.tar.gz")
    monkeypatch.setitem(data.SOURCES, "cifar10", replace(old, files=(file,)))
    fill(cache, {file.path: buffer.getvalue()})
    return records


def test_cifar10_prefers_the_archive(cache, archive):
    fill(cache, {"cifar10/labels.npz": b"damaged, but not asked for"})
    test = data.cifar10("test", exact_only=True)
    train = data.cifar10("train")
    assert train.X.shape == (10, 32, 32, 3)
    assert train.exact.all()
    assert test.y.tolist() == archive["test_batch"][:, 0].tolist()
    third = archive["data_batch_2"][0]  # record 2 of the training set
    assert train.X[2, 5, 7].tolist() == [third[1 + 1024 * c + 32 * 5 + 7] for c in range(3)]
    assert data.available("cifar10")
