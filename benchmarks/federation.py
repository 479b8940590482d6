"""The example's six methods on a real federation of Flower, against the simulation.

    python -m benchmarks.federation --json benchmarks/federation.json

A SuperLink and four SuperNodes on the loopback of this machine, two methods at a time. After every
second round the same server exchanges messages of the same sizes with an app that does nothing
else: what Flower takes itself, which polls and the start of processes make most of.

Models are compared with those of two simulations: `Vectorized`, and `Vectorized` whose messages go
through the same bytes, in which numbers are float32.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.bench import machine
from benchmarks.superlink import ROOT, Federation, federation
from fedlib import Vectorized
from fedlib.compress import Identity
from fedlib.core.client import ClientState, Reply
from fedlib.core.sampling import seeded
from fedlib.flower.packing import receive, send

APP = ROOT / "examples" / "federation"
OURS = ROOT / "benchmarks" / "federation_app"
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


def made(folder: Path, *, timed: bool = True) -> Path:
    """The example as an app that also keeps its models, and times plain Flower if `timed`."""
    app = folder / "app"
    shutil.copytree(APP, app, ignore=shutil.ignore_patterns("__pycache__"))
    (app / "client.py").rename(app / "relayed.py")
    for file in OURS.glob("*.py"):
        shutil.copy(file, app)
    config = app / "pyproject.toml"
    config.write_text(
        config.read_text(encoding="utf-8") + f"timed = {str(timed).lower()}\n", encoding="utf-8"
    )
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
    start = time.process_time()
    together = simulated(method, problem, len(held["rounds"]), Vectorized)
    seconds = (time.process_time() - start) / len(together)
    in_bytes = simulated(method, problem, len(held["rounds"]), InBytes)
    files = [folder / "run" / name / f"model-{t}.pt" for t in range(1, len(together) + 1)]
    models = [torch.load(file, weights_only=True) for file in files]
    later = held["rounds"][1:]  # the first has no beginning, and starts the clients' processes
    plain = [r["plain"] for r in later if r["plain"] is not None]
    return {
        "rounds": len(models),
        "parameters": problem.dim,
        "digits": str(problem.w0.dtype).removeprefix("torch."),
        "asks": held["asks"],
        "difference": apart(models, together),
        "in_bytes": apart(models, in_bytes),
        "bits": held["counted"],
        "bytes": held["sent"],
        "seconds": statistics.median(r["seconds"] for r in later),
        "plain": statistics.median(plain) if plain else None,
        "computation": seconds,
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


def main() -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3600.0, help="most that a run may take")
    parser.add_argument("--methods", nargs="*", default=list(methods()))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="federation-") as name:
        folder = Path(name)
        app = made(folder)
        with federation(folder, NODES) as fed:
            submit(fed, app, given.methods, given.rounds)
            wait(folder, given.methods, given.rounds, given.seconds)
        known = methods()
        found = {n: result(folder, n, known[n][0], known[n][1]()) for n in given.methods}
    held = {"machine": machine("cpu", 1), "nodes": NODES, "results": found, "finished": True}
    text = json.dumps(held, indent=1) + "\n"
    if given.json:
        given.json.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
