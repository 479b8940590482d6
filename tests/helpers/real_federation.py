"""The example's methods on a real federation of Flower, against the simulation.

Models are compared with those of two simulations: `Vectorized`, and `Vectorized` whose messages go
through the same bytes, in which numbers are float32.
"""

import importlib.util
import json
import shutil
import time

import torch

from fedlib import Vectorized
from fedlib.compress import Identity
from fedlib.core.client import Reply
from fedlib.flower.packing import receive, send
from tests.helpers.rounds import walk
from tests.helpers.superlink import ROOT

APP = ROOT / "examples" / "federation"
OURS = ROOT / "tests" / "helpers" / "federation_app"
NODES = 4
PLAIN = Identity()


class InBytes(Vectorized):
    """`Vectorized`, every message through the bytes that it has between processes."""

    def _map(self, method, clients, broadcast, wire):
        received = [through(PLAIN, x) for x in broadcast]
        answer = super()._map(method, clients, received, wire)
        uploads = answer.upload if isinstance(answer, Reply) else answer
        noise = clients.noise
        if not isinstance(noise, torch.Tensor):
            noise = [()] * len(uploads)
        arrived = [through(wire, x, drawn) for x, drawn in zip(uploads, noise, strict=True)]
        upload = torch.stack(arrived)
        return answer._replace(upload=upload) if isinstance(answer, Reply) else upload

    def broadcast(self, wire, message, noise=(), receivers=None):
        """As in `Federation`."""
        return through(wire, super().broadcast(wire, message, noise, receivers), noise)


def through(wire, x, noise=()):
    """What arrives of a message."""
    return receive(wire, send(wire, x, noise), x, noise)


def made(folder):
    """The example as an app that also keeps its models."""
    app = folder / "app"
    shutil.copytree(APP, app, ignore=shutil.ignore_patterns("__pycache__"))
    for file in OURS.glob("*.py"):
        shutil.copy(file, app)
    return app


def methods():
    """The example's methods and problems."""
    spec = importlib.util.spec_from_file_location("job", APP / "job.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.METHODS


def submit(fed, app, names, rounds):
    """Two runs of Flower, each of which does one method after another."""
    for lane in (names[::2], names[1::2]):
        if lane:
            names_in_turn = " ".join(lane)
            settings = f'method="{names_in_turn}" rounds={rounds} folder="{fed.folder / "run"}"'
            fed.run(app, settings)


def wait(folder, names, rounds, seconds):
    """Until every method has done its rounds, or the time is over; those that have not."""
    until = time.monotonic() + seconds
    while left := [n for n in names if len(written(folder, n)["rounds"]) < rounds]:
        if time.monotonic() > until:
            break
        time.sleep(1)
    return left


def written(folder, name):
    """What a server has written."""
    try:
        text = (folder / "run" / name / "result.json").read_text(encoding="utf-8")
        content = json.loads(text)
    except (OSError, ValueError):  # not yet, or just being written
        return {"rounds": []}
    return content


def result(folder, name, method, problem):
    """How far the models are from the simulation's, and what was measured."""
    content = written(folder, name)
    rounds = len(content["rounds"])
    together = simulated(method, problem, rounds, Vectorized)
    in_bytes = simulated(method, problem, rounds, InBytes)
    files = [folder / "run" / name / f"model-{t}.pt" for t in range(1, len(together) + 1)]
    models = [torch.load(file, weights_only=True) for file in files]
    return {
        "rounds": len(models),
        "difference": apart(models, together),
        "in_bytes": apart(models, in_bytes),
        "bits": content["counted"],
        "bytes": content["sent"],
    }


def simulated(method, problem, rounds, engine):
    """The model after each round of a simulation."""
    models = []
    for _, _, state, _ in walk(method, problem, rounds, engine):
        models.append(state.w)
    return models


def apart(models, expected):
    """The largest difference of two entries."""
    return max(float((a - b).abs().max()) for a, b in zip(models, expected, strict=True))
