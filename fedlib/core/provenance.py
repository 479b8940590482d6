"""What a stored file says about the code and the machine that made it; no host, no person."""

from __future__ import annotations

import datetime
import platform
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]


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
    def git(*words: str) -> str:
        out = subprocess.run(
            ("git", *words), cwd=ROOT, capture_output=True, encoding="utf-8", check=False
        )
        return out.stdout.strip()

    if not (ROOT / ".git").exists():  # the library alone: no commit of ours
        return {"commit": None, "dirty": False}
    head = git("rev-parse", "--short=12", "HEAD")
    return {"commit": head or None, "dirty": bool(git("status", "--porcelain", "fedlib", "papers"))}
