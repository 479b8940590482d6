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
        self.grid = grid
        self.method = ""  # every message contains the method
        self.node_of: dict[int, int] = {}  # client -> node, for clients with a known node
        self.asked: set[int] = set()  # nodes that were asked for their client number
        self.waiting: dict[int, bytes] = {}  # client -> message, for clients without a known node
        self.open: dict[str, int] = {}  # message without an answer -> node
        self.answers: list[tuple[int, bytes | None]] = []
        self.last_look = 0.0

    def send(self, client: int, data: bytes) -> None:
        """Send to a client; the message is kept until the client's node is known."""
        if client in self.node_of:
            self.push(self.node_of[client], data)
        else:
            self.waiting[client] = data

    def push(self, node: int, data: bytes) -> None:
        """Send one message to one node."""
        record = ConfigRecord({"data": data, "method": self.method})
        message = Message(
            RecordDict({"message": record}),
            dst_node_id=node,
            message_type="query",
        )
        for message_id in self.grid.push_messages([message]):
            self.open[message_id] = node

    def receive(self, seconds: float) -> tuple[int, bytes | None] | None:
        """A client and its answer, or None on timeout; new nodes are asked for their numbers."""
        deadline = time.monotonic() + seconds
        while True:
            self.greet_new_nodes()
            for message in self.grid.pull_messages(list(self.open)):
                self.take(message)
            if self.answers:
                return self.answers.pop(0)
            if time.monotonic() > deadline:
                return None
            time.sleep(PAUSE)

    def greet_new_nodes(self) -> None:
        """Ask nodes that have joined for their client numbers, every `LOOK` seconds."""
        if time.monotonic() <= self.last_look + LOOK:
            return
        self.last_look = time.monotonic()
        for node in set(self.grid.get_node_ids()) - self.asked:
            self.asked.add(node)
            self.push(node, b"")

    def take(self, message: Message) -> None:
        """Process one answer."""
        node = self.open.pop(message.metadata.reply_to_message_id, None)
        if node is None:
            return
        if message.has_error():
            self.lose(node)
            return
        answer: Any = message.content["message"]
        client = int(answer["client"])
        self.node_of[client] = node
        if answer["data"]:
            self.answers.append((client, answer["data"]))
        if client in self.waiting:
            self.push(node, self.waiting.pop(client))

    def lose(self, node: int) -> None:
        """Forget a node whose process is gone; it may come back as another node."""
        self.asked.discard(node)
        lost = [client for client, number in self.node_of.items() if number == node]
        for client in lost:
            del self.node_of[client]
            self.answers.append((client, None))


def server_app(
    job: Callable[[Settings], Job],
    watch: Callable[[str, int, Server, Settings], None] | None = None,
) -> ServerApp:
    """A ServerApp that runs one job for each method named in the run's configuration.

    It reads three entries of the run's configuration: `method` (names separated by blanks),
    `deadline` and `folder`, where it writes the last model of each method to `METHOD.pt`.

    Parameters
    ----------
    job : Callable
        A function that returns the `Job` for a configuration with one name as `method`.
    watch : Callable or None
        If given, called as `watch(method, round, server, run_config)` after every round.
    """
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        settings = context.run_config
        deadline: Any = settings["deadline"]
        nodes = Nodes(grid)
        for method in str(settings["method"]).split():
            nodes.method = method
            server = Server(job({**settings, "method": method}), nodes, deadline)

            def after(
                t: int,
                _: Any,
                method: str = method,
                server: Server = server,
            ) -> None:
                print(f"{method}, round {t}")
                if watch is not None:
                    watch(method, t, server, settings)

            model = server.run(after).w
            path = Path(str(settings["folder"])) / f"{method}.pt"
            atomic_write(path, partial(torch.save, model))

    return app
