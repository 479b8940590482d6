"""What every study owes: parameters documented, rules total, figures drawn, needs that speak."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedlib.core.describe import describe
from papers import STUDIES, all_claims
from papers.kit import store
from papers.kit.health import MISSING, entry
from papers.kit.rules import Rule
from tests.helpers.page_figures import names_of
from tests.helpers.process import python

CLAIMS = [pytest.param(study, claim, id=claim.id) for study, claim in all_claims()]
studies = pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
claims = pytest.mark.parametrize(("study", "claim"), CLAIMS)


def other(value):
    """A value of the same kind that a parameter might be given in its place."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return value[:-1] if len(value) > 1 else tuple(map(other, value))
    if isinstance(value, str):
        return value + "x"
    return value + 1 if isinstance(value, int) else 0.9 * value or 0.5


def shape(specs):
    """What tells the runs of a study apart, without building a problem."""
    found = {}
    for name, spec in specs.items():
        maker = spec.problem
        how = maker.keywords if isinstance(maker, partial) else {}
        args = maker.args if isinstance(maker, partial) else ()
        found[name] = (
            *(repr(describe(spec.algorithm)), spec.rounds, spec.seeds, spec.evaluate_every),
            *(repr(sorted(how.items())), repr(args)),
        )
    return found


@studies
def test_parameters_are_documented_and_known_to_both_profiles(study):
    assert all(study.parameters.values())
    for profile in study.profiles.values():
        assert profile.keys() == study.parameters.keys()


@studies
def test_a_parameter_shows_in_the_runs_or_among_the_needs(study):
    full = study.profiles["full"]
    plain = shape(study.specs(full))
    needed = {p for claim in study.claims for p in claim.needs.parameters}
    assert needed <= full.keys()

    def seen(name, value):
        try:
            return shape(study.specs({**full, name: value})) != plain
        except (ValueError, TypeError):
            return True  # refused: it is looked at

    for name, value in full.items():
        changes = other(value), study.profiles["quick"][name]
        known = any(seen(name, x) for x in changes) or name in needed or not study.claims
        assert known, f"{study.name}: {name} decides nothing"


@pytest.mark.parametrize("study", [s for s in STUDIES.values() if s.at_paper], ids=lambda s: s.name)
def test_the_papers_setting_is_more_than_the_full_profile_and_enough_for_the_claims(study):
    full, paper = study.resolve("full"), study.specs(study.resolve("paper"))
    plain = shape(study.specs(full))
    for name, value in study.at_paper.items():
        assert shape(study.specs({**full, name: value})) != plain, f"{name} changes no run"
    for claim in study.claims:
        for needs, runs in [
            (claim.needs, claim.runs),
            *((r.needs, r.runs) for r in claim.readings),
        ]:
            assert {*claim.runs} <= paper.keys()  # another reading may look at runs of ours
            for spec in (paper[run] for run in runs if run in paper):
                config = {"rounds": spec.rounds, "algorithm": describe(spec.algorithm)}
                for where, wanted in needs.paper.items():
                    have = entry(config, where)
                    enough = have >= wanted if where == "rounds" else have in (MISSING, wanted)
                    assert enough, f"{claim.id}: {where} is {have}, the paper's {wanted}"


@claims
def test_a_rule_is_total_and_says_itself(study, claim):
    numbers = store.read_numbers(study.name)
    for rule in (claim.rule, *(reading.rule for reading in claim.readings)):
        assert isinstance(rule, Rule)
        assert 1 <= len(rule.primary) <= 3, f"{claim.id}: one to three parts decide"
        assert rule.keys() <= numbers.keys()
        assert rule.words.endswith(".")
        outcome = rule(numbers)
        assert any(character.isdigit() for character in outcome.measured)
        assert (outcome.verdict == "reproduced") == (not outcome.reason)
    assert not claim.figure or claim.figure in names_of(study.name)


@claims
def test_a_verdict_says_what_a_page_lacks(study, claim):
    numbers = store.read_numbers(study.name)
    configs = {name: study.payload(name)["config"] for name in claim.runs}
    whole = claim.verdicts(numbers, configs, configs)[claim.reading]
    assert whole.verdict == "not judged" or whole == claim.worded(claim.rule(numbers))
    for name in claim.runs[:1]:
        rest = {k: v for k, v in configs.items() if k != name}
        lacking = claim.verdicts(numbers, rest, configs)[claim.reading]
        assert lacking.verdict == "not judged"
        assert name in lacking.reason
        shorter = {**configs, name: {**configs[name], "rounds": configs[name]["rounds"] - 1}}
        assert claim.verdicts(numbers, shorter, configs)[claim.reading].verdict == "not judged"


def larger(trace):
    """A run all of whose curves are larger by up to a fifth."""
    rng = np.random.default_rng(len(trace.rounds))

    def grown(curves):
        return {name: x * (1 + 0.2 * rng.random(x.shape)) for name, x in curves.items()}

    return replace(trace, metrics=grown(trace.metrics), info=grown(trace.info))


@pytest.mark.weekly
@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_a_rule_reads_the_runs_that_stand_behind_its_claim_and_no_other(study):
    """Who changes a run must know whether a claim is still judged by the book's."""
    if study.name == "bounds":
        pytest.skip("its numbers are 1,500 solutions of a program")
    traces, params = study.load(), study.resolve("full")
    before = study.numbers(traces)
    for reading in [reading for claim in study.claims for reading in claim.each]:
        others = {name: larger(t) for name, t in traces.items() if name not in reading.runs}
        now = study.derive({**traces, **others}, params)
        for key in filter(before.__contains__, reading.rule.keys()):
            assert now[key].value == pytest.approx(before[key].value, rel=1e-9, nan_ok=True), key


@claims
def test_what_the_paper_has_is_an_entry_of_some_run(study, claim):
    for needs, runs in [(claim.needs, claim.runs), *((r.needs, r.runs) for r in claim.readings)]:
        configs = [study.payload(name)["config"] for name in runs]
        for where in needs.paper:
            assert any(entry(config, where) != MISSING for config in configs), where


def test_studies_are_imported_without_what_only_figures_need():
    """Judging claims, which reads tables of pandas, would wait for it."""
    late = ("matplotlib", "seaborn", "sklearn")
    names = ", ".join(map(repr, late))
    done = python(
        "-c",
        "import sys, papers; list(papers.STUDIES.values()); "
        f"print([name for name in ({names}) if name in sys.modules])",
    )
    assert done.stdout.strip() == "[]", done.stderr[-2000:]
