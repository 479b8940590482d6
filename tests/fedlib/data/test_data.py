"""Data sets: real files where the cache has them, planted faults on tiny ones."""

import gzip
import hashlib
import io
import os
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch
from expect import refuses

from fedlib import data
from fedlib.data import loaders


def listing(folder):
    return {str(path): path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


# ---- real files -----------------------------------------------------------------------------


def test_mnist(real):
    folder = real("mnist")
    before = listing(folder)
    train, test = data.mnist("train"), data.mnist("test")
    assert train.X.shape == (60000, 28, 28)
    assert test.X.shape == (10000, 28, 28)
    assert train.X.dtype == torch.uint8
    expected = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert train.y.bincount().tolist() == expected
    assert test.y.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    pixels = train.X[::7].double() / 255  # an odd step: even and odd images differ in the mean
    assert float(pixels.mean()) == pytest.approx(0.1307, abs=2e-3)
    assert float(pixels.std()) == pytest.approx(0.3081, abs=2e-3)
    assert listing(folder) == before


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
    exact, whole = data.cifar10("test", exact_only=True), data.cifar10("test")
    assert exact.X.shape == (1000, 32, 32, 3)
    assert exact.exact.all()
    assert whole.X.shape == (10000, 32, 32, 3)
    assert whole.y.bincount().tolist() == [1000] * 10
    assert int(whole.exact.sum()) == 1000
    assert torch.equal(whole.X[whole.exact], exact.X)
    assert torch.equal(whole.y[whole.exact], exact.y)
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


def test_qm9(real):
    real("qm9")
    molecules = data.qm9()
    assert molecules.targets.shape == (130831, 15)
    assert molecules.targets.dtype == torch.float64
    assert len(molecules.smiles) == len(molecules.index) == 130831
    assert molecules.z.bincount()[[1, 6, 7, 8, 9]].tolist() == [
        *(1208486, 831925, 132498),
        *(183265, 3036),
    ]
    assert int(molecules.atom_offset[-1]) == len(molecules.z) == len(molecules.positions)
    assert int(molecules.bond_offset[-1]) == len(molecules.bonds)
    homo, lumo, gap = (
        molecules.targets[:, molecules.target_names.index(n)] for n in ("homo", "lumo", "gap")
    )
    assert float((lumo - homo - gap).abs().max()) < 2e-4  # printed with four decimals
    first = slice(int(molecules.atom_offset[0]), int(molecules.atom_offset[1]))
    assert sorted(molecules.z[first].tolist()) == [1, 1, 1, 1, 6]  # methane
    assert molecules.smiles[0] == "C"


# ---- inside scikit-learn --------------------------------------------------------------------


def test_breast_cancer_has_malignant_as_one_unless_asked():
    table, other = data.breast_cancer(), data.breast_cancer(positive="benign")
    assert table.X.shape == (569, 30)
    assert table.X.dtype == torch.float64
    assert table.y.bincount().tolist() == [357, 212]
    assert table.classes == ("benign", "malignant")
    assert torch.equal(other.y, 1 - table.y)
    assert other.classes == ("malignant", "benign")
    radius = table.X[:, table.columns.index("mean radius")]
    assert radius[table.y == 1].mean() > radius[table.y == 0].mean()  # malignant ones are larger
    refuses("positive must be one of 'malignant', 'benign', got 1", data.breast_cancer, positive=1)


def test_digits():
    table = data.digits()
    assert table.X.shape == (1797, 8, 8)
    assert (int(table.X.min()), int(table.X.max())) == (0, 16)
    assert len(table.y.unique()) == len(table.classes) == 10
    assert data.available("digits")
    assert data.fetch("digits") == ()


# ---- tiny files, planted faults -------------------------------------------------------------


def idx(values):
    values = np.asarray(values, np.uint8)
    head = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes()
    return gzip.compress(head + values.tobytes())


def sha(content):
    return hashlib.sha256(content).hexdigest()


class Site:
    """A local web site: `pages` by path, and a fault to plant."""

    def __init__(self):
        self.pages, self.fault, self.asked = {}, None, []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append(self.path)
                content = site.pages.get(self.path)
                if site.fault == "status" or content is None:
                    self.send_error(503)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if site.fault == "wrong":
                    content = bytes(len(content))
                if site.fault == "cut":
                    content = content[: len(content) // 2]
                self.wfile.write(content)

            def log_message(self, *args):
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def site():
    site = Site()
    yield site
    site.close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("FEDLIB_DATA", str(folder))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return folder


TINY = {
    "train-images": np.arange(3 * 28 * 28).reshape(3, 28, 28) % 251,
    "train-labels": [2, 0, 1],
    "test-images": np.arange(2 * 28 * 28).reshape(2, 28, 28) % 13,
    "test-labels": [1, 2],
}
DEAD = "http://127.0.0.1:9"  # the discard port: nothing answers


@pytest.fixture
def tiny(monkeypatch):
    """Replace MNIST's registry by four tiny files; gives {path: content} for a base URL."""

    def make(url=DEAD):
        contents = [idx(values) for values in TINY.values()]
        old = data.SOURCES["mnist"].files
        files = tuple(
            data.File(file.path, sha(content), f"{url}/{Path(file.path).name}")
            for file, content in zip(old, contents, strict=True)
        )
        monkeypatch.setitem(data.SOURCES, "mnist", replace(data.SOURCES["mnist"], files=files))
        return dict(zip((file.path for file in files), contents, strict=True))

    return make


def fill(folder, contents):
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def error_of(call):
    """The sentence of the DataError: one line that names the variable."""
    with pytest.raises(data.DataError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert "FEDLIB_DATA" in text
    return text


def test_a_file_in_the_cache_needs_no_network_and_no_writing(cache, tiny):
    fill(cache, tiny())
    before = listing(cache)
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        train, test = data.mnist("train"), data.mnist("test")
        assert data.available("mnist")
        assert [path.parent for path in data.fetch("mnist")] == [cache / "MNIST/raw"] * 4
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert torch.equal(train.X, torch.from_numpy(TINY["train-images"].astype(np.uint8)))
    assert train.y.tolist() == TINY["train-labels"]
    assert test.y.tolist() == TINY["test-labels"]
    assert listing(cache) == before


def test_a_missing_file_is_downloaded_once_and_whole(cache, tiny, site):
    contents = tiny(site.url)
    site.pages = {f"/{Path(path).name}": content for path, content in contents.items()}
    assert not data.available("mnist")
    assert data.mnist("train").y.tolist() == TINY["train-labels"]
    assert len(site.asked) == 2  # only the files of the split
    data.mnist("train")
    assert len(site.asked) == 2
    data.fetch("mnist")
    assert len(site.asked) == 4
    found = {str(p.relative_to(cache)): p.read_bytes() for p in cache.rglob("*") if p.is_file()}
    assert found == contents


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("wrong", "wrong checksum"), ("cut", "Error|wrong checksum"), ("status", "HTTP status 503")],
)
def test_a_failed_download_leaves_nothing(cache, tiny, site, fault, reason):
    contents = tiny(site.url)
    site.pages = {f"/{Path(path).name}": content for path, content in contents.items()}
    site.fault = fault
    before = set(listing(cache))
    with pytest.raises(data.DataError, match=reason):
        data.mnist("train")
    text = error_of(lambda: data.mnist("train"))
    assert text.startswith(f"mnist: train-images-idx3-ubyte.gz is not in {cache}/MNIST/raw ")
    assert f"{site.url}/train-images-idx3-ubyte.gz" in text
    assert set(listing(cache)) == before
    site.fault = None
    assert data.mnist("train").y.tolist() == TINY["train-labels"]  # and it can be tried again


def test_no_network(cache, tiny):
    tiny(DEAD)
    text = error_of(lambda: data.mnist("test"))
    assert text == (
        f"mnist: t10k-images-idx3-ubyte.gz is not in {cache}/MNIST/raw and its download from "
        f"{DEAD}/t10k-images-idx3-ubyte.gz failed (ConnectionError); put the file there by hand, "
        "or set FEDLIB_DATA to a cache folder that has it."
    )
    assert list(cache.rglob("*")) == []


@pytest.mark.parametrize("damage", [lambda b: b[:-7], lambda b: b[:0], lambda b: b[:-1] + b"!"])
def test_a_damaged_file_is_named_and_left_alone(cache, tiny, site, damage):
    contents = tiny(site.url)
    site.pages = {f"/{Path(path).name}": content for path, content in contents.items()}
    fill(cache, contents)
    path = "MNIST/raw/train-labels-idx1-ubyte.gz"
    (cache / path).write_bytes(damage(contents[path]))
    before = listing(cache)
    text = error_of(lambda: data.mnist("train"))
    size = len(damage(contents[path]))
    assert text.startswith(
        f"mnist: train-labels-idx1-ubyte.gz in {cache}/MNIST/raw has a wrong checksum ({size} bytes"
    )
    assert f"{site.url}/train-labels-idx1-ubyte.gz" in text
    assert listing(cache) == before
    assert site.asked == []
    assert not data.available("mnist")
    assert data.mnist("test").y.tolist() == TINY["test-labels"]  # the others still serve


def test_a_file_damaged_after_it_was_verified_is_noticed(cache, tiny):
    contents = tiny()
    fill(cache, contents)
    data.mnist("train")
    path = cache / "MNIST/raw/train-labels-idx1-ubyte.gz"
    size = path.stat().st_size
    path.write_bytes(bytes(size))
    os.utime(path, (1, 1))  # coarse clocks may give both versions the same time
    assert f"wrong checksum ({size} bytes" in error_of(lambda: data.mnist("train"))


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch, tiny):
    tiny(DEAD)
    blocked = tmp_path / "a_file"
    blocked.write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("FEDLIB_DATA", str(blocked / "cache"))
    text = error_of(lambda: data.mnist("train"))
    assert f"{blocked}/cache/MNIST/raw" in text
    assert "failed (Not a directory)" in text
    assert blocked.read_text(encoding="utf-8") == "not a folder"


