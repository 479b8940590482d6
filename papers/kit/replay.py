"""Replaying stored runs: their first rounds by the code of a work tree, as one digest each.

Two trees that give a run the same digest compute the same rounds to the bit: the same states,
metrics and infos of its first seed, in the grid that the store computes it in, from the same data.
No code treats one seed otherwise than another, and some runs have a hundred.
Rounds are not recorded first, which would take longer than they do and changes no bit. The trees
are asked in processes of their own, by the same few lines, so that a tree of a commit before this
file can be asked too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

Run = tuple[str, str, str]  # study, profile, name


class Played(NamedTuple):
    """A run's key, a digest of its first rounds, the definitions it starts from, its setting."""

    key: str
    rounds: str
    roots: tuple[str, ...]
    config: dict[str, Any]


#: Run by the Python of today on the modules of a tree. One line a group: per run its key, the
#: digest of its rounds, and its roots. A study or a run that is not there is left out.
PLAY = """
import hashlib, json, sys
from dataclasses import replace
from functools import partial
from pathlib import Path
import numpy as np
from torch.utils import _pytree as pytree
from fedlib import run
from fedlib.engine import batch as batched
from papers import STUDIES
from papers.kit import store
from papers.kit.fingerprint import roots_of

assert Path(store.__file__).is_relative_to(Path.cwd()), store.__file__
batched.record = lambda function, *example, fixed=(), **how: partial(function, *fixed)
rounds, wanted = json.load(sys.stdin)

def parts(trace):
    for curves in (trace.metrics, trace.info):
        for name in sorted(curves):
            yield name, curves[name]
    models = () if trace.output is None else trace.output  # None would be a leaf
    for place, leaf in enumerate(pytree.tree_leaves((trace.state, models))):
        yield str(place), np.asarray(leaf)

def digest(trace):
    whole = hashlib.sha256()
    for name, array in parts(trace):
        whole.update(f"{name} {array.dtype} {array.shape}".encode())
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()

for study, profile, names in wanted:
    specs = STUDIES[study].specs(STUDIES[study].resolve(profile)) if study in STUDIES else {}
    for group in store.groups(specs):
        if not set(group) & set(names):
            continue
        first = next(iter(group.values()))
        few = first.seeds[:1]
        made = {seed: first.problem(seed) for seed in few}
        traces = run(
            [spec.algorithm for spec in group.values()], made.__getitem__, seeds=few,
            rounds=min(rounds, first.rounds), evaluate_every=first.evaluate_every, progress=False,
        )
        held = {name: replace(spec, problem=made.__getitem__) for name, spec in group.items()}
        found = {n: (spec.key(), digest(t)) for (n, spec), t in zip(held.items(), traces)}
        roots = {n: roots_of(s.algorithm, made[few[0]], s.problem) for n, s in group.items()}
        found = {n: (*pair, roots[n], held[n].config()) for n, pair in found.items()}
        print(json.dumps([study, profile, found]), flush=True)
"""


def play(tree: Path, runs: Iterable[Run], rounds: int) -> dict[Run, Played]:
    """The first rounds of some runs, by the code in a tree.

    Raises
    ------
    ValueError
        if the code of that tree cannot compute them.
    """
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for study, profile, name in runs:
        names[study, profile].append(name)
    done = subprocess.run(
        [sys.executable, "-c", PLAY],
        input=json.dumps([rounds, [(*where, held) for where, held in names.items()]]),
        cwd=tree, check=False, capture_output=True, encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(tree)},
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"replay: the code in {tree.name} must compute the rounds, got {last}.")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return {
        (study, profile, name): Played(key, digest, tuple(roots), config)
        for study, profile, found in lines
        for name, (key, digest, roots, config) in found.items()
    }
