"""The cache: what is asked of the network, what is left behind, faults planted on tiny files."""

import os
from pathlib import Path

import pytest
import torch

from fedlib import data
from tests.helpers.tiny_data import TINY, error_of, fill, listing

IMAGES = "MNIST/raw/train-images-idx3-ubyte.gz"
LABELS = "MNIST/raw/train-labels-idx1-ubyte.gz"


def files_of(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_a_file_in_the_cache_needs_no_network_and_no_writing(cache, tiny):
    fill(cache, tiny())
    listed = listing(cache)
    folders = [cache, cache / "MNIST", cache / "MNIST/raw"]
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
    assert torch.equal(train.X, torch.from_numpy(TINY["train-images"]).byte())
    assert train.y.tolist() == TINY["train-labels"]
    assert test.y.tolist() == TINY["test-labels"]
    assert listing(cache) == listed


def test_a_missing_file_is_downloaded_once_and_whole(cache, tiny, site):
    contents = tiny(site.url)
    fill(site.folder, contents)
    assert not data.available("mnist")
    for _ in range(2):
        assert data.mnist("train").y.tolist() == TINY["train-labels"]
        assert len(site.requests) == 2  # only the files of the split
    data.fetch("mnist")
    assert len(site.requests) == 4
    assert files_of(cache) == contents


@pytest.mark.parametrize(("served", "reason"), [({}, "HTTPError"), ({IMAGES: b"?"}, "checksum")])
def test_a_failed_download_leaves_nothing_and_can_be_tried_again(cache, tiny, site, served, reason):
    contents = tiny(site.url)
    fill(site.folder, served)
    text = error_of(lambda: data.mnist("train"))
    assert text.startswith(f"mnist: train-images-idx3-ubyte.gz is not in {cache}/MNIST/raw ")
    assert f"{site.url}/{IMAGES}" in text
    assert reason in text
    assert files_of(cache) == {}
    fill(site.folder, contents)
    assert data.mnist("train").y.tolist() == TINY["train-labels"]


def test_without_a_network_a_sentence_says_what_to_do(cache, tiny):
    tiny()
    text = error_of(lambda: data.mnist("test"))
    assert "failed (ConnectionError); put the file there by hand, or set FEDLIB_DATA to" in text
    assert files_of(cache) == {}


@pytest.mark.parametrize("damage", [lambda content: content[:-7], lambda content: content[:0]])
def test_a_damaged_file_is_named_and_left_alone(cache, tiny, site, damage):
    contents = tiny(site.url)
    fill(site.folder, contents)
    damaged = damage(contents[LABELS])
    fill(cache, {**contents, LABELS: damaged})
    listed = listing(cache)
    text = error_of(lambda: data.mnist("train"))
    assert text.startswith(f"mnist: train-labels-idx1-ubyte.gz in {cache}/MNIST/raw has a wrong")
    assert f"checksum ({len(damaged)} bytes" in text
    assert f"{site.url}/{LABELS}" in text
    assert listing(cache) == listed
    assert site.requests == []
    assert not data.available("mnist")
    assert data.mnist("test").y.tolist() == TINY["test-labels"]  # the others still serve


def test_a_file_damaged_after_it_was_verified_is_noticed(cache, tiny):
    fill(cache, tiny())
    data.mnist("train")
    path = cache / LABELS
    size = path.stat().st_size
    path.write_bytes(bytes(size))
    os.utime(path, (1, 1))  # coarse clocks may give both versions the same time
    assert f"wrong checksum ({size} bytes" in error_of(lambda: data.mnist("train"))


def test_qm9_says_what_to_do(cache):
    text = error_of(lambda: data.fetch("qm9"))
    assert text.startswith(f"qm9: qm9.npz is not in {cache}/qm9; copy a packed qm9.npz there")
    fill(cache, {"qm9/qm9.npz": b"half"})
    assert "wrong checksum (4 bytes" in error_of(lambda: data.fetch("qm9"))


@pytest.mark.parametrize("chosen", ["", "here"])
def test_the_cache_folder_is_the_chosen_one_or_the_users(monkeypatch, chosen):
    monkeypatch.setenv("FEDLIB_DATA", chosen)
    folder = data.cache_folder()
    assert folder == Path.cwd() / "here" if chosen else folder.name == "fedlib"
