"""`compare`, given files that are not what they say, and parameters that no study takes."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import bad_values as bad
from bad_runs import trace
from bad_values import Calls
from judging import ROOT, Case

from fedlib.core.files import digest, write_json
from papers import STUDIES
from papers.compare import compare


@cache
def stored() -> tuple[Path, dict[str, Any]]:
    """The smallest stored run of a study with curves, and what it holds."""
    every = (ROOT / "results").glob("bounds/full/*.json")
    path = min((p for p in every if p.stem != "numbers"), key=lambda p: p.stat().st_size)
    return path, json.loads(path.read_text(encoding="utf-8"))


def changed_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Files that are not what they say, all with a digest that fits."""
    path, held = stored()
    study, profile, name = held["study"], held["profile"], held["name"]

    def put(called: str, file: str, **changes: Any) -> tuple[str, Path]:
        content = {k: v for k, v in {**held, **changes}.items() if k != "digest" and v is not ...}
        write_json(folder / called / file, {**content, "digest": digest(content)})
        return called, folder / called / file

    other = {**held["config"], "rounds": held["config"]["rounds"] + 1}
    yield put("renamed", "other.json")
    yield put("another name", path.name, name="other")
    yield put("another key", path.name, key="0" * 16)
    yield put("a key that is none", path.name, key=None)
    yield put("another configuration", path.name, config=other)
    yield put("no configuration", path.name, config=3)
    yield put("other seeds", path.name, seeds=[*held["seeds"], 99])
    yield put("other rounds", path.name, rounds=[0, 1])
    yield put("no rounds", path.name, rounds=[])
    yield put("another kind", path.name, kind="numbers")
    yield put("a fault", path.name, kind="faults")
    yield put("a trace", path.name, kind="trace")
    yield put("no kind", path.name, kind=...)
    yield put("another schema", path.name, schema=99)
    yield put("metrics gone", path.name, metrics=...)
    yield put("metrics of text", path.name, metrics={"f": "x"})
    yield put("provenance gone", path.name, provenance={})
    yield put("a part too many", path.name, more=1)
    yield put("bits gone", path.name, bits=...)
    yield put(f"{study}/{'full' if profile == 'quick' else 'quick'}", path.name)
    yield put(f"fairness/{profile}", path.name)
    plain = {"schema": 1, "kind": "faults", "name": name, "tried": 3}
    write_json(folder / "faults.json", {**plain, "digest": digest(plain)})
    yield "faults", folder / "faults.json"
    numbers = next((ROOT / "results").glob("*/full/numbers.json"))
    shutil.copy(numbers, folder / "numbers.json")
    yield "numbers", folder / "numbers.json"
    trace().save(folder / "own.json")
    own = json.loads((folder / "own.json").read_text(encoding="utf-8"))
    for part in ("algorithm", "problem", "seeds"):
        config = {k: v for k, v in own["config"].items() if k != part}
        content = {**own, "config": config}
        del content["digest"]
        write_json(folder / f"no {part}.json", {**content, "digest": digest(content)})
        yield f"no {part}", folder / f"no {part}.json"
    (folder / "text.json").write_text("text", encoding="utf-8")
    (folder / "list.json").write_text("[]", encoding="utf-8")
    (folder / "bytes.json").write_bytes(b"\xff\xfe")
    yield from ((name, folder / f"{name}.json") for name in ("text", "list", "bytes", "missing"))


def compare_calls(folder: Path) -> Iterator[Calls]:
    """What is compared, and how."""
    named = ("", "x", "bounds", "bounds/", "bonds/x", "bounds/nothing", "bounds/x@quik", "a/b@full")
    named += ("bounds/x@", "@full", "/", "np_workshop/hard@QUICK", "faults/x")
    runs = (*bad.PATH[:1], None, [], {}, trace().metrics, replace(trace(), config={}), *named)
    also = dict.fromkeys(("first", "second"), ("store", "file", "profile", "run", "Trace.load"))
    good = {"first": trace(), "second": trace()}
    metrics = ("f", ["h"], [3], [None], 3, None, {"f": 1}, ["F"])
    figures = ("a.pdf", "a", "", 3, b"a.svg", ["a.svg"], folder / "a.csv", True)
    values = {"first": runs, "second": runs, "metrics": metrics, "figure": figures}
    yield Calls(compare, lambda: good, values, also)


def study_calls() -> Iterator[Case]:
    """A parameter of every kind of every study, of another kind or out of range."""
    for name, study in STUDIES.items():
        kinds: set[object] = set()
        for parameter in study.parameters:
            example = study.profiles["full"][parameter]
            several = isinstance(example, tuple)
            kind = several, type(example[0] if several else example), parameter == "seeds"
            if kind in kinds:
                continue
            kinds.add(kind)
            one = example[0] if several else example
            wrong: list[Any] = [True, {}, "nothing", bad.NAN, 1j]
            wrong += [] if isinstance(one, str) else ["1"]
            wrong += [1.5, -1] if isinstance(one, int) else [bad.INF]
            values: list[Any] = (
                [(x,) for x in wrong] if several else [*wrong, [example], (example,)]
            )
            values += ["abc", (), 3, {1, 2}] if several else []
            values += [(0, 0), [2**63], [-1]] if parameter == "seeds" else []
            for value in values:
                attempt = partial(study.resolve, "full", **{parameter: value})
                yield Case(f"{name}.resolve({parameter}={value!r})", attempt, (parameter,))
        for profile in ("", "ful", None, 3):
            yield Case(
                f"{name}.resolve({profile!r})", partial(study.resolve, profile), ("profile",)
            )
        unknown = partial(study.resolve, "full", nothing=3)
        yield Case(f"{name}.resolve(nothing=3)", unknown, ("parameter", "nothing"))
        for option in ("recompute", "keep", "progress"):
            attempt = partial(study.compute, "quick", **{option: "no"})
            yield Case(f"{name}.compute({option}='no')", attempt, (option,))
        attempt = partial(study.compute, "quick", device="gpu")
        yield Case(f"{name}.compute(device='gpu')", attempt, ("device",))


def cases() -> Iterator[Case]:
    """All of them; the files are there while the cases are tried."""
    yield from study_calls()
    with tempfile.TemporaryDirectory() as name:
        for calls in compare_calls(Path(name)):
            yield from calls.cases()
        for called, path in changed_files(Path(name)):
            words = (path.name, "first")
            yield Case(f"compare({called})", partial(compare, path, trace()), words)


def good() -> Iterator[tuple[str, Callable[[], object]]]:
    """What must pass, by name."""
    path, held = stored()
    yield "compare a file", lambda: compare(path, trace(), metrics=())
    where = f"{held['study']}/{held['name']}@{held['profile']}"
    yield "compare a run", lambda: compare(where, path)
    for study in STUDIES.values():
        for profile, values in study.profiles.items():
            lists = {k: [*v] if isinstance(v, tuple) else v for k, v in values.items()}
            yield (f"{study.name} {profile}", lambda s=study, p=profile, v=lists: s.resolve(p, **v))
