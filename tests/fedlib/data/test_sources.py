"""The checksums of the data files: pinned once more as a whole, and held against files."""

import hashlib

import pytest

from fedlib.data import SOURCES, cache_folder

#: Of every set, the first digits of the SHA-256 of its listing; a set that changes on purpose
#: changes here too, after its files were compared with their source.
PINS = {
    "breast_cancer": "e3b0c44298fc1c14",
    "digits": "e3b0c44298fc1c14",
    "mnist": "c2cd084f24980374",
    "fashion_mnist": "e04e5233b64e36e4",
    "adult": "e4b03d809d083007",
    "cifar10": "f9e2419262617948",
    "qm9": "ff21158961c4c095",
}  # fmt: skip
FILES = [(name, file) for name, s in SOURCES.items() for file in (*s.files, *s.instead)]


def listing(source):
    """All that decides which bytes are accepted."""
    return "\n".join(f"{f.path} {f.checksum} {f.url}" for f in (*source.files, *source.instead))


def short(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_the_listing_of_every_set_is_the_one_that_was_compared_with_its_files():
    now = {name: short(listing(source)) for name, source in SOURCES.items()}
    wrong = {name: found for name, found in now.items() if PINS.get(name) != found}
    assert not wrong, (
        f"{wrong}: a path, a checksum or an address changed; compare, then pin it here"
    )
    assert now.keys() == PINS.keys()


@pytest.mark.parametrize("name", [n for n, s in SOURCES.items() if s.files or s.instead])
def test_every_file_in_the_cache_has_its_checksum(real, name):
    real()
    there = [f for n, f in FILES if n == name and (cache_folder() / f.path).exists()]
    if not there:
        pytest.skip(f"no file of {name} is in the data cache")
    for file in there:
        algorithm, _, expected = file.checksum.rpartition(":")
        content = (cache_folder() / file.path).read_bytes()
        assert hashlib.new(algorithm or "sha256", content).hexdigest() == expected, file.path
