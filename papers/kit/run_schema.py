"""The schema of a stored run, as a pydantic model, and the lint of a study's stored files.

A digest tells that a file is as it was written; the schema that what was written fits together:
key, seeds, rounds, shapes and provenance. The lint compares a study's files with what the study
declares, and its numbers with the runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fedlib.core.describe import describe
from fedlib.core.files import digest
from papers.kit import archive, paper_profile, store
from papers.kit.numbers import Number

if TYPE_CHECKING:
    from papers.kit.store import Spec
    from papers.kit.study import Study

Payload = Mapping[str, Any]
Payloads = Mapping[str, Payload]
Rows = list[list[Annotated[float, Field(allow_inf_nan=False)] | None]]  # None: not a number
Count = Annotated[int, Field(ge=1)]
Mean = Annotated[float, Field(ge=0, allow_inf_nan=False)]  # of bits, over rounds and seeds

NUMBERS = "numbers"  # the file beside the runs
CLOSE = 2e-5  # of a number and of its largest seed: optima differ between processors so much
REMEDY = "restore the file or reproduce it"


class Part(BaseModel):
    """No entry too many, none of another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Config(Part):
    """What was computed."""

    algorithm: dict[str, Any]
    problem: dict[str, Any]
    rounds: Count
    seeds: Annotated[list[int], Field(min_length=1)]
    evaluate_every: Count


class Bits(Part):
    """Means over rounds and seeds."""

    bits_up: Mean
    bits_down: Mean


class Provenance(Part):
    """Where a run comes from."""

    fedlib: str
    torch: str
    numpy: str
    python: str
    commit: Annotated[str, Field(pattern="^[0-9a-f]{12}$")] | None
    dirty: bool
    cpu: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    device: str
    threads: Count
    wall_s: Annotated[float, Field(gt=0)]
    compiled: Count = 1
    sources: dict[str, Annotated[str, Field(pattern="^[0-9a-f]{64}$")]] = {}


class Run(Part):
    """One stored run; `metrics` have an entry for each of `rounds`, `info` one for every round."""

    kind: Literal["run"]
    schema_: Annotated[int, Field(alias="schema")]
    study: str
    profile: str
    name: str
    key: str | None
    maker: dict[str, Any] | None
    config: Config
    rounds: list[int]
    seeds: list[int]
    metrics: dict[str, Rows]
    info: dict[str, Rows]
    bits: Bits
    final_w: Rows | None
    output_w: Rows | None
    provenance: Provenance
    digest: str

    @model_validator(mode="after")
    def fits(self) -> Self:
        """Refuse what is said twice and not alike."""
        config = self.config
        key = digest({**config.model_dump(), "problem": self.maker})[:16]
        last, every = config.rounds, config.evaluate_every
        require(self.key == key, "key", f"the digest of the configuration, {key}")
        require(self.seeds == config.seeds, "seeds", "those of the configuration")
        require(len({*self.seeds}) == len(self.seeds), "seeds", "distinct")
        require(self.rounds == [*range(0, last, every), last], "rounds", f"every {every} of {last}")
        lengths = {
            **dict.fromkeys(self.metrics, len(self.rounds)),
            **dict.fromkeys(self.info, last),
        }
        curves = {**self.metrics, **self.info}
        models = {k: v for k, v in self if k in archive.MODELS and v is not None}
        for what, rows in (curves | models).items():
            length = lengths.get(what, len(rows[0]) if rows else 0)
            shape = f"{len(self.seeds)} rows of {length}"
            require([len(row) for row in rows] == [length] * len(self.seeds), what, shape)
        return self


def require(condition: bool, what: str, rule: str) -> None:
    """Refuse an entry that is not what it must be."""
    if not condition:
        raise ValueError(f"{what} must be {rule}")


def load_run(path: Path) -> dict[str, Any]:
    """One stored run as it is on disk; ValueError if it contradicts itself or its place."""
    held = archive.read(path)
    if wrong := validate_run(held, path):
        raise ValueError(wrong)
    return held


@archive.cached
def config_of(path: Path) -> Payload:
    """The configuration of a stored run, read with all checks."""
    config: Payload = load_run(path)["config"]
    return config


def validate_run(payload: Payload, path: Path) -> str:
    """What in a stored run contradicts itself, or the place where it lies, as a sentence."""
    place = path.with_suffix("").parts[-3:]
    inside = tuple(payload.get(k) for k in ("study", "profile", "name"))
    if inside != place:
        return f"{'/'.join(place)}: its names must be those of its place, got {inside}; {REMEDY}."
    try:
        Run.model_validate(dict(payload))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = first["msg"].removeprefix("Value error, ")
        own = f"{where} must fit the schema of a run ({what})" if where else what
        return f"{payload['study']}/{payload['name']}: {own}; {REMEDY}."
    return ""


