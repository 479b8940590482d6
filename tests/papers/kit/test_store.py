"""Stored runs: compute or load, provenance, and what damaged files get."""

import json
import math
import os
from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np
import pytest

import fedlib as fl
from fedlib.core.files import read_json, write_json
from papers.kit import store
from papers.kit.health import of_run
from papers.kit.numbers import Number, mean
from papers.kit.store import Spec, compute_or_load, run_path
from tests.helpers.expect import refuses
from tests.helpers.problems import np_problem
from tests.helpers.unlabelled import quantities

SGM = fl.FedSGM(lr=0.3, local_steps=2, participants=10, tolerance=0.05)
SPECS = {
    "a": Spec(SGM, np_problem, 6, (0, 1)),
    "b": Spec(
        replace(SGM, lr=0.1),
        np_problem,
        6,
        (0, 1),
        keep=("f", "sigma"),
    ),
    "c": Spec(replace(SGM, local_steps=1), np_problem, 6, (0, 1)),
}


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


def have(specs=SPECS, **options):
    return compute_or_load(
        "toy",
        "full",
        specs,
        progress=False,
        **options,
    )


def test_loading_gives_what_computing_gave_digit_for_digit():
    computed = have(store=True)
    loaded = have()
    for name, trace in computed.items():
        for k, v in trace.metrics.items():
            np.testing.assert_array_equal(v, loaded[name].metrics[k])
        np.testing.assert_array_equal(trace.state, loaded[name].state)
        np.testing.assert_array_equal(trace.output, loaded[name].output)
    assert set(loaded["b"].metrics) == {"f"}
    assert set(loaded["b"].info) == {"sigma"}
    assert loaded["a"].config["bits"]["bits_up"] == 10 * 32 * 31


def test_what_is_stored_is_not_computed_again_unless_asked(monkeypatch):
    have(store=True)
    ran = []
    monkeypatch.setattr(store, "run", lambda *_, **__: ran.append(1))
    have()
    assert not ran
    with pytest.raises(TypeError):
        have(recompute=True)
    assert ran


def test_another_configuration_is_computed_and_leaves_the_stored_run_alone():
    have(store=True)
    text = run_path("toy", "full", "a").read_text(encoding="utf-8")
    longer = have({"a": replace(SPECS["a"], rounds=9)})
    assert longer["a"].rounds[-1] == 9
    assert run_path("toy", "full", "a").read_text(encoding="utf-8") == text


def test_a_curve_that_was_not_kept_makes_it_another_run():
    have(store=True)
    spec = SPECS["b"]
    assert store.is_stored("toy", "full", "b", spec)
    wider = replace(spec, keep=(*spec.keep, "g"))
    assert not store.is_stored("toy", "full", "b", wider)
    assert not store.is_stored("toy", "full", "b", replace(spec, keep=("f", "info")))
    assert set(have({"b": wider}, store=True)["b"].metrics) == {"f", "g"}
    assert store.is_stored("toy", "full", "b", wider)
    assert store.is_stored("toy", "full", "b", spec)


def test_a_curve_that_a_run_may_lack_is_optional():
    lacking = replace(SPECS["a"], keep=("f", "weight_1"))
    refuses(
        "toy/a: keep must name curves that the run has",
        have,
        {"a": lacking},
        store=True,
    )
    spec = replace(SPECS["a"], keep=("f",), optional=("g", "weight_1"))
    assert set(have({"a": spec}, store=True)["a"].metrics) == {"f", "g"}
    assert store.is_stored("toy", "full", "a", spec)


def test_nothing_is_stored_unless_asked(results):
    have()
    assert not results.exists()


def test_an_interrupted_run_goes_on_where_it_stopped(results, monkeypatch):
    undisturbed = have({"a": SPECS["a"]})["a"]
    loop = import_module("fedlib.engine.batch").BatchedRuns
    rounds = []
    compute = loop.compute

    def interrupted(self, state, draw, number=0):
        rounds.append(number)
        if len(rounds) == 5:
            raise KeyboardInterrupt
        return compute(self, state, draw)

    monkeypatch.setattr(loop, "compute", interrupted)
    # chunks do not depend on the clock
    monkeypatch.setattr(import_module("fedlib.engine.loop"), "SHORT", math.inf)
    monkeypatch.setattr(store, "run", partial(fl.run, checkpoint_seconds=0))
    (results / "toy" / "full").mkdir(parents=True)
    left = results / "toy" / "full" / ".part-0"
    left.write_text("of a killed process", encoding="utf-8")
    os.utime(left, (0, 0))
    with pytest.raises(KeyboardInterrupt):
        have({"a": SPECS["a"]}, store=True)
    (left,) = (results / "toy" / "full").iterdir()
    assert left.name.endswith(".checkpoint.pt")
    again = have({"a": SPECS["a"]}, store=True)["a"]
    # the fifth round was interrupted, so it and the last were left
    assert len(rounds) == 5 + 2
    for name in undisturbed.metrics:
        np.testing.assert_array_equal(again.metrics[name], undisturbed.metrics[name])
    assert [path.name for path in (results / "toy" / "full").iterdir()] == ["a.json"]


