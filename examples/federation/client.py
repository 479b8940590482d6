"""What a SuperNode starts for every message: a ClientApp that hands it to a process which stays.

Importing torch and loading the data for each message would take longer than a round, so that a
worker has them: this file as a program, which is started with the first message and ends when none
comes for a while. So it must import neither torch nor fedlib before it is a worker.
"""

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

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

START = 300.0  # seconds until a worker must listen
IDLE = 600  # seconds without a message, after which it ends; the next one gets all again
PAUSE = 0.05

app = ClientApp()


@app.query()
def relay(message, context):
    """The answer of this node's worker, one for every run.

    The node's configuration says which client it is (`partition-id`), and may name the folder of
    the worker's files (`folder`, else the run's).
    """
    me = int(context.node_config["partition-id"])
    folder = Path(context.node_config.get("folder", context.run_config["folder"])).absolute()
    address_file = folder / f"worker-{context.run_id}-{me}.json"
    settings = {"client": me, "place": str(address_file), "run": dict(context.run_config)}
    sent = message.content["message"]
    data = sent["method"].encode() + b"\0" + sent["data"]
    answer = b""  # to an empty message: who are you?
    if sent["data"]:
        answer = ask_worker(data, address_file, settings)
    record = ConfigRecord({"client": me, "data": answer})
    return Message(RecordDict({"message": record}), reply_to=message)


def ask_worker(data, address_file, settings):
    """The answer of the worker, which is started where there is none."""
    log = address_file.with_suffix(".log")
    until = time.monotonic() + START
    started = False
    while True:
        try:
            at = json.loads(address_file.read_text(encoding="utf-8"))
            with connect(("127.0.0.1", at["port"]), authkey=bytes.fromhex(at["key"])) as worker:
                worker.send_bytes(data)
                return worker.recv_bytes()
        except (OSError, EOFError, ValueError) as error:
            if time.monotonic() > until:
                rule = f"client: the worker must listen within {START:g} s; see {log}."
                raise TimeoutError(rule) from error
        if not started:
            log.parent.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, __file__, json.dumps(settings)]
            with open(log, "ab") as log_file:
                subprocess.Popen(
                    command, stdin=-3, stdout=log_file, stderr=log_file, start_new_session=True
                )
            started = True
        time.sleep(PAUSE)


def work(settings):
    """Answer messages until none comes for a while."""
    from job import job

    from fedlib.flower.client import Client

    clients = {}  # of every method
    os.umask(0o077)  # who can read the key can speak for this client
    key = secrets.token_bytes(32)
    address_file = Path(settings["place"])
    with Listener(("127.0.0.1", 0), authkey=key) as listener:
        address_file.write_text(
            json.dumps({"port": listener.address[1], "key": key.hex()}), encoding="utf-8"
        )
        while True:
            signal.alarm(IDLE)  # ends the process
            with (
                suppress(OSError, EOFError, AuthenticationError),  # who asked is gone or unknown
                listener.accept() as asker,
            ):
                name, _, data = asker.recv_bytes().partition(b"\0")
                signal.alarm(0)
                method = name.decode()
                if method not in clients:
                    its = job({**settings["run"], "method": method})
                    clients[method] = Client(its, settings["client"])
                asker.send_bytes(clients[method].handle(data))


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
