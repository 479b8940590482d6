"""Stored runs as files of their own, so that a test can change one."""

import json
import shutil

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


def spread(study):
    """Every run of a study as a file of its own, in place of the study's files."""
    for profile in PROFILES:
        place = store.results_dir() / study / profile
        for name in archive.names(place):
            write_json(place / f"{name}.json", plain(archive.read(place / f"{name}.json")))
    for end in archive.FILES:
        (store.results_dir() / f"{study}{end}").unlink(missing_ok=True)


def copy(study, folder):
    """A study's files, in another results folder."""
    for end in archive.FILES:
        path = store.results_dir() / f"{study}{end}"
        if path.is_file():
            shutil.copy(path, folder)


def change(path, change):
    """One run changed, and sealed anew in a file of its own, which comes before the study's."""
    held = {k: v for k, v in plain(archive.read(path)).items() if k != "digest"}
    change(held)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**held, "digest": digest(held)}), encoding="utf-8")
