"""The study of SSCA's Figures 2 and 3: numbers, counts, the rules of its claims, figures."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedlib.algorithms._vertical import messages
from fedlib.core import Trace
from fedlib.core.sampling import seeded
from fedlib.core.types import describe
from fedlib.steps import PowerLaw
from papers.kit.numbers import Number
from papers.kit.plot import render
from papers.ssca import common
from papers.ssca.common import LEVELS, SPLITS, STEPS
from papers.ssca.convergence import STUDY, counts, he_problem, ordered_problem
from papers.ssca.convergence.names import BATCHES
from papers.ssca.convergence.numbers import (
    CRITERIA,
    HE,
    LOOKS,
    area,
    chosen,
    derive,
    first_below,
    halves,
    measures,
)

FULL, QUICK = (STUDY.profiles[name] for name in ("full", "quick"))
CLAIMS = {c.id.removeprefix("ssca/"): c for c in STUDY.claims}
TINY = {"data": "digits", "clients": 4, "hidden": 3, "evaluate": 50}


def run(cost, rounds, seeds=(0,), **algorithm):
    """A trace with a curve of the cost, `[S, T_eval]`."""
    x = np.atleast_2d(np.asarray(cost, float))
    metrics = {"cost": x, "accuracy": 1 - x / 5, "norm": x}
    config = {
        "algorithm": algorithm,
        "problem": {"clients": 10, "hidden": 128},
        "bits": {"bits_up": 8e6, "bits_down": 8e6},
    }
    return Trace(metrics, {}, np.asarray(rounds), seeds, config, {"wall_s": 60.0})


def all_runs(params):
    """Traces of every run of the study, made up: larger batches and SSCA are faster."""
    rng = np.random.default_rng(0)
    found = {}
    p = {k: int(params[k]) for k in ("clients", "hidden")}
    for name, spec in STUDY.specs(params).items():
        t = np.array(sorted({*range(0, spec.rounds, spec.evaluate_every), spec.rounds}))
        own = describe(spec.algorithm)
        speed = 0.01 * (1 + np.log10(own["batch_size"])) * (1 + ("ssca" in name))
        curve = 0.2 + 2.1 * np.exp(-speed * t) + 0.01 * rng.random((len(spec.seeds), len(t)))
        trace = run(curve, t, spec.seeds, **own)
        split, limited = name.removeprefix(HE).split("_")[0], "_limit_" in name
        rows = own["batch_size"] if split == "features" else 0
        bits = counts.up_and_down(split, limited, params, rows) if name != "order" else (0, 0)
        told = {"bits": dict(zip(("bits_up", "bits_down"), bits, strict=True)), "problem": p}
        trace = replace(trace, config={**trace.config, **told})
        if name == "order":
            x = trace.metrics["cost"]
            more = {"cost_even": x + 0.1, "cost_odd": x - 0.1, "cost_all": x}
            trace = replace(trace, metrics={**trace.metrics, **more})
        found[name] = trace
    return found


@pytest.fixture(scope="module")
def traces():
    return all_runs(FULL)


@pytest.fixture(scope="module")
def numbers(traces):
    return derive(traces, FULL)


# -- what the studies share


def test_step_sizes_are_those_of_the_paper():
    found = {b: (r.scale, g.scale, r.exponent, g.exponent) for b, (r, g) in STEPS.items()}
    assert found[1] == pytest.approx((0.4, 0.4, 0.4, 0.45))
    assert found[10] == pytest.approx((0.6, 0.9, 0.3, 0.35))
    assert found[100] == pytest.approx((0.9, 0.9, 0.3, 0.35))
    assert (common.TAU, common.PENALTY, common.RIDGE) == (0.1, 1e5, 1e-5)


@pytest.mark.parametrize("split", SPLITS)
def test_methods_know_the_split_and_the_size_of_its_batch(split):
    rows = {"samples": 10, "features": 100}[split]
    one, two = common.ssca(split, 10), common.constrained(split, 10, 0.6)
    three = common.sgd(split, 10, 1, PowerLaw(0.3))
    assert {a.batch_size for a in (one, two, three)} == {rows}
    assert ("Vertical" in type(one).__name__) == (split == "features")
    assert (two.levels, two.objective) == (0.6, "norm")
    assert one.ridge == three.ridge == 1e-5
    assert (one.rho, one.gamma) == STEPS[10]
    assert common.ssca(split, 10, debias=True) == replace(one, debias=True)


def test_bad_input_of_the_shared_methods():
    with pytest.raises(ValueError, match="split must be one of"):
        common.ssca("rows", 10)
    with pytest.raises(ValueError, match="steps"):
        common.sgd("features", 10, 2, PowerLaw(0.3))
    with pytest.raises(ValueError, match="data must be one of"):
        common.tables("letters")


def test_both_splits_have_the_same_start_pictures_and_metrics():
    one = common.digits_problem(0, **TINY, wide=True)
    two = common.vertical_problem(0, **TINY, wide=True)
    w = one.w0 + 0.1
    assert torch.equal(one.w0, two.w0)
    for k, x in one.metrics(w, one).items():
        assert two.metrics(w, two)[k] == pytest.approx(float(x))
    other = common.digits_problem(1, **TINY, wide=True)
    assert other.data[0] is one.data[0]  # pictures are shared between seeds
    assert not torch.equal(other.w0, one.w0)


@pytest.mark.parametrize(("split", "known"), [("samples", 0), ("features", 1)])
def test_he_start_is_uniform_within_the_root_of_six_over_the_inputs(split, known):
    plain = (common.digits_problem, common.vertical_problem)[known](3, **TINY)
    wide = he_problem(3, split=split, **TINY)
    first, second = wide.w0[: 3 * 64].abs(), wide.w0[3 * 64 :].abs()
    for layer, inputs in ((first, 64), (second, 3)):
        bound = (6 / inputs) ** 0.5
        assert 0.8 * bound < float(layer.max()) <= bound * (1 + 1e-6)
    torch.testing.assert_close(wide.w0, 6**0.5 * plain.w0)
    assert wide.config == {**plain.config, "start": "He, uniform"}
    w = plain.w0 + 0.1
    assert wide.metrics(w, wide) == plain.metrics(w, plain)


def test_the_cost_by_place_in_the_file():
    task = {**TINY, "wide": True}
    problem = ordered_problem(0, **task)
    known = common.digits_problem(0, **task)
    X, y = known.data
    w = torch.randn(known.dim, generator=seeded(0, "rounds"), dtype=torch.float64)
    first, second = w[: 3 * 64].view(3, 64), w[3 * 64 :].view(10, 3)
    z = X.double() / 16 @ first.T
    each = torch.nn.functional.cross_entropy(z * torch.sigmoid(z) @ second.T, y, reduction="none")
    found = problem.metrics(w, problem)
    assert float(found["cost_even"]) == pytest.approx(float(each[0::2].mean()))
    assert float(found["cost_odd"]) == pytest.approx(float(each[1::2].mean()))
    assert float(found["cost_all"]) == pytest.approx(float(each.mean()))
    assert found["cost"] == known.metrics(w, known)["cost"]


# -- numbers


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ([2.0, 1.2, 0.8, 0.7], 15),  # half way between rounds 10 and 20
        ([2.0, 0.9, 1.1, 0.5], 9.0909091),  # below once is below
        ([0.9, 1.5, 1.5, 1.5], 0),
        ([2.0, 1.9, 1.8, 1.7], 30),  # never: the last round
    ],
)
def test_rounds_to_a_level(curve, expected):
    assert first_below(run(curve, [0, 10, 20, 30]), 1.0) == pytest.approx([expected])


def test_measures_of_one_run():
    one = run([2.0, 1.0, 0.5], [0, 10, 30])
    assert area(one) == pytest.approx([(10 * 1.5 + 20 * 0.75) / 30])
    found = measures(one)
    assert {k for k in found if k.startswith("cost_")} == {"cost_10", "cost_30"}
    assert found["cost_30"] == found["cost"] == pytest.approx([0.5])
    assert found["accuracy"] == pytest.approx([90.0])
    assert found["rounds_0.5"] == pytest.approx([30.0])


def test_sgd_is_chosen_by_the_mean_cost_at_the_round_of_the_criterion():
    t = [0, 30, 100]
    grid = {
        "samples_sgd_B10_a1_p0": run([[2.3, 0.4, 0.3], [2.3, 0.6, 0.5]], t, (0, 1)),
        "samples_sgd_B10_a0.1_p0": run([[2.3, 0.8, 0.1], [2.3, 0.7, 0.3]], t, (0, 1)),
        "samples_sgd_B10_a3_p0": run([[2.3, 0.1, 0.1], [2.3, np.nan, np.nan]], t, (0, 1)),
        "samples_sgd_B100_a1_p0": run([[0, 0, 0]], t),
    }
    assert chosen(grid, "samples_sgd_B10", "last") == "samples_sgd_B10_a0.1_p0"
    assert chosen(grid, "samples_sgd_B10", "early") == "samples_sgd_B10_a1_p0"


def test_halves():
    assert halves((1, 10, 100)) == (5, 50)
    assert halves((1,)) == ()


def test_differences_are_paired_by_seed(traces):
    a, b = "samples_ssca_B10", "features_ssca_B10"
    some = {a: traces[a], b: traces[b]}  # numbers that need other runs are left out
    base = np.linspace(2, 1, 21)
    up = np.arange(20.0)[:, None]
    some[a] = replace(some[a], metrics=run(base + up, some[a].rounds).metrics)
    some[b] = replace(some[b], metrics=run(base + up - 0.25, some[b].rounds).metrics)
    x = derive(some, FULL)["features_vs_samples_ssca_B10.cost_50"]
    assert (x.low, x.high) == pytest.approx((-0.25, -0.25))


def test_numbers_of_all_runs(traces, numbers):
    assert numbers["figure_2.wall"].value == sum(n.startswith("samples") for n in traces)
    assert numbers["samples_sgd_B10_last.lr"].value in FULL["rates"]
    assert numbers["order.even_minus_odd"].value == pytest.approx(0.2)
    assert numbers["features_ssca_B100.between"].value == pytest.approx(32 * 90 * 1000 * 128 / 1e6)
    assert numbers["samples_ssca_B1.up"].value == pytest.approx(32 * 10 * 101632 / 1e6)
    for pair in ("samples_ssca_B100_vs_B10", "samples_ssca_B10_debiased_vs_plain"):
        assert f"{pair}.area" in numbers


def test_runs_from_he_start_are_compared_among_themselves():
    t = [0, 30, 100]
    some = {
        f"{HE}features_ssca_B1": run([2.3, 0.5, 0.3], t, batch_size=10),
        f"{HE}features_sgd_B1_a1_p0": run([2.3, 0.9, 0.4], t, lr={"scale": 1.0, "exponent": 0.0}),
        "features_ssca_B1": run([2.3, 2.0, 2.0], t, batch_size=10),
    }
    n = derive(some, FULL)
    assert n[f"{HE}features_ssca_B1_vs_sgd_last.cost_30"].value == pytest.approx(-0.4)
    assert n[f"{HE}features_sgd_B1_last.lr"].value == 1
    assert n["features_ssca_B1.cost_30"].value == 2
    assert "features_ssca_B1_vs_sgd_last.cost_30" not in n


@pytest.mark.parametrize(
    "changes",
    [
        {"batches": (10,)},
        {"batches": (1,), "rates": (0.3,), "falls": (0.0,)},
        {"rounds": 7},
        {"levels": (0.5,)},
        {"seeds": (4,)},
        {"clients": 5, "hidden": 8},
    ],
)
def test_changed_parameters_give_numbers(changes):
    params = {**FULL, "seeds": (0, 1), **changes}
    found = derive(all_runs(params), params)
    runs = (
        f"{s}_{x}"
        for s in SPLITS
        for b in params["batches"]
        for x in (f"ssca_B{b}", f"sgd_B{b}_last")
    )
    assert {f"{run}.area" for run in runs} <= found.keys()


def test_quick_needs_no_download_and_has_every_kind_of_run():
    kinds = {n.split("_B")[0] for n in STUDY.specs(QUICK)}
    assert kinds == {n.split("_B")[0] for n in STUDY.specs(FULL)}
    assert QUICK["data"] == "digits"


# -- rules


def number(value, spread=0.01):
    return Number(value, value - spread, value + spread, (value,))


def agreeing():
    """Numbers with which every claim is reproduced, and nothing observed contradicts it."""
    n = {}
    curve = [f"cost_{r}" for r in LOOKS] + ["area"]
    for split in SPLITS:
        for b in BATCHES:
            n |= {f"{split}_ssca_B{b}.{k}": number(1.0) for k in curve}
            n |= {f"features_vs_samples_ssca_B{b}.{k}": number(0.02) for k in curve}
            for before, kind, size in (("", "sgd", b), (HE, "sgd", b), ("", "sgd2", b // 2)):
                n |= {f"{before}{split}_ssca_B{b}.{k}": number(1.0) for k in curve}
                for c in CRITERIA:
                    n |= {f"{before}{split}_{kind}_B{size}_{c}.{k}": number(1.2) for k in curve}
                    pair = f"{before}{split}_ssca_B{b}_vs_{kind}_{c}"
                    n |= {f"{pair}.{k}": number(-0.2) for k in curve}
        for pair in ("B10_vs_B1", "B100_vs_B10"):
            for kind in ("ssca", *(f"limit_U{u:g}" for u in LEVELS)):
                n |= {f"{split}_{kind}_{pair}.{k}": number(-0.3) for k in (*curve, "rounds_1")}
        for way in ("up", "down", "between"):
            n |= {f"{split}_{x}.{way}": number(32.0) for x in ("ssca_B1", "sgd_B1_last")}
    for k in (1, 2, 3, 4):
        n |= {f"alg_{k}.wrong_messages": number(0.0), f"alg_{k}.bits_off": number(0.0)}
        n |= {f"alg_{k}.client_ratio": number(1.1), f"alg_{k}.linearity": number(1.0)}
        n |= {f"alg_{k}.per_parameter": number(13.0)}
    return n


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_can_be_reproduced(claim):
    outcome = CLAIMS[claim].judge(agreeing())
    assert outcome.verdict == "reproduced"
    assert outcome.reason == ""
    assert {part.state for part in outcome.parts} == {"holds"}


#: claim -> a number with which one of its primary parts fails, and what the reason then names.
FAILING = {
    "C1": [
        ("samples_ssca_B10_vs_B1.area", 0.2, "over the rounds, Algorithm 1, B = 10 below B = 1"),
        ("features_ssca_B100_vs_B10.area", 0.2, "over the rounds, Algorithm 3, B = 100 below"),
        ("samples_limit_U0.4_B100_vs_B10.area", 0.2, "over the rounds, Algorithm 2, U = 0.4, B ="),
        ("features_limit_U0.6_B10_vs_B1.area", 0.2, "over the rounds, Algorithm 4, U = 0.6, B ="),
        ("samples_ssca_B100_vs_B10.cost_100", 0.2, "at round 100, Algorithm 1, B = 100 below"),
        ("features_ssca_B10_vs_B1.cost_100", 0.2, "at round 100, Algorithm 3, B = 10 below"),
    ],
    "C2": [(f"samples_ssca_B{b}_vs_sgd_last.area", 0.1, f"rounds, B = {b}") for b in BATCHES],
    "C3": [
        ("samples_ssca_B10_vs_sgd2_last.area", 0.1, "B = 10 against B = 5, E = 2"),
        ("samples_ssca_B100_vs_sgd2_last.area", 0.1, "B = 100 against B = 50, E = 2"),
    ],
    "C4": [(f"features_ssca_B{b}_vs_sgd_last.area", 0.1, f"rounds, B = {b}") for b in BATCHES],
    "C5": [
        ("features_vs_samples_ssca_B1.area", 0.12, "B = 1"),
        ("features_vs_samples_ssca_B10.area", 0.12, "B = 10"),
        ("features_vs_samples_ssca_B100.area", -0.2, "B = 100"),
    ],
    "C8": [
        ("alg_1.linearity", 2.0, "the server's work proportional to d, Algorithm 1"),
        ("alg_2.linearity", 2.0, "the server's work proportional to d, Algorithm 2"),
        *((f"alg_{k}.client_ratio", 1.6, f"of SGD's, Algorithm {k}") for k in (1, 2, 3, 4)),
    ],
    "C12": [
        *((f"alg_{k}.wrong_messages", 1.0, f"of the list, Algorithm {k}") for k in (1, 2, 3, 4)),
        *((f"alg_{k}.bits_off", 32.0, f"that follow, Algorithm {k}") for k in (1, 2, 3, 4)),
    ],
}


@pytest.mark.parametrize(
    ("claim", "key", "value", "named"),
    [(c, *case) for c, cases in FAILING.items() for case in cases],
)
def test_every_primary_part_can_fail(claim, key, value, named):
    n = agreeing()
    assert key in n
    outcome = CLAIMS[claim].judge({**n, key: number(value)})
    assert outcome.verdict == "partly"
    assert outcome.reason.startswith("does not hold")
    assert named in outcome.reason


@pytest.mark.parametrize(
    ("claim", "key"),
    [
        ("C1", "samples_ssca_B100_vs_B10.area"),
        ("C2", "samples_ssca_B1_vs_sgd_last.area"),
        ("C3", "samples_ssca_B100_vs_sgd2_last.area"),
        ("C4", "features_ssca_B10_vs_sgd_last.area"),
    ],
)
def test_an_interval_around_zero_decides_nothing(claim, key):
    assert CLAIMS[claim].judge({**agreeing(), key: number(-0.005)}).verdict == "undecided"


def test_splits_are_alike_within_a_tenth_and_a_wide_interval_decides_nothing():
    key = "features_vs_samples_ssca_B100.area"
    for value, spread, verdict in ((0.08, 0.01, "reproduced"), (0.08, 0.05, "undecided")):
        n = {**agreeing(), key: number(value, spread)}
        assert CLAIMS["C5"].judge(n).verdict == verdict


@pytest.mark.parametrize(
    ("claim", "key", "value", "named"),
    [
        ("C1", "samples_ssca_B100_vs_B10.cost_10", 0.2, "t = 10, Algorithm 1, B = 100"),
        ("C1", "features_limit_U0.6_B10_vs_B1.rounds_1", 3, "rounds to a cost of 1, Algorithm 4"),
        ("C2", "samples_ssca_B10_vs_sgd_last.cost_100", 0.1, "chosen at round 100, t = 100"),
        ("C3", "samples_ssca_B10_vs_sgd2_early.area", 0.1, "chosen at round 30, mean cost"),
        ("C5", "features_vs_samples_ssca_B1.cost_10", 0.2, "t = 10, B = 1"),
        ("C8", "features_ssca_B1.between", 33.0, "messages no longer than SGD's, Algorithm 3"),
    ],
)
def test_what_is_observed_is_shown_and_does_not_count(claim, key, value, named):
    outcome = CLAIMS[claim].judge({**agreeing(), key: number(value)})
    assert outcome.verdict == "reproduced"
    assert [named in p.name for p in outcome.parts if p.state == "fails"] == [True]


@pytest.mark.parametrize(("claim", "split"), [("C2", "samples"), ("C4", "features")])
def test_he_start_is_a_reading_of_its_own(claim, split):
    (reading,) = CLAIMS[claim].readings
    n = agreeing()
    assert reading.rule(n).verdict == "reproduced"
    assert {run.startswith(f"{HE}{split}") for run in reading.runs} == {True}
    wrong = {**n, f"{HE}{split}_ssca_B1_vs_sgd_last.area": number(0.1)}
    assert reading.rule(wrong).verdict == "not reproduced"
    assert CLAIMS[claim].judge(wrong).verdict == "reproduced"


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_can_fail_as_a_whole(claim):
    def spoil(key, x):
        return number(50.0) if key.startswith("alg") or "_vs_" in key else x

    wrong = {k: spoil(k, x) for k, x in agreeing().items()}
    assert CLAIMS[claim].judge(wrong).verdict == "not reproduced"


# -- counts


def test_the_table_of_messages_by_hand():
    """Two clients with 3 and 2 features, J = 4, L = 5, B = 6."""
    wanted = Counter(
        {
            ("server", "client 1", 5 * 4 + 4 * 3, 6): 1,
            ("server", "client 2", 5 * 4 + 4 * 2, 6): 1,
            ("client 1", "client 2", 24, 0): 1,
            ("client 2", "client 1", 24, 0): 1,
            ("client 1", "server", 12, 0): 1,
            ("client 2", "server", 8, 0): 1,
            ("client 1", "server", 20, 0): 1,
        }
    )
    assert counts.table((3, 2), 4, 5, 6, limited=False) == wanted
    changed = wanted - Counter([("client 1", "server", 20, 0)])
    changed["client 1", "server", 21, 0] += 1
    assert counts.table((3, 2), 4, 5, 6, limited=True) == changed


def test_messages_are_those_of_the_table_and_others_are_found(monkeypatch):
    found = {k: x.value for k, x in counts.counted().items()}
    assert [found[f"alg_{k}.wrong_messages"] for k in (1, 2, 3, 4)] == [0, 0, 0, 0]
    monkeypatch.setattr(counts, "messages", lambda *a: messages(*a)[:-1])
    assert counts.wrong_messages("features", limited=False) == 1
    monkeypatch.setattr(counts, "table", lambda *_: Counter())
    assert counts.wrong_messages("features", limited=True) > 1
    monkeypatch.setattr(counts, "algorithm", lambda *_: common.constrained("samples", 10, 0.5))
    assert counts.wrong_messages("samples", limited=False) == 1


def test_bits_between_clients_and_to_the_server_are_those_of_the_messages():
    problem = counts.by_features(8)
    log = messages(counts.algorithm("features", True), problem, seeded(0, "rounds"))
    across = sum(m.floats for m in log if "server" not in (m.sender, m.receiver))
    assert counts.between(counts.CLIENTS, 40, 8) == 32 * across
    params = {"data": "digits", "clients": 4, "hidden": 3}
    task = common.vertical_problem(0, **TINY)
    log = messages(common.constrained("features", 10, 0.6, clients=4), task, seeded(0, "rounds"))
    up = sum(m.floats for m in log if m.receiver == "server")
    down = sum(m.floats + m.indices for m in log if m.sender == "server")
    assert counts.up_and_down("features", True, params, 40) == (32 * up, 32 * down)
    d = common.digits_problem(0, **TINY).dim
    assert counts.up_and_down("samples", True, params, 0) == (32 * 4 * (d + 1), 32 * 4 * d)


def test_written_numbers_are_counted_and_views_are_not():
    x = torch.ones(7)
    with counts.Written() as work:
        assert (x * 2).view(7, 1).T.shape == (1, 7)
    assert work.numbers == 7
    many = torch.ones(3, 5)
    with counts.Written() as work:
        torch.func.vmap(lambda u: u + 1)(many)
    assert work.numbers == 15


def test_server_work_is_linear_in_the_parameters():
    found = {k: x.value for k, x in counts.counted().items()}
    for k in (1, 2):
        assert found[f"alg_{k}.linearity"] == pytest.approx(1, abs=0.01)
        assert 5 <= found[f"alg_{k}.per_parameter"] <= 40  # some passes, and no more than a few


# -- figures


@pytest.mark.parametrize("figure", STUDY.figures)
def test_figures_of_a_shortened_study_can_be_drawn(figure):
    params = {**QUICK, "batches": (1,)}
    assert len(render(STUDY.figures[figure](all_runs(params)), "dark")) > 3000
