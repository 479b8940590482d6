"""The schema of a stored run: what its file must have, and what it says twice must agree.

A digest tells that a file is as it was written; not that what was written fits together. Here the
parts of one file are compared: configuration and key, seeds, rounds and the shapes of the curves,
bits, models, and a provenance that can be true. `papers.kit.results_lint` compares runs with what
their study declares, `papers.kit.recheck` with what the code gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fedlib.core.files import digest
from fedlib.core.trace import LARGEST_MODEL
from papers.kit import archive
from papers.kit.numbers import DIGITS, significant

Payload = Mapping[str, Any]

ENTRIES = {
    *("schema", "kind", "study", "profile", "name", "key", "maker", "config", "rounds", "seeds"),
    *("metrics", "info", "bits", "final_w", "output_w", "provenance", "digest"),
}
CONFIG = {"algorithm", "problem", "rounds", "seeds", "evaluate_every"}
PROVENANCE = {
    *("fedlib", "commit", "dirty", "torch", "numpy", "python", "cpu", "date"),
    *("device", "threads", "wall_s"),
}
SOMETIMES = {"compiled", "sources"}
BITS = ("bits_up", "bits_down")
WHOLE = 1e-6  # how far the number of all bits may be from a whole one
SHA256 = re.compile(r"[0-9a-f]{64}")
#: What entries of the provenance look like.
FORMS = {
    "fedlib": r"\d+\.\d+\.\d+\S*",
    "torch": r"\d+\.\d+\.\d+\S*",
    "numpy": r"\d+\.\d+\.\d+\S*",
    "python": r"3\.\d+\.\d+\S*",
    "commit": r"[0-9a-f]{12}",
    "cpu": r"[\w-]+",
    "device": r"cpu|cuda.*|NVIDIA.*|AMD.*",
}


@archive.cached
def config_of(path: Path) -> Payload:
    """The configuration of a stored run, read with all checks."""
    config: Payload = load_run(path)["config"]
    return config


def load_run(path: Path) -> dict[str, Any]:
    """One stored run as it is on disk; ValueError if it contradicts itself or its place."""
    held = archive.read(path)
    if wrong := validate_run(held, path):
        raise ValueError(wrong[0])
    return held


def validate_run(payload: Payload, path: Path | None = None) -> list[str]:
    """What in a stored run contradicts itself, or the place where it lies: a sentence each."""
    who = f"{payload.get('study')}/{payload.get('name')}"
    missing = ENTRIES ^ {*payload}
    if missing:
        return [_said(who, "entries", "be those of a run", f"{sorted(missing)} too few or many")]
    config = payload["config"]
    if {*config} != CONFIG:
        return [_said(who, "config", f"have {', '.join(sorted(CONFIG))}", sorted(config))]
    parts = (_place(payload, path), _config(payload), _curves(payload), _bits(payload))
    more = (_models(payload), _provenance(payload["provenance"]))
    return [_said(who, *wrong) for part in (*parts, *more) for wrong in part]


Wrong = tuple[str, str, object]


def _said(who: str, what: str, rule: str, given: object) -> str:
    return f"{who}: {what} must {rule}, got {given}; restore the file or reproduce it."


def _place(payload: Payload, path: Path | None) -> Iterator[Wrong]:
    inside = (payload["study"], payload["profile"], payload["name"])
    place = path.with_suffix("").parts[-3:] if path is not None else inside
    if payload["kind"] != "run":
        yield "kind", "be run", payload["kind"]
    for what, own, there in zip(("study", "profile", "name"), inside, place, strict=True):
        if own != there:
            yield what, f"be that of its place, {there}", own


def _config(payload: Payload) -> Iterator[Wrong]:
    config, seeds = payload["config"], payload["seeds"]
    key = digest({**config, "problem": payload["maker"]})[:16]
    if payload["key"] != key:
        yield "key", f"be the digest of the configuration, {key}", payload["key"]
    if not seeds or len({*seeds}) < len(seeds) or any(type(s) is not int for s in seeds):
        yield "seeds", "be distinct whole numbers", seeds
    if config["seeds"] != seeds:
        yield "seeds", f"be those of the configuration, {config['seeds']}", seeds
    last, every = config["rounds"], config["evaluate_every"]
    if payload["rounds"] != [*range(0, last, every), last]:
        yield "rounds", f"be every {every} of {last} and the last", _few(payload["rounds"])


def _curves(payload: Payload) -> Iterator[Wrong]:
    lengths = {"metrics": len(payload["rounds"]), "info": payload["config"]["rounds"]}
    for part, length in lengths.items():
        for name, rows in payload[part].items():
            yield from _rows(f"{part} {name}", rows, len(payload["seeds"]), length)


def _rows(what: str, rows: Any, seeds: int, length: int) -> Iterator[Wrong]:
    shape = [len(row) for row in rows]
    if shape != [length] * seeds:
        yield what, f"have {seeds} rows of {length}", f"{len(shape)} of {sorted({*shape})}"
        return
    try:
        values = np.array(rows, dtype=float)
    except (TypeError, ValueError):
        yield what, "be numbers", "something else"
        return
    if np.isinf(values).any():
        yield what, "be finite or null", "an infinite value"
    if len(odd := values[~rounded(values)]):
        yield what, f"have {DIGITS} digits as all that is stored", odd[0]


def rounded(x: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether numbers have no more digits than are stored."""
    size = np.abs(np.where(np.isfinite(x) & (x != 0), x, 1.0))
    power = DIGITS - 1 - np.floor(np.log10(size))
    with np.errstate(over="ignore", invalid="ignore"):
        digits = size * 10.0**power
        near = np.abs(digits - np.round(digits)) < 1e-11 * digits
    return near | ~np.isfinite(digits)  # the smallest numbers have no such power


