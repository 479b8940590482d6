"""Which run a name or a file means, and whether the file is that run's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedlib import checks
from fedlib.core import Trace
from papers.compare_tables import Named
from papers.kit.commands import nearest

WHO = "compare"
PROFILES = ("full", "quick")
#: What a stored run holds, and what is in its configuration.
HEAD = ("schema", "kind", "study", "profile", "name", "key", "config", "rounds", "seeds")
PARTS = {*HEAD, "metrics", "info", "bits", "final_w", "output_w", "provenance", "digest"}
CONFIGURED = ("algorithm", "problem", "rounds", "seeds")


def find(what: object, argument: str) -> Named:
    """The run that is meant; else one sentence with the names that come nearest."""
    checks.value(WHO, argument, what, str | Path | Trace)
    if isinstance(what, Trace):
        return Named(f"{argument} ({kind_of(what, argument)})", what)
    from fedlib.core import files
    from papers import STUDIES
    from papers.kit import archive, store

    path = Path(str(what))
    if path.suffix == ".json":
        held = files.read_json(path)
        if held.get("kind") != "run":
            trace = Trace.load(path)
            kind_of(trace, argument)
            return Named(path.stem, trace)
        return stored(held, path, argument)
    whole, at, profile = str(what).partition("@")
    study, _, run = whole.partition("/")
    if study not in STUDIES or not run:
        named = f"name a run as STUDY/RUN, a file as PATH.json; {nearest(study, STUDIES)}"
        raise ValueError(checks.sentence(WHO, argument, "name a run", str(what), named))
    if at:
        checks.one_of(WHO, f"the profile of {argument}", profile, PROFILES)
    folder = store.results_dir() / study / (profile or "full")
    there = sorted(archive.names(folder) - {"numbers"})
    if not there:
        make = f"papers reproduce {study} --profile {profile or 'full'} --missing"
        rule = "name a run that is stored"
        raise ValueError(checks.sentence(WHO, argument, rule, str(what), f"`{make}` makes them"))
    if run not in there:
        rule = f"name a stored run of {study}"
        raise ValueError(checks.sentence(WHO, argument, rule, run, nearest(run, there)))
    path = folder / f"{run}.json"
    return stored(archive.read(path), path, argument)._replace(name=str(what))


def stored(held: Mapping[str, Any], path: Path, argument: str) -> Named:
    """The run of a file of the results, if all that it says of itself fits.

    Its folders count where they are those of a study and a profile.
    """
    from fedlib.core import files
    from papers import STUDIES

    if held.keys() != PARTS or held["kind"] != "run":
        wrong = ", ".join(sorted(held.keys() ^ PARTS)) or f"kind {held['kind']!r}"
        raise ValueError(
            f"{WHO}: {argument} must be a stored run, {path.name} has other parts ({wrong})."
        )
    config = held["config"] if isinstance(held["config"], Mapping) else {}
    told: dict[str, Any] = {"name": path.stem, "key": files.digest(config)[:16]}
    told["seeds"] = config.get("seeds")
    told["rounds"] = [*(held["rounds"] or [None])[:-1], config.get("rounds")]
    *_, study, profile, _ = ("", "", *path.resolve().parts)
    if study in STUDIES and profile in PROFILES:
        told |= {"study": study, "profile": profile}
    for part, value in told.items():
        if held[part] != value:
            raise ValueError(
                f"{WHO}: {argument} must be the run that its file says, in {path.name} the {part} "
                f"is {checks.short(held[part])} in place of {checks.short(value)}; restore it."
            )
    from papers.kit import runfile

    try:
        return Named(path.stem, runfile.to_trace(held))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{WHO}: {argument} must be a stored run, {path.name} cannot be read as one "
            f"({type(error).__name__}); restore it."
        ) from error


def kind_of(trace: Trace, argument: str) -> str:
    """What algorithm made a trace; ValueError for one that `run` did not make."""
    config = trace.config if isinstance(trace.config, Mapping) else {}
    missing = [name for name in CONFIGURED if name not in config]
    algorithm = config.get("algorithm")
    if missing or not isinstance(algorithm, Mapping) or "type" not in algorithm:
        lacks = ", ".join(missing) or "the type of the algorithm"
        raise ValueError(f"{WHO}: {argument} must be made by run, its configuration lacks {lacks}.")
    return str(algorithm["type"])
