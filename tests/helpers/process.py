"""Programs that are run to their end, in processes of their own."""

import subprocess
import sys


def ran(*words, check=False, **options):
    """The finished process; what it said is text."""
    plain = [str(w) for w in words]
    return subprocess.run(plain, capture_output=True, encoding="utf-8", check=check, **options)


def python(*words, **options):
    """The same of a program of Python."""
    return ran(sys.executable, *words, **options)
