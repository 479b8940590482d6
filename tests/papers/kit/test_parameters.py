"""Values of parameters, from cells, papermill, YAML and command lines: right, or one sentence."""

import math

import pytest

from papers import STUDIES
from papers.kit import store
from papers.kit.parameters import requested, settle
from tests.helpers.expect import refuses

STUDY = STUDIES["np_workshop"]
CONSTANT = {"profile": "full"}


@pytest.mark.parametrize(
    ("name", "entered", "value"),
    [
        ("lr", "1e-1", 0.1),
        ("lr", 1, 1.0),
        ("lr", None, 0.3),
        ("lr", "none", 0.3),
        ("rounds", "5", 5),
        ("lrs", (0.1, 1), (0.1, 1.0)),
        ("lrs", "(0.1,1)", (0.1, 1.0)),
        ("lrs", "0.1,1", (0.1, 1.0)),
        ("lrs", ["1e-1", 1], (0.1, 1.0)),
        ("seeds", 2, (0, 1)),
        ("seeds", "2", (0, 1)),
        ("seeds", [3, "5"], (3, 5)),
        ("many", "true", True),
        ("many", "False", False),
    ],
)
def test_a_value_is_read_as_what_it_stands_for(name, entered, value):
    assert STUDY.resolve("full", **{name: entered})[name] == value
    assert STUDY.page(CONSTANT | {name: entered}).params[name] == value


@pytest.mark.parametrize(
    ("name", "entered", "rule"),
    [
        ("lr", "a", "be a number, got 'a'"),
        ("lr", True, "be a number, got True"),
        ("lr", "nan", "be a number, got 'nan'"),
        ("lr", math.nan, "be a finite number, got nan"),
        ("lr", "1e400", "be a finite number, got inf"),
        ("lr", 10**400, "be a finite number, got 1000"),
        ("lr", [0.1], "be a number, got [0.1]"),
        ("rounds", 0, "be at least 1, got 0"),
        ("rounds", "-2", "got -2"),
        ("rounds", 2.5, "be a whole number, got 2.5"),
        ("rounds", True, "be a whole number, got True"),
        ("rounds", 10**12, "got 1000000000000"),
        ("lrs", [], "be a list such as [0.1, 1.0], got []"),
        ("lrs", "0.1", "be a list such as *got 0.1"),
        ("lrs", "0.1,x", "must be a number, got 'x'"),
        ("lrs", [0.1, 0.3, 0.1], "have distinct entries, got [0.1, 0.3, 0.1]"),
        ("lrs", [None], "must be a number, got None"),
        ("seeds", [0, 0], "distinct"),
        ("seeds", [1.0], "whole number, got 1.0"),
        ("seeds", 10**8, "seeds must be at most 100000"),
        ("many", "ja", "be True or False, got 'ja'"),
        ("many", 1, "be True or False, got 1"),
    ],
)
def test_a_value_of_another_kind_is_refused_in_one_sentence(name, entered, rule):
    refuses(
        rule,
        STUDY.resolve,
        "full",
        error=(ValueError, TypeError),
        **{name: entered},
    )


def test_recompute_is_read_as_papermill_gives_it():
    assert STUDY.page(CONSTANT | {"recompute": "true"}).recompute is True
    refuses(
        "recompute must be True or False, got 3",
        STUDY.page,
        {"recompute": 3},
        error=TypeError,
    )


@pytest.mark.parametrize("name", ["fractoin", "Rounds", "ROUNDS", "größe"])
def test_a_name_that_is_no_parameter_is_refused(name):
    refuses(f"np_workshop: parameters must *got '{name}'", STUDY.page, CONSTANT | {name: 3})
    cell = CONSTANT | {name: 3, "rounds": None}
    refuses(f"page: parameters must *got '{name}'", lambda: settle(cell, rounds=(9, 3)))


def test_in_a_notebook_the_cell_of_parameters_counts_and_what_papermill_adds():
    cell = {
        "profile": "full",
        "lr": 0.3,
        "roundz": 3,
        "found": [1],
        "T": 5,
    }
    known = ("profile", "lr")

    def asked(history):
        return requested("page", {**cell, "In": history}, known)

    cells = ["", 'profile = "full"\nlrr = 3', 'profile = "full"\nlr = 0.3  # step']
    assert asked(cells) == {"profile": "full", "lr": 0.3}
    injected = [*cells, "# Parameters\nroundz = 3"]
    refuses("got 'roundz'", asked, injected)
    refuses("got 'roundz'", asked, [*injected, "import x", "T = 5"])
    refuses("got 'T'", asked, [*cells, "# Parameters\nT = 5"])
    run_again = [*injected, "found = [1]", 'profile = "full"\nlr = 0.3', "%matplotlib inline"]
    assert asked(run_again)["lr"] == 0.3


