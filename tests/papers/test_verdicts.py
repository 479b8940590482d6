"""No rule and no verdict changes unnoticed, and every rule has a control that it must not pass."""

import json

import pytest

import papers
from papers import all_claims


def test_every_rule_and_verdict_is_that_of_the_snapshot():
    held, now = json.loads(papers.VERDICTS.read_text(encoding="utf-8")), papers.verdicts()
    changed = sorted(name for name in held | now if held.get(name) != now.get(name))
    assert not changed, (
        f"{', '.join(changed)}: the rule or the verdict is not that of papers/verdicts.json; "
        "if that is meant, run `make claims ARGS=--store` and say why in the commit"
    )


@pytest.mark.parametrize(("study", "claim"), all_claims(), ids=lambda x: getattr(x, "id", ""))
def test_every_rule_has_a_control_and_one_without_power_judges_nothing(study, claim):
    for name, outcome in study.outcomes(claim).items():
        (rule,) = (each.rule for each in claim.each if each.name == name)
        assert rule.control is not None, (
            f"{claim.id} {name}: name a run that its rule must not pass"
        )
        assert "not among" not in outcome.control
        if outcome.control.endswith(": reproduced"):
            assert outcome.verdict in ("not judged", "proved")
