"""What every study owes: parameters documented, rules total, figures drawn, needs that speak."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedlib.core.describe import describe
from papers import STUDIES, all_claims
from papers.kit import store
from papers.kit.health import MISSING, Evidence, entry
from papers.kit.quantities import Query
from papers.kit.rules import Rule
from tests.helpers.page_figures import names_of
from tests.helpers.process import python

AT_PAPER = [study for study in STUDIES.values() if study.at_paper]


def of_studies(studies):
    """A parameter `study` of these, by their names."""
    return pytest.mark.parametrize("study", studies, ids=lambda study: study.name)


def readings_of(study):
    """Every reading of every claim of a study."""
    return [reading for claim in study.claims for reading in claim.each]


def config_of(study, run):
    """The configuration of a stored run."""
    return store.config_of(store.run_path(study.name, "full", run))


def another(value):
    """A value of the same kind that a parameter might be given in its place."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return value[:-1] if len(value) > 1 else tuple(map(another, value))
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, int):
        return value + 1
    return 0.9 * value or 0.5


def settings_of(specs):
    """What tells the runs of a study apart, without building a problem."""
    settings = {}
    for name, spec in specs.items():
        maker = spec.problem
        problem = ()
        if isinstance(maker, partial):
            problem = (maker.args, sorted(maker.keywords.items()))
        settings[name] = repr(
            (
                describe(spec.algorithm),
                problem,
                spec.rounds,
                spec.seeds,
                spec.evaluate_every,
            )
        )
    return settings


@of_studies(STUDIES.values())
def test_parameters_are_documented_and_known_to_both_profiles(study):
    assert all(study.parameters.values())
    for profile in study.profiles.values():
        assert profile.keys() == study.parameters.keys()


@of_studies(STUDIES.values())
def test_a_parameter_shows_in_the_runs_or_among_the_needs(study):
    full = study.profiles["full"]
    usual = settings_of(study.specs(full))
    needed = {name for claim in study.claims for name in claim.needs.parameters}
    assert needed <= full.keys()

    def is_seen(name, value):
        try:
            return settings_of(study.specs({**full, name: value})) != usual
        except (ValueError, TypeError):
            return True  # refused: it is looked at

    names = full.keys() - needed if study.claims else ()
    for name in names:
        changes = (another(full[name]), study.profiles["quick"][name])
        assert any(is_seen(name, change) for change in changes), f"{name} decides nothing"


@of_studies(AT_PAPER)
def test_the_papers_setting_is_more_than_the_full_profile(study):
    full = study.resolve("full")
    usual = settings_of(study.specs(full))
    for name, value in study.at_paper.items():
        changed = settings_of(study.specs({**full, name: value}))
        assert changed != usual, f"{name} changes no run"


@of_studies(AT_PAPER)
def test_the_papers_setting_is_enough_for_the_claims(study):
    specs = study.specs(study.resolve("paper"))
    for claim in study.claims:
        assert {*claim.runs} <= specs.keys()  # another reading may look at runs of ours
    for reading in readings_of(study):
        for run in specs.keys() & {*reading.runs}:
            spec = specs[run]
            config = {"rounds": spec.rounds, "algorithm": describe(spec.algorithm)}
            for path, least in reading.needs.paper.items():
                value = entry(config, path)
                enough = value >= least if path == "rounds" else value in (MISSING, least)
                assert enough, f"{run}: {path} is {value}, the paper's {least}"


@of_studies(STUDIES.values())
def test_a_rule_is_total_and_says_itself(study):
    numbers = store.read_numbers(study.name)
    figures = names_of(study.name)
    for claim in study.claims:
        assert not claim.figure or claim.figure in figures, claim.id
    for rule in (reading.rule for reading in readings_of(study)):
        assert isinstance(rule, Rule)
        assert 1 <= len(rule.primary) <= 3, f"one to three parts decide, got {rule.primary}"
        assert rule.keys() <= numbers.keys()
        assert rule.words.endswith(".")
        outcome = rule(numbers)
        assert any(character.isdigit() for character in outcome.measured), rule.words
        assert (outcome.verdict == "reproduced") == (not outcome.reason), rule.words


