"""Planted faults in what is stored: each is noticed, with a sentence that says what to do."""

import re

import numpy as np
import pytest

from fedlib.core.files import read_json
from papers import STUDIES
from papers.kit import store
from tests.helpers import loose
from tests.helpers.expect import refuses

STUDY = STUDIES["np_workshop"]
REPAIR = "restore it, or delete it and reproduce it"


def change_a_digit(text, rng):
    """One digit of the text, somewhere, is another one."""
    place = rng.choice([found.start() for found in re.finditer(r"\d", text)])
    other = (int(text[place]) + rng.integers(1, 10)) % 10
    return f"{text[:place]}{other}{text[place + 1 :]}"


def test_a_changed_digit_in_a_results_file_is_noticed(tmp_path):
    files, rng = sorted(store.results_dir().glob("*.json")), np.random.default_rng(0)
    assert len(files) > 20
    copy = tmp_path / "copy.json"
    for path in files:
        copy.write_text(change_a_digit(path.read_text(encoding="utf-8"), rng), encoding="utf-8")
        with pytest.raises(ValueError, match=REPAIR):
            read_json(copy)


@pytest.mark.parametrize("end", [".parquet", ".npz"])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9])
def test_a_changed_bit_of_the_curves_is_noticed(tmp_path, monkeypatch, share, end):
    loose.copy(STUDY.name, tmp_path)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    assert STUDY.load()
    path = tmp_path / f"{STUDY.name}{end}"
    held = bytearray(path.read_bytes())
    held[int(share * len(held))] ^= 4
    path.write_bytes(held)
    refuses(f"store: {path.name} must *restore it", STUDY.load)
