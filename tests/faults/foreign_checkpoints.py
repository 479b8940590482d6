"""Foreign checkpoints, saved traces and files of the data cache: none may pass, none may run code.

    python tests/faults/foreign_checkpoints.py [--store] [--only TEXT]

Most checkpoints are made twice: as the file is, and sealed by a digest that fits.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import judging
import numpy as np
import torch
from judging import Case, Outcome, judge

import fedlib as fl
from fedlib.core.files import digest, json_text
from fedlib.data import cache
from fedlib.data.sources import SOURCES
from fedlib.engine.checkpoint import FORMAT, read_sealed, write_sealed
from fedlib.problems import quadratics

WHAT = "foreign checkpoints, caches, traces"
ROUNDS = 12
A = torch.ones(4, 2, dtype=torch.float64)
PROBLEM = quadratics(A, 0 * A, level=0.5)
METHOD = fl.FedAvg(lr=0.1, local_steps=1, participants=2)
OTHERS = {
    "lr": replace(METHOD, lr=0.2),
    "steps": replace(METHOD, local_steps=2),
    "method": fl.FedProx(lr=0.1, local_steps=1, participants=2),
}
Content = dict[str, Any]
Attempt = Callable[[], Outcome]


def run(method: Any = METHOD, problem: Any = PROBLEM, **options: Any) -> Any:
    """The run that meets all these files, or another one."""
    options = {"rounds": ROUNDS, "seeds": [0, 1], "progress": False, **options}
    return fl.run(method, problem, **options)


class Trap:
    """What a pickle can hold: a call, of one that leaves a file behind."""

    def __init__(self, left: Path) -> None:
        self.left = left

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.left),)


def files(held: bytes, content: Content, left: Path) -> dict[str, bytes]:
    """Files that are no checkpoint of the run at all, or a damaged one."""
    rest = held[len(FORMAT) + 65 :]
    older = {"config": {"rounds": ROUNDS}, "round": 3}
    image = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    return {
        "empty": b"",
        "one byte": b"\0",
        "text": b"lr = 0.1\n",
        "JSON": b'{"round": 3}',
        "picture": image,
        "zip": b"PK\x03\x04" + bytes(100),
        "head alone": held[: len(FORMAT) + 65],
        "half": held[: len(held) // 2],
        "a byte short": held[:-1],
        "a byte more": held + b"\0",
        "two in one": held + held,
        "a part of the head": held[:20],
        "rest without head": rest,
        "another version": held.replace(b"checkpoint 4", b"checkpoint 3", 1),
        "without a digest": torched(older),
        "a list": torched([1, 2, 3]),
        "a tensor": torched(torch.zeros(3)),
        "a model": torched(torch.nn.Linear(2, 2).state_dict()),
        "a pickle": pickle.dumps(content["config"]),
        "a pickle with code": pickle.dumps(Trap(left)),
        "torch with code": torched({"round": Trap(left)}),
        "an array": np.zeros(3).dumps(),
    }


def torched(content: Any) -> bytes:
    """What torch.save writes."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def checkpoints(folder: Path) -> Iterator[Attempt]:
    """Every file in the place of the run's checkpoint."""
    path, left = folder / "run.pt", folder / "code has run"
    run(checkpoint=path)
    held, good = path.read_bytes(), read_sealed(path)
    refuse = partial(refused, path, left)
    for name, broken in files(held, good, left).items():
        yield partial(refuse, f"file, {name}", partial(path.write_bytes, broken))
    alone: Content = {
        "a list alone": [1],
        "a tensor alone": torch.zeros(2),
        "code alone": Trap(left),
    }
    for key in good:
        alone[f"without {key}"] = {k: v for k, v in good.items() if k != key}
    for name, content in alone.items():
        yield partial(refuse, f"sealed, {name}", partial(write_sealed, path, content))
    single = quadratics(A.float(), 0 * A.float(), level=0.5)
    other: dict[str, Callable[[], object]] = {
        **{f"another {name}": partial(run, method) for name, method in OTHERS.items()},
        "a grid": partial(run, [METHOD, OTHERS["lr"]]),
        "other seeds": partial(run, seeds=[1, 0]),
        "a seed less": partial(run, seeds=[0]),
        "more rounds": partial(run, rounds=ROUNDS + 1),
        "other evaluations": partial(run, evaluate_every=2),
        "other data": partial(run, METHOD, quadratics(2 * A, 0 * A, level=0.5)),
        "float32": partial(run, METHOD, single),
    }
    for name, begin in other.items():
        yield partial(refuse, f"of a run with {name}", partial(begin, checkpoint=path))


