"""Data sets: a pooch registry with checksums and licences, and one loader for each set.

The cache folder is `FEDLIB_DATA`, else the user's cache. A file that is there with the right
checksum is used without any network (the folder may be read-only); a missing one is downloaded
where that is possible. Anything else is a `DataError` of one sentence that names the file, its
URL, its folder and `FEDLIB_DATA`; a file of the cache is never repaired or overwritten in silence.

Loaders return torch tensors on the CPU (`Table`, `Molecules`), Adult a pandas frame. The file is
long because a third of it is the table of checksums. pandas, Pillow and scikit-learn are imported
by the loaders that need them, so that `import fedlib` stays quick.
"""

import gzip
import io
import os
import tarfile
import zipfile
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pooch
import requests
import torch
from jaxtyping import Bool, Float, Int, Shaped, UInt8
from torch import Tensor

from fedlib import checks

if TYPE_CHECKING:
    import pandas as pd


class DataError(RuntimeError):
    """A data file is missing, damaged or not to be had; the sentence says what to do."""


class File(NamedTuple):
    """One file: path inside the cache folder, checksum (sha256, or "md5:..."), and its URL."""

    path: str
    checksum: str
    url: str


@dataclass(frozen=True)
class Source:
    """One data set: title, licence, the files to download, and files that serve instead."""

    title: str
    licence: str
    files: tuple[File, ...] = ()  # downloaded when missing
    instead: tuple[File, ...] = ()  # as good where present, never downloaded
    note: str = ""  # why nothing is downloaded, or what to do about it


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and their labels, as tensors on the CPU."""

    X: Shaped[Tensor, "R *shape"]
    y: Int[Tensor, " R"]
    classes: tuple[str, ...]  # classes[y] is the name of a label
    columns: tuple[str, ...] = ()  # names of the features, where they have any
    exact: Bool[Tensor, " R"] | None = None  # CIFAR-10: which images are the canonical pixels


@dataclass(frozen=True, eq=False)
class Molecules:
    """QM9: atoms and bonds of molecule i are rows offset[i]:offset[i + 1] of their arrays."""

    targets: Float[Tensor, "R 15"]  # float64, in the units of the source tables
    target_names: tuple[str, ...]
    z: UInt8[Tensor, " atoms"]  # atomic numbers
    positions: Float[Tensor, "atoms 3"]  # float32, Angstrom
    atom_offset: Int[Tensor, " R+1"]
    bonds: UInt8[Tensor, "bonds 3"]  # i, j (within the molecule), order; 4 is aromatic
    bond_offset: Int[Tensor, " R+1"]
    index: Int[Tensor, " R"]  # number in GDB-9
    smiles: tuple[str, ...]


def _numbered(paths: list[str], checksums: str, url: str) -> tuple[File, ...]:
    """Files in the order of their checksums; URL may hold {file}, the last part of the path."""
    pairs = zip(paths, checksums.split(), strict=True)
    return tuple(File(path, sha, url.format(file=path.split("/")[-1])) for path, sha in pairs)


def _idx_paths(start: str, second: str) -> list[str]:
    kinds = ("images-idx3", "labels-idx1")
    return [f"{start}{split}-{kind}-ubyte.gz" for split in ("train", second) for kind in kinds]


_MNIST = """
    440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609
    3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c
    8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6
    f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6
"""
_FASHION_MNIST = """
    3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
    a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
    346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
    67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5
"""
_ADULT = """
    5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d
    a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05
    c248284c0b5de30c9e1958d6cdd168a34a654758b620e68f46aefa83fc0a576a
"""
_EMNIST_DIGITS = """
    f7c95004d14d81af89522e67d8f0c781dfb3bd544181c81bfe1eb6b41c35b726
    6638a6ff5fe2eefd9cca2471995b46c82986b8e4b2a70d2f5ce8e05d7edb319e
    20ebe43509264f7639d37c835a3f0b009e90b29e00a099a03101abe1644a3f63
    bad1834c45d5988e270b99d43b13edc3fd898f658ffbc2caf2846ef27f7b05b0
