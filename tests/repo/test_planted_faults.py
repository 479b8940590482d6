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
    places = [match.start() for match in re.finditer(r"\d", text)]
    position = rng.choice(places)
    digit = (int(text[position]) + rng.integers(1, 10)) % 10
    return f"{text[:position]}{digit}{text[position + 1 :]}"


def test_a_changed_digit_in_a_results_file_is_noticed(tmp_path):
    rng = np.random.default_rng(0)
    files = sorted(store.results_dir().glob("*.json"))
    assert len(files) > 20
    copy = tmp_path / "copy.json"
    for path in files:
        changed = change_a_digit(path.read_text(encoding="utf-8"), rng)
        copy.write_text(changed, encoding="utf-8")
        with pytest.raises(ValueError, match=REPAIR):
            read_json(copy)


@pytest.mark.parametrize("end", [".parquet", ".npz"])
@pytest.mark.parametrize("share", [0.01, 0.6])
def test_a_changed_bit_of_the_curves_is_noticed(tmp_path, monkeypatch, share, end):
    loose.copy(STUDY.name, tmp_path)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    assert STUDY.load()
    path = tmp_path / f"{STUDY.name}{end}"
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 4
    path.write_bytes(content)
    refuses(f"store: {path.name} must *restore it", STUDY.load)
