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
    now = papers.verdicts(judged)
    changed = sorted(name for name in stored | now if stored.get(name) != now.get(name))
    assert not changed, (
        f"{', '.join(changed)}: the rule or the verdict is not that of papers/verdicts.json; "
        "if that is meant, run `make claims ARGS=--store` and say why in the commit"
    )


@pytest.mark.parametrize("claim", [claim for _, claim in all_claims()], ids=lambda claim: claim.id)
def test_every_rule_has_a_control_and_one_without_power_judges_nothing(claim, judged):
    for name, outcome in judged[claim.id].items():
        (rule,) = (each.rule for each in claim.each if each.name == name)
        assert rule.control is not None, (
            f"{claim.id} {name}: name a run that its rule must not pass"
        )
        assert "not among" not in outcome.control_verdict
        if outcome.control_verdict.startswith("reproduced"):
            assert outcome.verdict != "reproduced"


def test_a_rule_that_is_older_than_its_runs_is_in_the_history():
    readings = [each for _, claim in all_claims() for each in claim.each]
    commits = {each.rule_fixed for each in readings if each.rule_fixed}
    assert len(commits) > 5
    if git("rev-parse", "--is-shallow-repository") != ["false"]:
        pytest.skip("the whole history is not here")
    known = git("log", "--format=%H")
    unknown = [c for c in commits if not any(full.startswith(c) for full in known)]
    assert not unknown, f"{', '.join(unknown)}: rule_fixed must name a commit of the history"


def git(*arguments: str) -> list[str]:
    """The lines that git prints, none where it fails."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.split()
