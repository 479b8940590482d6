"""The stored runs and numbers are those that the code gives, and no part contradicts another."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from fedlib.data import cache
from fedlib.sets import Box
from papers import STUDIES, all_claims
from papers.__main__ import main
from papers.fedsgm.fairness import runs
from papers.kit import archive, store
from papers.kit import reproduce as kit
from papers.kit.reproduce import sample
from papers.kit.rules import VERDICTS
from tests.helpers import loose, stored
from tests.helpers.expect import refuses

WORKSHOP = STUDIES["np_workshop"]
RATES = STUDIES["fw_rates"]
#: Studies whose numbers take a second or more: `bounds` has 1,500 solutions of a program.
MANY_NUMBERS = ("bounds", "np_unified", "np_protocol")


def stored_studies():
    """Every study in its full profile, and in the paper's setting where it has one."""
    for study in STUDIES.values():
        marks = pytest.mark.weekly if study.name in MANY_NUMBERS else ()
        yield pytest.param(study, "full", id=f"{study.name}-full", marks=marks)
        if study.at_paper:
            yield pytest.param(study, "paper", id=f"{study.name}-paper")


@pytest.mark.parametrize(("study", "profile"), list(stored_studies()))
def test_everything_stored_of_a_study_stands_together(study, profile):
    wrong = stored.faults(study, profile)
    counts = Counter(sentence.partition(": ")[2][:40] for sentence in wrong)
    assert not wrong, f"{len(wrong)} in {study.name}: {wrong[:3]}; counts {counts}"


def test_a_setting_that_changed_is_a_fault_of_every_run():
    def longer(p):
        return {
            name: replace(spec, rounds=spec.rounds + 1) for name, spec in WORKSHOP.specs(p).items()
        }

    wrong = stored.faults(replace(WORKSHOP, specs=longer))
    assert len(wrong) == len(WORKSHOP.specs(WORKSHOP.resolve("full")))
    assert all("its configuration changed; reproduce it" in sentence for sentence in wrong)


def test_nothing_else_is_among_the_results():
    files = {path.name for path in store.results_dir().iterdir()}
    files -= {*STUDIES, "recheck.json"}
    required = {f"{name}{end}" for name in STUDIES for end in (".json", ".parquet")}
    assert required <= files
    assert files <= {f"{name}{end}" for name in STUDIES for end in archive.FILES}


class TestRecomputing:
    def test_a_stored_run_is_what_the_code_gives(self):
        spec = WORKSHOP.specs(WORKSHOP.resolve("full"))["hard"]
        comparison = kit.compare(WORKSHOP, "hard", spec, kit.computed(spec, 12))
        assert not comparison.complete
        assert comparison.wrong == []
        assert comparison.difference < 1e-5

    def test_a_draw_comes_to_every_run_once_by_its_seed(self):
        def drawn(seed):
            return [run for _, run, _ in sample([WORKSHOP], seed)]

        runs = WORKSHOP.specs(WORKSHOP.resolve("full"))
        assert sorted(drawn(0)) == sorted(runs)
        assert drawn(0) == drawn(0) != drawn(1)

    @pytest.fixture
    def drawn_runs(self, tmp_path, monkeypatch):
        """Gives a function that fixes the draw, without any data."""
        monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
        monkeypatch.setattr(kit, "SAMPLED", 40)
        specs = RATES.specs(RATES.resolve("full"))

        def draw(*names):
            runs = [(RATES, name, specs[name]) for name in names]
            monkeypatch.setattr(kit, "sample", lambda *_: iter(runs))

        return draw

    def test_runs_that_need_no_data_are_compared_without_the_data_of_others(
        self, drawn_runs, capsys
    ):
        drawn_runs("penalty_mclr_l1_L1", "pair_fedfw_L0.1")
        assert main(["recheck", "fw_rates"]) == 0
        printed = capsys.readouterr().out
        assert "fw_rates/pair_fedfw_L0.1: 40 of" in printed
        assert "recheck: 1 runs of 1 studies are what the code gives" in printed
        assert "without their data: 1 of fw_rates" in printed

    def test_a_step_to_the_other_side_is_noticed_without_the_data(
        self, drawn_runs, monkeypatch, capsys
    ):
        drawn_runs("pair_fedfw_L0.1")
        usual = Box.lmo
        monkeypatch.setattr(Box, "lmo", lambda box, g: usual(box, -g))
        assert main(["recheck", "fw_rates"]) == 2
        assert "must be what the code gives, it is not at entry" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda run: run["config"].update(rounds=101), "key must be"),
        (lambda run: run["seeds"].pop(), "seeds must be"),
        (lambda run: run.update(profile="quick"), "study, profile and name must be"),
    ],
)
def test_a_run_that_contradicts_itself_is_not_read(tmp_path, monkeypatch, change, sentence):
    loose.copy("np_workshop", tmp_path)
    loose.change(tmp_path / "np_workshop" / "full" / "hard.json", change)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    refuses(f"np_workshop/hard: {sentence}", WORKSHOP.load)


def test_every_claim_has_a_verdict_by_rule_from_runs_that_exist(judged):
    ids = [claim.id for _, claim in all_claims()]
    assert len(ids) == len(set(ids)) > 80
    for name in ids:
        assert re.fullmatch(r"[a-z]+/[CPR]\d+", name), f"{name}: C, P or R with a number"
    for _, claim in all_claims():
        assert judged[claim.id][claim.reading].verdict in VERDICTS
        assert claim.runs


def unreachable(*_):
    raise OSError("there is no network")


def test_an_unknown_profile_is_one_sentence(capsys):
    assert main(["reproduce", "np_workshop", "--profile", "ful"]) == 2
    assert "profile must" in capsys.readouterr().err


def test_data_that_are_not_there_are_one_sentence(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    monkeypatch.setattr(cache, "_stream", unreachable)
    runs.people.cache_clear()
    runs.problem.cache_clear()
    words = ["reproduce", "fairness", "--device", "cpu", "--missing"]
    assert main(words) == 2
    message = capsys.readouterr().err
    assert re.search(r"(?m)^adult: adult\.data is not in .*FEDLIB_DATA", message)
