"""Changes in stored results: with the old digest, with one made to match, and with all of them.

A file of a study is changed in a copy of the results. What must say so is what CI runs: the lint
of all stored files of a study, and `recheck`, which draws its runs there, recomputes
the one that was changed. A change counts as noticed if one of them says so and names the study.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from judging import Outcome, main

from fedlib.core.files import digest, json_text
from papers import STUDIES
from papers.kit import runfile, store
from papers.kit.recheck import prefix_of, recompute
from papers.kit.results_lint import lint_study
from papers.kit.store import has_data

Held = dict[str, Any]
Change = Callable[[Held], None]

#: The study and the run that are changed: short, with output, models and bits.
STUDY, RUN = "np_workshop", "hard"
SECONDS = 6.0  # for one run, as in CI
LEFT = "digest left"
MATCHED = "digest made to match"
LISTED = "digest and listing made to match"


def at(value: Any, *keys: Any) -> Change:
    """A change of one entry; a function gives the new value from the old."""

    def change(held: Held) -> None:
        where: Any = held
        for key in keys[:-1]:
            where = where[key]
        where[keys[-1]] = value(where[keys[-1]]) if callable(value) else value

    return change


def more(x: float) -> float:
    """One percent more, with as many digits as are stored."""
    return store.significant(1.01 * x + 1e-6) or 0.0


def every(part: str, name: str, places: slice) -> Change:
    """A stretch of a curve, one percent more in every seed."""

    def change(held: Held) -> None:
        for row in held[part][name]:
            row[places] = [more(x) for x in row[places]]

    return change


def both(*changes: Change) -> Change:
    """Several changes of one file."""

    def change(held: Held) -> None:
        for one in changes:
            one(held)

    return change


def rekeyed(change: Change) -> Change:
    """A change of the configuration, the key made to match it too."""

    def whole(held: Held) -> None:
        change(held)
        held["key"] = digest(held["config"])[:16]

    return whole


def shifted(held: Held) -> None:
    """All seeds renamed, in both places."""
    held["seeds"] = [s + 1 for s in held["seeds"]]
    held["config"]["seeds"] = held["seeds"]


#: What is changed in the run, by name.
OF_RUN: dict[str, Change] = {
    "config, a step size": at(0.31, "config", "algorithm", "lr"),
    "config and key, a step size": rekeyed(at(0.31, "config", "algorithm", "lr")),
    "config and key, the problem": rekeyed(at(more, "config", "problem", "train_fraction")),
    "config and key, seeds in both places": rekeyed(shifted),
    "key": at("0123456789abcdef", "key"),
    "seeds": at(lambda x: [*x[:-1], 77], "seeds"),
    "rounds, the last": at(101, "rounds", -1),
    "bits up": at(lambda x: x + 32.0, "bits", "bits_up"),
    "bits down, half": at(lambda x: x / 2, "bits", "bits_down"),
    "final model, one entry": at(more, "final_w", 4, 7),
    "final model, seeds swapped": at(lambda x: [x[1], x[0], *x[2:]], "final_w"),
    "output, one entry": at(more, "output_w", 9, 2),
    "output taken out": at(None, "output_w"),
    "a curve, early, one seed": at(more, "metrics", "f", 0, 3),
    "a curve, late, one seed": at(more, "metrics", "g", 6, 90),
    "a curve, the last entry": at(more, "metrics", "f", 8, -1),
    "a curve, late, every seed": every("metrics", "f", slice(60, 95)),
    "a curve, every entry": every("metrics", "g", slice(0, None)),
    "a curve, one digit more": at(lambda x: x * 1.0000123, "metrics", "f", 2, 50),
    "a curve, a value taken out": at(None, "metrics", "f", 5, 40),
    "two curves swapped": lambda h: h["metrics"].update(f=h["metrics"]["g"], g=h["metrics"]["f"]),
    "a report, late, one seed": at(lambda x: 1.0 - x, "info", "sigma", 7, 88),
    "name": at("soft", "name"),
    "provenance, a commit of no history": at("0123456789ab", "provenance", "commit"),
    "provenance, a date to come": at("2199-01-01", "provenance", "date"),
    "provenance, a date before its commit": at("2020-01-01", "provenance", "date"),
    "provenance, a version": at("9.9.9", "provenance", "torch"),
    "provenance, the time": at(lambda x: 2 * x, "provenance", "wall_s"),
}
#: What is changed in the numbers.
OF_NUMBERS: dict[str, Change] = {
    "a number": at(more, "numbers", "hard.f", "value"),
    "a number's unit": at("bits", "numbers", "hard.f", "unit"),
    "a number's interval": at(more, "numbers", "soft.f", "high"),
    "health": at("dead: f constant from round 2", "health", "soft", "wrong"),
}


@contextmanager
def copied(study: str) -> Iterator[Path]:
    """A copy of a study's results, which is read in place of them."""
    source = store.results_dir() / study
    before = os.environ.get("FEDLIB_RESULTS")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(source, Path(folder) / study)
        os.environ["FEDLIB_RESULTS"] = folder
        try:
            yield Path(folder) / study / "full"
        finally:
            os.environ.pop("FEDLIB_RESULTS")
            os.environ.update({} if before is None else {"FEDLIB_RESULTS": before})


