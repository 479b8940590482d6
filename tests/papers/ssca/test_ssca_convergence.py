"""The study of SSCA's Figures 2 and 3: problems of both splits, and their starts."""

import pytest
import torch
from torch.testing import assert_close

from papers.ssca import common
from tests.helpers.expect import near, refuses

TINY = {"data": "digits", "clients": 4, "hidden": 3, "evaluate": 50}
MAKERS = {"samples": common.digits_problem, "features": common.vertical_problem}


def test_both_splits_have_the_same_start_pictures_and_metrics():
    by_samples = common.digits_problem(0, **TINY, wide=True)
    by_features = common.vertical_problem(0, **TINY, wide=True)
    assert torch.equal(by_samples.w0, by_features.w0)
    w = by_samples.w0 + 0.1
    metrics = by_features.metrics(w, by_features)
    for name, value in by_samples.metrics(w, by_samples).items():
        near(metrics[name], float(value))


@pytest.mark.parametrize("split", MAKERS)
def test_he_start_is_uniform_within_the_root_of_six_over_the_inputs(split):
    usual = MAKERS[split](3, **TINY)
    wide = common.he_problem(3, split=split, **TINY)
    assert_close(wide.w0, 6**0.5 * usual.w0)
    assert wide.config == {**usual.config, "start": "He, uniform"}
    first, second = wide.w0.abs().split([3 * 64, 10 * 3])
    for layer, inputs in ((first, 64), (second, 3)):
        bound = (6 / inputs) ** 0.5
        assert 0.8 * bound < float(layer.max()) <= bound * (1 + 1e-6)


def test_a_batch_for_which_the_paper_prints_no_steps_is_refused():
    words = "batch must be one of 1, 10, 100, * got 2"
    refuses(words, common.ssca, "samples", 2)