def refused(path: Path, left: Path, name: str, write: Callable[[], object]) -> Outcome:
    """What the run makes of the file; it must be left as it is, and no code may run."""
    write()
    before = path.read_bytes()
    found = judge(Case(name, lambda: run(checkpoint=path), ("checkpoint run.pt",)))
    if left.exists():
        return Outcome(name, "accepted", "its code has run")
    if found.kind == "good" and path.read_bytes() != before:
        return Outcome(name, "accepted", "the file was changed")
    path.unlink(missing_ok=True)
    return found


def traces(folder: Path) -> Iterator[Attempt]:
    """Files that are no saved trace, or were changed after they were written."""
    path = folder / "trace.json"
    run().save(path)
    text = path.read_text(encoding="utf-8")
    good = {k: v for k, v in json.loads(text).items() if k != "digest"}
    plain = {
        "empty": "",
        "text": "f 0.5",
        "a list": "[1, 2]",
        "half": text[: len(text) // 2],
        "a digit": text.replace('"lr": 0.1', '"lr": 0.2'),
        "another schema": text.replace('"schema": 1', '"schema": 9', 1),
        "without a digest": json.dumps(good),
    }

    def loaded(name: str, text: str) -> Outcome:
        path.write_text(text, encoding="utf-8")
        return judge(Case(name, partial(fl.Trace.load, path), ("trace.json",)))

    for name, broken in plain.items():
        yield partial(loaded, f"trace, {name}", broken)
    other = {**good, "kind": "run"}
    sealed = json_text({**other, "digest": digest(other)})
    yield partial(loaded, "trace sealed, of another kind", sealed)


def caches(folder: Path) -> Iterator[Attempt]:
    """Files of the data cache that are not what was published."""
    source = SOURCES["adult"].files[0]
    path, left = folder / source.path, folder / "code has run"
    path.parent.mkdir(parents=True, exist_ok=True)
    foreign = {
        "empty": b"",
        "text": b"not there",
        "a page of an error": b"<html>404</html>",
        "a pickle with code": pickle.dumps(Trap(left)),
        "its checksum": source.checksum.encode(),
        "a digest of itself": hashlib.sha256(b"").digest(),
    }

    def fetch() -> None:
        try:
            cache.fetch("adult")
        except cache.DataError as error:  # the cache's own kind of refusal
            raise ValueError(str(error)) from error

    def fetched(name: str, broken: bytes) -> Outcome:
        path.write_bytes(broken)
        with patch.dict(os.environ, {"FEDLIB_DATA": str(folder)}):
            found = judge(Case(name, fetch, (path.name,)))
        whole = path.read_bytes() == broken and not left.exists()
        return found if whole else Outcome(name, "accepted", "not left alone")

    for name, broken in foreign.items():
        yield partial(fetched, f"cache, {name}", broken)


def foreign(every: int = 1) -> Iterator[Outcome]:
    """All files, or every so many."""
    for part in (checkpoints, traces, caches):
        with tempfile.TemporaryDirectory() as folder:
            for number, attempt in enumerate(part(Path(folder))):
                if number % every == 0:
                    yield attempt()


if __name__ == "__main__":
    sys.exit(judging.main(WHAT, lambda _: foreign()))
