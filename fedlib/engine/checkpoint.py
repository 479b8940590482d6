"""The checkpoints of a run: sealed by a digest, checked against the run that goes on from them."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib.core.files import atomic_write, clear_parts, part_of
from fedlib.core.schedule import Schedule

FORMAT = b"fedlib checkpoint 3, sha256 "  # what a file begins with; then the digest of the rest
KEYS = {"config", "data", "state", "rngs", "round", "seconds", "compiled", "metrics", "info"}
CLOSE = 1e-3  # another machine may round data otherwise; other data differ by more

Named = dict[str, Float[Tensor, "..."]]


class Misfit(ValueError):
    """What a file is not that a checkpoint of this run must be: the middle of a sentence."""


def seal(content: Any) -> tuple[bytes, memoryview]:
    """The head of a file of some content, and the rest."""
    # in memory first: on a full disk torch's own writer raises what is no OSError
    buffer = io.BytesIO()
    torch.save(content, buffer)
    rest = buffer.getbuffer()
    return FORMAT + hashlib.sha256(rest).hexdigest().encode() + b"\n", rest


def unseal(path: Path) -> Any:
    """The content of a file, after a look at every bit of it; raises Misfit, OSError."""
    with open(path, "rb") as file:
        head = file.read(len(FORMAT) + 65)
        if head[: len(FORMAT)] != FORMAT:
            raise Misfit("be one that this version of run wrote, it begins otherwise")
        start = file.tell()
        if head[len(FORMAT) :] != hashlib.file_digest(file, "sha256").hexdigest().encode() + b"\n":
            raise Misfit("agree with its digest, it is damaged or was changed")
        file.seek(start)
        try:
            return torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # whatever torch makes of a file that is not ours
            raise Misfit("hold plain tensors, it cannot be read") from error


def write_sealed(path: Path, content: Any) -> None:
    """Write a file that `unseal` reads; raises OSError."""
    parts = seal(content)
    atomic_write(path, lambda file: file.writelines(parts))


@dataclass
class Progress:
    """What grows while a run goes on, all of it that a checkpoint must hold."""

    state: Any
    rngs: list[torch.Generator]
    round: int = 0
    metrics: list[Named] = field(default_factory=list)  # of rounds in a row, `[G, S, T]` each
    info: list[Named] = field(default_factory=list)
    seconds: float = 0.0
    compiled: int = 0  # rounds


@dataclass(frozen=True)
class Shape:
    """What the checkpoint of a run must look like: its length, and one round of it."""

    rounds: int
    schedule: Schedule
    data: list[Float[Tensor, "n"]]  # some entries
    state: Any
    metrics: Named
    info: Named


def checked_path(given: object) -> Path | None:
    """The path that `run` was given for its checkpoint, None for none.

    Raises
    ------
    TypeError, ValueError, OSError
        one sentence, unless it is a file, or a name in a folder where a file can be written.
    """
    if given is None:
        return None
    named = os.fspath(given) if isinstance(given, (str, os.PathLike)) else None
    if not isinstance(named, str) or "\0" in named:
        raise TypeError(f"run: checkpoint must be the path of a file or None, got {given!r:.60}.")
    path = Path(named)
    try:
        if path.exists() and not path.is_file():
            raise ValueError(
                f"run: checkpoint must be the path of a file, {named!r} is something else; "
                "name a file in it."
            )
        if not path.parent.is_dir():
            raise ValueError(
                f"run: checkpoint must lie in a folder that exists, got {named!r}; "
                "make the folder first."
            )
        clear_parts(path.parent)
        with part_of(path):
            pass
    except OSError as error:
        raise OSError(
            f"run: checkpoint must be a path that can be written to, got {named!r:.60} "
            f"({error.strerror or error}); name another."
        ) from error
    return path


class Saver:
    """Checkpoints of one run: resume from a file that belongs to it, write not too often."""

    def __init__(self, path: Path | None, config: Mapping[str, Any], seconds: float) -> None:
        self.path, self.seconds, self.last = path, seconds, time.monotonic()
        # as text: counts and numbers may be numpy's, and a file holds tensors and plain values
        self.config = json.dumps(config, sort_keys=True, default=lambda x: x.item())

    def resume(self, start: Progress, shape: Callable[[], Shape]) -> Progress:
        """What the file holds, on the device of `start`; `start` itself if there is no file.

        Raises
        ------
        ValueError, OSError
            one sentence, if the file does not fit the run; it is then kept under another name, or
            cannot be read.
        """
        if self.path is None:
            return start
        try:
            held = unseal(self.path)
        except FileNotFoundError:  # none, or another process has just finished this run
            return start
        except OSError as error:
            raise OSError(
                f"run: checkpoint {self.path.name} must be a file that can be read, got "
                f"{error.strerror or error}; name another."
            ) from error
        except Misfit as error:
            raise self.refusal(error) from error
        try:
            if not isinstance(held, dict) or set(held) != KEYS:
                raise Misfit("hold what run writes, it holds something else")
            if type(held["config"]) is not str or held["config"] != self.config:
                raise Misfit("belong to this run, it was written with other parameters")
            return Fit(shape(), start).progress(held)
        except Misfit as error:
            raise self.refusal(error) from error

    def refusal(self, misfit: Misfit) -> ValueError:
        """The sentence on a file that does not fit, which is then under another name."""
        assert self.path is not None
        return ValueError(f"run: checkpoint {self.path.name} must {misfit}; {aside(self.path)}.")

    def save(self, now: Progress, data: Callable[[], Any], *, done: bool) -> None:
        """Write the file if it is time to, or if the run is done; raises OSError."""
        due = time.monotonic() - self.last >= self.seconds
        if self.path is None or not (due or done):
            return
        content = {
            "config": self.config,
            # on the CPU, so that a machine without a GPU can go on
            "data": data(),
            "state": [x.cpu() for x in pytree.tree_leaves(now.state)],
            "rngs": [rng.get_state() for rng in now.rngs],
            "round": now.round,
            "seconds": now.seconds,
            "compiled": now.compiled,
            "metrics": together(now.metrics),
            "info": together(now.info),
        }
        try:
            write_sealed(self.path, content)
        except OSError as error:
            why = getattr(error.__cause__, "strerror", None) or error
            raise OSError(
                f"run: checkpoint {self.path.name} must be written after round {now.round}, got "
                f"{why}; what was there before is whole, make room and start again."
            ) from error
        self.last = time.monotonic()


def aside(path: Path) -> str:
    """Rename a file that does not fit, so that the next start begins anew; says what was done."""
    number, free = 1, path.with_name(f"{path.name}.refused")
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.refused-{number}")
    try:
        path.rename(free)
    except OSError:  # another process was faster, or the folder is closed to us
        return "move it away"
    return f"it is now {free.name}, and the next start begins anew"


def together(blocks: Sequence[Named]) -> Named:
    """One tensor `[..., T]` a name in place of the parts of it, on the CPU."""
    return {k: torch.cat([b[k] for b in blocks], -1).cpu() for k in blocks[0]}


class Fit:
    """Holds the content of a file against what a checkpoint of the run must look like."""

    def __init__(self, shape: Shape, start: Progress) -> None:
        self.shape, self.start = shape, start

    def progress(self, held: Mapping[str, Any]) -> Progress:
        """The progress that is held; raises Misfit."""
        rounds, seconds, compiled = held["round"], held["seconds"], held["compiled"]
        if type(rounds) is not int or not 1 <= rounds <= self.shape.rounds:
            raise Misfit(f"say a round in 1..{self.shape.rounds}, it says {rounds!r:.40}")
        if type(seconds) is not float or not (math.isfinite(seconds) and seconds >= 0):
            raise Misfit(f"say how many seconds it took, it says {seconds!r:.40}")
        if type(compiled) is not int or not 0 <= compiled <= rounds:
            raise Misfit(f"say how many rounds were compiled, it says {compiled!r:.40}")
        self.check_data(held["data"])
        leaves, spec = pytree.tree_flatten(self.shape.state)
        self.same_form("state", held["state"], leaves)
        device = self.start.state.w.device
        state = pytree.tree_unflatten([x.to(device) for x in held["state"]], spec)
        if not torch.isfinite(state.w).all():
            raise Misfit("hold a finite model, it holds another")
        evaluated = len(self.shape.schedule.before(rounds))
        metrics = self.curves("metrics", held["metrics"], self.shape.metrics, evaluated)
        info = self.curves("info", held["info"], self.shape.info, rounds)
        rngs = self.generators(held["rngs"])
        return Progress(state, rngs, rounds, [metrics], [info], seconds, compiled)

    def check_data(self, held: Any) -> None:
        """The run's data are those that the checkpoint was written with."""
        self.same_form("data", held, self.shape.data)
        for x, y in zip(held, self.shape.data, strict=True):
            far = CLOSE * float(y.nan_to_num(0, 0, 0).abs().max()) if y.numel() else 0.0
            if not torch.allclose(x, y, rtol=CLOSE, atol=far, equal_nan=True):
                raise Misfit("belong to this run, it was written with other data")

    def curves(self, name: str, held: Any, one: Named, length: int) -> Named:
        """The curves of one kind."""
        if not isinstance(held, dict) or list(held) != list(one):
            raise Misfit(f"hold the run's {name}, it holds others")
        long = [x.unsqueeze(-1).expand(*x.shape, length) for x in one.values()]
        self.same_form(name, [*held.values()], long)
        return {k: x.to(self.start.state.w.device) for k, x in held.items()}

    def generators(self, held: Any) -> list[torch.Generator]:
        """The run's generators, in the states that are held."""
        self.same_form("rngs", held, [rng.get_state() for rng in self.start.rngs])
        try:
            return [rng.set_state(x) for rng, x in zip(self.start.rngs, held, strict=True)]
        except RuntimeError as error:
            raise Misfit("hold the states of generators, it holds others") from error

    @staticmethod
    def same_form(name: str, held: Any, like: Sequence[Shaped[Tensor, "..."]]) -> None:
        """Require a list of tensors of the same shapes and kinds of number."""
        if not isinstance(held, list) or len(held) != len(like):
            raise Misfit(f"hold the run's {name}, it holds others")
        for x, y in zip(held, like, strict=True):
            plain = type(x) is Tensor and x.layout == torch.strided and not x.requires_grad
            if not plain or (x.shape, x.dtype) != (y.shape, y.dtype):
                raise Misfit(f"hold {name} of the run's shapes, it holds others")
