"""A client's process, which stays between Flower's messages: `python -m fedlib.flower.worker`."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import secrets
import signal
import sys
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

from fedlib.core.files import atomic_write
from fedlib.flower.client import Client
from fedlib.flower.job import Job

IDLE = 600  # seconds without a message, after which the process ends; its file has all it knows


def work(told: dict[str, Any]) -> None:
    """Answer messages until none comes for a while; of one client there is one such process."""
    me, folder = told["client"], Path(told["folder"])
    with open(folder / f"worker-{me}.lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # another one has been started just now
        module, _, function = told["job"].partition(":")
        job: Callable[..., Job] = getattr(importlib.import_module(module), function)
        clients = dict[str, Client]()  # by method, each in its own folder

        def answer(data: bytes) -> bytes:
            name, _, asked = data.partition(b"\0")
            method = name.decode()
            if method not in clients:
                own = folder / method
                own.mkdir(exist_ok=True)
                clients[method] = Client(job({**told["settings"], "method": method}), me, own)
            return clients[method].handle(asked)

        key = secrets.token_bytes(32)
        with Listener(("127.0.0.1", 0), authkey=key) as listener:
            address = json.dumps({"port": listener.address[1], "key": key.hex()}).encode()
            file = folder / f"worker-{me}.json"
            os.umask(0o077)  # who can read the key can speak for this client
            atomic_write(file, lambda opened: opened.write(address))
            while True:
                signal.alarm(IDLE)  # ends the process, its file is whole at any time
                try:
                    with listener.accept() as asker:
                        data = asker.recv_bytes()
                        signal.alarm(0)
                        asker.send_bytes(answer(data))
                except (OSError, EOFError, AuthenticationError):
                    pass  # who asked is gone, or was not who it said


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
