"""Stored runs: compute or load by configuration, with provenance; the only source of numbers.

A run is configuration, provenance and curves (six significant digits) of all seeds, sealed by a
digest; `papers.kit.archive` says where it lies. A file is written whole or not at all. Loading a
run gives the same Trace, digit for digit, as computing it does.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from fedlib import checks, run
from fedlib.checks import Count, Whole
from fedlib.core import Problem, Trace
from fedlib.core.algorithm import Algorithm
from fedlib.core.describe import describe, stored_name
from fedlib.core.files import clear_parts, digest, write_json
from fedlib.core.floats import floats
from fedlib.core.trace import LARGEST_MODEL
from fedlib.provenance import ROOT, versions
from papers.kit import archive
from papers.kit.numbers import Number, significant
from papers.kit.quantities import Quantities

CHECKPOINT = ".checkpoint.pt"  # of a run that is not done
ONE_RUN = ("wall_s", "compiled", "sources")  # of the provenance of a run alone
PAPER = "paper"  # the profile of the papers' own setting; what it shares with "full" lies there


#: Columns of the tables of runs and of quantities, which no label may have as its name.
RESERVED = (
    *("profile", "name", "run", "seed", "seeds", "round"),
    *("measure", "value", "low", "high", "unit", "per_seed"),
)


@dataclass(frozen=True)
class Spec:
    """One run to have: what `fedlib.run` needs, and which curves to keep.

    `problem` maps a seed to its Problem. `keep` names metrics and infos that are stored, and
    `"final_w"` if the final models are to be stored however large they are; a stored run that lacks
    one is not this run. `optional` names curves that are stored where a run has them. `labels`
    say in the columns of tables which run it is; they are texts, numbers or truth values.
    """

    algorithm: Algorithm
    problem: Callable[[int], Problem]
    rounds: Count
    seeds: Annotated[tuple[Whole, ...], checks.SOME]
    evaluate_every: Count = 1
    keep: tuple[str, ...] = ("f", "g")
    optional: tuple[str, ...] = ()
    labels: Mapping[str, str | float | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.fields(self)
        distinct = len({*self.seeds}) == len(self.seeds)
        checks.require(distinct, "Spec", "seeds", "be distinct", self.seeds)
        taken = {*RESERVED, *self.keep, *self.optional}
        for label in self.labels:
            if label in taken:
                columns = ", ".join(sorted(taken))
                rule = f"have other names than the columns {columns}"
                hint = "rename the label"
                raise ValueError(checks.sentence("Spec", "labels", rule, label, hint))

    @property
    def callee(self) -> Any:
        """The function of `problem`, which may have arguments bound to it."""
        return getattr(self.problem, "func", self.problem)

    @property
    def function(self) -> Any:
        """The function of `problem` without its decorators."""
        return inspect.unwrap(self.callee)

    def maker(self) -> dict[str, Any] | None:
        """The function that makes the problem and its arguments, those of the default left out.

        None for a function that cannot be imported by its name, such as one of a notebook, and for
        arguments that are no plain values.
        """
        function = self.function
        module = function.__module__
        path = function.__qualname__
        importable: Any = getattr(sys.modules.get(module), path, None)
        if module == "__main__" or inspect.unwrap(importable) is not function:
            return None
        usual = inspect.signature(function).parameters
        arguments = self.arguments().items()
        changed = {name: value for name, value in arguments if value != usual[name].default}
        try:
            described = describe(changed)
        except TypeError:
            return None
        first_name = stored_name(self.callee, f"{module}.{path}")
        return {"function": first_name, "arguments": described}

    def arguments(self) -> dict[str, Any]:
        """The arguments that the problem's function gets beside the seed, by name."""
        signature = inspect.signature(self.function)
        before_seed = getattr(self.problem, "args", ())
        keywords = getattr(self.problem, "keywords", {})
        bound = signature.bind(*before_seed, self.seeds[0], **keywords)
        bound.apply_defaults()
        parameters = list(signature.parameters)
        seed = parameters[len(before_seed)]
        del bound.arguments[seed]
        return bound.arguments

    def folders(self) -> list[str]:
        """The folders of papers whose code the run is computed by."""
        folders = set()
        for maker in (type(self.algorithm), self.callee):
            module = getattr(maker, "__module__", "")
            package, *names = module.split(".")
            if package == "papers":
                folders.add(f"papers/{names[0]}")
        return sorted(folders)

    def key(self) -> str | None:
        """A short digest of what is computed; None if the problem has no name. Needs no data."""
        maker = self.maker()
        if maker is None:
            return None
        return digest(self.config(maker))[:16]

    def config(self, problem: dict[str, Any] | None = None) -> dict[str, Any]:
        """What is computed, the problem by what it says of itself; it is made for that."""
        if not problem:
            first_problem = self.problem(self.seeds[0])
            problem = describe(first_problem.config)
        return {
            "algorithm": describe(self.algorithm),
            "problem": problem,
            "rounds": self.rounds,
            "seeds": list(self.seeds),
            "evaluate_every": self.evaluate_every,
        }