def test_a_read_only_cache_without_the_file(cache, tiny, site):
    contents = tiny(site.url)
    site.pages = {f"/{Path(path).name}": content for path, content in contents.items()}
    cache.chmod(0o555)
    try:
        if os.access(cache, os.W_OK):
            pytest.skip("permissions do not bind this user (the superuser)")
        assert "failed (permission denied)" in error_of(lambda: data.mnist("train"))
    finally:
        cache.chmod(0o755)


def test_something_unreadable_in_place_of_a_file(cache, tiny):
    contents = tiny()
    fill(cache, contents)
    path = cache / "MNIST/raw/train-labels-idx1-ubyte.gz"
    path.unlink()
    path.mkdir()
    assert "cannot be read (Is a directory)" in error_of(lambda: data.mnist("train"))
    assert not data.available("mnist")


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
    train, test = data.adult("train"), data.adult("test")
    assert train["income"].tolist() == ["<=50K", ">50K"]
    assert test["income"].tolist() == ["<=50K"]
    assert test["age"].tolist() == [39]
    assert test.columns[test.isna().any()].tolist() == ["occupation", "native_country"]


# ---- CIFAR-10, QM9, EMNIST, CelebA ----------------------------------------------------------


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
    test, train = data.cifar10("test", exact_only=True), data.cifar10("train")
    assert train.X.shape == (10, 32, 32, 3)
    assert train.exact.all()
    assert test.y.tolist() == archive["test_batch"][:, 0].tolist()
    third = archive["data_batch_2"][0]  # record 2 of the training set
    assert train.X[2, 5, 7].tolist() == [third[1 + 1024 * c + 32 * 5 + 7] for c in range(3)]
    assert data.available("cifar10")