"""
_EMNIST_BYCLASS = """
    9e21987f03a6eb8b870187e785883ddad96947299587908f1a7ec2ca0f4be5f0
    f7ef403d48dc18a89dae0d83d11ee69cecb6e1c12c3a961d03712e495c02a8fa
    5ec835bd5d5b1a66378a132e727fef20fe994b3cc666899befcca5ac766f50cd
    501e305eeeacb093b162592d80e8a2632040872360fa6d85cfcb2200d91ca92a
"""
_CIFAR10_PACKED = """
    af3bc340dcb11d91e99a8eb292ed17af436e176149bf4d966f799e6824bff7f7
    5396149c0adced1861297092270a1e83f65fc531a5c2eb815ceb0161ba1a17eb
    e099db2f67ab5731e350ae5223214e3c92712c2f59c52087aca1c80bb999b4eb
    981d05b23335110a817af882ad5d560a185e107b6ffe5d981470aa694d3ce359
    712abf567d025fe7e710b0b02660b81e4cb0dc66611da330fff43c9241d844ec
    eeb508a552ff7153504f5b85ffb0d2671f4ab72284bdf74520bcbe426539c0fb
    78fba725ab11e1d83015e1e6452017f4ee63f20c76b2568a54b78dc6dede1657
    2b29211f15c24292aede1ef54fc82a194594f89cad263cf13e3923d36723cf05
    cd988e66581aaa15c40268807f0dbdf689962970b99e4061abd6d438dbeb7520
    592bf2107ff088e92dc2c77f138637e93da61653e662da6f114722d1494feb06
    71daa942e7f502d80e81b63c1fe84ccf1ce2e3876ab5b594e6a33706cf44f25c
    36bc352d9bd321b6600d66ed99e5e98453798f7ba600f46be098bcee02445ede
    974069a377c966498122af8d662dc1efecf19d7bf3baff9bb1504af3ce19ab84
    fb77777e1c2af590954d34855cd7d34a5a9404e84370032426657e113b82a558
    e52174398ea267315412112afda2b277e468db7d7d97f99b83f23fe0a76fc6d8
    a112e0ec55f79f1c08f71da74721db1612fa5d3bd40517deaa47cb9d7500996e
    94ffcd981977c7f4e1122c871c643cf3e3fb265d9d45b90dddb5f1b29bc9b1c4
    ecb4eacd46fe4a2f6458174db8bcd149b1517db83237aee25227aba48b60334b
    3c224da3620207b7d63e5145b5eec1c6456037946fb05a713687dadff0027327
    912aa545a540196f25ef135940cb39ad8269b9cedbe2b1eebd0447637a2441fc
    76ac11d439ce453502ee756459e4dbc0e76df249b8195abb6f916549913a7a70
    09cbd8471e789c09f092261ff538ca1f5086efc5c75a05477ae123fc807c20cc
    7981fcaefb7ffc6d8c66f67cb84d5292abe0d61f57f81d4228f3c18fc7995602
    7721dd9e46e9434fa9a75686ef0c7560dfd22b2152e41e2232ac0ee9f0005157
    0f6c07f202a798d78eb2bfef9ac2e0e23aa4c955a8cbb3206fbf1cb6ab88a058
    2a75643c7faf802132495cf801e336ee289ddf758e14faf413ddd2553509cd2e
    ae19bf92016f51cba485019a5043e777b7efa38a9e1c8a90a70180d0ce3c24b3
    05a14e22fe7f4194527c589eec3fc2cb0d087291827f82240c21b661df9f0453
    9e063c44b051d982bc839bf1d84484a277d6fc595498d322db9efda68d30527e
    30a5b45958e024af5e5143cb286f74942c488db4666e8e36b299b02d1c81386d
    5f0567bd29b26b909d27df33ee9047066488cb84b5b405029a04756897c3922e
    a6939f227b0046dbeee787f3c4967e7b5fbe657a0297d2fb2bcd3d2376a17fba
    adeed5f075b853a5957239ae61c6b883cc23906fb20e6e0696e25e7c45480a91
    f6adb1a262d8f99e99132334b817f3bfc2d93efc527f5051c449f734b5e589c0
    ea05648b5ccedee7ab29be21d596a958ab992e8694a2c22c3da7f40b995d78ab
    d5aeacfe0b58aeb35d714d2488c32d51054f0acf402e19649cc129e5165d301b
    281800e8b2580af62c9e90ff4dc8bc9199a04b543e059d122be4f94eb9afd3af
    10808d67c9f983e9217a84a624ef90ae54f10c5e23265fc9a33a227f3ca3ab2f
    3833ac1128e23d24969adeb2292b08b6a4381d1024aaeb2a28549644cf0a48fa
    833dcbb68642c1587166092e0b93940aeb2e7b1145405733270eef4d11b0f621
    25353745a1350a0b7c46a750024bcfa739accd5d4eeb2e573e4ec810510c0ac6
    85d25c0138db67af0ed5bd6560f1151b09fc796661f4926becc38b5d7e472614
    cfab61ed6c71b209340efb5752d9c75e84eb4dc83a343b90610f2eb7dc9034a8
    571a40af5bcbad0f69cffbce33c36dcf3de46ca93803afa47bd90486543367e5
    c2fb87a94856ba7af6c34d5567af41d0b04706c391df513c46d10cfe94a31402
    168934d95f0bfd04a6759f56ebe59d530f63043a79380ad9c8acd4cb27ca1b5c
    fd4a18a04955133a100163b2e27225f0043f3f0905fbf440b51a8056e98bb2d1
    6bdbc33f1fb36306356654a270cd5c9a2fae34eeba663bbf5ec5417fb912e3e5
    d56db48779fcf418aa2f252ae0bf30eb8b458e73484d64b297768919a541f6cf
    141e002f7a3be17af7f91fd939c84c48deb9cd263257d3fcf812b934c0ebd7e8
    5cda150be7049917ff23797dc655dbd2eb2b80911b65a506b07e130ee2e72132
    d63b52fa3c8fc1d270a0fb7d16b8ab3a390119f6479d814bac0e037e0a5f5fa4
    ec338f02be23886085c0987cef1799dd52d1888908e0205024346accaa35d377