def lint_study(study: Study, profile: str = "full") -> list[str]:
    """What in the stored files of a study is not as it must be: a sentence each.

    In the paper's setting no run has to be there, and no number before there are enough.
    """
    specs = study.specs(study.resolve(profile))
    folder = store.results_dir() / study.name / profile
    there = {f"{name}.json" for name in archive.names(folder)}
    if folder.is_dir():
        there |= {path.name for path in folder.iterdir()}
    if profile == store.PAPER:
        specs = {name: spec for name, spec in specs.items() if f"{name}.json" in there}
    derived = profile != store.PAPER or f"{NUMBERS}.json" in there
    wanted = {f"{name}.json" for name in (*specs, *[NUMBERS] * derived)}
    found = [f"{study.name}: {name} must be stored, it is not there" for name in wanted - there]
    found += [f"{study.name}: {name} must be of a run of the study" for name in there - wanted]
    if found:
        return sorted(found)
    paths = {name: folder / f"{name}.json" for name in specs}
    payloads = {name: archive.read(path) for name, path in paths.items()}
    found = [wrong for name, held in payloads.items() if (wrong := validate_run(held, paths[name]))]
    if found:
        return found
    for name, spec in specs.items():
        who = f"{study.name}/{name}"
        found += [f"{who}: {wrong}" for wrong in _as_declared(spec, payloads[name])]
    if derived:
        found += [f"{study.name}/{NUMBERS}: {w}" for w in _derived(study, profile, payloads)]
    return found


def lint_folder(studies: Iterable[str]) -> list[str]:
    """Folders and files among the results that belong to none of some studies."""
    known = {f"{name}{end}" for name in studies for end in ("", ".json", ".npz")}
    return sorted(
        f"results: {path.name} must belong to a study"
        for path in store.results_dir().iterdir()
        if path.name not in {*known, *store.BESIDE}
    )


def _as_declared(spec: Spec, payload: Payload) -> Iterator[str]:
    """A run against what the study declares under its name."""
    declared = {
        "algorithm": json.loads(json.dumps(describe(spec.algorithm))),
        "rounds": spec.rounds,
        "seeds": [*spec.seeds],
        "evaluate_every": spec.evaluate_every,
    }
    for what, today in declared.items():
        if payload["config"][what] != today:
            held = payload["config"][what]
            yield f"{what} of its configuration must be today's, {today}, got {held}"
    extra = {*payload["metrics"], *payload["info"]} - {*spec.keep}
    if extra:
        yield f"curves must be kept by the study, got {', '.join(sorted(extra))}"
    if "final_w" in spec.keep and payload["final_w"] is None:
        yield "final_w must be stored, the study keeps it"
    if payload["key"] != spec.key():
        yield f"key must be {spec.key()}, its configuration changed; reproduce it"


def _derived(study: Study, profile: str, payloads: Payloads) -> Iterator[str]:
    """The numbers, what stands beside them, and the runs that they were derived from."""
    held = archive.read(store.run_path(study.name, profile, NUMBERS))
    if profile == store.PAPER:
        payloads = {name: archive.read(path) for name, path in paper_profile.held(study).items()}
    traces = {name: store.to_trace(payload) for name, payload in payloads.items()}
    numbers, health = study.numbers(traces, profile), study.health(traces)
    now = store.numbers_content(study.name, profile, numbers, payloads, health)
    changed = sorted(name for name in now["runs"] if now["runs"][name] != held["runs"].get(name))
    if changed:
        yield (
            f"must be derived from the stored runs, {', '.join(changed[:3])} ({len(changed)}) were "
            "stored later or changed; run `papers reproduce` with --missing"
        )
    for part in now.keys() - {"numbers", "runs"}:
        if now[part] != held[part]:
            remedy = "run `papers reproduce` with --missing"
            yield f"{part} must be that of the stored runs, it differs; {remedy}"
    if held.keys() - {"digest"} != now.keys() or held["numbers"].keys() != now["numbers"].keys():
        yield f"entries must be {', '.join(now)} and the numbers those derived; they differ"
        return
    for key, number in now["numbers"].items():
        if not _same(number, held["numbers"][key]):
            yield f"{key} must follow from the runs, {number} is not {held['numbers'][key]}"


def _same(now: Payload, then: Payload) -> bool:
    a, b = (Number.from_json(dict(x)) for x in (now, then))
    one, other = (np.array([x.value, x.low, x.high, *x.per_seed]) for x in (a, b))
    size = np.max(np.abs(other), initial=0.0, where=np.isfinite(other))
    near = partial(np.allclose, rtol=CLOSE, atol=CLOSE * size + 1e-9, equal_nan=True)
    return one.shape == other.shape and near(one, other) and a.unit == b.unit
