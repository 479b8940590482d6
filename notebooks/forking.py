"""Kernels as forks of one process that has imported the large packages.

Only for nbval, which starts a kernel for every notebook. Nothing of ours is imported before a fork:
every notebook still imports it by itself, with what it then warns of.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

#: What nearly every notebook comes to. Neither pandas, which sklearn imports, nor matplotlib: both
#: look at their import whether they are in a notebook.
LARGE = ("torch._dynamo", "scipy.stats", "ipykernel.kernelapp")


class Kernel:
    """A forked kernel, with as much of `subprocess.Popen` as jupyter_client asks for."""

    stdin = stdout = stderr = None

    def __init__(self, process: Any) -> None:
        self.process, self.pid = process, process.pid

    def poll(self) -> int | None:
        """Its exit status, None while it lives."""
        status: int | None = self.process.exitcode
        return status

    def wait(self) -> int | None:
        """Its exit status, when it has ended."""
        self.process.join()
        return self.poll()

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it lives."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def launch_kernel(
    cmd: Sequence[str], env: Mapping[str, str], cwd: str | None = None, **_: Any
) -> Kernel:
    """In place of that of jupyter_client: a fork that does what the command would do."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LARGE])
    words = [*cmd[cmd.index("ipykernel_launcher") :]]
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=serve, args=(words, dict(env), cwd, there), daemon=True)
    process.start()
    there.close()  # or a kernel that fails before it answers would be waited for
    here.recv()  # from now on a signal to its group is one to no other
    return Kernel(process)


def serve(words: list[str], env: dict[str, str], cwd: str | None, started: Any) -> None:
    """A kernel, in its own process, until it is shut down."""
    from ipykernel import kernelapp

    os.setsid()
    started.send(True)
    os.environ.clear()
    os.environ.update(env, JPY_PARENT_PID=str(os.getppid()))  # it ends with the process that forks
    os.chdir(cwd or ".")
    sys.argv = words
    kernelapp.launch_new_instance()
