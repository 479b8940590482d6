"""Provenance of stored files: versions, commit, kind of machine; no host, no person."""

import datetime
import os
import platform
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 20  # seconds for an answer of git


def versions() -> dict[str, Any]:
    """Versions of the library and of what it stands on, the commit, the kind of CPU, the day."""
    from fedlib import __version__

    return {
        "fedlib": __version__,
        **_commit(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "cpu": platform.machine(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


@lru_cache(maxsize=1)
def _commit() -> dict[str, Any]:
    """The commit of our own work tree; none where git, or its folder, is not there or not ours.

    Counts as changed where git cannot say.
    """
    place = _git("rev-parse", "--show-toplevel", "--short=12", "HEAD")
    top, _, head = (place or "").rpartition("\n")
    ours = os.path.isdir(top) and os.path.samefile(top, ROOT)
    if not ours or not _git("ls-files", "fedlib/provenance.py"):
        return {"commit": None, "dirty": False}
    return {"commit": head, "dirty": _git("status", "--porcelain", "fedlib", "papers") != ""}


def _git(*words: str) -> str | None:
    """The answer of git in our folder; None if it fails, hangs, or is not installed."""
    # hooks of other repositories set variables that make git answer for these
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    command = ("git", "--no-optional-locks", *words)
    try:
        answer = subprocess.check_output(
            command, cwd=ROOT, env=env, stderr=subprocess.DEVNULL, timeout=PATIENCE
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(answer).strip()