def results_dir() -> Path:
    """The folder of stored runs: FEDLIB_RESULTS, or `results`.

    That is the one of the repository; where the package is installed alone, of the current folder.
    """
    wanted = os.environ.get("FEDLIB_RESULTS")
    if wanted:
        return Path(wanted)
    in_repository = (ROOT / "pyproject.toml").is_file()
    home = ROOT if in_repository else Path()
    return home / "results"


def compute_or_load(
    study: str,
    profile: str,
    specs: Mapping[str, Spec],
    *,
    recompute: bool = False,
    store: bool = False,
    device: str = "cpu",
    progress: bool = True,
    among: Mapping[str, Spec] | None = None,
) -> dict[str, Trace]:
    """A Trace for every named spec: loaded if stored with the same configuration, else computed.

    Specs that differ in floats only are computed together, those too that are stored or only in
    `among` (all specs of the study): a run computed alone differs from the same run in its group
    in the sixth digit. With `store` what was computed is written to the results folder as soon as
    each group is done; a group that was interrupted goes on from a checkpoint beside it, which is
    removed at the end. What killed processes left half written in the folder is removed first.
    """
    if store:
        make_room(study, profile)
    traces: dict[str, Trace] = {}
    for name, spec in specs.items():
        if not recompute and is_stored(study, profile, name, spec):
            payload = read_run(stored_path(study, profile, name))
            traces[name] = to_trace(payload, spec.labels)
    missing = specs.keys() - traces.keys()
    for group in groups(among or specs):
        if missing.isdisjoint(group):
            continue
        path = checkpoint_path(study, profile, group) if store else None
        try:
            computed = compute(group, device, progress, path)
        except RuntimeError as error:
            sentence = memory_sentence(study, group, error)
            if sentence is None:
                raise
            raise ValueError(sentence) from error
        for name in missing & group.keys():
            spec = group[name]
            payload = to_payload(study, profile, name, spec, computed[name])
            if store:
                check_kept(study, name, spec, payload)
                with archive.exclusive(results_dir()):  # who collects removes empty folders
                    write_json(run_path(study, profile, name), payload)
            traces[name] = to_trace(payload, specs[name].labels)
        if path is not None:
            path.unlink(missing_ok=True)
    return {name: traces[name] for name in specs}


def memory_sentence(study: str, group: Mapping[str, Spec], error: RuntimeError) -> str | None:
    """What to say of runs that do not fit in memory; None for another error."""
    text = str(error)
    if "allocate memory" not in text:
        return None
    _, _, end = text.rpartition("allocate ")
    amount, _, _ = end.partition(" bytes")
    first_runs = ", ".join([*group][:3])
    return (
        f"{study}: the runs {first_runs} must fit in memory, got a tensor of {amount} bytes; "
        "take smaller parameters."
    )


def check_kept(study: str, name: str, spec: Spec, payload: Mapping[str, Any]) -> None:
    """Refuse to store a run that lacks a curve which it is to keep: it would never be found."""
    stored = {"final_w", *payload["metrics"], *payload["info"]}
    lacking = [curve for curve in spec.keep if curve not in stored]
    rule = "name curves that the run has; the others are `optional`"
    checks.require(not lacking, f"{study}/{name}", "keep", rule, lacking)


def make_room(study: str, profile: str) -> None:
    """The folder of a study's runs, without what killed processes left half written."""
    folder = run_path(study, profile, "any").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"store: the folder of {study}/{profile} must be writable, got {error.strerror}; "
            "nothing was written."
        ) from error
    clear_parts(folder)


def is_stored(study: str, profile: str, name: str, spec: Spec) -> bool:
    """Whether a run with this configuration and these curves is in the results folder."""
    path = stored_path(study, profile, name)
    if not archive.exists(path):
        return False
    stored = archive.summary(path)
    curves = stored["curves"]
    parts = {*stored["models"], *curves["metrics"], *curves["info"]}
    has_all = parts.issuperset(spec.keep)
    key = stored["key"]
    return has_all and key is not None and key == spec.key()