@of_studies(STUDIES.values())
def test_every_printed_value_has_its_number_and_a_label_of_its_own(study):
    numbers = store.read_numbers(study.name)
    for value in study.paper_values:
        assert value.key in numbers, value.label
    labels = [value.label for value in study.paper_values]
    assert len(labels) == len({*labels})


@pytest.mark.parametrize(
    ("study", "claim"), [pytest.param(study, claim, id=claim.id) for study, claim in all_claims()]
)
def test_a_verdict_says_what_a_page_lacks(study, claim):
    numbers = store.read_numbers(study.name)
    configs = {name: config_of(study, name) for name in claim.runs}

    def judged_on(page_configs):
        evidence = Evidence(numbers, page_configs, configs)
        return claim.verdicts(evidence)[claim.reading]

    complete = judged_on(configs)
    assert complete.verdict == "not judged" or complete == claim.worded(claim.rule(numbers))
    name = claim.runs[0]
    remaining = {run: configs[run] for run in configs if run != name}
    lacking = judged_on(remaining)
    assert lacking.verdict == "not judged"
    assert name in lacking.reason
    shorter = {**configs[name], "rounds": configs[name]["rounds"] - 1}
    assert judged_on({**remaining, name: shorter}).verdict == "not judged"


def larger(trace):
    """A run all of whose curves are larger by up to a fifth."""
    rng = np.random.default_rng(len(trace.rounds))

    def grown(curves):
        return {name: x * (1 + 0.2 * rng.random(x.shape)) for name, x in curves.items()}

    return replace(trace, metrics=grown(trace.metrics), info=grown(trace.info))


@pytest.mark.weekly
@of_studies([study for study in STUDIES.values() if study.name != "bounds"])
def test_a_rule_reads_the_runs_that_stand_behind_its_claim_and_no_other(study):
    """Who changes a run must know whether a claim is still judged by the book's."""
    traces = study.load()
    params = study.resolve("full")
    numbers = study.numbers(traces)
    for reading in readings_of(study):
        unread = traces.keys() - {*reading.runs}
        changed = {name: larger(traces[name]) for name in unread}
        derived = study.derive({**traces, **changed}, params)
        for key in reading.rule.keys() & numbers.keys():
            expected = pytest.approx(numbers[key].value, rel=1e-9, nan_ok=True)
            assert derived[key].value == expected, key


@of_studies(STUDIES.values())
def test_what_the_paper_has_is_an_entry_of_some_run(study):
    for reading in readings_of(study):
        configs = [config_of(study, name) for name in reading.runs]
        for path in reading.needs.paper:
            assert any(entry(config, path) != MISSING for config in configs), path


SHORTENED = {
    "cmoo_sweeps": (
        {"steps": [20], "ratios": [2.0]},
        Query.of("lead", data="multi_mnist", steps=20, minus="fewest"),
    ),
    "ssca_long": (
        {"penalties": [30.0], "batches": [10], "levels": [0.6]},
        "ssca_valid_B10.fall",
    ),
}


@pytest.mark.parametrize("name", SHORTENED)
def test_a_readers_shorter_lists_still_give_numbers(name):
    study = STUDIES[name]
    changes, key = SHORTENED[name]
    params = study.resolve("full", **changes)
    traces = study.load()
    kept = {run: traces[run] for run in study.specs(params) if run in traces}
    assert 0 < len(kept) < len(traces)
    assert np.isfinite(study.derive(kept, params)[key].value)


def test_studies_are_imported_without_jupyter_and_what_only_figures_need():
    """Judging claims, which reads tables of pandas, would wait for it."""
    late = ("matplotlib", "seaborn", "sklearn")
    program = (
        "import sys; sys.modules['IPython'] = None; "
        "import papers; list(papers.STUDIES.values()); import papers.kit.display; "
        f"print([name for name in {late} if name in sys.modules])"
    )
    done = python("-c", program)
    assert done.stdout.strip() == "[]", done.stderr[-2000:]