def test_a_notes_none_is_its_profiles_value():
    cell = {"profile": "quick", "instances": None, "horizons": None, "seed": 7}
    declared = {"seed": 0, "instances": (48, 12), "horizons": ([1, 2, 3], [1])}
    expected = {"profile": "quick", "seed": 7, "instances": 12, "horizons": (1,)}
    settle(cell, **declared)
    assert cell == expected


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ({"instances": 0}, "page: instances must be at least 1, got 0."),
        ({"instances": -2}, "got -2."),
        ({"instances": 2.5}, "page: instances must be a whole number, got 2.5."),
        ({"few": 3}, "page: few must be at least 4, got 3."),
        ({"pictures": "mnits"}, "page: pictures must be one of 'digits', 'mnist', got 'mnits'."),
        ({"pictures": 3}, "got 3."),
        ({"delta": 0}, "page: delta must be positive, got 0.0."),
        ({"profile": "paper"}, "page: profile must be one of 'full', 'quick', got 'paper'."),
        ({"seed": -1}, "page: seed must be at least 0, got -1."),
    ],
)
def test_a_note_refuses_with_the_words_of_a_study(entries, rule):
    declared = {
        "pictures": ("mnist", "digits"),
        "few": (8, 8, 4),
        "delta": 0.1,
        "seed": 0,
    }
    cell = {"profile": "quick", **entries}
    refuses(rule, lambda: settle(cell, instances=(9, 3), **declared), error=(ValueError, TypeError))


def test_a_kernel_without_history_takes_no_other_name_for_a_parameter():
    """As nbval runs cells: it stores no history, and earlier cells have set names of their own."""
    names = {"In": [""], "profile": "quick", "table": {"a": 1}, "count": 3}
    settle(names, rounds=(100, 30))
    assert names["rounds"] == 30
    with pytest.raises(ValueError, match="got 'Rounds'"):
        settle({**names, "Rounds": 5}, rounds=(100, 30))


@pytest.mark.parametrize(
    ("study", "entries", "rule"),
    [
        ("bounds", {"stairs": [1]}, "got *stairs (1,)*(float division by zero)."),
        ("cmoo_toy", {"objectives": [1]}, "got*objectives (1,)*(division by zero)."),
        ("cmoo_toy", {"scale": 0}, "got*scale 0.0*by zero)."),
        ("cmoo_sweeps", {"ratios": [0, 1]}, "got*ratios (0.0, 1.0)*by zero)."),
    ],
)
def test_parameters_that_do_not_fit_together_are_one_sentence(study, entries, rule):
    page = STUDIES[study].page({"profile": "quick", **entries})
    refuses(f"{study}: parameters must fit together, {rule}", page.run)


def test_lists_that_do_not_pair_are_one_sentence():
    page = STUDIES["np_protocol"].page({"profile": "quick", "rhos": [0.5]})
    refuses("np_protocol: penalty_lrs must have an entry for each of rhos (1), got", page.run)


@pytest.mark.parametrize(
    ("study", "entries", "rule"),
    [
        ("fw_leakage", {"hidden": 10**9}, "fw_leakage: *allocate memory"),
        ("ssca_long", {"clients": 10**6}, "swish_network: clients must lie in 1..*training rows"),
        ("fw_lowrank", {"rank": 9}, "rank must lie in 1..8 (the sides of the matrix), got 9."),
    ],
)
def test_parameters_beyond_the_data_or_the_memory_are_one_sentence(study, entries, rule):
    def make_problem():
        page = STUDIES[study].page({"profile": "quick", **entries})
        for spec in STUDIES[study].runs_of(page.params).values():
            spec.problem(0)

    refuses(rule, make_problem)


def test_runs_that_do_not_fit_in_memory_are_one_sentence(monkeypatch):
    words = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8000 bytes. Error"

    def fail(*_):
        raise RuntimeError(words)

    monkeypatch.setattr(store, "compute", fail)
    specs = dict([*STUDY.specs(STUDY.resolve("quick")).items()][:1])
    rule = "s: the runs hard must fit in memory, got a tensor of 8000 bytes; take smaller"
    refuses(
        rule,
        store.compute_or_load,
        "s",
        "quick",
        specs,
        recompute=True,
    )
