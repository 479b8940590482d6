"""No rule and no verdict changes unnoticed, and every rule has a control that it must not pass."""

import json
import subprocess
from pathlib import Path

import pytest

import papers
from papers import all_claims

ROOT = Path(papers.__file__).resolve().parents[1]


def test_every_rule_and_verdict_is_that_of_the_snapshot(judged):
    stored = json.loads(papers.VERDICTS.read_text(encoding="utf-8"))
    current = papers.verdicts(judged)
    names = sorted(stored | current)
    changed = [name for name in names if stored.get(name) != current.get(name)]
    assert not changed, (
        f"{', '.join(changed)}: the rule or the verdict is not that of papers/verdicts.json; "
        "if that is meant, run `make claims ARGS=--store` and say why in the commit"
    )


def test_every_rule_has_a_control_and_one_without_power_judges_nothing(judged):
    for _, claim in all_claims():
        for reading in claim.each:
            name = f"{claim.id} {reading.name}"
            assert reading.rule.control is not None, f"{name}: name a run that it must not pass"
            outcome = judged[claim.id][reading.name]
            assert outcome.control_verdict or not outcome.parts, f"{name}: its runs are not there"
            exchanged = any(part.control for part in outcome.parts)
            assert exchanged or not outcome.parts, f"{name}: its control exchanges no number"
            if outcome.control_verdict == "reproduced":
                assert outcome.verdict != "reproduced", name


def test_a_rule_that_is_older_than_its_runs_is_in_the_history():
    readings = [reading for _, claim in all_claims() for reading in claim.each]
    commits = {reading.rule_fixed for reading in readings if reading.rule_fixed}
    assert len(commits) > 5
    if git("rev-parse", "--is-shallow-repository") != ["false"]:
        pytest.skip("the whole history is not here")
    known = git("log", "--format=%H")
    unknown = [c for c in commits if not any(full.startswith(c) for full in known)]
    assert not unknown, f"{', '.join(unknown)}: rule_fixed must name a commit of the history"


def git(*arguments):
    """The lines that git prints, none where it fails."""
    done = subprocess.run(
        ["git", "-C", ROOT, *arguments],
        capture_output=True,
        text=True,
    )
    return done.stdout.split()
