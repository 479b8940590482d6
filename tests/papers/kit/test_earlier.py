"""What stands beside a verdict on fresh seeds is what was stored when its rule was fixed."""

import json
import subprocess
from functools import cache
from pathlib import Path

import pytest

import papers
from papers import STUDIES, all_claims
from papers.kit import earlier

ROOT = Path(papers.__file__).resolve().parents[1]


def readings():
    """Every reading of every claim with its study, by name."""
    named = {}
    for study, claim in all_claims():
        for reading in claim.each:
            named[earlier.name_of(claim.id, reading.name)] = (study, reading)
    return named


def test_an_earlier_verdict_is_of_a_rule_that_was_fixed_then_and_of_other_seeds():
    known = readings()
    specs_of = cache(lambda name: STUDIES[name].specs(STUDIES[name].resolve("full")))
    assert len(earlier.earlier_verdicts()) > 20
    for name, verdict in earlier.earlier_verdicts().items():
        study, reading = known[name]
        assert reading.rule_fixed == verdict["commit"]
        specs = specs_of(study.name)
        seeds = {seed for run in reading.runs for seed in specs[run].seeds}
        smallest, largest = map(int, verdict["seeds"].split(" to "))
        assert seeds.isdisjoint(range(smallest, largest + 1))


def test_an_earlier_verdict_is_that_of_its_commit():
    stored = {}
    for name, verdict in earlier.earlier_verdicts().items():
        commit = verdict["commit"]
        if commit not in stored:
            file = f"{commit}:papers/verdicts.json"
            done = subprocess.run(["git", "-C", ROOT, "show", file], capture_output=True)
            if done.returncode:
                pytest.skip("the whole history is not here")
            stored[commit] = json.loads(done.stdout)
        assert stored[commit][name]["verdict"] == verdict["verdict"]


def test_the_sentence_names_the_seeds_and_the_verdict():
    (text,) = earlier.on_earlier_seeds("fedsgm/C5", "")
    assert text.startswith("On the seeds 0 to 9, known when the rule was written: ")
    assert earlier.on_earlier_seeds("fedsgm/C5", "another reading") == []
