"""Whether a study's stored files are those that it declares, and its numbers those of its runs."""

import json

import numpy as np

from fedlib.core.describe import describe
from papers.kit import archive, store
from papers.kit.numbers import Number

CLOSE = 2e-5  # of a number and of its largest seed: optima differ between processors so much
AGAIN = "restore it or, if the study changed, run `papers reproduce` with --missing"


def faults(study, profile="full"):
    """What in the stored files of a study is not as it must be: a sentence each.

    In the paper's setting no run has to be there, and no number before there are enough.
    """
    specs = study.specs(study.resolve(profile))
    there = archive.names(store.run_path(study.name, profile, "any").parent)
    if profile == store.PAPER:
        specs = {name: spec for name, spec in specs.items() if name in there}
    numbers = profile != store.PAPER or "numbers" in there
    wanted = {*specs, *["numbers"] * numbers}
    found = [f"{study.name}: no run {name} is stored" for name in wanted - there]
    found += [f"{study.name}: {name} must be of a run of the study" for name in there - wanted]
    if found:
        return sorted(found)
    for name, spec in specs.items():
        held = store.read_run(store.run_path(study.name, profile, name))
        found += [f"{study.name}/{name}: {wrong}" for wrong in undeclared(spec, held)]
    if numbers:
        found += [f"{study.name}/numbers: {wrong}" for wrong in underived(study, profile)]
    return found


def undeclared(spec, held):
    """Where a run is not what the study declares under its name."""
    declared = json.loads(json.dumps(describe(spec.algorithm)))
    if held["config"]["algorithm"] != declared:
        have = held["config"]["algorithm"]
        yield f"algorithm of its configuration must be today's, {declared}, got {have}"
    if held["key"] != spec.key():
        yield f"key must be {spec.key()}, its configuration changed; reproduce it"
    if extra := {*held["metrics"], *held["info"]} - {*spec.keep, *spec.optional}:
        yield f"curves must be kept by the study, got {', '.join(sorted(extra))}"
    if "final_w" in spec.keep and held["final_w"] is None:
        yield "final_w must be stored, the study keeps it"


def underived(study, profile):
    """Where the numbers, and what stands beside them, do not follow from the stored runs."""
    held = archive.read(store.run_path(study.name, profile, "numbers"))
    now = study.derived(profile)
    for part in {*held, *now} - {"numbers", "digest"}:
        if now.get(part) != held.get(part):
            yield f"{part} must be that of the stored runs, it differs; {AGAIN}"
    if held["numbers"].keys() != now["numbers"].keys():
        yield f"they must be those that the study derives; {AGAIN}"
        return
    for key, number in now["numbers"].items():
        if not same(number, held["numbers"][key]):
            stored = held["numbers"][key]["value"]
            yield f"{key} must follow from the runs, {number['value']}, got {stored}; {AGAIN}"


def same(now, then):
    """Whether two numbers are one, as far as processors agree."""
    a, b = (Number.from_json(dict(x)) for x in (now, then))
    one, other = (np.array([x.value, x.low, x.high, *x.per_seed]) for x in (a, b))
    if one.shape != other.shape or a.unit != b.unit:
        return False
    size = np.max(np.abs(other), initial=0.0, where=np.isfinite(other))
    return np.allclose(one, other, CLOSE, CLOSE * size + 1e-9, equal_nan=True)
