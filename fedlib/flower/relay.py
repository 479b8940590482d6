"""Flower's half at a client: a ClientApp that hands messages to a process which stays.

Flower starts a new process for every message. Importing torch and loading the data each time would
take longer than a round, so that they are held by a worker (`fedlib.flower.worker`), which is
started with the first message and ends when none comes for a while. This file must therefore import
neither torch nor the rest of the library: an app loads it by its path (see `examples/federation`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from multiprocessing.connection import Client as connect
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

START = 300.0  # seconds until a worker must listen
PAUSE = 0.05


def client_app(job: str, path: str) -> ClientApp:
    """A ClientApp for `job`, "module:function" of a function from a run's configuration to a `Job`.

    `path` is the folder of that module. The node's configuration says which client it is
    (`partition-id`), and may name the folder of its file (`folder`, else the run's).
    """
    app = ClientApp()

    @app.query()
    def relay(message: Message, context: Context) -> Message:
        me = int(context.node_config["partition-id"])
        folder = Path(str(context.node_config.get("folder", context.run_config["folder"])))
        sent: Any = message.content["message"]
        answer = b""
        if sent["data"]:
            method = str(sent["method"]).encode()
            data = method + b"\0" + sent["data"]
            answer = asked(data, Place(job, path, me, folder.absolute(), dict(context.run_config)))
        record = ConfigRecord({"client": me, "data": answer})
        return Message(RecordDict({"message": record}), reply_to=message)

    return app


class Place:
    """Where a client's worker is found, and how it is started."""

    def __init__(
        self, job: str, path: str, me: int, folder: Path, settings: Mapping[str, Any]
    ) -> None:
        self.file, self.log = folder / f"worker-{me}.json", folder / f"worker-{me}.log"
        told = json.dumps({"job": job, "client": me, "folder": str(folder), "settings": settings})
        self.command = [sys.executable, "-m", "fedlib.flower.worker", told]
        self.path = path

    def start(self) -> None:
        """Start the worker, apart from this process."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        paths = [self.path, *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        with open(self.log, "ab") as log:
            subprocess.Popen(
                self.command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def asked(data: bytes, place: Place) -> bytes:
    """The worker's answer; it is started where there is none."""
    until, started = time.monotonic() + START, 0.0
    while True:
        try:
            told = json.loads(place.file.read_text(encoding="utf-8"))
            with connect(("127.0.0.1", told["port"]), authkey=bytes.fromhex(told["key"])) as worker:
                worker.send_bytes(data)
                return worker.recv_bytes()
        except (OSError, EOFError, ValueError) as error:
            if time.monotonic() > until:
                raise TimeoutError(
                    f"client_app: the worker must listen within {START:g} s; see {place.log}."
                ) from error
        if not started:
            place.start()
            started = time.monotonic()
        time.sleep(PAUSE)
