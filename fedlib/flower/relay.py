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
        told = {"job": job, "client": me, "folder": str(folder.absolute())}
        sent: Any = message.content["message"]
        answer = b""
        if sent["data"]:
            data = str(sent["method"]).encode() + b"\0" + sent["data"]
            answer = asked(data, {**told, "settings": dict(context.run_config)}, path)
        record = ConfigRecord({"client": me, "data": answer})
        return Message(RecordDict({"message": record}), reply_to=message)

    return app


def asked(data: bytes, told: dict[str, Any], path: str) -> bytes:
    """The answer of the client's worker, which is started where there is none."""
    place = Path(told["folder"]) / f"worker-{told['client']}.json"
    log, until, started = place.with_suffix(".log"), time.monotonic() + START, False
    while True:
        try:
            at = json.loads(place.read_text(encoding="utf-8"))
            with connect(("127.0.0.1", at["port"]), authkey=bytes.fromhex(at["key"])) as worker:
                worker.send_bytes(data)
                return worker.recv_bytes()
        except (OSError, EOFError, ValueError) as error:
            if time.monotonic() > until:
                raise TimeoutError(
                    f"client_app: the worker must listen within {START:g} s; see {log}."
                ) from error
        if not started:
            start(told, path, log)
            started = True
        time.sleep(PAUSE)


def start(told: dict[str, Any], path: str, log: Path) -> None:
    """Start a worker, apart from this process."""
    log.parent.mkdir(parents=True, exist_ok=True)
    paths = [path, *filter(None, [os.environ.get("PYTHONPATH")])]
    with open(log, "ab") as out:
        subprocess.Popen(
            [sys.executable, "-m", "fedlib.flower.worker", json.dumps(told)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