def _bits(payload: Payload) -> Iterator[Wrong]:
    """Counted bits are whole: so is their sum over rounds and seeds, of which the mean is held."""
    bits, rounds = payload["bits"], payload["config"]["rounds"] * len(payload["seeds"])
    if {*bits} != {*BITS}:
        yield "bits", "be bits_up and bits_down", sorted(bits)
        return
    for name, mean in bits.items():
        real = isinstance(mean, (int, float)) and np.isfinite(mean) and mean >= 0
        if not real or abs(mean * rounds - round(mean * rounds)) > WHOLE * max(1, rounds):
            yield name, "be the mean of whole numbers", mean


def _models(payload: Payload) -> Iterator[Wrong]:
    held = {name: payload[name] for name in ("final_w", "output_w") if payload[name] is not None}
    widths = {len(row) for rows in held.values() for row in rows}
    for name, rows in held.items():
        width = len(rows[0]) if rows else 0
        yield from _rows(name, rows, len(payload["seeds"]), width)
    if len(widths) > 1:
        yield "final_w", "have as many parameters as output_w", sorted(widths)
    if "output_w" in held and "final_w" not in held and max(widths) <= LARGEST_MODEL:
        yield "final_w", "be held where output_w is", "none"


def _provenance(held: Payload) -> Iterator[Wrong]:
    if {*held} - SOMETIMES != PROVENANCE:
        yield "provenance", f"have {', '.join(sorted(PROVENANCE))}", sorted(held)
        return
    for name, form in FORMS.items():
        if not re.fullmatch(form, str(held[name])) and (name, held[name]) != ("commit", None):
            yield f"provenance {name}", "look like one", repr(held[name])
    if type(held["dirty"]) is not bool:
        yield "provenance dirty", "be true or false", repr(held["dirty"])
    if type(held["threads"]) is not int or held["threads"] < 1:
        yield "provenance threads", "be a count", repr(held["threads"])
    compiled = held.get("compiled", 1)
    if type(compiled) is not int or compiled < 1:
        yield "provenance compiled", "be how many rounds were compiled", repr(compiled)
    took = held["wall_s"]
    if not isinstance(took, (int, float)) or not took > 0 or significant(took, 3) != took:
        yield "provenance wall_s", "be above 0, with three digits", repr(took)
    sources = held.get("sources", {})
    if not isinstance(sources, dict) or not all(SHA256.fullmatch(str(x)) for x in sources.values()):
        yield "provenance sources", "be files, each with its SHA-256", sources
    try:
        day = date.fromisoformat(str(held["date"]))
    except ValueError:
        yield "provenance date", "be a day such as 2026-01-31", held["date"]
        return
    if day > datetime.now(UTC).date():
        yield "provenance date", "be no later than today", day


def _few(values: Sequence[object]) -> str:
    return f"{', '.join(map(str, values[:3]))}, ... ({len(values)})"
