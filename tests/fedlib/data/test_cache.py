"""The cache: what is asked of the network, what is left behind, faults planted on tiny files."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from fedlib import data
from tests.helpers.tiny_data import DEAD, TINY, error_of, fill, listing


def test_a_file_in_the_cache_needs_no_network_and_no_writing(cache, tiny):
    fill(cache, tiny())
    listed = listing(cache)
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        train = data.mnist("train")
        test = data.mnist("test")
        assert data.available("mnist")
        assert [path.parent for path in data.fetch("mnist")] == [cache / "MNIST/raw"] * 4
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert torch.equal(train.X, torch.from_numpy(TINY["train-images"].astype(np.uint8)))
    assert train.y.tolist() == TINY["train-labels"]
    assert test.y.tolist() == TINY["test-labels"]
    assert listing(cache) == listed


def test_a_missing_file_is_downloaded_once_and_whole(cache, tiny, site):
    contents = site.pages = tiny(site.url)
    assert not data.available("mnist")
    assert data.mnist("train").y.tolist() == TINY["train-labels"]
    assert len(site.asked) == 2  # only the files of the split
    data.mnist("train")
    assert len(site.asked) == 2
    data.fetch("mnist")
    assert len(site.asked) == 4
    stored = {str(p.relative_to(cache)): p.read_bytes() for p in cache.rglob("*") if p.is_file()}
    assert stored == contents


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("wrong", "wrong checksum"), ("cut", "Error|wrong checksum"), ("status", "HTTPError")],
)
def test_a_failed_download_leaves_nothing(cache, tiny, site, fault, reason):
    site.pages = tiny(site.url)
    site.fault = fault
    with pytest.raises(data.DataError, match=reason):
        data.mnist("train")
    text = error_of(lambda: data.mnist("train"))
    assert text.startswith(f"mnist: train-images-idx3-ubyte.gz is not in {cache}/MNIST/raw ")
    assert f"{site.url}/train-images-idx3-ubyte.gz" in text
    assert not any(path.is_file() for path in cache.rglob("*"))
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
    assert not any(path.is_file() for path in cache.rglob("*"))


@pytest.mark.parametrize("damage", [lambda b: b[:-7], lambda b: b[:0], lambda b: b[:-1] + b"!"])
def test_a_damaged_file_is_named_and_left_alone(cache, tiny, site, damage):
    contents = site.pages = tiny(site.url)
    fill(cache, contents)
    path = "MNIST/raw/train-labels-idx1-ubyte.gz"
    (cache / path).write_bytes(damage(contents[path]))
    listed = listing(cache)
    text = error_of(lambda: data.mnist("train"))
    size = len(damage(contents[path]))
    assert text.startswith(
        f"mnist: train-labels-idx1-ubyte.gz in {cache}/MNIST/raw has a wrong checksum ({size} bytes"
    )
    assert f"{site.url}/train-labels-idx1-ubyte.gz" in text
    assert listing(cache) == listed
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


def test_qm9_says_what_to_do(cache):
    text = error_of(lambda: data.fetch("qm9"))
    assert text.startswith(f"qm9: qm9.npz is not in {cache}/qm9; copy a packed qm9.npz there")
    assert "molnet_publish/qm9.zip" in text
    fill(cache, {"qm9/qm9.npz": b"half"})
    assert "wrong checksum (4 bytes" in error_of(lambda: data.fetch("qm9"))


def test_the_default_cache_folder_is_the_users(monkeypatch):
    monkeypatch.delenv("FEDLIB_DATA", raising=False)
    assert data.cache_folder().name == "fedlib"
    monkeypatch.setenv("FEDLIB_DATA", "")
    assert data.cache_folder().name == "fedlib"
    monkeypatch.setenv("FEDLIB_DATA", "here")
    assert data.cache_folder() == Path.cwd() / "here"
