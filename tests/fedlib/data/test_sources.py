"""The checksums of the data files, held against the files that are there."""

import hashlib

import pytest

from fedlib.data import SOURCES, cache_folder

FILES = [(name, file) for name, s in SOURCES.items() for file in (*s.files, *s.instead)]


@pytest.mark.parametrize("name", [n for n, s in SOURCES.items() if s.files or s.instead])
def test_every_file_in_the_cache_has_its_checksum(real, name):
    real()
    cached = [f for n, f in FILES if n == name and (cache_folder() / f.path).exists()]
    if not cached:
        pytest.skip(f"no file of {name} is in the data cache")
    for file in cached:
        algorithm, _, expected = file.checksum.rpartition(":")
        content = (cache_folder() / file.path).read_bytes()
        assert hashlib.new(algorithm or "sha256", content).hexdigest() == expected, file.path