def test_runs_that_differ_in_floats_are_computed_together():
    names = sorted(sorted(group) for group in store.groups(SPECS))
    assert names == [["a"], ["b"], ["c"]]  # b keeps other curves
    same = {"a": SPECS["a"], "d": replace(SPECS["a"], algorithm=replace(SGM, lr=1.0))}
    assert [sorted(g) for g in store.groups(same)] == [["a", "d"]]


def test_provenance_is_complete_and_names_no_machine():
    have(store=True)
    stored = read_json(run_path("toy", "full", "a"))
    assert {"fedlib", "commit", "torch", "device", "wall_s", "date"} <= set(stored["provenance"])
    assert stored["seeds"] == [0, 1]
    text = json.dumps(stored)
    assert os.uname().nodename not in text
    assert not {"roots", "code", "restamped"} & {*stored["provenance"]}
    assert '"/' not in json.dumps(stored["provenance"])


def test_a_missing_file_says_how_to_make_it():
    refuses("it is missing; make it with `papers reproduce`", store.read_numbers, "toy")


def test_a_results_folder_that_cannot_be_written_to(results):
    results.write_text("a file where the folder should be", encoding="utf-8")
    refuses("must be writable*nothing was written", have, store=True, error=OSError)


def test_numbers_round_trip_with_missing_values():
    traces = have(store=True)
    numbers = {
        "x": mean([1.0, 2.0, 4.0], "rounds"),
        "y": Number(
            math.nan,
            0,
            1,
            (2.0,),
            "",
        ),
    }
    health = {name: of_run(trace) for name, trace in traces.items()}
    payloads = {name: read_json(run_path("toy", "full", name)) for name in traces}
    content = store.derived(
        "toy",
        "full",
        quantities(numbers),
        payloads,
        health,
    )
    write_json(run_path("toy", "full", "numbers"), content)
    assert store.read_derived("toy").health == health
    back = store.read_numbers("toy")
    assert back["x"] == numbers["x"].from_json(numbers["x"].to_json())
    assert np.isnan(back["y"].value)


def test_whole_numbers_in_float_fields_are_computed_with_the_others():
    specs = {"a": SPECS["a"], "d": replace(SPECS["a"], algorithm=replace(SGM, lr=1))}
    assert [sorted(g) for g in store.groups(specs)] == [["a", "d"]]
    assert set(have(specs)) == {"a", "d"}


def far(seed, rows=100):
    """A problem whose data are not here."""
    pytest.fail("the problem was made")


def test_looking_whether_a_run_is_stored_makes_no_problem():
    spec = replace(SPECS["a"], problem=partial(far, rows=50))
    usual = replace(spec, problem=far)
    assert usual.maker() == {"function": f"{far.__module__}.far", "arguments": {}}
    assert replace(spec, problem=partial(far, rows=100)).key() == usual.key()
    assert spec.maker()["arguments"] == {"rows": 50}
    longer = replace(usual, rounds=9)
    assert len({spec.key(), usual.key(), longer.key()}) == 3
    assert not store.is_stored("toy", "full", "a", spec)


def test_a_problem_without_a_name_is_never_taken_for_a_stored_one():
    nameless = replace(SPECS["a"], problem=lambda seed: np_problem(seed))
    assert nameless.key() is None
    have({"a": nameless}, store=True)
    assert not store.is_stored("toy", "full", "a", nameless)


@pytest.mark.parametrize("label", ["seeds", "measure", "f"])
def test_a_label_is_no_column_of_the_tables(label):
    refuses(
        "Spec: labels must have other names than the columns",
        partial(
            Spec,
            SGM,
            np_problem,
            6,
            (0, 1),
            labels={label: 1},
        ),
    )