"""  # labels, test images 0..999, test images 1000..9999, then 50 x 1000 training images
_CIFAR10_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_CIFAR10_SHA = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
_CIFAR10_PATHS = [f"cifar10/train_{i:02d}.webp" for i in range(50)]
_CIFAR10_REST = [f"cifar10/{n}" for n in ("labels.npz", "test_exact_00.webp", "test_jpeg_tail.npz")]
_EMNIST_URL = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
_EMNIST_ZIP = File("EMNIST/raw/gzip.zip", "md5:58c8d27c78d21e728a6bc7b3cc06412e", _EMNIST_URL)
_EMNIST_LICENCE = "no licence stated; from NIST Special Database 19; cite arXiv:1702.05373"
_EMNIST_CLASSES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_QM9_URL = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/molnet_publish/qm9.zip"
_QM9_SHA = "9f9c0e73175fbb922928e619eeb305210454bbe15b3131b80a4b27d96cb5af83"

SOURCES: dict[str, Source] = {
    "breast_cancer": Source("Breast Cancer Wisconsin (Diagnostic)", "CC BY 4.0; in scikit-learn"),
    "digits": Source("Optical Recognition of Handwritten Digits", "CC BY 4.0; in scikit-learn"),
    "mnist": Source(
        "MNIST",
        "Y. LeCun, C. Cortes, C. Burges; usually given as CC BY-SA 3.0",
        _numbered(
            _idx_paths("MNIST/raw/", "t10k"),
            _MNIST,
            "https://ossci-datasets.s3.amazonaws.com/mnist/{file}",
        ),
    ),
    "fashion_mnist": Source(
        "Fashion-MNIST",
        "MIT, Zalando SE",
        _numbered(
            _idx_paths("FashionMNIST/raw/", "t10k"),
            _FASHION_MNIST,
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{file}",
        ),
    ),
    "adult": Source(
        "UCI Adult",
        "CC BY 4.0; B. Becker, R. Kohavi (1996), doi 10.24432/C5XW20",
        _numbered(
            [f"adult/adult.{end}" for end in ("data", "test", "names")],
            _ADULT,
            "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/{file}",
        ),
    ),
    "cifar10": Source(
        "CIFAR-10",
        "no licence stated; cite A. Krizhevsky, Learning Multiple Layers of Features (2009)",
        (File("cifar10/cifar-10-binary.tar.gz", _CIFAR10_SHA, _CIFAR10_URL),),
        _numbered(_CIFAR10_REST + _CIFAR10_PATHS, _CIFAR10_PACKED, _CIFAR10_URL),
        f"copy it from where the packed set came from, or put the archive {_CIFAR10_URL} there",
    ),
    "qm9": Source(
        "QM9",
        "CC0; cite Ramakrishnan et al., Scientific Data 1, 140022 (2014)",
        instead=(File("qm9/qm9.npz", _QM9_SHA, _QM9_URL),),
        note="copy a packed qm9.npz there (it has no download of its own: the upstream "
        f"{_QM9_URL} has another format, which fedlib does not read)",
    ),
    "emnist_digits": Source(
        "EMNIST digits",
        _EMNIST_LICENCE,
        (_EMNIST_ZIP,),
        _numbered(_idx_paths("EMNIST/raw/emnist-digits-", "test"), _EMNIST_DIGITS, _EMNIST_URL),
        f"unpack it from {_EMNIST_URL}",
    ),
    "emnist_byclass": Source(
        "EMNIST byclass",
        _EMNIST_LICENCE,
        (_EMNIST_ZIP,),
        _numbered(_idx_paths("EMNIST/raw/emnist-byclass-", "test"), _EMNIST_BYCLASS, _EMNIST_URL),
        f"unpack it from {_EMNIST_URL}",
    ),
    "celeba": Source(
        "CelebA",
        "non-commercial research only; no part of it may be passed on",
        note="its terms forbid passing it on, so fedlib neither ships nor downloads it: ask for it "
        "at https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html and keep it in your own cache",
    ),
}
_ADULT_COLUMNS = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race "
    "sex capital_gain capital_loss hours_per_week native_country income"
)
_IN_SCIKIT_LEARN = ("breast_cancer", "digits")


def cache_folder() -> Path:
    """The cache folder: the environment variable `FEDLIB_DATA`, else the user's cache folder."""
    named = os.environ.get("FEDLIB_DATA")
    return Path(named).expanduser().resolve() if named else Path(pooch.os_cache("fedlib"))


