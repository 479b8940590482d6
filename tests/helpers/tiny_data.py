"""Tiny files in the formats of the data sets, and what a loader says of a bad one."""

import gzip
import hashlib

import numpy as np
import pytest

from fedlib import data


def listing(folder):
    return {str(path): path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


def idx(values):
    values = np.asarray(values, np.uint8)
    head = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes()
    return gzip.compress(head + values.tobytes())


def sha(content):
    return hashlib.sha256(content).hexdigest()


TINY = {
    "train-images": np.arange(3 * 28 * 28).reshape(3, 28, 28) % 251,
    "train-labels": [2, 0, 1],
    "test-images": np.arange(2 * 28 * 28).reshape(2, 28, 28) % 13,
    "test-labels": [1, 2],
}
DEAD = "http://127.0.0.1:9"  # the discard port: nothing answers


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
