"""Freed memory stays with the process."""

import platform
import resource
import subprocess
import sys
from pathlib import Path

import pytest

#: Blocks above 32 MB, from which on glibc gives each back at once, and never learns to keep it.
TIMES = 5
NUMBERS = 10_000_000
HUGE = Path("/sys/kernel/mm/transparent_hugepage")
PROGRAM = f"""
import os
for name in [name for name in os.environ if name.startswith("MALLOC_")]:
    del os.environ[name]
import resource
import torch
from fedlib.engine.memory import keep_freed_memory

def page_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range({TIMES}):
        torch.ones({NUMBERS})
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.set_num_threads(1)
usual = page_faults()
assert keep_freed_memory()
page_faults()
print(usual, min(page_faults() for _ in range(3)))  # the system may reclaim idle pages in one
"""


def largest_page():
    """The bytes that one page fault can bring in: a huge page's where the system gives these."""
    if HUGE.exists() and "[always]" in (HUGE / "enabled").read_text():
        return int((HUGE / "hpage_pmd_size").read_text())
    return resource.getpagesize()


@pytest.mark.weekly
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's thresholds alone are set")
def test_freed_memory_is_not_paged_in_again():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    usual, kept = map(int, done.stdout.split())
    whole_pages = 4 * NUMBERS // largest_page() - 1  # of a block, at least, wherever it begins
    assert usual >= TIMES * whole_pages
    assert kept < usual / 10


def test_a_users_own_limits_have_precedence(monkeypatch):
    from fedlib.engine.memory import keep_freed_memory

    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000000")
    assert keep_freed_memory.__wrapped__() is False