def registry() -> pooch.Pooch:
    """The pooch of every downloadable file, at the present cache folder."""
    files = [file for source in SOURCES.values() for file in source.files]
    return pooch.create(
        path=cache_folder(),
        base_url="",
        registry={file.path: file.checksum for file in files},
        urls={file.path: file.url for file in files},
    )


def available(name: str) -> bool:
    """Whether a data set can be loaded without network: all files there, checksums right.

    Raises ValueError for a name that is not in `SOURCES`.
    """
    checks.one_of("available", "name", name, SOURCES)
    source = SOURCES[name]
    groups = [group for group in (source.files, source.instead) if group]
    return name in _IN_SCIKIT_LEARN or any(all(map(_is_whole, group)) for group in groups)


def fetch(name: str) -> tuple[Path, ...]:
    """Paths of the verified files of a data set; missing ones are downloaded where possible.

    Returns nothing for the two sets inside scikit-learn. Raises `DataError` when a file is damaged
    or cannot be had, ValueError for a name that is not in `SOURCES`.
    """
    checks.one_of("fetch", "name", name, SOURCES)
    source = SOURCES[name]
    if not source.files and not source.instead and name not in _IN_SCIKIT_LEARN:
        raise DataError(f"{name}: {source.note} ({cache_folder()}, or set FEDLIB_DATA).")
    group = source.instead if _use_instead(source) else source.files
    return tuple(_get(name, file) for file in group)


