"""The example's server, which also keeps every model, and what crossed the line so far."""

import json
from pathlib import Path

import torch
from job import job

from fedlib.flower.app import server_app

rounds = {}


def watch(method, t, server, settings):
    """Keep the model and the bits of a round."""
    folder = Path(settings["folder"]) / method
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(server.place.state.w, folder / f"model-{t}.pt")
    rounds.setdefault(method, []).append(t)
    result = {"counted": server.counted, "sent": server.sent, "rounds": rounds[method]}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


app = server_app(job, watch)
