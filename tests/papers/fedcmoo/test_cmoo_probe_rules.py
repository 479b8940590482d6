"""The study of the probes: its numbers, the rules of its claims, its runs."""

import numpy as np
import pytest
from planted import about, fails_alone

from fedlib.core import Trace
from papers.fedcmoo.probe import STUDY
from papers.fedcmoo.probe.methods import ERRORS
from papers.fedcmoo.probe.numbers import WINDOW, derive, running


def trace_of(info):
    """Two seeds with the same values."""
    arrays = {k: np.tile(np.asarray(v, float), (2, 1)) for k, v in info.items()}
    length = next(iter(arrays.values())).shape[1]
    return Trace({}, arrays, np.arange(length + 1), (0, 1), {})


def flat_errors(rounds=4, **changes):
    """Errors of an ordered run for two tasks, but for the changes."""
    values = {"largest": 0.01, "largest16": 0.02, "block": 0.1, "row": 0.2, "column": 0.15}
    values |= {"masked": 0.5, "unscaled": 0.6}
    info = {
        f"nrmse_{way}_{k}": [v] * rounds
        for way in ("two_way", "one_way")
        for k, v in values.items()
    }
    info |= {"nrmse_own_grams": [1.2] * rounds, "nrmse_own_grams_scaled": [0.3] * rounds}
    return trace_of(info | {f"nrmse_{k}": v for k, v in changes.items()})


class TestNumbers:
    def test_errors_in_percent_and_the_rounds_in_which_orders_hold(self):
        trace = flat_errors(
            two_way_block=[0.1, 0.01, 0.7, 0.3], one_way_masked=[0.05, 0.5, 0.5, 0.5]
        )
        n = derive({"gram_multi_mnist": trace}, {})
        assert n["gram_multi_mnist.two_way_block"].value == pytest.approx(27.75)
        assert n["gram_multi_mnist.two_way_order"].value == 0.5
        assert n["gram_multi_mnist.two_way_best"].value == 0.25
        assert n["gram_multi_mnist.one_way_order"].value == 0.75
        assert n["gram_multi_mnist.two_way_gain"].value == 0.25  # a tie is no gain

    def test_leads_and_their_running_means(self):
        rise = np.linspace(-1, 3, 41)
        info = {f"{w}_{k}": np.zeros(41) for w in ("alone", "share") for k in ("loss", "accuracy")}
        info |= {"method_loss": rise, "method_accuracy": -rise / 100}
        n = derive({"progress_multi_mnist": trace_of(info)}, {})
        assert n["progress_multi_mnist.loss_alone"].value == pytest.approx(1)
        assert n["progress_multi_mnist.accuracy_alone"].value == pytest.approx(-1)
        means = [np.mean(rise[i : i + WINDOW]) for i in range(41 - WINDOW + 1)]
        ahead = np.mean(np.array(means) > 0)
        assert 0 < ahead < 1
        assert n["progress_multi_mnist.loss_share_ahead"].value == pytest.approx(ahead)
        assert running(np.arange(3.0)[None]).tolist() == [[1.0]]  # fewer rounds than the window


def gaining(method, alone):
    info = {f"share_{k}": [0.0] * 12 for k in ("loss", "accuracy")}
    for who, x in (("method", method), ("alone", alone)):
        info |= {f"{who}_{k}": x for k in ("loss", "accuracy")}
    return trace_of(info)


PROGRESS = ("progress_multi_mnist", "progress_mnist_fashion")
(C7, C13, C20) = STUDY.claims


def turned(numbers, **changes):
    return numbers | {k: about(v, 0.01) for k, v in changes.items()}