def breast_cancer(positive: str = "malignant") -> Table:
    """Breast Cancer Wisconsin: X [569, 30] float64 as published (not scaled), y 1 = `positive`.

    Args:
        positive: the class with label 1, "malignant" (212 rows) or "benign" (357 rows);
            scikit-learn itself has 1 = benign.
    """
    from sklearn.datasets import load_breast_cancer

    checks.one_of("breast_cancer", "positive", positive, ("malignant", "benign"))
    raw = load_breast_cancer()
    names = [str(name) for name in raw.target_names]
    y = torch.from_numpy((raw.target == names.index(positive)).astype(np.int64))
    classes = (names[1 - names.index(positive)], positive)
    return Table(torch.from_numpy(raw.data), y, classes, tuple(map(str, raw.feature_names)))


def digits() -> Table:
    """Handwritten digits of scikit-learn: X [1797, 8, 8] uint8 in 0..16, y 0..9."""
    from sklearn.datasets import load_digits

    raw = load_digits()
    X = torch.from_numpy(raw.images.astype(np.uint8))
    return Table(X, torch.from_numpy(raw.target.astype(np.int64)), tuple("0123456789"))


def mnist(split: str) -> Table:
    """MNIST: X [60000 or 10000, 28, 28] uint8, y 0..9, for split "train" or "test"."""
    return _idx_table("mnist", split, tuple("0123456789"))


def fashion_mnist(split: str) -> Table:
    """Fashion-MNIST: X [60000 or 10000, 28, 28] uint8, y 0..9, for split "train" or "test"."""
    names = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
    return _idx_table("fashion_mnist", split, tuple(names.split(",")))


def adult(split: str) -> "pd.DataFrame":
    """UCI Adult: 32561 ("train") or 16281 ("test") rows of 15 named columns; "?" is missing.

    The test file's first line is skipped and the dot after its labels dropped, so that `income`
    is "<=50K" or ">50K" in both splits.
    """
    import pandas as pd

    checks.one_of("adult", "split", split, ("train", "test"))
    path = _get("adult", SOURCES["adult"].files[split == "test"])
    frame = pd.read_csv(
        path,
        names=_ADULT_COLUMNS.split(),
        skiprows=int(split == "test"),
        skipinitialspace=True,
        na_values="?",
        keep_default_na=False,
    )
    frame["income"] = frame["income"].str.rstrip(".")
    return frame


def cifar10(split: str, exact_only: bool = False) -> Table:
    """CIFAR-10: X [50000 or 10000, 32, 32, 3] uint8, y 0..9, canonical order.

    The canonical archive is used if it is in the cache, else the packed set, else the archive is
    downloaded. Of the packed set's test images only 0..999 are the canonical pixels, the others
    are lossy copies (JPEG, about 7.5 of 255 root mean square): `exact` says which are which, and
    an accuracy over all 10000 of them is not the canonical one.

    Args:
        split: "train" or "test".
        exact_only: leave out the lossy images (the packed test split then has 1000 rows).
    """
    checks.one_of("cifar10", "split", split, ("train", "test"))
    source = SOURCES["cifar10"]
    if _use_instead(source):
        table = _cifar10_packed(split, exact_only)
    else:
        table = _cifar10_archive(_get("cifar10", source.files[0]), split)
    names = "airplane automobile bird cat deer dog frog horse ship truck"
    return replace(table, classes=tuple(names.split()))


def qm9() -> Molecules:
    """QM9: 130831 molecules and their 15 targets, units as in the source tables.

    A, B, C in GHz, mu in debye, alpha in bohr^3, homo, lumo, gap, zpve, u0, u298, h298, g298 in
    hartree, r2 in bohr^2, cv in cal/mol/K.
    """
    with np.load(_get("qm9", SOURCES["qm9"].instead[0])) as packed:
        raw = dict(packed)
    targets = raw["target_scaled"].T / 10.0 ** raw["target_decimals"]
    return Molecules(
        torch.from_numpy(np.ascontiguousarray(targets)),
        tuple(map(str, raw["target_names"])),
        torch.from_numpy(raw["z"]),
        torch.from_numpy(raw["pos"]),
        _offsets(raw["n_atoms"]),
        torch.from_numpy(raw["bonds"]),
        _offsets(raw["n_bonds"]),
        torch.from_numpy(raw["index"]),
        tuple(raw["smiles"].tobytes().decode().split("\n")),
    )


