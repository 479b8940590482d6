"""What groups of runs cost, from what is declared and recorded."""

from dataclasses import replace
from functools import partial

import pytest

from fedlib.data import DataError, cache
from fedlib.engine.stack import floats
from papers import STUDIES
from papers.kit import archive, costs, store
from papers.kit.costs import Costs, recorded, work
from papers.kit.shortfall import jobs_of


def test_a_listing_needs_no_data(monkeypatch):
    def refuse(*_):
        raise DataError("data: nothing must be asked for.")

    monkeypatch.setattr(cache, "fetch", refuse)
    monkeypatch.setattr(cache, "_download", refuse)
    jobs = jobs_of(STUDIES["ssca_convergence"], "full")
    assert all(job.seconds > 0 for job in jobs)


def test_groups_are_those_whose_stored_configurations_differ_in_floats_alone():
    for study in STUDIES.values():
        specs, alike = study.specs(study.resolve("full")), {}
        for name, spec in specs.items():
            path = store.run_path(study.name, "full", name)
            config = archive.read(path, curves=False)["config"]
            store._without(config["algorithm"], floats(spec.algorithm))
            alike.setdefault(repr((config, spec.keep)), []).append(name)
        assert [[*group] for group in store.groups(specs)] == [*alike.values()], study.name


def test_predicted_seconds_grow_with_the_work():
    study = STUDIES["cmoo_sweeps"]
    specs = study.specs(study.resolve("full"))
    known, name = recorded(study.name, specs, {}), "multi_mnist_fedcmoo_steps20"
    spec = specs[name]
    assert known.predicted(name, spec) == pytest.approx(known.seconds[name])
    longer = replace(spec, rounds=10 * spec.rounds, seeds=(0, 1, 2))
    assert known.predicted(name, longer) == pytest.approx(30 * known.seconds[name], rel=0.05)
    wider = replace(spec, algorithm=replace(spec.algorithm, batch_size=256))
    assert known.seconds[name] < known.predicted(name, wider) <= 2 * known.seconds[name]
    own = sorted(known.seconds[n] / work(specs[n]) for n in specs if "fedcmoo" in n)
    assert own[0] <= known.predicted("a new one", spec) / work(spec) <= own[-1]
    assert Costs(specs, {}).predicted(name, spec) == 0.0


@pytest.mark.parametrize(
    ("changes", "rows_a_round", "looked_at"),
    [
        ({}, 100 * 64, 20_000 + 50),  # batches, then all rows of the clients and the test rows
        ({"rows": 600}, 600, 600 + 50),  # clients with six rows draw six
        ({"measured": 20}, 100 * 64, 100 * 20 + 50),
        ({"rows": 0}, 100 * 64, 50),  # "all": as many as there are, which is not said
    ],
)
def test_the_work_of_a_run_counts_the_rows_that_pass_its_model(changes, rows_a_round, looked_at):
    study = STUDIES["fw_stochastic"]
    spec = study.specs(study.resolve("full"))["mclr_synthetic_iid_code_sto_seed0"]
    sizes = {"clients": 100, "rows": 20_000, "tested": 50, **changes}
    spec = replace(spec, problem=partial(spec.problem.func, **sizes), rounds=30, evaluate_every=10)
    assert work(spec) == 30 * costs.STEP * rows_a_round + 4 * looked_at


def test_what_later_runs_took_corrects_what_is_predicted(monkeypatch):
    study = STUDIES["cmoo_sweeps"]
    specs = study.specs(study.resolve("full"))
    first, second = "multi_mnist_fedcmoo_steps1", "multi_mnist_fedcmoo_steps20"
    larger = {name: replace(specs[name], rounds=10 * specs[name].rounds) for name in specs}
    times = {"full": dict.fromkeys(specs, 100.0), "paper": {}}
    monkeypatch.setattr(costs, "_times", lambda _, profile, __: times[profile].items())
    slow = costs.recorded(study.name, specs, larger).predicted(first, larger[first])
    assert slow == pytest.approx(1000, rel=0.05)
    times["paper"][second] = slow / 4
    quick = costs.recorded(study.name, specs, larger)
    assert quick.predicted(first, larger[first]) == pytest.approx(slow / 4, rel=0.05)
    assert quick.predicted(first, specs[first]) == pytest.approx(25, rel=0.05)
