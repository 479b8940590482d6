"""Provenance of stored files: versions, commit and kind of machine, but no host or person."""

import datetime
import os
import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 20  # seconds to wait for git


def library_version() -> str:
    """The version of the installed library, which is set in pyproject.toml."""
    try:
        return version("fedlib")
    except PackageNotFoundError:  # a checkout on the path that nobody installed
        return "not installed"


def versions() -> dict[str, Any]:
    """Versions of the library and its dependencies, the commit, the kind of CPU, the date."""
    return {
        "fedlib": library_version(),
        **_commit(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "cpu": platform.machine(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


@lru_cache(maxsize=1)
def _commit() -> dict[str, Any]:
    """The commit of this library's work tree; None without git or outside such a work tree.

    The tree counts as changed if git cannot tell.
    """
    answer = _git("rev-parse", "--show-toplevel", "--short=12", "HEAD") or ""
    top, _, head = answer.rpartition("\n")
    is_work_tree = os.path.isdir(top) and os.path.samefile(top, ROOT)
    if not is_work_tree or not _git("ls-files", "fedlib/provenance.py"):
        return {"commit": None, "dirty": False}
    changes = _git("status", "--porcelain", "fedlib", "papers")
    return {"commit": head, "dirty": changes != ""}


def _git(*words: str) -> str | None:
    """The output of git in this folder; None if git fails, hangs, or is not installed."""
    # hooks of other repositories set variables that make git answer for those repositories
    environment = {
        name: setting for name, setting in os.environ.items() if not name.startswith("GIT_")
    }
    try:
        answer = subprocess.check_output(
            ("git", "--no-optional-locks", *words),
            cwd=ROOT,
            env=environment,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(answer).strip()
