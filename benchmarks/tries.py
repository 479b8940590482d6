"""How long the first tries take that the book suggests: a method, a problem, a study of one's own.

    python -m benchmarks.tries [TRY ...] [--json benchmarks/tries.json]

The commands are those of the tutorials' pages and of CONTRIBUTING.md, given in a fresh clone whose
`.venv` is this one; the clock runs from a command to the end of all that it starts.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench import KEPT, collected, machine
from papers.kit.commands import Parser, carried_out, nearest, new_file

ROOT = Path(__file__).resolve().parents[1]
#: A try's title, the additions of CONTRIBUTING.md that come before, and its commands.
TRIES = {
    "method": (
        "A method of one's own (averaging with momentum), and its page",
        0,
        ("make notebook NAME=tutorial_algorithm VIEW=html",),
    ),
    "scaffold": (
        "A method whose clients remember (SCAFFOLD), and its page",
        0,
        ("make notebook NAME=tutorial_scaffold VIEW=html",),
    ),
    "problem": (
        "A problem from a pandas frame, and its page",
        0,
        ("make notebook NAME=tutorial_problem VIEW=html",),
    ),
    "study": (
        "A small study of one's own, and its page",
        2,  # its method, then the study
        (
            "make reproduce NAME=clipping ARGS=--missing",
            'make notebook NAME=clipping VIEW=html ARGS="-p profile full"',
        ),
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the command line."""
    return carried_out(lambda: timed(arguments), "benchmarks.tries", KEPT)


def timed(arguments: list[str] | None) -> int:
    """Carry out every try, print its seconds, write JSON where it is asked to."""
    options = _parse(arguments)

    def one(name: str) -> dict[str, Any]:
        found = tried(name)
        for step in found["steps"]:
            print(f"{step['s']:7.1f} s  {step['command']}", flush=True)
        return found

    collected(options.json, machine("cpu", 1), options.tries or list(TRIES), one)
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="benchmarks.tries", description="Seconds of a newcomer's first tries.")
    parser.add_argument("tries", nargs="*", metavar="TRY", help=", ".join(TRIES) + "; all")
    parser.add_argument("--json", type=new_file, metavar="PATH", help="file to write")
    options = parser.parse_args(arguments)
    for name in options.tries:
        if name not in TRIES:
            known = nearest(name, TRIES)
            parser.error(f"argument tries: must be known names, got {name!r}, {known}")
    return options


def printed(language: str) -> list[str]:
    """The blocks of CONTRIBUTING.md in one language, in their order."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def tried(name: str) -> dict[str, Any]:
    """One try in a clone of its own: seconds of each command."""
    title, additions, commands = TRIES[name]
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(("git", "clone", "--quiet", ROOT, clone), check=True)
        (clone / ".venv").symlink_to(Path(sys.prefix))
        for diff in printed("diff")[:additions]:
            subprocess.run(("git", "apply", "-"), cwd=clone, input=diff.encode(), check=True)
        steps = [{"command": line, "s": seconds(line, clone)} for line in commands]
    return {"title": title, "steps": steps}


def seconds(line: str, clone: Path) -> float:
    """How long one command takes there."""
    make, *words = shlex.split(line)
    env = {**os.environ, "PYTHONPATH": str(clone)}
    began = time.perf_counter()
    # -o: the environment is there, though the clone's pins are younger
    subprocess.run(
        (make, "-o", ".venv/.stamp", *words),
        cwd=clone, env=env, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
