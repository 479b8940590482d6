"""Checkpoints of a run, which are checked by a digest and accepted only by the run they fit."""

import hashlib
import io
import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from errno import EISDIR
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.files import Format, atomic_write, temporary_file
from fedlib.core.identity import Identity

FORMAT = Format("checkpoint", 5)
HEAD = re.compile(rb"fedlib checkpoint (\d+), sha256 ([0-9a-f]{64})")  # the digest is of the rest

Named = dict[str, Float[Tensor, "..."]]


class Misfit(ValueError):
    """A file is not a checkpoint of this run; the text is the middle of the error message."""


def refusal(path: Path, rule: str) -> str:
    """The error message for a file that `run` does not resume from."""
    return f"run: checkpoint {path.name} must {rule}; name another, or remove it."


def read_sealed(path: Path) -> Any:
    """Read a file, verify its digest, and migrate an older version; raises Misfit, OSError."""
    first_line, _, sealed = path.read_bytes().partition(b"\n")
    head = HEAD.fullmatch(first_line)
    if head is None:
        raise Misfit("be one that run wrote, but it begins otherwise")
    version = int(head[1])
    if not FORMAT.reads(version):
        raise Misfit(f"have version {FORMAT.version} of its format, but it has version {version}")
    if head[2] != hashlib.sha256(sealed).hexdigest().encode():
        raise Misfit("agree with its digest, but it is damaged or was changed")
    try:
        content = torch.load(io.BytesIO(sealed), map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises various errors for files of another origin
        raise Misfit("hold plain tensors, but it cannot be read") from error
    return FORMAT.migrated(content, version)


def write_sealed(path: Path, content: Any) -> None:
    """Write a file that `read_sealed` accepts; raises OSError."""
    buffer = io.BytesIO()  # on a full disk, torch's own writer does not raise OSError
    torch.save(content, buffer)
    sealed = buffer.getbuffer()
    digest = hashlib.sha256(sealed).hexdigest()
    head = f"fedlib checkpoint {FORMAT.version}, sha256 {digest}\n"
    atomic_write(path, lambda file: file.writelines((head.encode(), sealed)))


@dataclass
class Progress:
    """The state of a run between two rounds, as a checkpoint holds it."""

    state: Any
    rngs: list[torch.Generator]
    round: int = 0
    metrics: list[Named] = field(default_factory=list)  # blocks of rounds, `[G, S, T]` each
    info: list[Named] = field(default_factory=list)
    seconds: float = 0.0
    compiled: int = 0  # the number of compiled rounds

    def add(
        self,
        state: Any,
        info: Named,
        rounds: int,
        *,
        compiled: bool = False,
    ) -> None:
        """Add some rounds: their reports, and the state after them."""
        self.info.append(info)
        compiled_rounds = self.compiled + rounds if compiled else self.compiled
        # one call, which no interruption divides
        vars(self).update(state=state, round=self.round + rounds, compiled=compiled_rounds)

    def drop_unfinished(self, evaluate_every: int) -> None:
        """Drop curves of a round that did not end: its evaluation, if any, and its report."""
        while count_columns(self.info) > self.round:
            self.info.pop()
        while count_columns(self.metrics) > math.ceil(self.round / evaluate_every):
            self.metrics.pop()


def check_path(checkpoint: Path | str | None) -> Path | None:
    """The path of the checkpoint that `run` was given, or None.

    Raises OSError unless it is a file, or a new name in a writable folder.
    """
    if checkpoint is None:
        return None
    path = Path(checkpoint)
    try:
        if path.exists() and not path.is_file():
            raise IsADirectoryError(EISDIR, "it is not a file")
        with temporary_file(path.parent):
            pass
    except OSError as error:
        rule = "be a file in a writable folder"
        problem = f"{checkpoint!s:.24} ({error.strerror})"
        raise OSError(
            checks.sentence("run", "checkpoint", rule, problem, "name another")
        ) from error
    return path


class Checkpoint:
    """The checkpoint of one run: it resumes from a file that fits, and limits how often it writes.

    `path` is None for no checkpoints. `config` describes the run without its number of rounds and
    its schedules, `identity` tells it from other runs of that description, and `seconds` is the
    least time between two writes.
    """

    def __init__(
        self,
        path: Path | None,
        config: Mapping[str, Any],
        identity: Identity,
        seconds: float,
    ) -> None:
        self.path = path
        self.identity = identity
        self.seconds = seconds
        self.written_at = time.monotonic()
        # converted to text: counts may be numpy's, but a file holds tensors and plain values
        self.config = json.dumps(config, sort_keys=True, default=lambda x: x.item())

    def resume(self, start: Progress, rounds: int) -> Progress:
        """The progress in the file, on the device of `start`; `start` itself if there is no file.

        Raises ValueError or OSError if the file cannot be read, does not belong to the run, or has
        more than `rounds` rounds.
        """
        if self.path is None:
            return start
        try:
            content = read_sealed(self.path)
            return self._progress(content, start, rounds)
        except FileNotFoundError:
            return start
        except OSError as error:
            rule = f"be a file that can be read, got {error.strerror}"
            raise OSError(refusal(self.path, rule)) from error
        except Misfit as error:
            raise ValueError(refusal(self.path, str(error))) from error
        except (KeyError, TypeError, AttributeError, RuntimeError) as error:
            rule = "hold what run writes, but it holds something else"
            raise ValueError(refusal(self.path, rule)) from error

    def _progress(
        self,
        content: Any,
        start: Progress,
        rounds: int,
    ) -> Progress:
        """Convert the content of a file to the progress of this run; raises Misfit."""
        if not isinstance(content, dict) or content.get("config") != self.config:
            raise Misfit("belong to this run, but it was written with other parameters")
        written = Identity(content["digests"], content["sketches"])
        difference = self.identity.difference(written)
        if difference:
            is_single = "." in difference or "[" in difference
            article = "another" if is_single else "other"
            raise Misfit(f"belong to this run, but it was written with {article} {difference}")
        if content["round"] > rounds:
            raise Misfit(f"have at most the run's {rounds} rounds, but it has {content['round']}")
        leaves, structure = pytree.tree_flatten(start.state)
        device = leaves[0].device
        for rng, rng_state in zip(start.rngs, content["rngs"], strict=True):
            rng.set_state(rng_state)
        return Progress(
            state=pytree.tree_unflatten([x.to(device) for x in content["state"]], structure),
            rngs=start.rngs,
            round=content["round"],
            metrics=[{name: x.to(device) for name, x in content["metrics"].items()}],
            info=[{name: x.to(device) for name, x in content["info"].items()}],
            seconds=content["seconds"],
            compiled=content["compiled"],
        )

    def save(self, progress: Progress, *, done: bool) -> None:
        """Write the file if enough time has passed or the run is done; raises OSError."""
        is_due = done or time.monotonic() - self.written_at >= self.seconds
        if self.path is None or not is_due:
            return
        content = {
            "config": self.config,
            "digests": self.identity.digests,
            "sketches": self.identity.sketches,
            "state": [x.cpu() for x in pytree.tree_leaves(progress.state)],
            "rngs": [rng.get_state() for rng in progress.rngs],
            "round": progress.round,
            "seconds": progress.seconds,
            "compiled": progress.compiled,
            "metrics": join_blocks(progress.metrics),
            "info": join_blocks(progress.info),
        }
        try:
            write_sealed(self.path, content)
        except OSError as error:
            raise OSError(
                f"run: checkpoint {self.path.name} must be written after round {progress.round}, "
                f"got {error.__cause__ or error}; the last checkpoint is intact, free some space "
                "and start again."
            ) from error
        self.written_at = time.monotonic()


def count_columns(blocks: Sequence[Named]) -> int:
    """The number of rounds or evaluations in some blocks."""
    return sum(next(iter(block.values())).shape[-1] for block in blocks if block)


def join_blocks(blocks: Sequence[Named]) -> Named:
    """For each name, join its blocks of rounds into one tensor `[..., T]` on the CPU."""
    if not blocks:
        return {}
    joined = {}
    for name in blocks[0]:
        joined[name] = torch.cat([block[name] for block in blocks], -1).cpu()
    return joined
