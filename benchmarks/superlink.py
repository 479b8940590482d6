"""A federation of Flower on this machine: a SuperLink, SuperNodes, and runs submitted to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[1]
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_UPDATE_CHECK_ENABLED": "0",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.05",
    "OMP_NUM_THREADS": "1",
}


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Federation:
    """Processes that run in `folder`, each with a log of its own there."""

    folder: Path
    nodes: int
    port: int
    env: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]]

    def start(self, name: str, *command: str) -> None:
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

    def start_node(self, j: int) -> None:
        """SuperNode number j."""
        self.start(
            f"node-{j}",
            str(BIN / "flower-supernode"),
            "--insecure",
            "--superlink",
            f"127.0.0.1:{self.port}",
            "--port",
            str(free_port()),
            "--node-config",
            f"partition-id={j}",
        )

    def stop(self, name: str) -> None:
        """End a process and its group."""
        process = self.processes.pop(name)
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, sign)
                process.wait(3)

    def run(self, app: Path, settings: str, seconds: float) -> None:
        """Submit a run and wait for its end, which the file `done` in its folder tells."""
        told = subprocess.run(
            [str(BIN / "flwr"), "run", str(app), "local", "--run-config", settings],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=seconds,
        )
        if told.returncode:
            raise RuntimeError(f"flwr run: the run must start, got {told.stdout}{told.stderr}.")


def started_with(variable: bytes) -> Iterator[int]:
    """The processes with a variable: what Flower has started, and the clients' workers."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if variable in (place / "environ").read_bytes().split(b"\0"):
                yield int(place.name)


@contextmanager
def federation(folder: Path, nodes: int) -> Iterator[Federation]:
    """A SuperLink and its SuperNodes on the loopback, ended at the end."""
    port, home = free_port(), folder / "flwr"
    home.mkdir(parents=True)
    (home / "config.toml").write_text(
        '[superlink]\ndefault = "local"\n\n[superlink.local]\n'
        f'address = "127.0.0.1:{port}"\ninsecure = true\n',
        encoding="utf-8",
    )
    env = {**os.environ, **QUIET, "FLWR_HOME": str(home), "PYTHONPATH": str(ROOT)}
    env["PATH"] = f"{BIN}{os.pathsep}{env['PATH']}"
    its = Federation(folder, nodes, port, env, {})
    try:
        its.start(
            "superlink",
            str(BIN / "flower-superlink"),
            "--insecure",
            "--port",
            str(port),
            "--disable-runtime-dependency-installation",
        )
        for _ in range(600):
            with closing(socket.socket()) as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        for j in range(nodes):
            its.start_node(j)
        yield its
    finally:
        for name in list(its.processes):
            its.stop(name)
        for process in started_with(f"FLWR_HOME={home}".encode()):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
