"""Memory that stays with the process between rounds.

glibc gives large blocks back to the system as soon as they are free, and every round would page
them in again, which takes longer than the arithmetic of models with a million parameters.
"""

import ctypes
import os
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # parameters of mallopt, from malloc.h
LARGEST_BLOCK = 1 << 30  # bytes; larger blocks still go back to the system at once
LARGEST_REST = (1 << 31) - 1  # bytes; free memory that may stay with the process


@cache
def keep_freed_memory() -> bool:
    """Let glibc keep freed memory for the next round; return whether it does so.

    It works on Linux with glibc and does nothing elsewhere. Environment variables such as
    `MALLOC_TRIM_THRESHOLD_`, by which a user has chosen other limits, have precedence.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018 - raises AttributeError in other libraries
        mallopt = libc.mallopt
    except (AttributeError, OSError, TypeError):
        return False
    is_kept = mallopt(M_MMAP_THRESHOLD, LARGEST_BLOCK) == 1
    return bool(mallopt(M_TRIM_THRESHOLD, LARGEST_REST) == 1 and is_kept)
