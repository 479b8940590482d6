"""Files that are written whole or not at all, and the checkpoints of a run."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import torch

__all__ = ["load_checkpoint", "save_checkpoint", "write_whole"]


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` on a temporary file beside `path`, then move it there.

    Raises
    ------
    OSError
        one sentence, if the folder cannot be written to; nothing is left behind.
    """
    name = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".part-", delete=False) as file:
            name = file.name
            write(file)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        raise OSError(
            f"write_whole: the folder of {path.name} must be writable, got {error.strerror}; "
            "nothing was written."
        ) from error
    finally:
        if name is not None and os.path.exists(name):
            os.unlink(name)


def save_checkpoint(path: Path, config: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Store the progress of the run that `config` describes."""
    whole = {"config": dict(config), **content}
    write_whole(path, lambda file: torch.save(whole, file))


def load_checkpoint(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The progress stored for the run that `config` describes.

    Raises
    ------
    ValueError
        if the file is damaged, or belongs to another run.
    """
    try:
        held: dict[str, Any] = torch.load(path, weights_only=True)
        stored = held.pop("config")
    except (RuntimeError, pickle.UnpicklingError, EOFError, KeyError) as error:
        raise ValueError(
            f"run: checkpoint {path.name} must be one that run wrote, it cannot be read; delete it."
        ) from error
    if stored != dict(config):
        raise ValueError(
            f"run: checkpoint {path.name} must belong to this run, it was written with other "
            "parameters; name another file or delete it."
        )
    return held
