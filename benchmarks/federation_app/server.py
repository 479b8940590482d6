"""The example's server, which also keeps every model, and times plain Flower between rounds."""

import json
import time
from pathlib import Path

import torch
from flwr.app import ConfigRecord, Message, RecordDict
from job import job

from fedlib.flower.app import PAUSE, server_app

began, rounds = {}, {}


def plain(server, frames):
    """Seconds that plain Flower takes for a round's messages, there and back, in their sizes."""
    grid, nodes, start = server.link.grid, server.link.node, time.monotonic()
    for frame, answer in frames:
        content = RecordDict({"message": ConfigRecord({"data": bytes(frame), "answer": answer})})
        to = [nodes[j] for j in list(nodes)[: len(server.asked_last)]]
        sent = [Message(content, dst_node_id=node, message_type="train") for node in to]
        left = set(grid.push_messages(sent))
        while left:
            time.sleep(PAUSE)
            left -= {m.metadata.reply_to_message_id for m in grid.pull_messages(list(left))}
    return time.monotonic() - start


def watch(method, t, server, settings):
    """Keep the model, the bits and the seconds of a round; then the plain exchange."""
    now = time.monotonic()
    folder = Path(settings["folder"]) / method
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(server.place.state.w, folder / f"model-{t}.pt")
    asks = len(server.place.blanks)
    ends = [i for i, event in enumerate(server.log) if event.kind == "over"]
    begin = ends[-2] if len(ends) > 1 else 0
    frames = [event for event in server.log[begin:] if event.kind == "message"]
    up = server.sent["up"] - sum(r["up"] for r in rounds.get(method, []))
    server.asked_last = max((f.clients for f in frames[:asks]), key=len)
    each = max(1, up // max(1, asks * len(server.asked_last)))
    lengths = [(sum(len(f.data) for f in frames) // asks, each)] * asks
    seconds = now - began.get(method, now)
    kept = rounds.setdefault(method, [])
    kept.append(
        {
            "seconds": seconds,
            "up": up,
            "plain": plain(server, lengths) if settings["timed"] and t % 2 == 0 else None,
        }
    )
    told = {"counted": server.counted, "sent": server.sent, "rounds": kept, "asks": asks}
    (folder / "result.json").write_text(json.dumps(told), encoding="utf-8")
    began[method] = time.monotonic()


app = server_app(job, watch)