def groups(specs: Mapping[str, Spec]) -> list[dict[str, Spec]]:
    """Specs that can advance as one grid: equal but for floats of the algorithm.

    Nothing is built: problems are equal if one function makes them of equal arguments.
    """
    by_setting: dict[str, dict[str, Spec]] = {}
    for name, spec in specs.items():
        setting = (
            describe(spec.algorithm, omit=floats(spec.algorithm)),
            spec.maker() or spec.problem,
            spec.rounds,
            spec.seeds,
            spec.evaluate_every,
            spec.keep,
            spec.optional,
        )
        group = by_setting.setdefault(repr(setting), {})
        group[name] = spec
    return list(by_setting.values())


def checkpoint_path(study: str, profile: str, group: Mapping[str, Spec]) -> Path:
    """Where the progress of a group goes: one file for one configuration and one state of the code.

    The code is that of the library and of the paper's folder, such as `papers/fedsgm`.
    """
    first_name = next(iter(group))
    keys = {name: spec.key() for name, spec in group.items()}
    code = hashlib.sha256()
    for folder in ("fedlib", *group[first_name].folders()):
        code.update(_code(folder))
    configuration = digest(keys)[:16]
    state = code.hexdigest()[:16]
    path = run_path(study, profile, first_name)
    return path.with_suffix(f".{configuration}-{state}{CHECKPOINT}")


@cache
def _code(folder: str) -> bytes:
    """The Python files of a folder."""
    files = sorted((ROOT / folder).rglob("*.py"))
    return b"".join(file.read_bytes() for file in files)


def compute(
    group: Mapping[str, Spec], device: str, progress: bool, checkpoint: Path | None = None
) -> dict[str, Trace]:
    """The runs of a group, computed together."""
    shared = next(iter(group.values()))
    with warnings.catch_warnings():  # of progress bars that a notebook cannot show
        warnings.filterwarnings("ignore", "IProgress not found")
        problems = {seed: shared.problem(seed) for seed in shared.seeds}
    algorithms = [spec.algorithm for spec in group.values()]
    traces = run(
        algorithms,
        problems.__getitem__,
        rounds=shared.rounds,
        seeds=shared.seeds,
        evaluate_every=shared.evaluate_every,
        device=device,
        checkpoint=checkpoint,
        progress=progress,
    )
    return dict(zip(group, traces, strict=True))


def to_payload(study: str, profile: str, name: str, spec: Spec, trace: Trace) -> dict[str, Any]:
    kept = {*spec.keep, *spec.optional}
    bits = {}
    for direction in ("bits_up", "bits_down"):
        mean = trace.info[direction].mean()
        bits[direction] = float(mean)
    final = trace.state.w.double()
    is_small = final.shape[-1] <= LARGEST_MODEL
    final_w = None
    if is_small or "final_w" in spec.keep:
        final_w = to_lists(final)
    output_w = None
    if is_small and trace.output is not None:
        output_w = to_lists(trace.output)
    content = {
        "study": study,
        "profile": profile,
        "name": name,
        "key": spec.key(),
        "maker": spec.maker(),
        "config": spec.config(trace.config["problem"]),
        "rounds": trace.rounds.tolist(),
        "seeds": list(trace.seeds),
        "metrics": kept_rows(trace.metrics, kept),
        "info": kept_rows(trace.info, kept),
        "bits": bits,
        "final_w": final_w,
        "output_w": output_w,
        "provenance": stored_provenance(trace),
    }
    return archive.RUN.sealed(content)


def kept_rows(curves: Mapping[str, Any], kept: Set[str]) -> dict[str, list[list[float | None]]]:
    """The curves that are kept, as rows of numbers."""
    return {name: to_lists(rows) for name, rows in curves.items() if name in kept}


def stored_provenance(trace: Trace) -> dict[str, Any]:
    """What made a run, without the name of a host or a person."""
    provenance = trace.provenance
    stored = versions()
    stored["device"] = provenance["device"]
    stored["threads"] = provenance["threads"]
    stored["wall_s"] = significant(provenance["wall_s"], 3)
    compiled = provenance.get("compiled", 0)  # rounds, whose last digits are others
    if compiled:
        stored["compiled"] = compiled
    return stored


