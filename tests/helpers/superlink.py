"""A federation of Flower on this machine: a SuperLink, SuperNodes, and runs submitted to it."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[2]
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_UPDATE_CHECK_ENABLED": "0",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.05",
    "OMP_NUM_THREADS": "1",
}


def free_port():
    """A port of this machine that nobody listens on."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


#: What the page tells who sets a federation up: an authority, and the SuperLink's certificate.
CERTIFICATES = (
    "openssl req -x509 -newkey rsa:3072 -nodes -days 365 -subj /CN=authority "
    "-keyout ca.key -out ca.crt",
    "openssl req -newkey rsa:3072 -nodes -subj /CN=HOST "
    "-addext subjectAltName=DNS:HOST,IP:127.0.0.1 -keyout server.key -out server.csr",
    "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -days 365 -copy_extensions copy "
    "-out server.pem",
)
KEY = "ssh-keygen -q -t ecdsa -b 384 -N '' -f node-NUMBER"
SAFE_LINK = (
    *("--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.pem"),
    *("--ssl-keyfile", "server.key", "--enable-supernode-auth", "--host", "0.0.0.0"),
)
SAFE_NODE = ("--root-certificates", "ca.crt", "--auth-supernode-private-key", "node-NUMBER")


@dataclass
class Federation:
    """Processes that run in `folder`, each with a log of its own there."""

    folder: Path
    nodes: int
    port: int
    env: dict[str, str]
    secure: bool
    processes: dict[str, subprocess.Popen[bytes]]

    @property
    def host(self):
        """Where the SuperLink listens; a certificate is for a name."""
        return "localhost" if self.secure else "127.0.0.1"

    def start(self, name, *command):
        """One process in a session of its own, so that its children end with it."""
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_link(self):
        """The SuperLink, which then listens."""
        self.start(
            "superlink",
            str(BIN / "flower-superlink"),
            *(SAFE_LINK if self.secure else ["--insecure"]),
            "--port",
            str(self.port),
            "--disable-runtime-dependency-installation",
        )
        for _ in range(600):
            with closing(socket.socket()) as connection:
                if connection.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"superlink: it must listen within a minute; see {self.folder}.")

    def start_node(self, j, *, known=True):
        """SuperNode number j; where keys are asked for, one that the SuperLink has been told."""
        safe = [word.replace("NUMBER", str(j)) for word in SAFE_NODE]
        if self.secure:
            self.command(*shlex.split(KEY.replace("NUMBER", str(j))))
            if known:
                self.command(
                    str(BIN / "flwr"),
                    "supernode",
                    "register",
                    f"node-{j}.pub",
                    "local",
                )
        self.start(
            f"node-{j}",
            str(BIN / "flower-supernode"),
            *(safe if self.secure else ["--insecure"]),
            "--superlink",
            f"{self.host}:{self.port}",
            "--port",
            str(free_port()),
            "--node-config",
            f"partition-id={j}",
        )

    def stop(self, name):
        """End a process and its group."""
        process = self.processes.pop(name)
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, sign)
                process.wait(3)

    def run(self, app, settings):
        """Submit a run."""
        self.command(
            str(BIN / "flwr"),
            "run",
            str(app),
            "local",
            "--run-config",
            settings,
        )

    def command(self, *words):
        """A command that ends by itself; raises RuntimeError with what it says if it fails."""
        process = subprocess.run(
            words,
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
        )
        if process.returncode:
            output = process.stdout + process.stderr
            raise RuntimeError(f"{' '.join(words)}: it must succeed, got {output}.")


def started_with(variable):
    """The processes with a variable: what Flower has started, and the clients' workers."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            variables = (process / "environ").read_bytes().split(b"\0")
            if variable in variables:
                yield int(process.name)


@contextmanager
def federation(folder, nodes, *, secure=False):
    """A SuperLink and its SuperNodes on the loopback, ended at the end.

    `secure`: all connections encrypted, and only SuperNodes with a registered key are let in.
    """
    port = free_port()
    home = folder / "flwr"
    home.mkdir(parents=True)
    env = {**os.environ, **QUIET, "FLWR_HOME": str(home), "PYTHONPATH": str(ROOT)}
    env["PATH"] = f"{BIN}{os.pathsep}{env['PATH']}"
    running = Federation(
        folder,
        nodes,
        port,
        env,
        secure,
        {},
    )
    security = "insecure = true"
    if secure:
        security = f'root-certificates = "{folder / "ca.crt"}"'
        for line in CERTIFICATES:
            running.command(*shlex.split(line.replace("HOST", "localhost")))
    (home / "config.toml").write_text(
        '[superlink]\ndefault = "local"\n\n[superlink.local]\n'
        f'address = "{running.host}:{port}"\n{security}\n',
        encoding="utf-8",
    )
    try:
        running.start_link()
        for j in range(nodes):
            running.start_node(j)
        yield running
    finally:
        for name in list(running.processes):
            running.stop(name)
        for process in started_with(f"FLWR_HOME={home}".encode()):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