class TestRules:
    @pytest.mark.parametrize("suffix", ["", "_equal"])
    def test_c7_asks_for_losses_and_accuracies_by_either_step_size(self, suffix):
        rule = C7.readings[0].rule if suffix else C7.rule
        names = [f"{run}{suffix}" for run in PROGRESS]
        ahead, behind = gaining([0.2] * 12, [0.1] * 12), gaining([0.1] * 12, [0.2] * 12)
        for traces, verdict in (
            ((ahead, ahead), "reproduced"),
            ((ahead, behind), "partly"),
            ((behind, behind), "not reproduced"),
        ):
            n = derive(dict(zip(names, traces, strict=True)), {})
            assert rule(n).verdict == verdict
        good = derive(dict.fromkeys(names, ahead), {})
        for name, title in zip(names, ("MultiMNIST", "MNIST+FMNIST"), strict=True):
            for what, words in (("loss", "losses fall"), ("accuracy", "accuracies rise")):
                bad = turned(good, **{f"{name}.{what}_alone": -1.0})
                fails_alone(rule, bad, f"{words} more, {title}")

    def test_c7_is_about_the_mean_and_observes_its_running_means(self):
        late = gaining([5.0] + [0.1] * 11, [0.2] * 12)  # ahead in the mean, for one round alone
        done = C7.rule(derive(dict.fromkeys(PROGRESS, late), {}))
        assert done.verdict == "reproduced"
        assert {p.state for p in done.parts if not p.primary} == {"fails"}

    def test_c13_is_the_order_of_the_mean_errors(self):
        sets = {"multi_mnist": "MultiMNIST", "mnist_fashion": "MNIST+FMNIST"}
        sets["cifar10_mnist"] = "CIFAR10+MNIST"
        whole = {f"gram_{d}": flat_errors() for d in sets}
        good = derive(whole, {})
        assert C13.rule(good).verdict == "reproduced"
        for data, title in sets.items():
            for way, text in (("two_way", "two-way"), ("one_way", "one-way")):
                part = f"{text}: largest below low rank below random, {title}"
                for k, x in (("largest16", 20.0), ("block", 60.0), ("masked", 5.0)):
                    fails_alone(C13.rule, turned(good, **{f"gram_{data}.{way}_{k}": x}), part)
        once = flat_errors(two_way_block=[0.01, 0.1, 0.1, 0.1])  # the order fails in one round
        done = C13.rule(derive({**whole, "gram_multi_mnist": once}, {}))
        assert done.verdict == "reproduced"
        assert [p.name for p in done.parts if p.state == "fails"] == [
            "two-way: in nearly all rounds, MultiMNIST"
        ]
        low = {f"{way}_block": [0.01] * 4 for way in ("two_way", "one_way")}
        assert C13.rule(derive(dict.fromkeys(whole, flat_errors(**low)), {})).verdict == (
            "not reproduced"
        )

    def test_c20_asks_for_the_smallest_error_with_forty_tasks(self):
        low = {f"{way}_block": [0.01] * 4 for way in ("two_way", "one_way")}
        good = derive({"gram_attributes": flat_errors(**low)}, {})
        assert C20.rule(good).verdict == "reproduced"
        for way, text in (("two_way", "two-way"), ("one_way", "one-way")):
            for k, other in (
                ("largest16", "than of the largest"),
                ("masked", "than of random ones"),
            ):
                part = f"{text}: low rank has a smaller error, {other}"
                fails_alone(C20.rule, turned(good, **{f"gram_attributes.{way}_{k}": 0.5}), part)
        high = {f"{way}_block": [0.9] * 4 for way in ("two_way", "one_way")}
        bad = derive({"gram_attributes": flat_errors(**high)}, {})
        assert C20.rule(bad).verdict == "not reproduced"

    def test_short_runs_of_one_seed_are_not_judged(self):
        for claim in STUDY.claims:
            for outcome in STUDY.outcomes(claim).values():
                assert outcome.verdict == "not judged"
                assert "of the paper's 300 rounds" in outcome.reason


class TestStudy:
    def test_runs_keep_what_table_3_prints(self):
        specs = STUDY.specs(STUDY.resolve("full"))
        assert len(STUDY.paper_values) == 28
        keys = {v.key.split(".", 1)[0] for v in STUDY.paper_values}
        assert keys <= set(specs)
        for name in keys:
            assert set(ERRORS) <= set(specs[name].keep)

    def test_runs_can_be_left_out(self):
        p = STUDY.resolve("quick")
        assert "gram_cifar10_mnist" not in STUDY.specs(p)
        assert "gram_attributes" not in STUDY.specs({**p, "attribute_rounds": 0})
