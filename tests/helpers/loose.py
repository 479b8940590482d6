"""Stored runs as files of their own, so that a test can change one."""

import json

import numpy as np

from fedlib.core.files import digest, write_json
from papers.kit import archive, store

PROFILES = ("full", "quick", "paper")


def plain(held):
    """The same with lists in the places of arrays, as a file of its own has them."""
    if isinstance(held, dict):
        return {k: plain(v) for k, v in held.items()}
    if isinstance(held, np.ndarray):
        return [[None if np.isnan(x) else x for x in row] for row in held.tolist()]
    return held


def copy(study, folder):
    """Copies of all that is stored of a study, in another results folder."""
    for profile in PROFILES:
        place = store.results_dir() / study / profile
        for name in archive.names(place):
            held = plain(archive.read(place / f"{name}.json"))
            write_json(folder / study / profile / f"{name}.json", held)


def spread(study):
    """The same in place of the study's two files."""
    copy(study, store.results_dir())
    for end in (".json", ".npz"):
        (store.results_dir() / f"{study}{end}").unlink()


def change(path, change):
    """One run changed, and sealed anew in a file of its own, which comes before the study's."""
    held = {k: v for k, v in plain(archive.read(path)).items() if k != "digest"}
    change(held)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**held, "digest": digest(held)}), encoding="utf-8")