def rewrite(path: Path, change: Change, *, sealed: bool) -> None:
    """Change a file, and make its digest match or leave it."""
    held = json.loads(path.read_text(encoding="utf-8"))
    old = held.pop("digest")
    change(held)
    held["digest"] = digest(held) if sealed else old
    path.write_text(json_text(held), encoding="utf-8")


def marked(folder: Path) -> None:
    """Make the listing of runs beside the numbers match the changed files."""

    def change(held: Held) -> None:
        runs = {
            name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            for name in held["runs"]
        }
        held["runs"] = {name: runfile.mark(run) for name, run in runs.items()}

    rewrite(folder / "numbers.json", change, sealed=True)


def said(study: str, run: str, rng: np.random.Generator) -> tuple[str, list[str]]:
    """Who noticed something, and what was said: CI's tests, else the recomputation of the run."""
    try:
        found = lint_study(STUDIES[study])
        if found:
            return "lint", found
        return "recheck", recomputed(study, run, rng)
    except ValueError as error:
        return "lint", [str(error)]


def recomputed(study: str, run: str, rng: np.random.Generator) -> list[str]:
    """What a recomputation says of a run, as far and in as many seeds as it goes in CI."""
    held = STUDIES[study]
    spec = held.specs(held.resolve("full"))[run]
    if not has_data(spec):
        return []
    return recompute(held, spec, prefix_of(held, run, spec, rng, SECONDS)).wrong


def of_file(name: str, change: Change, file: str, how: str, rng: np.random.Generator) -> Outcome:
    """What becomes of one change in one file."""
    with copied(STUDY) as folder:
        rewrite(folder / f"{file}.json", change, sealed=how != LEFT)
        if how == LISTED:
            marked(folder)
        run = RUN if file == "numbers" else file
        return outcome(f"{name}, {how}", *said(STUDY, run, rng))


def outcome(name: str, who: str, found: list[str]) -> Outcome:
    """Noticed if anything was said that names the study."""
    if not found:
        return Outcome(name, "accepted")
    text = f"{who}: {found[0]}"
    return Outcome(name, "good" if STUDY in text or "numbers" in text else "unnamed", text)


def of_folder(how: str, rng: np.random.Generator) -> Iterator[Outcome]:
    """Whole files: taken out, put in, exchanged."""

    def removed(folder: Path) -> None:
        (folder / "soft_beta60.json").unlink()

    def added(folder: Path) -> None:
        shutil.copy(folder / "hard.json", folder / "harder.json")
        rewrite(folder / "harder.json", at("harder", "name"), sealed=True)

    def exchanged(folder: Path) -> None:
        one, other = folder / "hard_lr1.json", folder / "hard_lr0.5.json"
        names = one.read_text(encoding="utf-8"), other.read_text(encoding="utf-8")
        other.write_text(names[0].replace('"hard_lr1"', '"hard_lr0.5"'), encoding="utf-8")
        one.write_text(names[1].replace('"hard_lr0.5"', '"hard_lr1"'), encoding="utf-8")
        for path in (one, other):
            rewrite(path, lambda _: None, sealed=how != LEFT)

    for name, change in {"removed": removed, "added": added, "exchanged": exchanged}.items():
        with copied(STUDY) as folder:
            change(folder)
            yield outcome(f"a run {name}, {how}", *said(STUDY, "hard_lr1", rng))


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """Every change with the digest left (every other one of the runs), and made to match."""
    rng = np.random.default_rng(options.seed)
    left, files = [*OF_RUN.items()][::2], {**OF_RUN, **OF_NUMBERS}
    for name, change in (*left, next(iter(OF_NUMBERS.items()))):
        yield of_file(name, change, "numbers" if name in OF_NUMBERS else RUN, LEFT, rng)
    for name, change in files.items():
        yield of_file(name, change, "numbers" if name in OF_NUMBERS else RUN, MATCHED, rng)
    yield from of_folder(MATCHED, rng)


if __name__ == "__main__":
    sys.exit(main("a change in stored results", outcomes))
