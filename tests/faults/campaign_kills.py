"""Kills of the campaign at random times: finished afterwards, it must equal one left alone.

    python tests/faults/campaign_kills.py [--store] [--count N]

The campaign of some studies, whose full profile is their quick one here and whose papers ask for
more rounds and seeds, with two groups at a time. Either the program is killed (SIGKILL) or one of
the two processes that compute for it; then it is begun again in the same folder, and killed again.
All are forks of this process, so that one import is paid for and one recording of every round, and
write a checkpoint after every few rounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from unittest.mock import patch

import judging
import numpy as np
import torch
from judging import Outcome
from kills import gone

import fedlib as fl
import papers
from fedlib.core.files import PART, digest, read_json
from fedlib.engine import loop as walk
from papers import campaign, jobs
from papers.kit import store
from papers.kit.commands import carried_out
from papers.kit.shares import HELD
from papers.kit.store import Spec
from papers.kit.study import Params

WHAT = "kills of the campaign"
COUNT = 20
STARTS = 5  # that may be needed to finish, after the last kill
MOST = 1.0  # seconds until a kill, after something was written
#: What the papers of these studies ask for, here, and which of their runs there are.
PAPERS = {
    "np_workshop": ({"rounds": 160, "seeds": (0, 1, 2)}, "*_lr*"),
    "cmoo_sweeps": ({"step_rounds": 8}, "mnist_fashion_fedcmoo_steps*"),
}


def small() -> list[papers.Study]:
    """The studies, as small as their quick profile, with papers that ask for a little more."""
    found = []
    for name, (more, pattern) in PAPERS.items():
        study = papers.STUDIES[name]
        profiles = {**study.profiles, "full": study.profiles["quick"]}
        few = partial(some, study, pattern)
        papers.STUDIES[name] = replace(study, profiles=profiles, at_paper=more, specs=few)
        found.append(papers.STUDIES[name])
    return found


def some(study: papers.Study, pattern: str, params: Params) -> dict[str, Spec]:
    """The runs of a study with such a name."""
    return {name: spec for name, spec in study.specs(params).items() if fnmatch(name, pattern)}


def begin(studies: list[papers.Study], folder: Path) -> int:
    """The campaign in a fork, whose process this gives; its exit status is the campaign's."""
    if process := os.fork():
        return process
    status = 9
    with suppress(BaseException):
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os.environ["FEDLIB_RESULTS"] = str(folder)
        status = carried_out(lambda: campaign.carry_out(studies, 2, None, "cpu"), "papers", "on")
    os._exit(status)


def here(studies: list[papers.Study], folder: Path) -> None:
    """The campaign in this process, one group after the other, without a stop."""
    os.environ["FEDLIB_RESULTS"] = str(folder)
    with patch.object(campaign, "spread", lambda some, *_, **__: map(jobs.work, some)):
        campaign.carry_out(studies, 1, None, "cpu")


def finish(studies: list[papers.Study], folder: Path) -> None:
    """Carry the campaign out to its end."""
    for _ in range(STARTS):
        _, status = os.waitpid(begin(studies, folder), 0)
        if status == 0 and not [*folder.rglob(f"*{HELD}")]:
            return
        time.sleep(0.5)  # processes of one that was killed see that a moment later
    raise RuntimeError(f"the campaign does not end: status {status}")


def left(folder: Path) -> str:
    """All stored runs but for times, as a digest; and what should not be there."""
    found = {}
    for path in sorted(folder.rglob("*/paper/*.json")):
        held = read_json(path, "run")
        found[path.name] = {k: v for k, v in held.items() if k not in ("provenance", "digest")}
    rest = [p.name for p in folder.rglob("*") if PART in p.name or p.suffix in (HELD, ".pt")]
    return f"{len(found)} runs {digest(found)[:12]} {rest or ''}"


def files(folder: Path) -> dict[str, int]:
    """The checkpoints and runs in a folder, and when they were written."""
    found = {}
    for path in (*folder.rglob("*.pt"), *folder.rglob("*.json")):
        with suppress(FileNotFoundError):
            found[path.name] = path.stat().st_mtime_ns
    return found


def kill(studies: list[papers.Study], folder: Path, rng: np.random.Generator) -> str:
    """Begin, and kill it or one of its processes at a random time; where, empty if too late.

    Most times are after the first that it writes: before, it records its rounds for long.
    """
    before, process = files(folder), begin(studies, folder)
    late, one = rng.random() < 0.8, rng.random() < 0.4
    while late and files(folder) == before and not gone(process):
        time.sleep(0.005)
    time.sleep(rng.uniform(0, MOST))
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()
    victim = int(children[0]) if one and children else process
    with suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    stored = len([*folder.rglob("*/paper/*.json")])
    checkpoints = len([*folder.rglob("*.pt")])
    which = "the program" if victim == process else "a process of it"
    ended = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
    return "" if ended else f"{which}, {stored} stored, {checkpoints} checkpoints"


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """So many kills of one campaign, and whether it ends as it should."""
    rng = np.random.default_rng(options.seed)
    count = options.count or COUNT
    jobs.CONTEXT, walk.CHUNK = "fork", 4  # the numbers are the same
    torch.set_num_threads(1)
    store.run = partial(fl.run, checkpoint_seconds=0)  # type: ignore[assignment]
    studies = small()
    os.environ["TQDM_DISABLE"] = "1"
    with tempfile.TemporaryDirectory() as place:
        alone, killed = Path(place) / "alone", Path(place) / "killed"
        for folder in (alone, killed):
            folder.mkdir()
        here(studies, alone)
        wanted, ends, where = left(alone), list[str](), list[str]()
        while len(where) < count:
            if found := kill(studies, killed, rng):
                where.append(found)
                print(found, file=sys.stderr, flush=True)
            else:  # it came to its end
                ends.append(left(killed))
                shutil.rmtree(killed)
                killed.mkdir()
        finish(studies, killed)
        ends.append(left(killed))
        kind = "good" if {*ends} == {wanted} else "accepted"
        for number, said in enumerate(where, start=1):
            yield Outcome(f"kill {number}: {said}", kind, f"{ends} for {wanted}")


if __name__ == "__main__":
    sys.exit(judging.main(WHAT, outcomes))