def emnist(split: str, subset: str = "digits") -> Table:
    """EMNIST: X [R, 28, 28] uint8, upright as in MNIST, and y, for split "train" or "test".

    Args:
        split: "train" or "test".
        subset: "digits" (240000 and 40000 images, 10 classes) or "byclass" (697932 and 116323
            images, 62 classes). Read from the user's own copy: the four files of the subset, or
            the archive gzip.zip, in EMNIST/raw of the cache; else the archive is downloaded.
    """
    checks.one_of("emnist", "split", split, ("train", "test"))
    checks.one_of("emnist", "subset", subset, ("digits", "byclass"))
    name = f"emnist_{subset}"
    source = SOURCES[name]
    members = source.instead[:2] if split == "train" else source.instead[2:]
    if _use_instead(source):
        images, labels = (_read_idx(_get(name, file).read_bytes()) for file in members)
    else:
        with zipfile.ZipFile(_get(name, source.files[0])) as archive:
            inside = [f"gzip/{Path(file.path).name}" for file in members]
            images, labels = (_read_idx(archive.read(member)) for member in inside)
    classes = tuple(_EMNIST_CLASSES[:10] if subset == "digits" else _EMNIST_CLASSES)
    return Table(images.transpose(1, 2).contiguous(), labels.long(), classes)


def _idx_table(name: str, split: str, classes: tuple[str, ...]) -> Table:
    checks.one_of(name, "split", split, ("train", "test"))
    files = SOURCES[name].files[:2] if split == "train" else SOURCES[name].files[2:]
    images, labels = (_read_idx(_get(name, file).read_bytes()) for file in files)
    return Table(images, labels.long(), classes)


def _read_idx(compressed: bytes) -> UInt8[Tensor, "..."]:
    """An IDX file of bytes: two zeros, type 8, number of axes, then each length as big-endian."""
    raw = gzip.decompress(compressed)
    shape = np.frombuffer(raw, ">i4", count=raw[3], offset=4)
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3])
    return torch.from_numpy(values.reshape(shape).copy())


