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
    stored = archive.names(store.run_path(study.name, profile, "any").parent)
    if profile == store.PAPER:
        specs = {name: spec for name, spec in specs.items() if name in stored}
    declared = set(specs)
    if profile != store.PAPER or "numbers" in stored:
        declared.add("numbers")
    sentences = [f"{study.name}: no run {name} is stored" for name in declared - stored]
    extra = stored - declared
    sentences += [f"{study.name}: {name} must be of a run of the study" for name in extra]
    if sentences:
        return sorted(sentences)
    for name, spec in specs.items():
        run = store.read_run(store.run_path(study.name, profile, name))
        sentences += [f"{study.name}/{name}: {fault}" for fault in undeclared(spec, run)]
    if "numbers" in declared and not sentences:
        sentences += [f"{study.name}/numbers: {fault}" for fault in underived(study, profile)]
    return sentences


def undeclared(spec, run):
    """Where a run is not what the study declares under its name."""
    declared = json.loads(json.dumps(describe(spec.algorithm)))
    algorithm = run["config"]["algorithm"]
    if algorithm != declared:
        yield f"algorithm of its configuration must be today's, {declared}, got {algorithm}"
    if run["key"] != spec.key():
        yield f"key must be {spec.key()}, its configuration changed; reproduce it"
    curves = {*run["metrics"], *run["info"]}
    extra = sorted(curves - {*spec.keep, *spec.optional})
    if extra:
        yield f"curves must be kept by the study, got {', '.join(extra)}"
    if "final_w" in spec.keep and run["final_w"] is None:
        yield "final_w must be stored, the study keeps it"


def underived(study, profile):
    """Where the numbers, and what stands beside them, do not follow from the stored runs."""
    stored = archive.read(store.run_path(study.name, profile, "numbers"))
    derived = study.derived(profile)
    for field in {*stored, *derived} - {"numbers", "digest"}:
        if derived.get(field) != stored.get(field):
            yield f"{field} must be that of the stored runs, it differs; {AGAIN}"
    if stored["numbers"].keys() != derived["numbers"].keys():
        yield f"they must be those that the study derives; {AGAIN}"
        return
    for key, number in derived["numbers"].items():
        stored_number = stored["numbers"][key]
        if not same(number, stored_number):
            value = stored_number["value"]
            yield f"{key} must follow from the runs, {number['value']}, got {value}; {AGAIN}"


def same(derived, stored):
    """Whether two numbers are one, as far as processors agree."""
    a = Number.from_json(dict(derived))
    b = Number.from_json(dict(stored))
    a_values = np.array([a.value, a.low, a.high, *a.per_seed])
    b_values = np.array([b.value, b.low, b.high, *b.per_seed])
    if a_values.shape != b_values.shape or a.unit != b.unit:
        return False
    size = np.max(np.abs(b_values), initial=0.0, where=np.isfinite(b_values))
    return np.allclose(
        a_values,
        b_values,
        CLOSE,
        CLOSE * size + 1e-9,
        equal_nan=True,
    )
