"""The study of SSCA's Figures 2 and 3: problems, what it measures, quantities."""

import pytest
import torch
from torch.testing import assert_close

from papers.ssca import common
from tests.helpers.expect import near

TINY = {"data": "digits", "clients": 4, "hidden": 3, "evaluate": 50}


def test_both_splits_have_the_same_start_pictures_and_metrics():
    by_samples = common.digits_problem(0, **TINY, wide=True)
    by_features = common.vertical_problem(0, **TINY, wide=True)
    w = by_samples.w0 + 0.1
    assert torch.equal(by_samples.w0, by_features.w0)
    metrics = by_features.metrics(w, by_features)
    for name, value in by_samples.metrics(w, by_samples).items():
        near(metrics[name], float(value))
    reseeded = common.digits_problem(1, **TINY, wide=True)
    assert reseeded.data[0] is by_samples.data[0]  # pictures are shared between seeds
    assert not torch.equal(reseeded.w0, by_samples.w0)


@pytest.mark.parametrize(("split", "known"), [("samples", 0), ("features", 1)])
def test_he_start_is_uniform_within_the_root_of_six_over_the_inputs(split, known):
    plain = (common.digits_problem, common.vertical_problem)[known](3, **TINY)
    wide = common.he_problem(3, split=split, **TINY)
    magnitudes = wide.w0.abs()
    for layer, inputs in ((magnitudes[: 3 * 64], 64), (magnitudes[3 * 64 :], 3)):
        bound = (6 / inputs) ** 0.5
        assert 0.8 * bound < float(layer.max()) <= bound * (1 + 1e-6)
    assert_close(wide.w0, 6**0.5 * plain.w0)
    assert wide.config == {**plain.config, "start": "He, uniform"}
    w = plain.w0 + 0.1
    assert wide.metrics(w, wide) == plain.metrics(w, plain)


@pytest.mark.parametrize("batch", [2, 101])
def test_a_batch_for_which_the_paper_prints_no_steps_is_refused(batch):
    with pytest.raises(ValueError, match=f"batch must be one of 1, 10, 100, .* got {batch}"):
        common.ssca("samples", batch)
