"""The checksums of the data files, held against the files that are there."""

import hashlib

import pytest

from fedlib.data import SOURCES, cache_folder


@pytest.mark.parametrize("name", [name for name, s in SOURCES.items() if s.files or s.instead])
def test_every_file_in_the_cache_has_its_checksum(real, name):
    real()
    source = SOURCES[name]
    checksums = {
        cache_folder() / file.path: file.checksum for file in source.files + source.instead
    }
    cached = [path for path in checksums if path.exists()]
    if not cached:
        pytest.skip(f"no file of {name} is in the data cache")
    for path in cached:
        algorithm, _, expected = checksums[path].rpartition(":")
        digest = hashlib.new(algorithm or "sha256", path.read_bytes()).hexdigest()
        assert digest == expected, path
