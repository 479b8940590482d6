"""The record of rules says what decides today, and no rule changes without an entry."""

from dataclasses import replace

import pytest
from expect import refuses

from papers import STUDIES, all_claims
from papers.__main__ import main
from papers.kit import record
from papers.kit.claims import PaperValue, Reading
from papers.kit.needs import Needs
from papers.kit.rules import Rule, of

CLAIM = STUDIES["np_workshop"].claims[0]


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_the_last_entry_of_every_claim_is_todays_rule_and_verdict(study):
    held = record.read(study)
    wrong = [
        f"{name}: {held[name][-1].label if name in held else 'no entry'} -> {entry.label}"
        for name, entry in record.due(study)
    ]
    assert not wrong, f"{'; '.join(wrong)}; run `python -m papers record {study.name} --reason ...`"


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_every_entry_is_whole_and_every_change_has_a_reason(study):
    for name, entries in record.read(study).items():
        assert [e.date for e in entries] == sorted(e.date for e in entries), name
        for i, entry in enumerate(entries):
            assert entry.runs in record.RUNS, name
            assert not i or entry.reason, f"{name}: its entry {i} has no reason"
            assert entry.words or entry.verdict == record.WITHDRAWN, name


def test_the_rule_that_was_tightened_with_its_results_is_told():
    first, second = record.read(STUDIES["cartpole"])["fedsgm/C19"][:2]
    assert (first.verdict, second.verdict) == ("reproduced", "partly")
    assert "results were known" in second.reason


def changed(**changes):
    return replace(CLAIM, rule=replace(CLAIM.rule, **changes))


class TestWhatDecides:
    RULE = Rule({"small": of("f") < 0.2, "table": {"a": of("a") > 1, "b": of("b") > 1}}, "f")
    OURS = replace(CLAIM, rule=RULE)

    @pytest.mark.parametrize(
        "other",
        [
            replace(OURS, rule=replace(RULE, primary={**RULE.primary, "small": of("f") < 0.2001})),
            replace(OURS, rule=replace(RULE, primary={**RULE.primary, "small": of("f") <= 0.2})),
            replace(OURS, rule=replace(RULE, primary={"small": of("f") < 0.2})),
            replace(OURS, rule=replace(RULE, primary={"tiny": of("f") < 0.2})),
            replace(OURS, rule=replace(RULE, note="The bound is 0.2.")),
            replace(OURS, rule=replace(RULE, proviso={"it is vacuous": of("b") < 1})),
            replace(OURS, needs=Needs(paper={"rounds": 500})),
            replace(OURS, readings=(Reading("without dropout", RULE, ()),)),
        ],
    )
    def test_a_change_of_it_is_another_rule(self, other):
        assert record.rule_digest(other) != record.rule_digest(self.OURS)

    @pytest.mark.parametrize(
        "other",
        [
            replace(OURS, runs=OURS.runs[1:]),
            replace(OURS, wording="Another sentence."),
            replace(OURS, measure="Another measure."),
            replace(OURS, readings=(Reading("without dropout", RULE, ("hard",)),)),
        ],
    )
    def test_a_change_of_what_it_is_applied_to_is_another_setting(self, other):
        assert record.setting(other) != record.setting(self.OURS)

    def test_so_is_a_change_of_the_least_that_all_claims_need(self, monkeypatch):
        before = record.setting(self.OURS)
        monkeypatch.setattr(record, "SEEDS", 2)
        assert record.setting(self.OURS) != before

    def test_observations_and_what_is_told_are_not_part_of_it(self):
        rule = replace(self.RULE, observations={"g": of("g") < 1}, measured="other")
        assert record.rule_digest(replace(self.OURS, rule=rule)) == record.rule_digest(self.OURS)


@pytest.fixture
def study(monkeypatch, tmp_path):
    """One claim on stored runs, with a record of its own."""
    path = tmp_path / "record.json"
    monkeypatch.setattr(record, "path_of", lambda _: path)
    made = replace(STUDIES["np_workshop"], claims=(CLAIM,), paper_values=())
    assert record.add([made], [], "") == [CLAIM.id]
    return made


