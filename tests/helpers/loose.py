"""Stored runs as files of their own, so that a test can change one."""

import json
import shutil

import numpy as np

from fedlib.core.files import digest, write_json
from papers.kit import archive, store

PROFILES = ("full", "quick", "paper")


def plain(content):
    """The same with lists in the places of arrays, as a file of its own has them."""
    if isinstance(content, dict):
        return {key: plain(value) for key, value in content.items()}
    if isinstance(content, np.ndarray):
        return [[None if np.isnan(x) else x for x in row] for row in content.tolist()]
    return content


def spread(study):
    """Every run of a study as a file of its own, in place of the study's files."""
    for profile in PROFILES:
        folder = store.results_dir() / study / profile
        for name in archive.names(folder):
            path = folder / f"{name}.json"
            write_json(path, plain(archive.read(path)))
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
    content = plain(archive.read(path))
    content.pop("digest", None)
    change(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    sealed = {**content, "digest": digest(content)}
    path.write_text(json.dumps(sealed), encoding="utf-8")
