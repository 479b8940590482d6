"""Freed memory stays with the process."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import os
for name in [name for name in os.environ if name.startswith("MALLOC_")]:
    del os.environ[name]
import resource
import torch
from fedlib.engine.memory import keep_freed_memory

def page_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(4_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.set_num_threads(1)
usual = page_faults()
assert keep_freed_memory()
page_faults()
print(usual, page_faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's thresholds alone are set")
def test_freed_memory_is_not_paged_in_again():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    usual, kept = map(int, done.stdout.split())
    assert usual > 500  # 20 times 16 MB, in pages of 4 KB or larger ones
    assert kept < usual / 5


def test_a_users_own_limits_have_precedence(monkeypatch):
    from fedlib.engine.memory import keep_freed_memory

    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000000")
    assert keep_freed_memory.__wrapped__() is False
