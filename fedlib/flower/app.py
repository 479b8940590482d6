"""The server as a Flower app.

The ClientApp is in `examples/federation/client.py`, which imports neither torch nor this library.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from fedlib.core.files import atomic_write
from fedlib.flower.job import Job
from fedlib.flower.server import Server

PAUSE = 0.05  # seconds between two checks for answers
LOOK = 2.0  # seconds between two checks for new SuperNodes

Settings = Mapping[str, Any]


class Nodes:
    """A `Link` over Flower's SuperNodes, each of which tells its client number when asked."""

    def __init__(self, grid: Grid) -> None:
        self.grid, self.method = grid, ""  # every message contains the method
        self.node = dict[int, int]()  # client -> node, for clients that have told their number
        self.known = set[int]()  # nodes that were asked for their client number
        self.waiting = dict[int, bytes]()  # client -> message, for clients without a known node
        self.open = dict[str, int]()  # message without an answer -> node
        self.came: list[tuple[int, bytes | None]] = []
        self.looked = 0.0

    def send(self, client: int, data: bytes) -> None:
        """Send as in `Link`; the message is kept until the client's node is known."""
        if client in self.node:
            self.push(self.node[client], data)
        else:
            self.waiting[client] = data

    def push(self, node: int, data: bytes) -> None:
        """Send one message to one node."""
        content = RecordDict({"message": ConfigRecord({"data": data, "method": self.method})})
        message = Message(content, dst_node_id=node, message_type="query")
        self.open |= dict.fromkeys(self.grid.push_messages([message]), node)

    def receive(self, seconds: float) -> tuple[int, bytes | None] | None:
        """Receive as in `Link`; new nodes are asked for their client numbers."""
        until = time.monotonic() + seconds
        while True:
            if time.monotonic() > self.looked + LOOK:
                self.looked = time.monotonic()
                for node in set(self.grid.get_node_ids()) - self.known:
                    self.known.add(node)
                    self.push(node, b"")
            for message in self.grid.pull_messages(list(self.open)):
                self.take(message)
            if self.came or time.monotonic() > until:
                return self.came.pop(0) if self.came else None
            time.sleep(PAUSE)

    def take(self, message: Message) -> None:
        """Process one answer."""
        node = self.open.pop(message.metadata.reply_to_message_id, None)
        if node is None:
            return
        if message.has_error():  # its process or node is gone, and may come back as another node
            self.known.discard(node)
            gone = [j for j, its in self.node.items() if its == node]
            self.came += [(j, None) for j in gone if self.node.pop(j)]
            return
        answer: Any = message.content["message"]
        client = int(answer["client"])
        self.node[client] = node
        if answer["data"]:
            self.came.append((client, answer["data"]))
        if client in self.waiting:
            self.push(node, self.waiting.pop(client))


def server_app(
    job: Callable[[Settings], Job],
    watch: Callable[[str, int, Server, Settings], None] | None = None,
) -> ServerApp:
    """A ServerApp that runs one job for each method named in the run's configuration.

    It reads three entries of the run's configuration: `method` (names separated by blanks),
    `deadline` and `folder`, where it writes the last model of each method to `METHOD.pt`.

    Parameters
    ----------
    job : a function that returns the `Job` for a configuration with one name as `method`.
    watch : if given, called as `watch(method, round, server, run_config)` after every round.
    """
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        settings, nodes = context.run_config, Nodes(grid)
        deadline: Any = settings["deadline"]
        for method in str(settings["method"]).split():
            nodes.method = method
            server = Server(job({**settings, "method": method}), nodes, deadline)

            def after(t: int, _: Any, method: str = method, server: Server = server) -> None:
                print(f"{method}, round {t}")
                if watch:
                    watch(method, t, server, settings)

            model = server.run(after).w
            path = Path(str(settings["folder"])) / f"{method}.pt"
            atomic_write(path, partial(torch.save, model))

    return app
