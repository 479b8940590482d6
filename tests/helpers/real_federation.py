"""The example's methods on a real federation of Flower, against the simulation.

Models are compared with those of two simulations: `Vectorized`, and `Vectorized` whose messages go
through the same bytes, in which numbers are float32.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import time
from pathlib import Path
from typing import Any

import torch

from fedlib import Vectorized
from fedlib.compress import Identity
from fedlib.core.client import ClientState, Reply
from fedlib.core.sampling import seeded
from fedlib.flower.packing import receive, send
from tests.helpers.superlink import ROOT, Federation

APP = ROOT / "examples" / "federation"
OURS = ROOT / "tests" / "helpers" / "federation_app"
NODES = 4
PLAIN = Identity()


class InBytes(Vectorized):
    """`Vectorized`, every message through the bytes that it has between processes."""

    def _map(self, method: Any, clients: ClientState, broadcast: Any, wire: Any) -> Any:
        sent = [through(PLAIN, x) for x in broadcast]
        answer = super()._map(method, clients, sent, wire)
        upload = answer.upload if isinstance(answer, Reply) else answer
        noise = clients.noise if isinstance(clients.noise, torch.Tensor) else [()] * len(upload)
        upload = torch.stack(
            [through(wire, x, drawn) for x, drawn in zip(upload, noise, strict=True)]
        )
        return answer._replace(upload=upload) if isinstance(answer, Reply) else upload

    def broadcast(
        self, wire: Any, message: Any, noise: Any = (), receivers: int | None = None
    ) -> Any:
        """As in `Federation`."""
        return through(wire, super().broadcast(wire, message, noise, receivers), noise)


def through(wire: Any, x: Any, noise: Any = ()) -> Any:
    """What arrives of a message."""
    return receive(wire, send(wire, x, noise), x, noise)


def made(folder: Path) -> Path:
    """The example as an app that also keeps its models."""
    app = folder / "app"
    shutil.copytree(APP, app, ignore=shutil.ignore_patterns("__pycache__"))
    for file in OURS.glob("*.py"):
        shutil.copy(file, app)
    return app


def methods() -> dict[str, Any]:
    """The example's methods and problems."""
    spec = importlib.util.spec_from_file_location("job", APP / "job.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Any] = module.METHODS
    return found


def submit(fed: Federation, app: Path, names: list[str], rounds: int) -> None:
    """Two runs of Flower, each of which does one method after another."""
    for lane in (names[::2], names[1::2]):
        if lane:
            fed.run(app, f'method="{" ".join(lane)}" rounds={rounds} folder="{fed.folder / "run"}"')


def wait(folder: Path, names: list[str], rounds: int, seconds: float) -> list[str]:
    """Until every method has done its rounds, or the time is over; those that have not."""
    until = time.monotonic() + seconds
    while left := [n for n in names if len(told(folder, n)["rounds"]) < rounds]:
        if time.monotonic() > until:
            break
        time.sleep(1)
    return left


def told(folder: Path, name: str) -> dict[str, Any]:
    """What a server has written."""
    try:
        text = (folder / "run" / name / "result.json").read_text(encoding="utf-8")
        found: dict[str, Any] = json.loads(text)
    except (OSError, ValueError):  # not yet, or just being written
        return {"rounds": []}
    return found


def result(folder: Path, name: str, method: Any, problem: Any) -> dict[str, Any]:
    """How far the models are from the simulation's, and what was measured."""
    held = told(folder, name)
    together = simulated(method, problem, len(held["rounds"]), Vectorized)
    in_bytes = simulated(method, problem, len(held["rounds"]), InBytes)
    files = [folder / "run" / name / f"model-{t}.pt" for t in range(1, len(together) + 1)]
    models = [torch.load(file, weights_only=True) for file in files]
    return {
        "rounds": len(models),
        "difference": apart(models, together),
        "in_bytes": apart(models, in_bytes),
        "bits": held["counted"],
        "bytes": held["sent"],
    }


def simulated(method: Any, problem: Any, rounds: int, engine: Any) -> list[Any]:
    """The model after each round of a simulation."""
    state, rng, models = method.init(problem), seeded(0, "rounds"), []
    for _ in range(rounds):
        state, _ = method.round(engine(problem), state, method.draw(problem, rng))
        models.append(state.w)
    return models


def apart(some: list[Any], others: list[Any]) -> float:
    """The largest difference of two entries."""
    return max(float((a - b).abs().max()) for a, b in zip(some, others, strict=True))
