"""Planted changes of two pages, one of a study and one of a note, in a process of their own."""

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("changed_pages.py")


def test_changes_of_a_page_are_noticed():
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--count", "2"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *short, last = done.stdout.splitlines()
    assert re.search(r" 13\d tried, ", last), last
    # What nothing else holds is not seen once the digest is made to match.
    assert all(
        line.startswith("accepted") and "the seconds that it took, digest made to match" in line
        for line in short
    ), done.stdout