def to_trace(payload: Mapping[str, Any], labels: Mapping[str, Any] | None = None) -> Trace:
    """The Trace of a stored or freshly computed run; `state` is the final models `[S, d]`.

    Its configuration has the bits of a round and the `labels` of the run.
    """
    config = {**payload["config"], "bits": payload["bits"]}
    if labels:
        config["labels"] = dict(labels)
    arrays = archive.as_arrays(payload)
    metrics = arrays["metrics"]
    info = arrays["info"]
    for curve in (*metrics.values(), *info.values()):
        curve.setflags(write=False)
    return Trace(
        metrics=metrics,
        info=info,
        rounds=np.array(payload["rounds"]),
        seeds=tuple(payload["seeds"]),
        config=config,
        provenance=payload["provenance"],
        state=arrays["final_w"],
        output=arrays["output_w"],
    )


def to_traces(
    payloads: Mapping[str, Mapping[str, Any]], specs: Mapping[str, Spec]
) -> dict[str, Trace]:
    """The Traces of stored runs, with the labels that their specs have."""
    return {name: to_trace(payload, specs[name].labels) for name, payload in payloads.items()}


def to_lists(x: Any) -> list[list[float | None]]:
    """Rows of numbers with six significant digits."""

    def stored(value: Any) -> float | None:
        return significant(float(value))

    return [[stored(value) for value in row] for row in x]


def read_run(path: Path) -> dict[str, Any]:
    """One stored run.

    Raises
    ------
    ValueError
        one sentence, for a file that is damaged, or a run that contradicts itself or its place.
    """
    run = archive.read(path)
    config = run["config"]
    names = [run["study"], run["profile"], run["name"]]
    place = list(path.with_suffix("").parts[-3:])
    key = run["key"]
    if run["maker"]:
        declaration = {**config, "problem": run["maker"]}
        key = digest(declaration)[:16]
    pairs = (
        ("study, profile and name", names, place),
        ("key", run["key"], key),
        ("seeds", run["seeds"], config["seeds"]),
    )
    for name, stored, declared in pairs:
        if stored != declared:
            raise ValueError(
                f"{run['study']}/{run['name']}: {name} must be {declared}, got {stored}; "
                "restore the file or reproduce it."
            )
    return run


@archive.cached
def config_of(path: Path) -> dict[str, Any]:
    """The configuration of a stored run, read with all checks."""
    config: dict[str, Any] = read_run(path)["config"]
    return config


class Derived(NamedTuple):
    """What was derived from a study's runs: numbers, what is wrong with each run, runs' marks."""

    numbers: Quantities
    health: dict[str, str]
    runs: dict[str, str]


def read_derived(study: str, profile: str = "full") -> Derived:
    """What is stored beside the runs of a study, of the paper's setting maybe nothing.

    Nobody may change it.
    """
    return _read_derived(run_path(study, profile, "numbers"))


@archive.cached
def _read_derived(path: Path) -> Derived:
    if path.parent.name == PAPER and not archive.exists(path):
        return Derived(Quantities({}, {}), {}, {})
    stored = archive.read(path)
    numbers = Quantities.from_json(stored["numbers"], stored["defaults"])
    return Derived(numbers, stored["health"], stored["runs"])


def read_numbers(study: str, profile: str = "full") -> Mapping[Any, Number]:
    """The derived numbers of a study, by name."""
    return read_derived(study, profile).numbers


def derived(
    study: str,
    profile: str,
    numbers: Quantities,
    payloads: Mapping[str, Mapping[str, Any]],
    health: Mapping[str, str],
) -> dict[str, Any]:
    """What is stored of a study's derived numbers; `runs` marks what they were derived from."""
    provenances = [payload["provenance"] for payload in payloads.values()]
    shared = {part: value for part, value in provenances[0].items() if part not in ONE_RUN}
    wall_s = sum(provenance["wall_s"] for provenance in provenances)
    marks = {name: payload["digest"][:16] for name, payload in payloads.items()}
    content = {
        "study": study,
        "profile": profile,
        "numbers": numbers.to_json(),
        "defaults": dict(numbers.defaults),
        "health": dict(health),
        "runs": marks,
        "provenance": {**shared, "runs": len(payloads), "wall_s": significant(wall_s, 3)},
    }
    return archive.NUMBERS.sealed(content)


def run_path(study: str, profile: str, name: str) -> Path:
    return results_dir() / study / profile / f"{name}.json"


def stored_path(study: str, profile: str, name: str) -> Path:
    """Where a run is read from: its place, or that of the full profile for one that is as there."""
    path = run_path(study, profile, name)
    if profile != PAPER or archive.exists(path):
        return path
    return run_path(study, "full", name)
