"""Flower's half at a client: a ClientApp that hands messages to a process which stays.

Flower starts a new process for every message. Importing torch and loading the data each time would
take longer than a round, so that a worker has them, a process which is started with the first
message and ends when none comes for a while. This file must therefore import neither torch nor the
rest of the library before it is a worker: an app loads it by its path (see `examples/federation`).
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client as connect
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

START = 300.0  # seconds until a worker must listen
IDLE = 600  # seconds without a message, after which it ends; the client's file has all it knows
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
        settings: dict[str, Any] = {"client": me, "folder": str(folder.absolute())}
        settings |= {"job": job, "path": path, "run": dict(context.run_config)}
        sent: Any = message.content["message"]
        data = str(sent["method"]).encode() + b"\0" + sent["data"]
        answer = ask_worker(data, settings) if sent["data"] else b""
        record = ConfigRecord({"client": me, "data": answer})
        return Message(RecordDict({"message": record}), reply_to=message)

    return app


def ask_worker(data: bytes, settings: dict[str, Any]) -> bytes:
    """The answer of the client's worker, which is started where there is none."""
    place = Path(settings["folder"]) / f"worker-{settings['client']}.json"
    log, until, started = place.with_suffix(".log"), time.monotonic() + START, False
    while True:
        try:
            at = json.loads(place.read_text(encoding="utf-8"))
            with connect(("127.0.0.1", at["port"]), authkey=bytes.fromhex(at["key"])) as worker:
                worker.send_bytes(data)
                return worker.recv_bytes()
        except (OSError, EOFError, ValueError) as error:
            if time.monotonic() > until:
                rule = f"client_app: the worker must listen within {START:g} s; see {log}."
                raise TimeoutError(rule) from error
        if not started:
            log.parent.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-m", "fedlib.flower.relay", json.dumps(settings)]
            paths = filter(None, [settings["path"], os.environ.get("PYTHONPATH")])
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
            with open(log, "ab") as out:
                subprocess.Popen(
                    command, env=env, stdin=-3, stdout=out, stderr=out, start_new_session=True
                )
            started = True
        time.sleep(PAUSE)


def work(settings: dict[str, Any]) -> None:
    """Answer messages until none comes for a while; of one client there is one such process."""
    from fedlib.flower.client import Client

    me, folder = settings["client"], Path(settings["folder"])
    module, _, function = settings["job"].partition(":")
    job, clients = getattr(importlib.import_module(module), function), dict[str, Client]()
    os.umask(0o077)  # who can read the key can speak for this client
    key, file = secrets.token_bytes(32), folder / f"worker-{me}.json"
    with (
        open(folder / f"worker-{me}.lock", "w", encoding="utf-8") as lock,
        Listener(("127.0.0.1", 0), authkey=key) as listener,
    ):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # another one has been started just now
        file.write_text(json.dumps({"port": listener.address[1], "key": key.hex()}))
        while True:
            signal.alarm(IDLE)  # ends the process; its client's file is complete at any time
            with (
                suppress(OSError, EOFError, AuthenticationError),  # who asked is gone or unknown
                listener.accept() as asker,
            ):
                name, _, data = asker.recv_bytes().partition(b"\0")
                signal.alarm(0)
                method = name.decode()
                if method not in clients:  # each in its own folder
                    own = folder / method
                    own.mkdir(exist_ok=True)
                    clients[method] = Client(job({**settings["run"], "method": method}), me, own)
                asker.send_bytes(clients[method].handle(data))


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
