"""The registry of data files: canonical URL, checksum, licence; what `fedlib.data` can load."""

from dataclasses import dataclass
from typing import NamedTuple


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
IN_SCIKIT_LEARN = ("breast_cancer", "digits")