def _offsets(lengths: np.ndarray) -> Int[Tensor, " R+1"]:
    return torch.from_numpy(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def _cifar10_archive(path: Path, split: str) -> Table:
    """The binary version: records of one label byte and 3 x 32 x 32 pixels."""
    batches = [f"data_batch_{i}" for i in range(1, 6)] if split == "train" else ["test_batch"]
    raw = b""
    with tarfile.open(path) as archive:
        for batch in batches:
            member = archive.extractfile(f"cifar-10-batches-bin/{batch}.bin")
            raw += member.read() if member else b""
    records = torch.frombuffer(bytearray(raw), dtype=torch.uint8).reshape(-1, 3073)
    X = records[:, 1:].reshape(-1, 3, 32, 32).permute(0, 2, 3, 1).contiguous()
    y = records[:, 0].long()
    return Table(X, y, (), exact=torch.ones_like(y, dtype=torch.bool))


def _cifar10_packed(split: str, exact_only: bool) -> Table:
    """Lossless mosaics of 1000 images; the last 9000 test images as JPEG."""
    labels, head, tail, *train = SOURCES["cifar10"].instead
    with np.load(_get("cifar10", labels)) as arrays:
        y = torch.from_numpy(arrays[f"y_{split}"].astype(np.int64))
    mosaics = train if split == "train" else [head]
    X = np.concatenate([_read_mosaic(_get("cifar10", file)) for file in mosaics])
    exact = torch.arange(len(y)) < len(X)
    if split == "test" and not exact_only:
        X = np.concatenate([X, _read_jpegs(_get("cifar10", tail))])
    return Table(torch.from_numpy(X), y[: len(X)], (), exact=exact[: len(X)])


def _read_mosaic(path: Path) -> UInt8[np.ndarray, "R 32 32 3"]:
    """Images of a mosaic of 40 a row, in reading order."""
    from PIL import Image

    with Image.open(path) as mosaic:
        pixels = np.asarray(mosaic.convert("RGB"))
    rows = pixels.reshape(-1, 32, 40, 32, 3).transpose(0, 2, 1, 3, 4)
    return rows.reshape(-1, 32, 32, 3)


def _read_jpegs(path: Path) -> UInt8[np.ndarray, "R 32 32 3"]:
    """Images stored one after another as JPEG files; file i is bytes offset[i]:offset[i + 1]."""
    from PIL import Image

    with np.load(path) as arrays:
        blob, offset = arrays["jpeg"].tobytes(), arrays["offset"].tolist()
    pieces = (blob[a:b] for a, b in pairwise(offset))
    return np.stack([np.asarray(Image.open(io.BytesIO(piece)).convert("RGB")) for piece in pieces])


def _use_instead(source: Source) -> bool:
    """Whether to read the files that serve instead: they are there and the usual ones are not."""

    def there(files: tuple[File, ...]) -> bool:
        return any(os.path.exists(cache_folder() / file.path) for file in files)

    return not source.files or (there(source.instead) and not there(source.files))


def _is_whole(file: File) -> bool:
    try:
        return _matches(cache_folder() / file.path, file.checksum)
    except OSError:
        return False


def _matches(path: Path, checksum: str) -> bool:
    """Whether the file has the checksum; hashed once per process unless the file changes."""
    algorithm, _, digest = checksum.rpartition(":")
    stat = path.stat()
    return _digest(str(path), stat.st_size, stat.st_mtime_ns, algorithm or "sha256") == digest


@lru_cache(maxsize=512)
def _digest(path: str, size: int, modified: int, algorithm: str) -> str:  # noqa: ARG001 cache key
    return str(pooch.file_hash(path, alg=algorithm))


def _get(name: str, file: File) -> Path:
    """Path of one verified file, downloaded if it is missing; raises `DataError`."""
    path = cache_folder() / file.path
    direct = file in SOURCES[name].files
    remedy = f"get it again from {file.url}" if direct else SOURCES[name].note
    try:
        if path.exists() and _matches(path, file.checksum):
            return path
        if path.exists():
            size = f"{path.stat().st_size} bytes, truncated or changed"
            problem = f"in {path.parent} has a wrong checksum ({size}); delete it and {remedy}"
            raise _error(name, path, problem)
    except OSError as error:
        problem = f"in {path.parent} cannot be read ({_reason(error)}); {remedy}"
        raise _error(name, path, problem) from error
    if not direct:
        raise _error(name, path, f"is not in {path.parent}; {remedy}")
    try:
        return _download(file, path)
    except (OSError, ValueError) as error:
        problem = (
            f"is not in {path.parent} and its download from {file.url} failed ({_reason(error)}); "
            "put the file there by hand"
        )
        raise _error(name, path, problem) from error


def _download(file: File, path: Path) -> Path:
    """Fetch one file with pooch, which writes beside the target and renames what has its hash."""
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        return Path(registry().fetch(file.path, downloader=_stream))
    finally:
        for folder in made:  # deepest first; one that is not empty stays
            with suppress(OSError):
                folder.rmdir()


def _stream(url: str, output: str, _pooch: pooch.Pooch) -> None:
    """Downloader for pooch; its own one leaves the connection open when a download fails."""
    with requests.get(url, stream=True, timeout=30) as response, open(output, "wb") as file:
        response.raise_for_status()
        for chunk in response.iter_content(1 << 16):
            file.write(chunk)


def _error(name: str, path: Path, problem: str) -> DataError:
    return DataError(
        f"{name}: {path.name} {problem}, or set FEDLIB_DATA to a cache folder that has it."
    )


def _reason(error: Exception) -> str:
    """A few words on what went wrong; the whole story is in the chained exception."""
    if isinstance(error, ValueError) and "hash" in str(error):
        return "what arrived has a wrong checksum"
    if isinstance(error, PermissionError):
        return "permission denied"  # pooch words its own, without strerror
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    response = getattr(error, "response", None)
    return f"HTTP status {response.status_code}" if response is not None else type(error).__name__
