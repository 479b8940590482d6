"""Files that are written whole or not at all, and the checkpoints of a run."""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils import _pytree as pytree

__all__ = ["Progress", "Saver", "load_checkpoint", "save_checkpoint", "write_whole"]


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


@dataclass
class Progress:
    """What grows while a run goes on, all of it that a checkpoint must hold."""

    state: Any
    rngs: list[torch.Generator]
    round: int = 0
    metrics: list[dict[str, Float[Tensor, "..."]]] = field(default_factory=list)
    info: list[dict[str, Float[Tensor, "..."]]] = field(default_factory=list)
    seconds: float = 0.0


class Saver:
    """Checkpoints of one run: resume from a file that belongs to it, write not too often."""

    def __init__(self, path: Path | str | None, config: dict[str, Any], seconds: float) -> None:
        self.path = None if path is None else Path(path)
        self.config, self.seconds, self.last = config, seconds, time.monotonic()

    def resume(self, start: Progress) -> Progress:
        """What the file holds, on the device of `start`; `start` itself if there is no file."""
        if self.path is None or not self.path.exists():
            return start
        held = load_checkpoint(self.path, self.config)
        for rng, state in zip(start.rngs, held.pop("rngs"), strict=True):
            rng.set_state(state)
        device = start.state.w.device
        for part in ("state", "metrics", "info"):
            held[part] = pytree.tree_map(lambda x: x.to(device), held[part])
        state = type(start.state)(*held.pop("state"))
        return Progress(state, start.rngs, **held)

    def save(self, now: Progress, *, done: bool) -> None:
        """Write the file if it is time to, or if the run is done."""
        due = time.monotonic() - self.last >= self.seconds
        if self.path is None or not (due or done):
            return
        self.last = time.monotonic()
        tensors = {"state": list(now.state), "metrics": now.metrics, "info": now.info}
        content = {
            # on the CPU, so that a machine without a GPU can go on
            **pytree.tree_map(lambda x: x.cpu(), tensors),
            "rngs": [rng.get_state() for rng in now.rngs],
            "round": now.round,
            "seconds": now.seconds,
        }
        save_checkpoint(self.path, self.config, content)
