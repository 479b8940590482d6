"""A client's process, which stays between Flower's messages: `python -m fedlib.flower.worker`."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import secrets
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Listener
from pathlib import Path

from fedlib.core.whole import write_whole
from fedlib.federated.client import Client
from fedlib.federated.job import Job

IDLE = 600.0  # seconds without a message, after which the process ends; its file has all it knows


def job_of(name: str) -> Callable[..., Job]:
    """The function that "module:function" names."""
    module, _, function = name.partition(":")
    found: Callable[..., Job] = getattr(importlib.import_module(module), function)
    return found


def work(told: dict[str, object], idle: float = IDLE) -> None:
    """Answer messages until none comes for a while; of one client there is one such process."""
    me, folder = int(str(told["client"])), Path(str(told["folder"]))
    with open(folder / f"worker-{me}.lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # another one has been started just now
        clients = dict[str, Client]()  # by method, each in its own folder

        def answer(data: bytes) -> bytes:
            name, _, asked = data.partition(b"\0")
            method = name.decode()
            if method not in clients:
                own = folder / method
                own.mkdir(exist_ok=True)
                job = job_of(str(told["job"]))({**told["settings"], "method": method})  # type: ignore[dict-item]
                clients[method] = Client(job, me, own)
            return clients[method].handle(asked)

        key = secrets.token_bytes(32)
        with Listener(("127.0.0.1", 0), authkey=key) as listener:
            address = json.dumps({"port": listener.address[1], "key": key.hex()}).encode()
            file = folder / f"worker-{me}.json"
            os.umask(0o077)  # who can read the key can speak for this client
            write_whole(file, lambda opened: opened.write(address))
            while True:
                # its file is whole at any time, so that it can end anywhere
                timer = threading.Timer(idle, os._exit, [0])
                timer.daemon = True
                timer.start()
                try:
                    with listener.accept() as asker:
                        data = asker.recv_bytes()
                        timer.cancel()
                        asker.send_bytes(answer(data))
                except (OSError, EOFError):  # who asked is gone, or was not who it said
                    pass
                timer.cancel()


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