class TestAdding:
    def test_what_did_not_change_gets_no_entry(self, study):
        assert record.add([study], [], "again") == []
        assert len(record.read(study)[CLAIM.id]) == 1

    def test_a_threshold_that_changed_is_refused_without_a_reason(self, study):
        part, *_ = CLAIM.rule.primary
        other = replace(study, claims=(changed(primary={part: of("hard.f") < 0.171}),))
        assert [name for name, _ in record.due(other)] == [CLAIM.id]
        refuses("reason must say why", record.add, [other], [], "")
        assert len(record.read(study)[CLAIM.id]) == 1

    def test_with_a_reason_it_stands_after_the_former_one(self, study):
        other = replace(study, claims=(changed(note="Anew."),))
        record.add([other], [CLAIM.id], "a better reading")
        first, second = record.read(study)[CLAIM.id]
        assert (first.reason, second.reason) == ("", "a better reading")
        assert second.words.endswith("Anew.")
        assert not [*record.due(other)]

    def test_a_verdict_that_changed_under_the_same_rule_is_due_too(self, study, monkeypatch):
        outcome = replace(study.evaluate(CLAIM).outcome, verdict="undecided")
        now = replace(record.today(study, CLAIM), verdict=outcome.verdict)
        monkeypatch.setattr(record, "today", lambda *_: now)
        with pytest.raises(ValueError, match=f"the verdict on {CLAIM.id} went from"):
            record.add([study], [], "")

    def test_an_entry_of_today_can_be_mended(self, study):
        for note in ("One.", "Two."):
            other = replace(study, claims=(changed(note=note),))
            record.add([other], [], "" if note == "Two." else "better", amend=True)
        _, second = record.read(study)[CLAIM.id]
        assert second.reason == "better"
        assert second.words.endswith("Two.")

    def test_others_than_those_named_are_left_alone(self, study):
        other = replace(study, claims=(changed(note="Anew."),))
        assert record.add([other], ["fedsgm/C99"], "why") == []
        assert [name for name, _ in record.due(other)] == [CLAIM.id]

    def test_a_claim_that_is_gone_is_withdrawn(self, study):
        gone = replace(study, claims=())
        record.add([gone], [], "not the paper's sentence")
        last = record.read(study)[CLAIM.id][-1]
        assert (last.verdict, last.digest) == ("withdrawn", "")
        assert not [*record.due(gone)]


class TestPrintedValues:
    VALUE = PaperValue("bits", "hard.f", 0.1, "0.1", "Table 1")

    def test_they_have_entries_of_their_own_that_are_no_claims(self, study):
        made = replace(study, paper_values=(self.VALUE,))
        assert record.add([made], [], "") == [record.PRINTED]
        assert [*record.read(made)] == [CLAIM.id]
        assert record.read_all(made)[record.PRINTED][-1].words == "bits: 0.1 (Table 1)"
        assert not [*record.due(made)]

    @pytest.mark.parametrize("changes", [{"paper": 0.12}, {"rtol": 0.2}, {"place": "Table 2"}])
    def test_one_that_changed_is_refused_without_a_reason(self, study, changes):
        record.add([replace(study, paper_values=(self.VALUE,))], [], "")
        other = replace(study, paper_values=(replace(self.VALUE, **changes),))
        refuses("reason must say why printed values changed", record.add, [other], [], "")
        assert record.add([other], [], "misread") == [record.PRINTED]

    def test_the_last_one_left_out_is_due_too(self, study):
        record.add([replace(study, paper_values=(self.VALUE,))], [], "")
        assert [name for name, _ in record.due(study)] == [record.PRINTED]


def test_a_study_without_a_package_has_no_record():
    assert record.read(replace(STUDIES["np_workshop"], name="mine")) == {}


def test_the_command_line_refuses_an_unknown_name(capsys):
    assert main(["record", "fedsgm/C99", "--reason", "x"]) == 2
    assert "name" in capsys.readouterr().err


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