def test_cifar10_packed_errors_name_the_file_and_the_archive(cache):
    fill(cache, {"cifar10/labels.npz": b"damaged"})
    text = error_of(lambda: data.cifar10("train"))
    assert text.startswith(f"cifar10: labels.npz in {cache}/cifar10 has a wrong checksum (7 bytes")
    assert "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz" in text
    (cache / "cifar10/labels.npz").unlink()
    fill(cache, {"cifar10/train_00.webp": b"half"})
    text = error_of(lambda: data.cifar10("train"))
    assert text.startswith(f"cifar10: labels.npz is not in {cache}/cifar10; ")
    assert not data.available("cifar10")


def test_cifar10_mosaic_and_jpeg_layout(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    tiles = np.random.default_rng(0).integers(0, 256, (80, 32, 32, 3)).astype(np.uint8)
    mosaic = np.block([[[tiles[40 * r + c]] for c in range(40)] for r in range(2)])
    image_module.fromarray(mosaic).save(tmp_path / "m.webp", "WEBP", lossless=True, exact=True)
    assert np.array_equal(loaders._read_mosaic(tmp_path / "m.webp"), tiles)
    grey, pieces = np.array([0, 80, 255]), []
    for value in grey:
        buffer = io.BytesIO()
        image_module.new("RGB", (32, 32), (int(value),) * 3).save(buffer, "JPEG")
        pieces.append(buffer.getvalue())
    offset = np.cumsum([0] + [len(piece) for piece in pieces])
    np.savez(tmp_path / "j.npz", jpeg=np.frombuffer(b"".join(pieces), np.uint8), offset=offset)
    assert np.abs(loaders._read_jpegs(tmp_path / "j.npz").mean((1, 2, 3)) - grey).max() < 2


def test_qm9_says_what_to_do(cache):
    text = error_of(data.qm9)
    assert text.startswith(f"qm9: qm9.npz is not in {cache}/qm9; copy a packed qm9.npz there")
    assert "molnet_publish/qm9.zip" in text
    fill(cache, {"qm9/qm9.npz": b"half"})
    assert "wrong checksum (4 bytes" in error_of(data.qm9)


def emnist_contents():
    images = np.arange(2 * 28 * 28).reshape(2, 28, 28) % 251
    kinds = {"train": (images, [3, 4]), "test": (images[:1], [5])}
    return images, {
        f"emnist-digits-{split}-{kind}-ubyte.gz": idx(values)
        for split, pair in kinds.items()
        for kind, values in zip(("images-idx3", "labels-idx1"), pair, strict=True)
    }


@pytest.mark.parametrize("form", ["archive", "members"])
def test_emnist_reads_the_users_copy(cache, monkeypatch, form):
    images, contents = emnist_contents()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in contents.items():
            archive.writestr(f"gzip/{name}", content)
    md5 = hashlib.md5(buffer.getvalue()).hexdigest()
    old = data.SOURCES["emnist_digits"]
    instead = tuple(
        file._replace(checksum=sha(contents[Path(file.path).name])) for file in old.instead
    )
    zipped = old.files[0]._replace(checksum=f"md5:{md5}", url=f"{DEAD}/gzip.zip")
    source = replace(old, files=(zipped,), instead=instead)
    monkeypatch.setitem(data.SOURCES, "emnist_digits", source)
    assert "gzip.zip is not in" in error_of(lambda: data.emnist("train"))
    inside = {f"EMNIST/raw/{name}": content for name, content in contents.items()}
    fill(cache, inside if form == "members" else {zipped.path: buffer.getvalue()})
    train = data.emnist("train")
    assert np.array_equal(train.X.numpy(), images.transpose(0, 2, 1))  # stored on its side
    assert train.y.tolist() == [3, 4]
    assert data.emnist("test").y.tolist() == [5]
    assert data.available("emnist_digits")


def test_celeba_is_only_explained(cache):
    assert not data.available("celeba")
    text = error_of(lambda: data.fetch("celeba"))
    assert "forbid" in text
    assert "non-commercial" in data.SOURCES["celeba"].licence


# ---- the registry ---------------------------------------------------------------------------


def test_every_source_has_a_licence_and_every_file_a_checksum_and_url():
    for source in data.SOURCES.values():
        assert source.licence
        for file in (*source.files, *source.instead):
            algorithm, _, digest = file.checksum.rpartition(":")
            assert len(digest) == {"": 64, "md5": 32}[algorithm]
            assert int(digest, 16) >= 0
            assert file.url.startswith(("https://", "http://fashion-mnist."))
    whole = [file for source in data.SOURCES.values() for file in (*source.files, *source.instead)]
    assert len({file.path for file in whole}) == len(set(whole))
    assert len(data.SOURCES["cifar10"].instead) == 53
    assert len({file.checksum for file in data.SOURCES["cifar10"].instead}) == 53


def test_registry_is_a_pooch_of_all_downloads(cache):
    pup = data.registry()
    assert Path(pup.abspath) == cache
    assert pup.urls["adult/adult.data"].endswith("/adult/adult.data")
    assert len(pup.registry) == 4 + 4 + 3 + 1 + 1
    assert "qm9/qm9.npz" not in pup.registry


def test_the_default_cache_folder_is_the_users(monkeypatch):
    monkeypatch.delenv("FEDLIB_DATA", raising=False)
    assert data.cache_folder().name == "fedlib"
    monkeypatch.setenv("FEDLIB_DATA", "")
    assert data.cache_folder().name == "fedlib"
    monkeypatch.setenv("FEDLIB_DATA", "here")
    assert data.cache_folder() == Path.cwd() / "here"


def test_unknown_names():
    for call, *name in (
        *((data.mnist, "valid"), (data.fashion_mnist, 0), (data.adult, "all")),
        *((data.cifar10, "val"), (data.emnist, "train", "letters")),
        *((data.available, "imagenet"), (data.fetch, "imagenet")),
    ):
        refuses("must be one of '*', got *.", call, *name)
