"""Checkpoints of a run: sealed by a digest, and used only by the run that they belong to."""

import hashlib
import io
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.files import atomic_write

FORMAT = b"fedlib checkpoint 5, sha256 "  # what a file begins with; then the digest of the rest

CURVES = ("metrics", "info")

Named = dict[str, Float[Tensor, "..."]]


class Misfit(ValueError):
    """A file is no checkpoint of this run; the text is the middle of a sentence."""


def read_sealed(path: Path) -> Any:
    """The content of a file whose digest fits; raises Misfit, OSError."""
    head, _, rest = path.read_bytes().partition(b"\n")
    if not head.startswith(FORMAT):
        raise Misfit("be one that this version of run wrote, it begins otherwise")
    if head[len(FORMAT) :] != hashlib.sha256(rest).hexdigest().encode():
        raise Misfit("agree with its digest, it is damaged or was changed")
    try:
        return torch.load(io.BytesIO(rest), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever torch makes of a file that is not ours
        raise Misfit("hold plain tensors, it cannot be read") from error


def write_sealed(path: Path, content: Any) -> None:
    """Write a file that `read_sealed` reads; raises OSError."""
    buffer = io.BytesIO()  # on a full disk torch's own writer raises what is no OSError
    torch.save(content, buffer)
    rest = buffer.getbuffer()
    head = FORMAT + hashlib.sha256(rest).hexdigest().encode() + b"\n"
    atomic_write(path, lambda file: file.writelines((head, rest)))


@dataclass
class Progress:
    """The state of a run between two rounds, as a checkpoint holds it."""

    state: Any
    rngs: list[torch.Generator]
    round: int = 0
    metrics: list[Named] = field(default_factory=list)  # of rounds in a row, `[G, S, T]` each
    info: list[Named] = field(default_factory=list)
    seconds: float = 0.0
    compiled: int = 0  # rounds


def check_path(given: Path | str | None) -> Path | None:
    """The path that `run` was given for its checkpoint, None for none.

    Raises ValueError unless it is a file, or a name in a folder that exists.
    """
    if given is None:
        return None
    path = Path(given)
    fits = path.is_file() or (path.parent.is_dir() and not path.exists())
    checks.require(fits, "run", "checkpoint", "be a file in a folder that exists", given)
    return path


class Checkpoint:
    """The checkpoint of one run: resumes from a file that belongs to it, writes not too often.

    `path` is None for no checkpoints; `config` says what the run is, but for its number of rounds;
    `seconds` is the least time between two writes.
    """

    def __init__(self, path: Path | None, config: Mapping[str, Any], seconds: float) -> None:
        self.path, self.seconds, self.last = path, seconds, time.monotonic()
        # as text: counts and numbers may be numpy's, and a file holds tensors and plain values
        self.config = json.dumps(config, sort_keys=True, default=lambda x: x.item())

    def resume(self, start: Progress, rounds: int) -> Progress:
        """The progress in the file, on the device of `start`; `start` itself if there is no file.

        Raises ValueError if the file does not belong to the run, is past its `rounds`, or cannot be
        read.
        """
        if self.path is None or not self.path.exists():
            return start
        try:
            return self._progress(read_sealed(self.path), start, rounds)
        except (OSError, ValueError, LookupError, TypeError, RuntimeError) as error:
            why = error if isinstance(error, Misfit) else "hold what run writes, it cannot be read"
            text = f"run: checkpoint {self.path.name} must {why}; name another, or remove it."
            raise ValueError(text) from error

    def _progress(self, content: Any, start: Progress, rounds: int) -> Progress:
        """The content of a file as the progress of this run; raises Misfit."""
        if not isinstance(content, dict) or content.get("config") != self.config:
            raise Misfit("belong to this run, it was written with other parameters")
        if content["round"] > rounds:
            raise Misfit(f"have at most the run's {rounds} rounds, it has {content['round']}")
        leaves, spec = pytree.tree_flatten(start.state)
        device = leaves[0].device
        for rng, state_of in zip(start.rngs, content["rngs"], strict=True):
            rng.set_state(state_of)
        metrics, info = ({k: x.to(device) for k, x in content[p].items()} for p in CURVES)
        return Progress(
            state=pytree.tree_unflatten([x.to(device) for x in content["state"]], spec),
            rngs=start.rngs,
            round=content["round"],
            metrics=[metrics],
            info=[info],
            seconds=content["seconds"],
            compiled=content["compiled"],
        )

    def save(self, now: Progress, *, done: bool) -> None:
        """Write the file if it is time to, or if the run is done; raises OSError."""
        due = time.monotonic() - self.last >= self.seconds
        if self.path is None or not (due or done):
            return
        content = {
            "config": self.config,
            "state": [x.cpu() for x in pytree.tree_leaves(now.state)],
            "rngs": [rng.get_state() for rng in now.rngs],
            "round": now.round,
            "seconds": now.seconds,
            "compiled": now.compiled,
            **{part: join_blocks(getattr(now, part)) for part in CURVES},
        }
        write_sealed(self.path, content)
        self.last = time.monotonic()


def join_blocks(blocks: Sequence[Named]) -> Named:
    """One tensor `[..., T]` a name in place of its blocks of rounds, on the CPU."""
    return {k: torch.cat([b[k] for b in blocks], -1).cpu() for k in blocks[0]} if blocks else {}
