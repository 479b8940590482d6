"""Fixtures of the library's tests."""

import os
import signal
from pathlib import Path

import pytest

from tests.helpers.process import python

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def other_process(tmp_path_factory):
    """The folder in which another process, with another hash seed, has left what it did.

    It is one process for all tests, since each imports torch: see `tests.helpers.other_process`.
    """
    folder = tmp_path_factory.mktemp("other_process")
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    program = "tests.helpers.other_process"
    done = python("-m", program, folder, cwd=ROOT, env=environment)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    return folder
