"""Every argument of the papers' makers of problems, bad."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bad_values as bad
import torch
from bad_makers import COUNT_OR_NONE, of, quadratic, rng
from bad_values import Calls, tensors, without
from judging import Case

from fedlib import data
from papers.arena.problems import arena_problem, weighted
from papers.fedcmoo.common import pair_problem
from papers.fedcmoo.problems.generated_molecules import generated
from papers.fedcmoo.standin import standin_pairs, standin_problem
from papers.fedfw.feasible_data import constrained_pictures, constrained_synthetic
from papers.fedfw.gaussian_labels import gaussian_labels
from papers.fedsgm.problems import norms, sampled, staircase, weakly_convex
from papers.ssca.common import digits_problem


def plain(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Those that can be the key of a cache, which is in front of some makers."""
    return tuple(v for v in values if v.__hash__ is not None)


def papers() -> Iterator[Calls]:
    """Makers of the studies' problems."""
    table = data.digits()
    arena = {"seed": 0, "name": "sparse"}
    forms = {"name": plain(bad.TEXT), "form": plain((*bad.TEXT, "pool"))}
    hashable = plain(bad.WHOLE)
    yield of(arena_problem, arena, seed=hashable, **forms, stand_in=hashable)
    ratio = bad.POSITIVE
    yield of(weighted, {"problem": quadratic(), "ratio": 1.0}, problem=bad.PROBLEM[:4], ratio=ratio)
    pictures = {"train": table, "test": table, "data": "digits", "train_rows": 60}
    optional = dict.fromkeys(("labels", "train_rows", "test_rows", "measured"), COUNT_OR_NONE)
    yield of(
        constrained_pictures,
        pictures,
        train=bad.RECORD,
        test=bad.RECORD,
        data=bad.TEXT,
        model=bad.TEXT,
        hidden=bad.COUNT,
        clients=bad.COUNT,
        seed=bad.SEED,
        local_test=without(bad.INSIDE, None),
        dtype=bad.DTYPE,
        config=bad.CONFIG,
        **optional,
    )
    counts = {"hidden": bad.COUNT, "clients": bad.COUNT, "seed": bad.SEED, "data_seed": bad.SEED}
    optional = dict.fromkeys(("samples", "most", "measured", "labels"), COUNT_OR_NONE)
    code = {"paper_code": bad.FLAG, "model": bad.TEXT}
    yield of(constrained_synthetic, {"samples": 8, "clients": 2}, **counts, **optional, **code)
    counts = dict.fromkeys(("clients", "classes", "features"), bad.COUNT)
    optional = dict.fromkeys(("samples", "most"), COUNT_OR_NONE)
    drawn = {"rng": bad.RNG, "own_map": bad.FLAG}
    good = {"clients": 2, "samples": 4}
    kinds = {**counts, **optional, **drawn}
    yield Calls(gaussian_labels, lambda: {**good, "rng": rng()}, kinds, {})
    texts = plain(bad.TEXT)
    yield of(standin_pairs, {"name": "multi_mnist", "split": "test"}, name=texts, split=texts)
    yield of(generated, {"train": 2, "test": 2}, train=bad.COUNT, test=bad.COUNT, heavy=bad.COUNT)
    sizes = {"clients": 2, "alpha": 0.3, "copies": 0, "pictures": 40, "test_pictures": 8}
    task = {"seed": 0, "data": "multi_mnist", **sizes}
    counts = plain(bad.COUNT)
    both = {
        "alpha": plain(bad.POSITIVE),
        "clients": counts,
        "seed": (-1, True, "0", 1.5),
        "data": ("", 3, None),
    }
    for maker in (pair_problem, standin_problem):
        yield of(maker, task, {"data": ("name",)}, **both)
    chosen = {"seed": 0, "data": "digits", "clients": 2, "hidden": 2, "evaluate": 5}
    both = {"clients": counts, "hidden": counts, "evaluate": counts, "data": ("", 3, None)}
    yield of(digits_problem, chosen, {"data": ("pictures",)}, **both, wide=("no", 1, None))


def formulas() -> Iterator[Calls]:
    """Makers of the problems that test the theorems."""
    a, w0 = torch.ones(3, 2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    good = {"a": a, "b": -a, "c": 1.0, "w0": w0}
    matrix, vector = tensors((3, 2)), (*tensors((2,)), torch.ones(3))
    also = {"a": ("data", "b", "w0"), "b": ("data", "a"), "w0": ("b",)}
    yield of(norms.norms, good, also, a=matrix, b=matrix, c=bad.POSITIVE, w0=vector)
    more = {**good, "clip": 1.0, "radius": 2.0}
    clip = {"clip": bad.POSITIVE, "radius": bad.POSITIVE, "c": bad.POSITIVE}
    yield of(weakly_convex.clipped_distances, more, also, a=matrix, b=matrix, w0=vector, **clip)
    random = {"seed": bad.SEED, "clients": bad.COUNT, "dim": bad.COUNT}
    yield of(weakly_convex.random_clipped, {"seed": 0}, **random, spread=bad.NONNEGATIVE)
    yield of(sampled.boxed_norms, {"seed": 0}, **random, rows=bad.COUNT, sigma=bad.POSITIVE)
    yield of(sampled.split_objectives, {}, gap=bad.POSITIVE)
    yield of(sampled.skewed_levels, {}, gap=bad.POSITIVE, clients=(*bad.COUNT, 1))
    yield of(staircase.staircase, {"dim": 2}, dim=bad.COUNT, distance=bad.POSITIVE)


def cases() -> Iterator[Case]:
    """All of them."""
    for calls in (*papers(), *formulas()):
        yield from calls.cases()


def good_calls() -> Iterator[Calls]:
    """What must pass, but for what needs files of data."""
    for calls in (*papers(), *formulas()):
        if calls.function is not pair_problem:
            yield calls
